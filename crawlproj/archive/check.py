"""Does a WARC file hold what it says: whole members, required fields, digests, revisits that lead
somewhere, an index that fits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.gzip_members import BrokenRecordError, iter_members
from crawlproj.archive.open_file import index_path
from crawlproj.archive.reader import Archive
from crawlproj.archive.stored_record import StoredRecord, parse_record, parse_warc_date
from crawlproj.errors import ArchiveError

ALWAYS = ("warc-record-id", "warc-date", "warc-type", "content-length")
WITH_URL = ("response", "resource", "request", "revisit", "conversion", "continuation")
PROFILES = ("revisit/identical-payload-digest", "revisit/server-not-modified")


@dataclass(frozen=True, slots=True)
class Problem:
    file: str
    offset: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}: byte {self.offset}: {self.what}"


def check_file(path: Path) -> Iterator[Problem]:
    """What is wrong in one file of ours, record by record; reading ends at the first place that is
    no record.
    """
    listed: set[tuple[int, int]] = set()
    try:
        with path.open("rb", buffering=1 << 18) as file:
            for found in iter_members(file):
                stored = parse_record(found)
                yield from (
                    Problem(path.name, found.offset, what)
                    for what in record_faults(stored, first=found.offset == 0)
                )
                if (
                    not record_faults(stored, first=False)
                    and IndexEntry.from_stored(stored, path.name) is not None
                ):
                    listed.add((stored.offset, stored.length))
    except BrokenRecordError as error:
        yield Problem(path.name, error.offset, error.why)
    except OSError as error:
        yield Problem(path.name, 0, f"can't be read: {error.strerror}")
    else:
        yield from _check_index(path, listed)


def record_faults(stored: StoredRecord, first: bool) -> list[str]:
    """What is wrong in one record."""
    out = header_faults(stored)
    if first and stored.kind != "warcinfo":
        out.append("the file does not start with a warcinfo record")
    if not digest_matches(stored.block, stored.fields.get("warc-block-digest", "")):
        out.append("the block digest is wrong")
    if stored.kind in ("response", "resource") and not digest_matches(stored.body, stored.digest):
        out.append("the payload digest is wrong")
    return out


def header_faults(stored: StoredRecord) -> list[str]:
    """What is missing in its header, or makes no sense."""
    out = [f"{name} is missing" for name in ALWAYS if not stored.fields.get(name)]
    if stored.kind in WITH_URL and not stored.url:
        out.append("warc-target-uri is missing")
    try:
        parse_warc_date(stored.fields.get("warc-date", ""))
    except ValueError:
        out.append("warc-date is no date")
    if stored.kind == "revisit":
        if not stored.fields.get("warc-profile", "").endswith(PROFILES):
            out.append("a revisit without a known profile")
        if (
            stored.refers_to is None
            and not stored.fields.get("warc-refers-to")
            and not stored.digest
        ):
            out.append("a revisit that does not say of what")
    return out


def digest_matches(data: bytes, digest: str) -> bool:
    """Whether it is the digest of the data; one that is missing, or of an unknown kind, can't be
    wrong. Base32, hex or base64.
    """
    algorithm, _, value = digest.partition(":")
    try:
        found = hashlib.new(algorithm.lower(), data, usedforsecurity=False).digest()
    except (ValueError, TypeError):  # some kinds have no length of their own
        return True
    try:
        padded = value + "=" * (-len(value) % 4)
        return found in (
            _tried(base64.b32decode, (value + "=" * (-len(value) % 8)).upper()),
            _tried(binascii.unhexlify, value),
            _tried(base64.b64decode, padded),
            _tried(base64.urlsafe_b64decode, padded),
        )
    except ValueError:
        return False


def _tried(decode: object, text: str) -> bytes:
    try:
        return bytes(decode(text))  # type: ignore[operator]
    except ValueError:
        return b""


def _check_index(path: Path, wanted: set[tuple[int, int]]) -> Iterator[Problem]:
    """Each listed record is there, each that should be listed is, and the lines are sorted."""
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
    yield from (
        Problem(path.name, offset, "listed, but no such record")
        for offset, _ in sorted(found - wanted)
    )
    yield from (
        Problem(path.name, offset, "not listed in the index")
        for offset, _ in sorted(wanted - found)
    )


def check_revisits(archive: Archive) -> Iterator[Problem]:
    """Revisits whose original is nowhere in the archive."""
    for path, record in archive.iter_records():
        if record.kind == "revisit":
            try:
                archive.find_original(record)
            except ArchiveError as error:
                yield Problem(path.name, record.offset, str(error))
