"""Checks of our WARC files: members are whole, required fields are there, digests are right,
revisits lead somewhere, the index fits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.gzip_members import BrokenRecordError, iter_members
from crawlproj.archive.open_file import index_path
from crawlproj.archive.reader import Archive
from crawlproj.archive.stored_record import StoredRecord, parse_record, parse_warc_date
from crawlproj.errors import ArchiveError

REQUIRED = ("warc-record-id", "warc-date", "warc-type", "content-length")
WITH_URL = ("response", "resource", "request", "revisit", "conversion", "continuation")
PROFILES = ("revisit/identical-payload-digest", "revisit/server-not-modified")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at an offset of a file."""

    file: str
    offset: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}: byte {self.offset}: {self.what}"


def check_file(path: Path) -> Iterator[Problem]:
    """What is wrong in one file of ours; reading ends at the first member that is no record."""
    listed: set[tuple[int, int]] = set()
    try:
        with path.open("rb", buffering=1 << 18) as file:
            for member in iter_members(file):
                stored = parse_record(member)
                for what in record_faults(stored, first=member.offset == 0):
                    yield Problem(path.name, member.offset, what)
                if record_faults(stored, first=False):
                    continue
                if IndexEntry.from_stored(stored, path.name) is not None:
                    listed.add((stored.offset, stored.length))
    except BrokenRecordError as error:
        yield Problem(path.name, error.offset, error.why)
    except OSError as error:
        yield Problem(path.name, 0, f"can't be read: {error.strerror}")
    else:
        yield from _check_index(path, listed)


def record_faults(stored: StoredRecord, first: bool) -> list[str]:
    """What is wrong in one record; the `first` of a file must be a warcinfo record."""
    out = header_faults(stored)
    if first and stored.kind != "warcinfo":
        out.append("the file does not start with a warcinfo record")
    if not digest_matches(stored.block, stored.fields.get("warc-block-digest", "")):
        out.append("the block digest is wrong")
    if stored.kind in ("response", "resource") and not digest_matches(stored.body, stored.digest):
        out.append("the payload digest is wrong")
    return out


def header_faults(stored: StoredRecord) -> list[str]:
    """What is missing or invalid in the header of a record."""
    out = [f"{name} is missing" for name in REQUIRED if not stored.fields.get(name)]
    if stored.kind in WITH_URL and not stored.url:
        out.append("warc-target-uri is missing")
    try:
        parse_warc_date(stored.fields.get("warc-date", ""))
    except ValueError:
        out.append("warc-date is no date")
    if stored.kind == "revisit":
        if not stored.fields.get("warc-profile", "").endswith(PROFILES):
            out.append("a revisit without a known profile")
        has_target = stored.refers_to is not None or stored.fields.get("warc-refers-to")
        if not has_target and not stored.digest:
            out.append("a revisit that does not say of what")
    return out


def digest_matches(data: bytes, digest: str) -> bool:
    """Whether it is the digest (base32, hex or base64) of the data.

    A digest that is missing, or of an unknown algorithm, can't be wrong.
    """
    algorithm, _, value = digest.partition(":")
    try:
        expected = hashlib.new(algorithm.lower(), data, usedforsecurity=False).digest()
    except (ValueError, TypeError):  # the latter for algorithms that need a length
        return True
    padded = value + "=" * (-len(value) % 4)
    return expected in (
        _decoded(base64.b32decode, (value + "=" * (-len(value) % 8)).upper()),
        _decoded(binascii.unhexlify, value),
        _decoded(base64.b64decode, padded),
        _decoded(base64.urlsafe_b64decode, padded),
    )


def _decoded(decode: Callable[[str], bytes], text: str) -> bytes:
    """The decoded text; empty if it is not in this encoding."""
    try:
        return decode(text)
    except ValueError:
        return b""


def _check_index(path: Path, wanted: set[tuple[int, int]]) -> Iterator[Problem]:
    """What is wrong in the index of a file, which should list the records `wanted`."""
    try:
        lines = index_path(path).read_bytes().splitlines()
        found = {(entry.offset, entry.length) for entry in map(IndexEntry.from_line, lines)}
    except FileNotFoundError:
        yield Problem(path.name, 0, "it has no index")
        return
    except (ValueError, KeyError):
        yield Problem(path.name, 0, "its index is no CDXJ")
        return
    if lines != sorted(lines):
        yield Problem(path.name, 0, "its index is not sorted")
    for offset, _ in sorted(found - wanted):
        yield Problem(path.name, offset, "listed, but no such record")
    for offset, _ in sorted(wanted - found):
        yield Problem(path.name, offset, "not listed in the index")


def check_revisits(archive: Archive) -> Iterator[Problem]:
    """Revisits whose original is nowhere in the archive."""
    for path, record in archive.iter_records():
        if record.kind == "revisit":
            try:
                archive.find_original(record)
            except ArchiveError as error:
                yield Problem(path.name, record.offset, str(error))
