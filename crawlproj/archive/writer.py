"""The thread that writes WARC files.

An event loop must not wait for a disk, and a page counts only when its record is on disk. So `put`
returns a receipt at once, and `flush` a future that is done when all that was put before is on
disk; only then do receipts say where. An event loop awaits `asyncio.wrap_future(writer.flush())`, a
thread calls `.result()`. While it `is_full`, no new page should be fetched; `wait_for_room` returns
a future that is done when there is room again. `put` itself never refuses and never waits, because
a page that was fetched must be kept.

If the disk is full, every flush fails with an ArchiveError; nothing is lost, and writing is tried
again with each flush and every second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.exchange import Exchange, LaterNote, Original, RecordLocation
from crawlproj.archive.gzip_members import BY_SIZE, compress_member
from crawlproj.archive.open_file import OpenFile, file_name
from crawlproj.archive.records import Record, build_note, build_records, build_warcinfo
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
"""Bytes of compressed records in one write."""


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How files are written: their largest size and age, how much may wait in the queue, after how
    many bytes they are synced without a flush, the level of compression, the digests.
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
    """A job that was written to the file, but may not be on disk yet. `record_location` is what its
    receipt will say, `line` its line of the index, empty if it has none.
    """

    job: WriteJob
    record_location: RecordLocation
    line: bytes


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WarcWriter:
    """Writes the files of one worker in `folder`, PREFIX-TIME-SERIAL-WORKER.warc.gz. `info` is the
    content of their warcinfo records.
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
        self._options = options
        self._now = now
        self._monotonic = monotonic
        self._queue = WriteQueue(options.queue_bytes)
        self._taken: deque[QueueItem] = deque()
        """Items that the thread has taken from the queue and not done yet."""
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
        """Queue an exchange; its response becomes a revisit of `original` if the payload is the
        same.
        """
        receipt = Receipt()
        self._queue.put(WriteJob(exchange, original, receipt))
        return receipt

    def put_note(self, note: LaterNote) -> None:
        """Queue what became known of a page that is stored already."""
        self._queue.put(WriteJob(note, None, Receipt()))

    @property
    def is_full(self) -> bool:
        return self._queue.is_full

    def wait_for_room(self) -> Future[None]:
        return self._queue.wait_for_room()

    def flush(self) -> Future[None]:
        """A future that is done when all that was put before is on disk.

        It fails with an ArchiveError if that can't be written now; exchanges stay in the queue.
        """
        return self._queue.flush()

    def rotate_file(self) -> Future[None]:
        """The same as flush, and the file is closed: what is put later goes into another one."""
        return self._queue.flush(close=True)

    def close(self) -> None:
        """Write all, close the file and wait for the thread; ArchiveError if that fails."""
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
        while True:
            # Read before: what is put between an empty take and a close is taken next time.
            closed = self._queue.closed
            self._taken = self._queue.take_all(self._seconds_left())
            if not self._taken and closed:
                break
            try:
                self._process_taken()
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

    def _seconds_left(self) -> float | None:
        """The time until the file has to be closed; None if there is none."""
        if self._file is None:
            return None
        if self._file.size >= self._options.max_bytes:
            return 0.0
        seconds = self._opened_s + self._options.max_age_s - self._monotonic()
        return max(0.0, min(seconds, threading.TIMEOUT_MAX))

    def _process_taken(self) -> None:
        """Do all items that were taken; if it fails, those that are left are not done."""
        self._rotate_if_due()
        while self._taken:
            first = self._taken[0]
            if isinstance(first, WriteJob):
                self._write_jobs()
            else:
                if isinstance(first, RotationFuture):
                    self._close_file()
                else:
                    self._sync()
                self._taken.popleft()
                settle_future(first)
            self._rotate_if_due()

    def _rotate_if_due(self) -> None:
        if self._file is None:
            return
        if self._seconds_left() == 0:
            self._close_file()
        elif self._file.size - self._file.synced >= self._options.sync_bytes:
            self._sync()

    def _write_jobs(self) -> None:
        """Write the jobs that come first, about WRITE_BYTES of them at once."""
        file = self._file or self._open_next_file()
        written = list[WrittenJob]()
        pieces = list[bytes]()
        end = file.size
        enough = min(end + WRITE_BYTES, self._options.max_bytes)
        while self._taken and (end < enough or not written):
            job = self._taken[0]
            if not isinstance(job, WriteJob):
                break
            self._taken.popleft()
            compressed = self._compressed_records(job)
            if compressed is None:
                continue
            response, members = compressed
            written.append(
                _written_job(job, response, file.name, offset=end, length=len(members[0]))
            )
            pieces += members
            end += sum(map(len, members))
        try:
            file.write(b"".join(pieces))
        except OSError:
            self._taken.extendleft(each.job for each in reversed(written))
            raise
        self._unsynced += written

    def _compressed_records(self, job: WriteJob) -> tuple[Record, list[bytes]] | None:
        """The response's record, and the gzip members of all records; None if that fails."""
        try:
            algorithm = self._options.algorithm
            records: Sequence[Record]
            if isinstance(job.exchange, LaterNote):
                records = [build_note(job.exchange, self._info_id, algorithm)]
            else:
                records = build_records(
                    job.exchange, job.original, self._info_id, algorithm=algorithm
                )
            members = [compress_member(record.data, self._options.level) for record in records]
            return records[0], members
        except Exception as error:  # one page that can't be written must not stop the others
            log.exception("%s can't be archived", job.exchange.url)
            job.receipt.error = error
            self._queue.mark_done([job])
            return None

    def _open_next_file(self) -> OpenFile:
        """The next file, with its warcinfo record."""
        now = self._now()
        while True:
            self._serial += 1
            name = file_name(self._prefix, self._worker, self._serial, now=now)
            try:
                file = OpenFile(self._folder, name)
                break
            except FileExistsError:
                continue
        info = build_warcinfo(file.name, now, self._info, algorithm=self._options.algorithm)
        try:
            file.write(compress_member(info.data, self._options.level))
        except OSError:
            file.discard()
            raise
        self._file = file
        self._info_id = info.id
        self._opened_s = self._monotonic()
        return file

    def _sync(self) -> None:
        """Sync the file; then receipts get their locations, and the index its lines."""
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

    # when the disk fails

    def _take_back(self) -> None:
        """Cut off what was not synced and take it up again, for another file.

        After a sync that failed nobody knows what of it is on disk.
        """
        file = self._file
        self._file = None
        self._taken.extendleft(written.job for written in reversed(self._unsynced))
        self._unsynced = []
        assert file is not None
        try:
            file.truncate_to(file.synced)
            if file.synced:
                file.close()
        except OSError:
            log.warning("%s stays open until it is repaired at the next start", file.name)
        if file.synced:
            file.close_unfinished()
        else:
            file.discard()

    def _fail(self, error: OSError) -> None:
        """Log why the archive can't be written, and fail all flushes with it."""
        text = f"The archive can't be written: {error.strerror or error} ({self._folder})"
        if self.failure is None:
            log.error("%s", text)
        self.failure = text
        self._refuse(text)

    def _refuse(self, text: str) -> None:
        """Fail all flushes; jobs go back to the queue."""
        taken = self._taken
        self._taken = deque()
        self._queue.put_back(taken)
        self._queue.fail_flushes(text)


def _written_job(job: WriteJob, record: Record, file: str, offset: int, length: int) -> WrittenJob:
    line = b""
    if record.indexed:
        line = IndexEntry.from_record(record, offset, length, file=file).to_line()
    location = RecordLocation(
        file,
        offset,
        length,
        kind=record.kind,
        record_id=record.id,
        digest=record.digest,
        at=record.at,
        original=record.original,
    )
    return WrittenJob(job, location, line)
