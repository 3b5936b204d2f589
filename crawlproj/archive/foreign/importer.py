"""Import of other tools' WARC files: their exchanges are written as records of our own, so that all
that holds for our files holds for them.

Revisits are imported last, when their originals, in whichever file, are in the index. Importing a
file again adds nothing.
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
from crawlproj.archive.foreign.reader import (
    ForeignExchange,
    ReportProblem,
    UnreadableWarcError,
    read_foreign,
)
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


@dataclass(slots=True)
class ImportCounts:
    """How many exchanges are new, were there already, had to be left out, or are not wanted.

    `keys` are hashes of the index keys of those that are in the archive now; `skipped` is the
    number of records that are no pages, by kind.
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
    report: ReportProblem,
    options: WriterOptions = DEFAULT_OPTIONS,
    unwanted: Callable[[str], bool] = lambda url: False,
) -> ImportCounts:
    """Import files into `folder`, whose common index is written again.

    `report` is called with what can't be read, and with revisits whose originals are missing. URLs
    that are `unwanted` are skipped. Raises ArchiveError if none of the files can be read, or if the
    archive can't be written.
    """
    for path in files:
        if not path.is_file():
            raise ArchiveError(f"{path} is no file")
    if folder.is_dir():
        # What a killed import left would be imported twice if it were not in the index.
        repair_open_files(folder)
        repair_indexes(folder)
    importer = WarcImporter(
        list(dict.fromkeys(files)), folder, report, options=options, unwanted=unwanted
    )
    try:
        if importer.import_pages() and importer.import_revisits(last=False):
            importer.collect_originals()
            importer.import_revisits(last=True)
    except ArchiveError:
        with suppress(OSError):  # what was imported is listed, if there is room on the disk
            merge_indexes(folder)
        raise
    if folder.is_dir():
        merge_indexes(folder)
    return importer.counts


class WarcImporter:
    """Reads the files up to four times: for pages, for revisits, for originals that revisits name
    by an id or a digest only, and for those revisits again.
    """

    def __init__(
        self,
        files: list[Path],
        folder: Path,
        report: ReportProblem,
        options: WriterOptions,
        unwanted: Callable[[str], bool],
    ) -> None:
        self._files = files
        self._folder = folder
        self._report = report
        self._options = options
        self._unwanted = unwanted
        self._archive = Archive(folder)
        self._originals = OriginalFinder(self._archive)
        self._done = set[int]()
        self._receipts = list[tuple[str, Receipt]]()
        self.counts = ImportCounts()

    def import_pages(self) -> bool:
        """Import all but revisits; returns whether there are revisits.

        A file that can't be read is reported, and not read again.
        """
        unreadable = dict[Path, UnreadableWarcError]()
        has_revisits = False
        with self._open_writer() as writer:
            for path in self._files:
                try:
                    for found in read_foreign(path, self._report, on_skipped=self._count_skipped):
                        if found.kind == "revisit":
                            has_revisits = True
                        elif self._is_wanted(found):
                            self._import_exchange(writer, found, None)
                except UnreadableWarcError as error:
                    unreadable[path] = error
        if len(unreadable) == len(self._files):
            raise next(iter(unreadable.values()))
        for path, reason in unreadable.items():
            self._report(Problem(path.name, 0, str(reason).removeprefix(f"{path.name} ")))
        self._files = [path for path in self._files if path not in unreadable]
        return has_revisits

    def import_revisits(self, last: bool) -> bool:
        """Import the revisits that are not done yet; returns whether originals are unknown.

        In the `last` pass, revisits without an original are left out.
        """
        unknown = False
        with self._open_writer() as writer:
            for path, found in self._read_again():
                if found.kind != "revisit" or _identity(found) in self._done:
                    continue
                if not self._is_wanted(found):
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
        """Note what the files say of the records that revisits want."""
        for _, found in self._read_again():
            if found.kind != "revisit":
                self._originals.note_record(found)

    def _read_again(self) -> Iterator[tuple[Path, ForeignExchange]]:
        """All exchanges once more; problems were reported the first time."""
        for path in self._files:
            with suppress(UnreadableWarcError):
                for found in read_foreign(path, lambda problem: None):
                    yield path, found

    @contextmanager
    def _open_writer(self) -> Iterator[WarcWriter]:
        about = {"description": "imported: " + " ".join(path.name for path in self._files)}
        writer = WarcWriter(self._folder, "import", "import", info=about, options=self._options)
        try:
            yield writer
        finally:
            writer.close()
        self._check_receipts()

    def _count_skipped(self, what: str) -> None:
        self.counts.skipped[what] += 1

    def _is_wanted(self, found: ForeignExchange) -> bool:
        if not self._unwanted(found.exchange.url):
            return True
        self.counts.unwanted += 1
        self._done.add(_identity(found))
        return False

    def _leave_out(self, found: ForeignExchange, file: str) -> None:
        text = (
            f"{found.exchange.url} of {found.exchange.at:%Y-%m-%d %H:%M:%S} is the same as a "
            "page that is not here"
        )
        self._report(Problem(file, found.offset, text))
        self._done.add(_identity(found))
        self.counts.left_out += 1

    def _import_exchange(
        self, writer: WarcWriter, found: ForeignExchange, target: tuple[StoredRecord, str] | None
    ) -> None:
        """Write an exchange, unless it is there. `target` is the original of a revisit, with the
        post query of its request.
        """
        exchange = found.exchange
        original = None
        if target is not None:
            record, post_query = target
            body = b"" if _is_304(exchange) else record.body
            exchange = replace(exchange, head=exchange.head or record.head, body=body)
            # Originals are looked up among responses to GETs: a revisit of another becomes whole.
            if not post_query:
                original = Original(record.url, record.at, record.digest, record_id=record.id)
        if not exchange.post_query:
            self.counts.keys.add(hash(surt_key(exchange.url).encode()))
        identity = _identity(found)
        is_repeated = identity in self._done
        self._done.add(identity)
        if is_repeated or self._is_archived(exchange, original):
            self.counts.known += 1
            return
        if writer.is_full:
            writer.flush().result()
            self._check_receipts()
        self._receipts.append((exchange.url, writer.put(exchange, original)))
        self.counts.new += 1

    def _check_receipts(self) -> None:
        """Report what could not be written."""
        for url, receipt in self._receipts:
            if receipt.error is not None:
                self._report(Problem("archive", 0, f"{url} can't be written: {receipt.error}"))
                self.counts.new -= 1
                self.counts.left_out += 1
        self._receipts = []

    def _is_archived(self, exchange: Exchange, original: Original | None) -> bool:
        """Whether the archive has this URL with this time and payload."""
        url = plain_url(exchange.url)
        stamp = format_timestamp(exchange.at)
        payload: tuple[bytes, ...] = (exchange.head, exchange.body)
        if heads.is_http(exchange.head):
            payload = (exchange.body,)
        if _is_304(exchange):
            if original is not None:
                digest = original.digest
            else:
                digest = compute_digest(*payload, algorithm=self._options.algorithm)
            return (url, stamp, digest) in self._not_modified
        digests = {
            entry.digest
            for entry in self._archive.versions(url, exchange.post_query)
            if entry.url == url and entry.timestamp == stamp
        }
        algorithms = {digest.partition(":")[0] for digest in digests}
        return any(
            compute_digest(*payload, algorithm=algorithm) in digests
            for algorithm in algorithms & hashlib.algorithms_guaranteed
        )

    @cached_property
    def _not_modified(self) -> set[tuple[str, str, str]]:
        """URL, time and digest of all 304s, which no index lists.

        Few tools write them, so all files are read only when the first 304 is imported.
        """
        found = set[tuple[str, str, str]]()
        for _, record in self._archive.iter_records():
            if record.kind not in ("response", "revisit"):
                continue
            if heads.parse_status(record.head) == 304:
                found.add((record.url, format_timestamp(record.at), record.digest))
        return found


def _identity(found: ForeignExchange) -> int:
    """A hash by which an exchange is recognized if it comes again."""
    exchange = found.exchange
    is_revisit = found.kind == "revisit"
    content = found.digest or found.refers_to_id
    if not is_revisit:
        content = compute_digest(exchange.body)
    return hash(
        (
            is_revisit,
            plain_url(exchange.url),
            exchange.post_query,
            format_timestamp(exchange.at),
            content,
            heads.parse_status(exchange.head),
        )
    )


def _is_304(exchange: Exchange) -> bool:
    return heads.parse_status(exchange.head) == 304
