"""Taking pages of other tools' WARC files into the archive: written anew, so that all that is
promised of our files holds for them.

Revisits come last, when what they point at is in the index, in whichever file it was. Doing it
again adds nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from crawlproj.archive.cdxj import format_timestamp
from crawlproj.archive.check import Problem
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.foreign.reader import ForeignExchange, UnreadableWarcError, read_foreign
from crawlproj.archive.foreign.revisits import OriginalFinder
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.reader import Archive
from crawlproj.archive.records import compute_digest, plain_url
from crawlproj.archive.recovery import repair_indexes, repair_open_files
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.archive.surt import surt_key
from crawlproj.archive.write_queue import Receipt
from crawlproj.archive.writer import DEFAULT_OPTIONS, WarcWriter, WriterOptions
from crawlproj.errors import ArchiveError
from crawlproj.http import heads

Tell = Callable[[Problem], None]


@dataclass(slots=True)
class ImportCounts:
    """How many exchanges are new, were there already, had to be left out, or are not wanted.
    `keys`: hashes of the index's keys of those that are in the archive now. `passed`: records that
    are no pages, by kind.
    """

    new: int = 0
    known: int = 0
    left_out: int = 0
    unwanted: int = 0
    keys: set[int] = field(default_factory=set, compare=False, repr=False)
    skipped: Counter[str] = field(default_factory=Counter, compare=False, repr=False)


def import_files(
    files: Sequence[Path],
    folder: Path,
    report: Tell,
    options: WriterOptions = DEFAULT_OPTIONS,
    unwanted: Callable[[str], bool] = lambda url: False,
) -> ImportCounts:
    """Into `folder`, whose common index is made anew; `tell` hears of what can't be read, or leads
    nowhere. What is `unwanted` is passed over. ArchiveError if nothing can be read of any file, or
    the disk does not take it.
    """
    if missing := [path for path in files if not path.is_file()]:
        raise ArchiveError(f"{missing[0]} is no file")
    if folder.is_dir():
        repair_open_files(
            folder
        )  # what an import left that was killed, or met a full disk: else it would come twice
        repair_indexes(folder)
    intake = WarcImporter(
        list(dict.fromkeys(files)), folder, report, options=options, unwanted=unwanted
    )
    try:
        if intake.import_pages() and intake.import_revisits(last=False):
            intake.collect_originals()
            intake.import_revisits(last=True)
    except ArchiveError:
        with suppress(OSError):  # what was taken is listed, if there is room for it
            merge_indexes(folder)
        raise
    if folder.is_dir():
        merge_indexes(folder)
    return intake.counts


class WarcImporter:
    """Reads the files as often as it is needed: for pages, for revisits, and for what revisits name
    by an id only.
    """

    def __init__(
        self,
        files: list[Path],
        folder: Path,
        report: Tell,
        options: WriterOptions,
        unwanted: Callable[[str], bool],
    ) -> None:
        self._files = files
        self._folder = folder
        self._tell = report
        self._options = options
        self._unwanted = unwanted
        self._archive = Archive(folder)
        self._originals = OriginalFinder(self._archive)
        self._done = set[int]()
        self._receipts = list[tuple[str, Receipt]]()
        self.counts = ImportCounts()

    def import_pages(self) -> bool:
        """All but revisits; is there any? A file of which nothing can be read is told, and not read
        again.
        """
        bad: list[tuple[Path, UnreadableWarcError]] = []
        revisits = False
        with self._writing() as writer:
            for path in self._files:
                try:
                    for found in read_foreign(path, self._tell, on_skipped=self._passed):
                        revisits |= found.kind == "revisit"
                        if found.kind != "revisit" and self._is_wanted(found):
                            self._import_exchange(writer, found, None)
                except UnreadableWarcError as error:
                    bad.append((path, error))
        if len(bad) == len(self._files):
            raise bad[0][1]
        for path, why in bad:
            self._tell(Problem(path.name, 0, str(why).removeprefix(f"{path.name} ")))
        self._files = [path for path in self._files if path not in {each for each, _ in bad}]
        return revisits

    def import_revisits(self, last: bool) -> bool:
        """Those that are not taken yet; is one left of which more must be known?"""
        unknown = False
        with self._writing() as writer:
            for path, found in self._again():
                if (
                    found.kind != "revisit"
                    or _mark(found) in self._done
                    or not self._is_wanted(found)
                ):
                    continue
                original = self._originals.find_original(found, last)
                if original is not None:
                    self._import_exchange(writer, found, original)
                elif last:
                    self._leave_out(found, path.name)
                else:
                    self._originals.add_wanted(found)
                    unknown = True
        return unknown

    def collect_originals(self) -> None:
        """What the files say of the records that revisits ask for."""
        for _, found in self._again():
            if found.kind != "revisit":
                self._originals.note_record(found)

    def _again(self) -> Iterator[tuple[Path, ForeignExchange]]:
        """All is said already that there is to say."""
        for path in self._files:
            with suppress(UnreadableWarcError):
                yield from ((path, found) for found in read_foreign(path, lambda problem: None))

    @contextmanager
    def _writing(self) -> Iterator[WarcWriter]:
        about = {"description": "imported: " + " ".join(path.name for path in self._files)}
        writer = WarcWriter(self._folder, "import", "import", info=about, options=self._options)
        try:
            yield writer
        finally:
            writer.close()
        self._settle()

    def _passed(self, what: str) -> None:
        self.counts.skipped[what] += 1

    def _is_wanted(self, found: ForeignExchange) -> bool:
        if unwanted := self._unwanted(found.exchange.url):
            self.counts.unwanted += 1
            self._done.add(_mark(found))
        return not unwanted

    def _leave_out(self, found: ForeignExchange, file: str) -> None:
        text = (
            f"{found.exchange.url} of {found.exchange.at:%Y-%m-%d %H:%M:%S} is the same as a "
            "page that is not here"
        )
        self._tell(Problem(file, found.offset, text))
        self._done.add(_mark(found))
        self.counts.left_out += 1

    def _import_exchange(
        self, writer: WarcWriter, found: ForeignExchange, meant: tuple[StoredRecord, str] | None
    ) -> None:
        """With what a revisit means; it stays one if that is a page, which can be looked up."""
        exchange = found.exchange
        original = None
        if meant is not None:
            record, asked = meant
            exchange = replace(
                exchange,
                head=exchange.head or record.head,
                body=b"" if _says_304(exchange) else record.body,
            )
            original = (
                Original(record.url, record.at, record.digest, record_id=record.id)
                if not asked
                else None
            )
        if not exchange.post_query:
            self.counts.keys.add(hash(surt_key(exchange.url).encode()))
        again = len(self._done)
        mark = _mark(found)
        self._done.add(mark)
        if again == len(self._done) or self._is_there(exchange, original):
            self.counts.known += 1
            return
        if writer.is_full:
            writer.flush().result()
            self._settle()
        self._receipts.append((exchange.url, writer.put(exchange, original)))
        self.counts.new += 1

    def _settle(self) -> None:
        """What could not be written is told."""
        for url, receipt in self._receipts:
            if receipt.error is not None:
                self._tell(Problem("archive", 0, f"{url} can't be written: {receipt.error}"))
                self.counts.new -= 1
                self.counts.left_out += 1
        self._receipts = []

    def _is_there(self, exchange: Exchange, original: Original | None) -> bool:
        url = plain_url(exchange.url)
        stamp = format_timestamp(exchange.at)
        pieces = (
            (exchange.body,) if heads.is_http(exchange.head) else (exchange.head, exchange.body)
        )
        if _says_304(exchange):
            payload = (
                original.digest
                if original is not None
                else compute_digest(*pieces, algorithm=self._options.algorithm)
            )
            return (url, stamp, payload) in self._not_modified
        entries = [
            entry
            for entry in self._archive.versions(url, exchange.post_query)
            if (entry.url, entry.timestamp) == (url, stamp)
        ]
        kinds = {
            entry.digest.partition(":")[0] for entry in entries
        } & hashlib.algorithms_guaranteed
        return not {entry.digest for entry in entries}.isdisjoint(
            compute_digest(*pieces, algorithm=kind) for kind in kinds
        )

    @cached_property
    def _not_modified(self) -> set[tuple[str, str, str]]:
        """All 304s, which no index lists. Few tools write them, so this is looked up only if there
        is one.
        """
        records = (
            record
            for _, record in self._archive.iter_records()
            if record.kind in ("response", "revisit")
        )
        return {
            (record.url, format_timestamp(record.at), record.digest)
            for record in records
            if heads.parse_status(record.head) == 304
        }


def _mark(found: ForeignExchange) -> int:
    """Of an exchange, by which it is known if it comes again."""
    exchange = found.exchange
    content = (
        found.digest or found.refers_to_id
        if found.kind == "revisit"
        else compute_digest(exchange.body)
    )
    asked = (
        found.kind == "revisit",
        plain_url(exchange.url),
        exchange.post_query,
        format_timestamp(exchange.at),
    )
    return hash((*asked, content, heads.parse_status(exchange.head)))


def _says_304(exchange: Exchange) -> bool:
    return heads.parse_status(exchange.head) == 304
