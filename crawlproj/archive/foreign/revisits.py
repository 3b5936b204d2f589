"""Which record a revisit of another tool means: it must have the payload that the revisit says, or
it is not that one.

Some revisits name the URL and the time of it, some only the id that it had in its own file, some
only a digest. Tools write digests in several ways, and of bodies in chunks as they came, which are
joined here; so what the records of the files say of themselves counts, too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.check import digest_matches
from crawlproj.archive.foreign.reader import ForeignExchange
from crawlproj.archive.reader import Archive
from crawlproj.archive.records import REVISIT_MIME
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.http import heads

VersionKey = tuple[str, str, str]
"""URL, time (14 digits), and what was asked for if it was no GET."""
READ = 20
"""So many versions of a page are read, if their digests are of another kind than that of the
revisit.
"""
JOINED = "X-Crawler-Transfer-Encoding"
SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


class OriginalFinder:
    """What is known of the records of the files: `ask` for what revisits want, `note` the records,
    then look again.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._wanted = set[int]()
        self._places: dict[int, VersionKey] = {}
        self._vouched = set[int]()

    def add_wanted(self, revisit: ForeignExchange) -> None:
        self._wanted |= {hash(word) for word in (revisit.refers_to_id, revisit.digest) if word}

    def note_record(self, found: ForeignExchange) -> None:
        """A record that is no revisit."""
        place = found.exchange.url, format_timestamp(found.exchange.at), found.exchange.post_query
        if hash(found.record_id) in self._wanted:
            self._places[hash(found.record_id)] = place
        if hash(found.digest) in self._wanted:
            self._vouched.add(hash((found.digest, *place[:2])))
            self._places.setdefault(hash(found.digest), place)

    def find_original(
        self, revisit: ForeignExchange, last: bool
    ) -> tuple[StoredRecord, str] | None:
        """The record, and what it was asked with. `last`: nothing more will be known, so that a
        body in chunks need not fit.
        """
        said = "" if _says_304(revisit) and digest_matches(b"", revisit.digest) else revisit.digest
        for number, (place, exact) in enumerate(dict.fromkeys(self._targets(revisit))):
            if not said and (number or (not exact and not _says_304(revisit))):
                return None  # nothing says which
            if found := self._found(place, exact, said, lenient=last and exact and not number):
                return found, place[2]
        return None

    def _found(
        self, place: VersionKey, exact: bool, said: str, lenient: bool
    ) -> StoredRecord | None:
        """A record of that URL with that payload: of exactly that time, or else the last until
        then.
        """
        url, stamp, asked = place
        entries = [
            entry for entry in self._archive.versions(url, asked) if entry.mime != REVISIT_MIME
        ]
        reads = READ
        for entry in reversed(
            [e for e in entries if (e.timestamp == stamp if exact else e.timestamp <= stamp)]
        ):
            if said and not lenient and not self._may_fit(entry, said):
                continue
            record = self._archive.read(entry.file, entry.offset, entry.length)
            if (
                not said
                or self._fits(entry, record, said)
                or (lenient and heads.get_header(record.head, JOINED))
            ):
                return record
            if (reads := reads - 1) == 0:
                break
        return None

    def _targets(self, revisit: ForeignExchange) -> Iterator[tuple[VersionKey, bool]]:
        """Places, and whether it is exactly that time: what it names, and where else its digest may
        be found. Some tools name another revisit, or a time that is a little off.
        """
        own = format_timestamp(revisit.exchange.at)
        asked = revisit.exchange.post_query
        if place := self._places.get(hash(revisit.refers_to_id)) if revisit.refers_to_id else None:
            yield place, True
        if (target := revisit.refers_to) is not None:
            yield (target.url, format_timestamp(target.at), asked), True
            yield (target.url, own, asked), False
        yield (revisit.exchange.url, own, asked), False
        if place := self._places.get(hash(revisit.digest)) if revisit.digest else None:
            yield place, True

    def _may_fit(self, entry: IndexEntry, said: str) -> bool:
        """As far as digests tell: they are equal, of different kinds, or its file vouched
        for it.
        """
        usual = normalize_digest(said)
        other = usual.partition(":")[0] != entry.digest.partition(":")[0]
        return other or usual == entry.digest or self._is_vouched(entry, said)

    def _fits(self, entry: IndexEntry, record: StoredRecord, said: str) -> bool:
        return (
            bool(normalize_digest(said)) and digest_matches(record.body, said)
        ) or self._is_vouched(entry, said)

    def _is_vouched(self, entry: IndexEntry, said: str) -> bool:
        return hash((said, entry.url, entry.timestamp)) in self._vouched


def normalize_digest(said: str) -> str:
    """A digest as we write it, from hex, base32 or base64; empty if it is of no known kind."""
    algorithm, _, value = said.partition(":")
    algorithm = algorithm.lower().replace("-", "")
    decoders: list[Callable[[str], bytes]] = [
        binascii.unhexlify,
        lambda text: base64.b32decode(text.upper()),
        base64.b64decode,
    ]
    for decode, unit in zip(decoders, (2, 8, 4), strict=True):
        try:
            found = decode(value + "=" * (-len(value) % unit) if unit > 2 else value)
        except ValueError:
            continue
        if len(found) == SIZES.get(algorithm):
            return f"{algorithm}:{base64.b32encode(found).decode()}"
    return ""


def _says_304(revisit: ForeignExchange) -> bool:
    return heads.parse_status(revisit.exchange.head) == 304 or revisit.profile.endswith(
        "server-not-modified"
    )
