"""The thread that writes WARC files.

Who fetches pages must not wait for a disk, and a page counts only when its record is on disk. So
`put` returns at once with a receipt, and `flush` with a future that is done when all that was put
before is on disk; only then do receipts say where. An event loop awaits
`asyncio.wrap_future(writer.flush())`, a thread calls `.result()`. While it is `full` no new page is
to be fetched; `room()` is a future that is done when it isn't any more. `put` itself never refuses
and never waits: what is fetched is fetched.

If the disk is full, every flush says so (ArchiveError), nothing is lost, and it is tried again with
each flush and each second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.exchange import Exchange, Original, RecordLocation
from crawlproj.archive.gzip_members import BY_SIZE, compress_member
from crawlproj.archive.open_file import OpenFile, file_name
from crawlproj.archive.records import Record, build_records, build_warcinfo
from crawlproj.archive.write_queue import (
    QueueItem,
    Receipt,
    RotationFuture,
    WriteJob,
    WriteQueue,
    settle_future,
)
from crawlproj.errors import ArchiveError

log = logging.getLogger(__name__)

RETRY_S = 1.0
WRITE_BYTES = 256_000
"""Of packed records in one write."""


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How files are made: when the next begins, how much may wait, how often it is synced unasked,
    packed how, which digests.
    """

    max_bytes: int = 1_000_000_000
    max_age_s: float = 86_400.0
    queue_bytes: int = 64_000_000
    sync_bytes: int = 8_000_000
    level: int = BY_SIZE
    algorithm: str = "sha1"


DEFAULT_OPTIONS = WriterOptions()


@dataclass(slots=True)
class WrittenJob:
    """A job that is in the file, perhaps not yet on disk: what is promised when it is, and its line
    of the index.
    """

    job: WriteJob
    record_location: RecordLocation
    line: bytes


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WarcWriter:
    """Files of one worker in `folder`: PREFIX-TIME-SERIAL-WORKER.warc.gz. `info` is what the
    warcinfo record says.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        worker: str,
        info: Mapping[str, object],
        options: WriterOptions = DEFAULT_OPTIONS,
        now: Callable[[], datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        self._worker = worker
        self._info = info
        self._shape = options
        self._now = now
        self._monotonic = monotonic
        self._queue = WriteQueue(options.queue_bytes)
        self._hand: deque[QueueItem] = deque()
        """What the thread has taken and not yet done."""
        self._unsynced: list[WrittenJob] = []
        self._file: OpenFile | None = None
        self._info_id = ""
        self._opened_s = 0.0
        self._serial = 0
        self.failure: str | None = None
        """Why nothing can be written at the moment."""
        self._thread = threading.Thread(target=self._run, name="warc", daemon=True)
        self._thread.start()

    def put(self, exchange: Exchange, original: Original | None = None) -> Receipt:
        """Queue an exchange; with an `original`, the answer is written as a revisit of it if it is
        one.
        """
        receipt = Receipt()
        self._queue.put(WriteJob(exchange, original, receipt))
        return receipt

    @property
    def is_full(self) -> bool:
        return self._queue.is_full

    def wait_for_room(self) -> Future[None]:
        return self._queue.wait_for_room()

    def flush(self) -> Future[None]:
        """Done when all that was put before is on disk. ArchiveError if it can't be written now; it
        stays queued.
        """
        return self._queue.flush()

    def rotate_file(self) -> Future[None]:
        """The same, and the file is closed: what is put from now on goes into another one."""
        return self._queue.flush(close=True)

    def close(self) -> None:
        """Write all, close the file and end the thread; ArchiveError if the disk does not take it.
        It waits.
        """
        self._queue.close()
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
            self._queue.close()
            if self._file is not None:
                self._file.close_unfinished()
            self._refuse(self.failure or "The archive is closed")

    def _work(self) -> None:
        while (hand := self._queue.take_all(self._left_s())) or not self._queue.closed:
            self._hand = hand
            try:
                self._serve()
                self.failure = None
            except OSError as error:
                self._fail(error)
                if self._queue.closed:
                    break
                self._queue.wait_for_flush(RETRY_S)
        try:
            self._close_file()
        except OSError as error:
            self._fail(error)

    def _left_s(self) -> float | None:
        """Until the file is to be closed; None if there is none."""
        if self._file is None:
            return None
        if self._file.size >= self._shape.max_bytes:
            return 0.0
        return max(
            0.0,
            min(self._opened_s + self._shape.max_age_s - self._monotonic(), threading.TIMEOUT_MAX),
        )

    def _serve(self) -> None:
        """All that is in hand; what is left there if it fails is not done."""
        self._rotate_if_due()
        while self._hand:
            if isinstance(first := self._hand[0], WriteJob):
                self._write()
            else:
                self._close_file() if isinstance(first, RotationFuture) else self._sync()
                self._hand.popleft()
                settle_future(first)
            self._rotate_if_due()

    def _rotate_if_due(self) -> None:
        if self._file is None:
            return
        if self._left_s() == 0:
            self._close_file()
        elif self._file.size - self._file.synced >= self._shape.sync_bytes:
            self._sync()

    def _write(self) -> None:
        """The jobs that come first, as many as are worth a write."""
        file = self._file or self._begin()
        made = list[WrittenJob]()
        pieces = list[bytes]()
        end = file.size
        enough = min(end + WRITE_BYTES, self._shape.max_bytes)
        while (
            self._hand and isinstance(job := self._hand[0], WriteJob) and (end < enough or not made)
        ):
            self._hand.popleft()
            if found := self._compressed_records(job):
                record, members = found
                made.append(_written(job, record, file.name, offset=end, length=len(members[0])))
                pieces += members
                end += sum(map(len, members))
        try:
            file.write(b"".join(pieces))
        except OSError:
            self._hand.extendleft(each.job for each in reversed(made))
            raise
        self._unsynced += made

    def _compressed_records(self, job: WriteJob) -> tuple[Record, list[bytes]] | None:
        """The answer's record, and the members of all records."""
        try:
            found = build_records(
                job.exchange, job.original, self._info_id, algorithm=self._shape.algorithm
            )
            return found[0], [compress_member(record.data, self._shape.level) for record in found]
        except Exception as error:  # one page that can't be written must not stop the others
            log.exception("%s can't be archived", job.exchange.url)
            job.receipt.error = error
            self._queue.mark_done([job])
            return None

    def _begin(self) -> OpenFile:
        """The next file, with its first record on it."""
        now = self._now()
        while True:
            self._serial += 1
            try:
                file = OpenFile(
                    self._folder, file_name(self._prefix, self._worker, self._serial, now=now)
                )
                break
            except FileExistsError:
                continue
        info = build_warcinfo(file.name, now, self._info, algorithm=self._shape.algorithm)
        try:
            file.write(compress_member(info.data, self._shape.level))
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
        done = self._unsynced
        self._unsynced = []
        for written in done:
            written.job.receipt.record_location = written.record_location
            if written.line:
                self._file.add_index_line(written.line)
        self._queue.mark_done([written.job for written in done])

    def _close_file(self) -> None:
        if self._file is not None:
            self._sync()
            self._file.close()
            self._file = None

    # when the disk does not take it

    def _take_back(self) -> None:
        """After a sync that failed nobody knows what is on disk: that part is cut off and written
        again, to another file.
        """
        file = self._file
        self._file = None
        self._hand.extendleft(written.job for written in reversed(self._unsynced))
        self._unsynced = []
        assert file is not None
        try:
            file.truncate_to(file.synced)
            if file.synced:
                file.close()
        except OSError:
            log.warning("%s stays open until it is repaired at the next start", file.name)
        file.close_unfinished() if file.synced else file.discard()

    def _fail(self, error: OSError) -> None:
        """All who wait hear why."""
        text = f"The archive can't be written: {error.strerror or error} ({self._folder})"
        if self.failure is None:
            log.error("%s", text)
        self.failure = text
        self._refuse(text)

    def _refuse(self, text: str) -> None:
        """Jobs stay, nobody waits any more."""
        hand = self._hand
        self._hand = deque()
        self._queue.put_back(hand)
        self._queue.fail_flushes(text)


def _written(job: WriteJob, record: Record, file: str, offset: int, length: int) -> WrittenJob:
    line = (
        IndexEntry.from_record(record, offset, length, file=file).to_line()
        if record.indexed
        else b""
    )
    place = RecordLocation(
        file,
        offset,
        length,
        kind=record.kind,
        record_id=record.id,
        digest=record.digest,
        at=record.at,
        original=record.original,
    )
    return WrittenJob(job, place, line)
