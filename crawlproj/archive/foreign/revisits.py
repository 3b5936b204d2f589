"""Finds the originals of other tools' revisits: records with the payload that the revisit names.

Some revisits name the URL and the time of their original, some only the id that it had in its own
file, some only a digest. Tools write digests in several ways, and those of chunked bodies with the
chunks, which we join; so the digests that records in those files have count, too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.check import digest_matches
from crawlproj.archive.foreign.reader import ForeignExchange
from crawlproj.archive.reader import Archive
from crawlproj.archive.records import REVISIT_MIME
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.http import heads

VersionKey = tuple[str, str, str]
"""URL, time (14 digits), and the post query of the request (empty for a GET)."""
MAX_READS = 20
"""How many versions of a page are read if their digests are of another algorithm."""
JOINED_CHUNKS = "X-Crawler-Transfer-Encoding"
DIGEST_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


class OriginalFinder:
    """Finds originals in the archive. For revisits whose original is not found: `add_wanted`, then
    `note_record` for all records of the files, then `find_original` again.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._wanted = set[int]()
        self._versions: dict[int, VersionKey] = {}
        """By the hashes of wanted ids and digests."""
        self._vouched = set[int]()
        """Hashes of (digest, URL, time) that records of the files have."""

    def add_wanted(self, revisit: ForeignExchange) -> None:
        """Note the id and the digest by which a revisit names its original."""
        if revisit.refers_to_id:
            self._wanted.add(hash(revisit.refers_to_id))
        if revisit.digest:
            self._wanted.add(hash(revisit.digest))

    def note_record(self, found: ForeignExchange) -> None:
        """Note a record that is no revisit, if one wants it."""
        url = found.exchange.url
        stamp = format_timestamp(found.exchange.at)
        version = url, stamp, found.exchange.post_query
        if hash(found.record_id) in self._wanted:
            self._versions[hash(found.record_id)] = version
        if hash(found.digest) in self._wanted:
            self._vouched.add(hash((found.digest, url, stamp)))
            self._versions.setdefault(hash(found.digest), version)

    def find_original(
        self, revisit: ForeignExchange, last: bool
    ) -> tuple[StoredRecord, str] | None:
        """The original in the archive, and the post query of its request; None if it is not found.

        In the `last` pass nothing more will be known, so a chunked body need not match the digest.
        """
        digest = revisit.digest
        is_304 = _is_304(revisit)
        if is_304 and digest_matches(b"", digest):
            digest = ""  # that of the empty body of the 304
        for number, (version, exact) in enumerate(dict.fromkeys(self._candidates(revisit))):
            # Without a digest only the first candidate counts, and only if it is certain.
            if not digest and (number > 0 or not (exact or is_304)):
                return None
            lenient = last and exact and number == 0
            record = self._find_record(version, exact, digest, lenient=lenient)
            if record is not None:
                post_query = version[2]
                return record, post_query
        return None

    def _find_record(
        self, version: VersionKey, exact: bool, digest: str, lenient: bool
    ) -> StoredRecord | None:
        """The record of a URL with this payload, of exactly this time or the last until then.

        `lenient`: one whose chunks were joined may have another digest.
        """
        url, stamp, post_query = version
        reads = 0
        for entry in reversed(self._archive.versions(url, post_query)):
            if entry.mime == REVISIT_MIME or entry.timestamp > stamp:
                continue
            if exact and entry.timestamp != stamp:
                continue
            if digest and not lenient and not self._may_match(entry, digest):
                continue
            record = self._archive.read(entry.file, entry.offset, entry.length)
            if not digest or self._matches(entry, record, digest):
                return record
            if lenient and heads.get_header(record.head, JOINED_CHUNKS):
                return record
            reads += 1
            if reads == MAX_READS:
                break
        return None

    def _candidates(self, revisit: ForeignExchange) -> Iterator[tuple[VersionKey, bool]]:
        """Versions that may be the original, and whether their times are exact.

        After what the revisit names comes where else its digest may be found: some tools name
        another revisit, or a time that is a little off.
        """
        own_stamp = format_timestamp(revisit.exchange.at)
        post_query = revisit.exchange.post_query
        if revisit.refers_to_id:
            version = self._versions.get(hash(revisit.refers_to_id))
            if version is not None:
                yield version, True
        target = revisit.refers_to
        if target is not None:
            yield (target.url, format_timestamp(target.at), post_query), True
            yield (target.url, own_stamp, post_query), False
        yield (revisit.exchange.url, own_stamp, post_query), False
        if revisit.digest:
            version = self._versions.get(hash(revisit.digest))
            if version is not None:
                yield version, True

    def _may_match(self, entry: IndexEntry, digest: str) -> bool:
        """Whether an entry may have this digest: it has, or one of another algorithm, or a record
        of the files vouches for it.
        """
        normalized = normalize_digest(digest)
        if normalized == entry.digest:
            return True
        if normalized.partition(":")[0] != entry.digest.partition(":")[0]:
            return True
        return self._is_vouched(entry, digest)

    def _matches(self, entry: IndexEntry, record: StoredRecord, digest: str) -> bool:
        if normalize_digest(digest) and digest_matches(record.body, digest):
            return True
        return self._is_vouched(entry, digest)

    def _is_vouched(self, entry: IndexEntry, digest: str) -> bool:
        return hash((digest, entry.url, entry.timestamp)) in self._vouched


def normalize_digest(digest: str) -> str:
    """A digest as we write it, from hex, base32 or base64; empty if it is of no known kind."""
    algorithm, _, value = digest.partition(":")
    algorithm = algorithm.lower().replace("-", "")
    for decode in (binascii.unhexlify, _decode_base32, _decode_base64):
        try:
            found = decode(value)
        except ValueError:
            continue
        if len(found) == DIGEST_SIZES.get(algorithm):
            return f"{algorithm}:{base64.b32encode(found).decode()}"
    return ""


def _decode_base32(text: str) -> bytes:
    return base64.b32decode((text + "=" * (-len(text) % 8)).upper())


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _is_304(revisit: ForeignExchange) -> bool:
    if revisit.profile.endswith("server-not-modified"):
        return True
    return heads.parse_status(revisit.exchange.head) == 304
