from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file
from crawlproj.archive.open_file import OpenFile, file_name, sizes_by_prefix
from crawlproj.archive.recovery import repair_open_files
from crawlproj.archive.write_queue import WriteQueue
from crawlproj.archive.writer import WarcWriter, WriterOptions
from crawlproj.errors import ArchiveError
from tests.support.archiving import PAGE, START, accepted, exchange, write


def closed(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz"))


def opened(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz.open"))


class Disk:
    """A disk that can be full or broken. It stands in for the kernel's calls, not for a part of
    ours.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.syncs_fail = False
        self.synced = 0
        self._write: Callable[[int, Any], int] = os.write
        monkeypatch.setattr("crawlproj.archive.open_file.os.write", self.write)
        monkeypatch.setattr("crawlproj.archive.open_file._sync", self.sync)

    def write(self, file: int, data: Any) -> int:
        if self.room is None:
            return self._write(file, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = self._write(file, data[: self.room])
        self.room -= done
        return done

    def sync(self, file: int) -> None:
        if self.syncs_fail:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.synced = os.fstat(file).st_size


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_records_are_where_the_receipts_say(tmp_path: Path) -> None:
    places = write(tmp_path, [(exchange(n, PAGE + b"%d" % n), None) for n in range(20)])
    archive = Archive(tmp_path)
    for number, place in enumerate(places):
        record = archive.read(place.file, place.offset, place.length)
        assert (record.id, record.url, record.digest) == (
            place.record_id,
            f"https://example.org/page/{number}",
            place.digest,
        )
        assert record.body == PAGE + b"%d" % number
        assert archive.read(place.file, place.offset) == record
        assert place.at == record.at
        assert place.original is not None
        assert place.original.record_id == record.id


def test_nothing_is_promised_before_it_is_on_disk(tmp_path: Path, disk: Disk) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    receipt = writer.put(exchange())
    while not opened(tmp_path) or not opened(tmp_path)[0].stat().st_size:
        pass
    assert receipt.record_location is None
    writer.flush().result(10)
    assert receipt.record_location is not None
    assert disk.synced >= receipt.record_location.offset + receipt.record_location.length
    writer.close()


def test_a_file_is_open_while_it_is_written_and_has_an_index_when_it_is_closed(
    tmp_path: Path,
) -> None:
    writer = WarcWriter(tmp_path, "my crawl", "host:1", {})
    receipt = writer.put(exchange())
    writer.flush().result(10)
    assert receipt.record_location is not None
    assert [path.name for path in opened(tmp_path)] == [receipt.record_location.file + ".open"]
    assert (
        Archive(tmp_path).read(receipt.record_location.file, receipt.record_location.offset).body
        == PAGE
    ), "it can be read meanwhile"
    writer.close()
    assert not opened(tmp_path)
    assert [path.name for path in closed(tmp_path)] == [receipt.record_location.file]
    assert receipt.record_location.file.startswith("my_crawl-20")
    assert receipt.record_location.file.endswith("-00001-host_1.warc.gz")
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".cdxj", ".gz"]


def test_a_writer_without_records_leaves_no_file(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    writer.flush().result(10)
    writer.close()
    assert not list(tmp_path.iterdir())


def test_files_end_when_they_are_big(tmp_path: Path) -> None:
    write(
        tmp_path,
        [(exchange(n, os.urandom(1000)), None) for n in range(50)],
        WriterOptions(max_bytes=5_000),
    )
    files = closed(tmp_path)
    assert len(files) > 8
    for path in files:
        assert 5_000 <= path.stat().st_size < 8_000 or path == files[-1]
        assert accepted(path) > 1
        assert not list(check_file(path))
    assert (
        len(
            {
                record.url
                for _, record in Archive(tmp_path).iter_records()
                if record.kind == "response"
            }
        )
        == 50
    )


def test_files_end_when_they_are_old_even_if_nothing_comes(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {}, WriterOptions(max_age_s=0.05))
    writer.put(exchange())
    while not closed(tmp_path):
        pass
    writer.put(exchange(1))
    writer.close()
    assert len(closed(tmp_path)) == 2


def test_two_writers_of_one_name_do_not_meet(tmp_path: Path) -> None:
    writers = [WarcWriter(tmp_path, "x", "w", {}, now=lambda: START) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.put(exchange(number))
        writer.flush().result(10)
    assert len(opened(tmp_path)) == 3
    for writer in writers:
        writer.close()
    assert len(closed(tmp_path)) == 3


def test_a_full_disk_is_told_to_who_flushes_and_nothing_is_lost(tmp_path: Path, disk: Disk) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    receipts = [writer.put(exchange(0))]
    writer.flush().result(10)
    disk.room = 100
    receipts += [writer.put(exchange(n)) for n in range(1, 5)]
    with pytest.raises(ArchiveError, match="No space left"):
        writer.flush().result(10)
    with pytest.raises(ArchiveError, match="No space left"):
        writer.flush().result(10)
    assert writer.failure is not None
    (path,) = opened(tmp_path)
    assert receipts[0].record_location is not None
    assert [receipt.record_location for receipt in receipts[1:]] == [None] * 4
    disk.room = None
    writer.flush().result(10)
    assert writer.failure is None
    assert [receipt.record_location is not None for receipt in receipts] == [True] * 5
    writer.close()
    (path,) = closed(tmp_path)
    assert accepted(path) == 16, "no partial record stays, none is there twice"
    assert not list(check_file(path))


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path: Path, disk: Disk) -> None:
    disk.room = 10
    writer = WarcWriter(tmp_path, "x", "w", {})
    receipt = writer.put(exchange())
    with pytest.raises(ArchiveError):
        writer.flush().result(10)
    assert not list(tmp_path.iterdir())
    disk.room = None
    writer.flush().result(10)
    assert receipt.record_location is not None
    writer.close()


def test_what_a_failed_sync_leaves_in_doubt_is_written_again(tmp_path: Path, disk: Disk) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    receipts = [writer.put(exchange(0))]
    writer.flush().result(10)
    disk.syncs_fail = True
    receipts += [writer.put(exchange(n)) for n in (1, 2)]
    with pytest.raises(ArchiveError, match="error"):
        writer.flush().result(10)
    assert [receipt.record_location is None for receipt in receipts] == [False, True, True]
    disk.syncs_fail = False
    receipts.append(writer.put(exchange(3)))
    writer.flush().result(10)
    writer.close()
    first, second = closed(tmp_path)
    assert (accepted(first), accepted(second)) == (4, 10)
    urls = [
        record.url for _, record in Archive(tmp_path).iter_records() if record.kind == "response"
    ]
    assert urls == [f"https://example.org/page/{n}" for n in range(4)]
    assert not [*check_file(first), *check_file(second)]
    archive = Archive(tmp_path)
    for number, receipt in enumerate(receipts):
        assert receipt.record_location is not None
        assert (
            archive.read(receipt.record_location.file, receipt.record_location.offset).url
            == f"https://example.org/page/{number}"
        )


def test_a_disk_that_stays_full_is_told_at_the_end(tmp_path: Path, disk: Disk) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    writer.put(exchange(0))
    writer.flush().result(10)
    disk.room = 50
    writer.put(exchange(1))
    with pytest.raises(ArchiveError):
        writer.close()
    disk.room = None
    assert [done.records for done in repair_open_files(tmp_path) if done.file] in ([4], [])
    assert [
        record.url for _, record in Archive(tmp_path).iter_records() if record.kind == "response"
    ] == ["https://example.org/page/0"]


def test_a_producer_sees_that_the_queue_is_full_and_is_called_when_there_is_room(
    tmp_path: Path, disk: Disk
) -> None:
    async def produce() -> None:
        writer = WarcWriter(tmp_path, "x", "w", {}, WriterOptions(queue_bytes=10_000))
        disk.room = 0
        assert writer.wait_for_room().done()
        while not writer.is_full:
            writer.put(exchange())
        waiting = asyncio.ensure_future(asyncio.wrap_future(writer.wait_for_room()))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        disk.room = None
        await asyncio.wrap_future(writer.flush())
        await waiting
        assert not writer.is_full
        await asyncio.to_thread(writer.close)

    asyncio.run(produce())


def test_a_flush_that_nobody_waits_for_any_more_does_no_harm(tmp_path: Path, disk: Disk) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    disk.room = 0
    writer.put(exchange())
    writer.flush().cancel()
    with pytest.raises(ArchiveError):
        writer.flush().result(10)
    disk.room = None
    writer.flush().result(10)
    writer.close()


def test_it_is_synced_unasked_when_much_has_come(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {}, WriterOptions(sync_bytes=1))
    receipt = writer.put(exchange())
    while receipt.record_location is None:
        pass
    writer.close()


def test_an_exchange_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    bad = writer.put(exchange(at=None))
    good = writer.put(exchange(1))
    writer.flush().result(10)
    assert bad.error is not None
    assert bad.record_location is None
    assert good.record_location is not None
    writer.close()


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    writer.close()
    with pytest.raises(ArchiveError, match="closed"):
        writer.put(exchange())
    with pytest.raises(ArchiveError, match="closed"):
        writer.flush().result(10)


def test_a_name_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        OpenFile(tmp_path, "a.warc.gz")
    assert (tmp_path / "a.warc.gz").read_bytes() == b"old"


def test_digests_can_be_of_another_kind(tmp_path: Path) -> None:
    (place,) = write(tmp_path, [(exchange(), None)], WriterOptions(algorithm="sha256", level=9))
    assert place.digest.startswith("sha256:")
    assert accepted(closed(tmp_path)[0]) == 4


def test_times_of_two_captures_may_be_the_same(tmp_path: Path) -> None:
    write(
        tmp_path,
        [(exchange(0, b"%d" % n, at=START + timedelta(microseconds=n)), None) for n in range(3)],
    )
    archive = Archive(tmp_path)
    assert [
        archive.read_capture(entry).payload
        for entry in archive.versions("https://example.org/page/0")
    ] == [b"0", b"1", b"2"]


def test_files_are_counted_for_what_they_are_named_after(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    names = ("news", "news-de")
    paths = [tmp_path / file_name(name, "w-1", serial, now) for serial, name in enumerate(names)]
    paths.append(tmp_path / (file_name("news", "w-1", 7, now) + ".open"))
    paths.append(tmp_path / "others.warc.gz")
    for number, path in enumerate(paths):
        path.write_bytes(b"x" * 10**number)
    assert sizes_by_prefix(tmp_path) == {"news": 101, "news-de": 10}
    assert sizes_by_prefix(tmp_path / "absent") == {}


def test_what_is_put_just_before_the_close_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's thread has found nothing to do; before it looks whether the queue is closed, a
    page is put and the queue closed.
    """
    take_all = WriteQueue.take_all
    late: list[Callable[[], object]] = []

    def take_then_let_others_go_on(queue: WriteQueue, timeout_s: float | None) -> Any:
        taken = take_all(queue, 0.01)
        while not taken and late:
            late.pop(0)()
        return taken

    monkeypatch.setattr(WriteQueue, "take_all", take_then_let_others_go_on)
    writer = WarcWriter(tmp_path, "test", "w", {})
    late += [lambda: writer.put(exchange(1, PAGE)), writer._queue.close]
    while late:
        time.sleep(0.001)
    writer.close()
    assert len(list(Archive(tmp_path).captures())) == 1
