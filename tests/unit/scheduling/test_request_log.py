"""The log of requests: what a line says, and what becomes of it on disks that are small or full."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawlproj.frontier.base import Batch, Committed, CrawlSpec, Lane, NewUrl, State, Ticket
from crawlproj.frontier.memory.frontier import MemoryFrontier
from crawlproj.items import Page, RobotsTicket
from crawlproj.scheduling.batch_writer import BatchWriter
from crawlproj.scheduling.messages import ToDatabase
from crawlproj.scheduling.request_log import (
    PARTS,
    RequestLog,
    log_file_name,
    log_line,
    rules_in_force,
)
from crawlproj.scheduling.retrying import OutageRetry

NOW = datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC)
STARTED = NOW.timestamp() - 0.25
TICKET = Ticket(7, "https://a.test/x?q=ü", "a.test", 3, 5, 1, Lane.NEW, State.NEW)
HEADER = {"rules": {"POLITENESS_DELAY": 2.0}, "worker": "w", "crawl": "site"}


class Timer:
    """Stands in for the event loop: keeps what is to be done later."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def __call__(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds <= 1
        self.calls.append(call)


def page(ticket: Ticket | RobotsTicket = TICKET, status: int = 200, **more: Any) -> Page:
    return Page(ticket, ticket.url, status, NOW, started_s=STARTED, ended_s=STARTED + 0.125, **more)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def make(path: Path, max_bytes: int = 10**6, timer: Timer | None = None) -> RequestLog:
    return RequestLog(path, HEADER, max_bytes, timer or Timer(), clock=lambda: 100.0)


def test_a_line_says_who_asked_whom_when_and_what_came_of_it() -> None:
    line = log_line(
        page(body=b"12345", address="192.0.2.1", retry_after_s=7.0, answered=503),
        "w:1",
        "site",
        "x",
        2.5,
        NOW,
    )
    assert line == {
        "time": "2026-03-01T12:00:00.750+00:00",
        "worker": "w:1",
        "crawl": "site",
        "url": TICKET.url,
        "status": 200,
        "reason": "",
        "ip": "192.0.2.1",
        "host": "a.test",
        "server": 3,
        "epoch": 5,
        "started": STARTED,
        "ended": STARTED + 0.125,
        "ms": 125.0,
        "bytes": 5,
        "delay_s": 2.5,
        "answered": 503,
        "retry_after_s": 7.0,
        "kind": "page",
        "lane": "new",
        "robots_at": NOW.timestamp(),
    }


def test_a_refusal_has_a_reason_and_was_never_sent() -> None:
    line = log_line(Page(TICKET, TICKET.url, 0, NOW, "robots"), "w", "site", "192.0.2.9", 2, None)
    assert (line["started"], line["ended"], line["reason"], line["status"]) == (
        None,
        None,
        "robots",
        0,
    )
    assert (line["time"], line["ip"]) == ("2026-03-01T12:00:01.000+00:00", "192.0.2.9")


def test_robots_txt_is_told_from_pages_and_says_for_which_origin() -> None:
    line = log_line(
        page(RobotsTicket("https://b.test/robots.txt", "a.test", 3, 5, TICKET)),
        "w",
        "site",
        "",
        2,
        None,
    )
    assert (line["kind"], line["lane"], line["origin"]) == ("robots", "robots", "https://a.test")


@pytest.mark.parametrize(
    ("worker", "name"),
    [("vm:12:ab", "vm_12_ab"), ("../../etc/x", "_.._etc_x"), ("ö é", "worker"), ("", "worker")],
)
def test_a_worker_has_a_file_of_its_own_whatever_its_name(worker: str, name: str) -> None:
    made = log_file_name(worker)
    assert "/" not in made and made.startswith("requests-") and made.endswith(".jsonl")
    assert worker in ("ö é",) or made == f"requests-{name}.jsonl"


def test_the_rules_in_force_are_seconds_and_numbers() -> None:
    settings = {
        "POLITENESS_DELAY": "2m",
        "ROBOTS_TTL": 60,
        "ROBOTSTXT_OBEY": False,
        "POLITENESS_X": ("10.0.0.0/8",),
        "OTHER": 1,
    }
    assert rules_in_force(settings) == {
        "POLITENESS_DELAY": 120,
        "ROBOTS_TTL": 60,
        "POLITENESS_X": ["10.0.0.0/8"],
    }


def test_lines_come_after_the_rules_and_are_written_within_a_second(tmp_path: Path) -> None:
    timer = Timer()
    path = tmp_path / "log" / "requests-w.jsonl"
    log = make(path, timer=timer)
    log.write({"n": 1})
    log.write({"n": 2, "url": "http://ü.test/\ud800"})
    assert not path.exists()
    assert len(timer.calls) == 1
    timer.calls[0]()
    assert read(path)[0] == {**HEADER, "started": 100.0, "part": 0}
    assert [line["n"] for line in read(path)[1:]] == [1, 2]
    log.write({"n": 3})
    assert len(timer.calls) == 2
    log.close()
    assert read(path)[-2:] == [{"n": 3}, {"end": 100.0, "worker": "w"}]


def test_a_line_is_on_disk_before_what_it_tells_of_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "requests-w.jsonl"
    request_log = make(path)
    lines_at_commit: list[int] = []

    class Frontier(MemoryFrontier):
        def commit(self, batch: Batch, worker: str = "") -> Committed:
            lines_at_commit.append(len(read(path)))
            return super().commit(batch, worker)

    frontier = Frontier(CrawlSpec("c"))
    frontier.open()
    writer = BatchWriter(frontier, "w", OutageRetry(1.0), request_log=request_log)
    committing = threading.Thread(
        target=writer.store_message,
        args=(ToDatabase(urls=[NewUrl(1, "http://a.test/", "a.test")]), math.inf),
    )
    with request_log.before_commit():
        committing.start()
        committing.join(0.2)
        assert not lines_at_commit, "the line of what is being ended is waited for"
        request_log.write({"n": 1})
    committing.join(10)
    assert lines_at_commit == [2], "the rules, and the line"
    request_log.close()


def test_the_last_line_of_each_part_says_whether_it_goes_on(tmp_path: Path) -> None:
    log = make(tmp_path / "requests-w.jsonl", max_bytes=200)
    for number in range(3):
        log.write({"n": number, "text": "x" * 60})
        log.flush_to_disk()
    log.close()
    last = sorted((read(path)[-1] for path in tmp_path.iterdir()), key=json.dumps)
    assert last == [
        {"end": 100.0, "worker": "w", "next_part": 1},
        {"end": 100.0, "worker": "w"},
    ]


def test_a_file_that_grows_too_big_is_continued_in_a_new_part_and_old_parts_go(
    tmp_path: Path,
) -> None:
    log = make(tmp_path / "requests-w.jsonl", max_bytes=200)
    for number in range(100):
        log.write({"n": number, "text": "x" * 60})
        log.flush()
    log.close()
    parts = sorted(tmp_path.glob("requests-*.jsonl"), key=lambda path: int(read(path)[0]["part"]))
    assert len(parts) in (PARTS, PARTS + 1)
    assert all(read(part)[0]["rules"] and path_size(part) < 400 for part in parts)
    lines = [line for part in parts for line in read(part)]
    assert [line["n"] for line in lines if "n" in line][-5:] == [95, 96, 97, 98, 99]
    numbers = [read(part)[0]["part"] for part in parts]
    assert numbers == list(range(numbers[0], numbers[0] + len(parts)))


def path_size(path: Path) -> int:
    return path.stat().st_size


def test_logs_of_old_runs_make_room_but_those_of_today_stay(tmp_path: Path) -> None:
    for number in range(30):
        file = tmp_path / f"requests-old{number}.jsonl"
        file.write_text("x" * 100)
        os.utime(file, (1000 + number, 1000 + number))
    (tmp_path / "requests-today.jsonl").write_text("x" * 5000)
    log = make(tmp_path / "requests-w.jsonl", max_bytes=700)
    log.write({"n": 1})
    log.flush()
    log.close()
    left = {path.stem for path in tmp_path.glob("*.jsonl")}
    assert {"requests-today", "requests-w"} <= left
    assert "requests-old0" not in left and "requests-old29" in left


def test_a_full_disk_is_said_once_and_what_was_lost_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "requests-w.jsonl"
    real = os.write
    log = make(path)
    log.write({"n": 1})
    log.flush()

    def full(handle: int, data: memoryview) -> int:
        if len(data) > 5:
            return real(handle, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with caplog.at_level(logging.WARNING), monkeypatch.context() as patch:
        patch.setattr("crawlproj.scheduling.request_log.os.write", full)
        for number in (2, 3, 4):
            log.write({"n": number})
            log.flush()
    assert (
        [record.getMessage() for record in caplog.records].count(caplog.records[0].getMessage())
        == 1
        == len(caplog.records)
    )
    assert "No space left" in caplog.text
    log.write({"n": 5})
    log.flush()
    log.close()
    assert read(path)[1:-1] == [{"n": 1}, {"lost": 3, "worker": "w"}, {"n": 5}]


def test_lines_are_counted_as_lost_while_the_file_can_not_be_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "log"
    folder.write_text("a file")
    log = make(folder / "requests-w.jsonl")
    for number in range(3):
        log.write({"n": number})
        log.flush()
    folder.unlink()
    log.write({"n": 3})
    log.flush()
    log.close()
    assert read(folder / "requests-w.jsonl")[1:-1] == [{"lost": 3, "worker": "w"}, {"n": 3}]


def test_lines_that_were_written_are_not_lost_if_the_next_part_can_not_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    path = tmp_path / "requests-w.jsonl"
    log = make(path, max_bytes=1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        log.write({"n": 1})
        log.flush()
    log.write({"n": 2})
    log.flush()
    log.close()
    lines = [line for file in tmp_path.glob("*.jsonl") for line in read(file)]
    assert not [line for line in lines if "lost" in line]
    assert {line["n"] for line in lines if "n" in line} == {1, 2}


def test_a_folder_that_can_not_be_written_never_stops_a_crawl(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "log").write_text("a file")
    log = make(tmp_path / "log" / "requests-w.jsonl")
    for number in range(3):
        log.write({"n": number})
        log.flush()
    log.close()
    assert len(caplog.records) == 1
