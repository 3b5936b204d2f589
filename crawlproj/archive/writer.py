"""The thread that writes WARC files.

Who fetches pages must not wait for a disk, and a page counts only when its record is on disk. So `put` returns at once with a
receipt, and `flush` with a future that is done when all that was put before is on disk; only then do receipts say where. An event
loop awaits `asyncio.wrap_future(writer.flush())`, a thread calls `.result()`. While it is `full` no new page is to be fetched;
`room()` is a future that is done when it isn't any more. `put` itself never refuses and never waits: what is fetched is fetched.

If the disk is full, every flush says so (ArchiveError), nothing is lost, and it is tried again with each flush and each second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crawlproj.archive.cdxj import Entry
from crawlproj.archive.exchange import Exchange, Original, Place
from crawlproj.archive.files import OpenFile, file_name
from crawlproj.archive.inbox import Inbox, Job, Receipt, Turn, settle
from crawlproj.archive.members import BY_SIZE, pack
from crawlproj.archive.records import Record, records, warcinfo
from crawlproj.errors import ArchiveError

log = logging.getLogger(__name__)

RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How files are made: when the next begins, how much may wait, how often it is synced unasked, packed how, which digests."""

    max_bytes: int = 1_000_000_000
    max_age_s: float = 86_400.0
    queue_bytes: int = 64_000_000
    sync_bytes: int = 8_000_000
    level: int = BY_SIZE
    algorithm: str = "sha1"


DEFAULT = Shape()


@dataclass(frozen=True, slots=True)
class Written:
    """A job that is in the file, perhaps not yet on disk."""

    job: Job
    record: Record
    offset: int
    length: int


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Writer:
    """Files of one worker in `folder`: PREFIX-TIME-SERIAL-WORKER.warc.gz. `info` is what the warcinfo record says."""

    def __init__(
        self, folder: Path, prefix: str, worker: str, info: Mapping[str, object], shape: Shape = DEFAULT,
        now: Callable[[], datetime] = _utc_now, monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._folder, self._prefix, self._worker, self._info, self._shape = folder, prefix, worker, info, shape
        self._now, self._monotonic = now, monotonic
        self._inbox = Inbox(shape.queue_bytes)
        self._unsynced: list[Written] = []
        self._file: OpenFile | None = None
        self._info_id, self._opened_s, self._serial = "", 0.0, 0
        self.failure: str | None = None
        """Why nothing can be written at the moment."""
        self._thread = threading.Thread(target=self._run, name="warc", daemon=True)
        self._thread.start()

    def put(self, exchange: Exchange, original: Original | None = None) -> Receipt:
        """Queue an exchange; with an `original`, the answer is written as a revisit of it if it is one."""
        receipt = Receipt()
        self._inbox.put(Job(exchange, original, receipt))
        return receipt

    @property
    def full(self) -> bool:
        return self._inbox.full

    def room(self) -> Future[None]:
        return self._inbox.room()

    def flush(self) -> Future[None]:
        """Done when all that was put before is on disk. ArchiveError if it can't be written now; it stays queued."""
        return self._inbox.flush()

    def turn(self) -> Future[None]:
        """The same, and the file is closed: what is put from now on goes into another one."""
        return self._inbox.flush(close=True)

    def close(self) -> None:
        """Write all, close the file and end the thread; ArchiveError if the disk does not take it. It waits."""
        self._inbox.close()
        self._thread.join()
        if self.failure:
            raise ArchiveError(self.failure)

    # the thread

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # nobody may wait for a thread that is gone
            log.exception("The archive has stopped")
            self.failure = f"The archive has stopped: {error!r}"
        finally:
            self._inbox.close()
            if self._file is not None:
                self._file.leave()
            self._inbox.refuse(self.failure or "The archive is closed")

    def _work(self) -> None:
        while (item := self._inbox.next(self._left_s())) is not None or not self._inbox.closed:
            try:
                self._serve(item)
                if (left_s := self._left_s()) is not None and left_s <= 0:
                    self._turn_over()
                self.failure = None
            except OSError as error:
                self._fail(error, item)
                if self._inbox.closed:
                    break
                self._inbox.rest(RETRY_S)
        try:
            self._turn_over()
        except OSError as error:
            self._fail(error, None)

    def _left_s(self) -> float | None:
        """Until the file is to be closed; None if there is none."""
        if self._file is None:
            return None
        if self._file.size >= self._shape.max_bytes:
            return 0.0
        return max(0.0, min(self._opened_s + self._shape.max_age_s - self._monotonic(), threading.TIMEOUT_MAX))

    def _serve(self, item: Job | Future[None] | None) -> None:
        if isinstance(item, Job):
            try:
                self._write(item)
            except OSError:
                self._inbox.back([item])
                raise
            if self._file is not None and self._file.size - self._file.synced >= self._shape.sync_bytes:
                self._sync()
        elif item is not None:
            self._turn_over() if isinstance(item, Turn) else self._sync()
            settle(item)

    def _write(self, job: Job) -> None:
        file = self._file or self._begin()
        try:
            found = records(job.exchange, job.original, self._info_id, self._shape.algorithm)
            packed = [pack(record.data, self._shape.level) for record in found]
        except Exception as error:  # one page that can't be written must not stop the others
            log.exception("%s can't be archived", job.exchange.url)
            job.receipt.error = error
            self._inbox.done([job])
            return
        self._unsynced.append(Written(job, found[0], file.write(b"".join(packed)), len(packed[0])))

    def _begin(self) -> OpenFile:
        """The next file, with its first record on it."""
        now = self._now()
        while True:
            self._serial += 1
            try:
                file = OpenFile(self._folder, file_name(self._prefix, self._worker, self._serial, now))
                break
            except FileExistsError:
                continue
        info = warcinfo(file.name, now, self._info, self._shape.algorithm)
        try:
            file.write(pack(info.data, self._shape.level))
        except OSError:
            file.discard()
            raise
        self._file, self._info_id, self._opened_s = file, info.id, self._monotonic()
        return file

    def _sync(self) -> None:
        """What is on disk now is promised, and listed in the index."""
        if self._file is None:
            return
        try:
            self._file.sync()
        except OSError:
            self._take_back()
            raise
        done, self._unsynced = self._unsynced, []
        for written in done:
            written.job.receipt.place = _list(self._file, written)
        self._inbox.done([written.job for written in done])

    def _turn_over(self) -> None:
        if self._file is not None:
            self._sync()
            self._file.close()
            self._file = None

    # when the disk does not take it

    def _take_back(self) -> None:
        """After a sync that failed nobody knows what is on disk: that part is cut off and written again, to another file."""
        file, self._file = self._file, None
        self._inbox.back(written.job for written in self._unsynced)
        self._unsynced = []
        assert file is not None
        try:
            file.cut(file.synced)
            if file.synced:
                file.close()
        except OSError:
            log.warning("%s stays open until it is repaired at the next start", file.name)
        file.leave() if file.synced else file.discard()

    def _fail(self, error: OSError, item: Job | Future[None] | None) -> None:
        """All who wait hear why."""
        text = f"The archive can't be written: {error.strerror or error} ({self._folder})"
        if self.failure is None:
            log.error("%s", text)
        self.failure = text
        self._inbox.refuse(text)
        if isinstance(item, Future):
            settle(item, ArchiveError(text))


def _list(file: OpenFile, written: Written) -> Place:
    record, offset, length = written.record, written.offset, written.length
    if record.indexed:
        file.list(Entry.of_record(record, offset, length, file.name))
    return Place(file.name, offset, length, record.kind, record.id, record.digest, record.at, record.original)
