"""Taking pages of other tools' WARC files into the archive: written anew, so that all that is promised of our files holds for them.

Revisits come last, when what they point at is in the index, in whichever file it was. Doing it again adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from crawlproj.archive import heads
from crawlproj.archive.cdxj import timestamp
from crawlproj.archive.check import Problem
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.foreign import Foreign, read_foreign
from crawlproj.archive.reader import REVISIT, Archive
from crawlproj.archive.records import digest, plain_url
from crawlproj.archive.sorting import merge_indexes
from crawlproj.archive.stored import Stored
from crawlproj.archive.surts import surt
from crawlproj.archive.writer import DEFAULT, Shape, Writer
from crawlproj.errors import ArchiveError

Tell = Callable[[Problem], None]


@dataclass(slots=True)
class Taken:
    """How many exchanges are new, were there already, had to be left out, or are not wanted. `keys`: hashes of the index's keys of
    those that are in the archive now."""

    new: int = 0
    known: int = 0
    left_out: int = 0
    unwanted: int = 0
    keys: set[int] = field(default_factory=set, compare=False, repr=False)


def take(
    files: Sequence[Path], folder: Path, tell: Tell, shape: Shape = DEFAULT, unwanted: Callable[[str], bool] = lambda url: False
) -> Taken:  # fmt: skip
    """Into `folder`, whose common index is made anew; `tell` hears of what can't be read, or leads nowhere. What is
    `unwanted` is passed over. ArchiveError if nothing can be read of a file, or the disk does not take it."""
    if missing := [path for path in files if not path.is_file()]:
        raise ArchiveError(f"{missing[0]} is no file")
    taken = Taken()
    for revisits in (False, True):
        writer = Writer(folder, "import", "import", {"description": "imported: " + " ".join(path.name for path in files)}, shape)
        intake = Intake(Archive(folder), writer, tell, taken)
        try:
            for path in files:
                for found in read_foreign(path, _unheard if revisits else tell):
                    if (found.kind == "revisit") is not revisits:
                        continue
                    if unwanted(found.exchange.url):
                        taken.unwanted += 1
                    else:
                        intake.take(found, path.name)
        finally:
            writer.close()
    if folder.is_dir():
        merge_indexes(folder)
    return taken


def _unheard(problem: Problem) -> None:
    """It was told when the file was first read."""


class Intake:
    """One reading of all files."""

    def __init__(self, archive: Archive, writer: Writer, tell: Tell, taken: Taken) -> None:
        self._archive, self._writer, self._tell, self._taken = archive, writer, tell, taken

    def take(self, found: Foreign, file: str) -> None:
        exchange, original = found.exchange, None
        if found.kind == "revisit":
            record = self._original(found)
            if record is None:
                text = f"{exchange.url} of {exchange.at:%Y-%m-%d %H:%M:%S} is the same as a page that is not here"
                self._tell(Problem(file, 0, text))
                self._taken.left_out += 1
                return
            exchange = replace(exchange, head=exchange.head or record.head, body=b"" if _says_304(exchange) else record.body)
            original = Original(record.url, record.at, record.digest, record.id)
        self._taken.keys.add(hash(surt(exchange.url).encode()))
        if self._is_there(exchange, original):
            self._taken.known += 1
            return
        if self._writer.full:
            self._writer.flush().result()
        self._writer.put(exchange, original)
        self._taken.new += 1

    def _original(self, found: Foreign) -> Stored | None:
        """The record that a revisit means: that of the time that it names; if it names none, the last one before it."""
        target = found.refers_to
        url, stamp = (target.url, timestamp(target.at)) if target else (found.exchange.url, timestamp(found.exchange.at))
        whole = [entry for entry in self._archive.versions(url) if entry.mime != REVISIT]
        fitting = [e for e in whole if e.timestamp == stamp] if target else [e for e in whole if e.timestamp <= stamp]
        if not fitting:
            return None
        entry = next((entry for entry in fitting if entry.digest == found.digest), fitting[-1])
        return self._archive.read(entry.file, entry.offset, entry.length)

    def _is_there(self, exchange: Exchange, original: Original | None) -> bool:
        pieces = (exchange.body,) if heads.is_http(exchange.head) else (exchange.head, exchange.body)
        payload = original.digest if original is not None else digest(*pieces)
        wanted = (plain_url(exchange.url), timestamp(exchange.at), payload)
        if _says_304(exchange):
            return wanted in self._not_modified
        return wanted in {(entry.url, entry.timestamp, entry.digest) for entry in self._archive.versions(exchange.url)}

    @cached_property
    def _not_modified(self) -> set[tuple[str, str, str]]:
        """All 304s, which no index lists. Few tools write them, so this is looked up only if there is one."""
        records = (record for _, record in self._archive.records() if record.kind in ("response", "revisit"))
        return {(record.url, timestamp(record.at), record.digest) for record in records if heads.status(record.head) == 304}


def _says_304(exchange: Exchange) -> bool:
    return heads.status(exchange.head) == 304
