"""Workers as processes: small programs stand in for crawls."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlproj.cli.pid_file import pid_file
from crawlproj.cli.worker_reports import (
    LINES_A_MINUTE,
    CommonReport,
    ReportPipe,
    ReportReader,
    numbered_feed,
)
from crawlproj.cli.workers import MAX_RESTARTS, WorkerGroup
from crawlproj.errors import CrawlprojError

WAIT = "import time; time.sleep(60)"
READY = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
POLITE = (
    f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); {READY}; {WAIT}"
)
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY}; {WAIT}"


def programs(*codes: str, argument: str = "") -> dict[int, list[str]]:
    return {
        number: [sys.executable, "-c", code, f"{argument}{number}"]
        for number, code in enumerate(codes, 1)
    }


def nothing(running: int) -> None:
    pass


def when_ready(folder: Path, number: int, then: Callable[[], None]) -> Callable[[int], None]:
    """Do something once, when so many programs have said that they run."""
    done: list[bool] = []

    def tick(running: int) -> None:
        if not done and len(list(folder.iterdir())) >= number:
            done.append(True)
            then()

    return tick


def test_the_exit_code_is_the_worst_and_each_end_is_said() -> None:
    said: list[str] = []
    assert WorkerGroup(programs("", "raise SystemExit(3)", ""), said.append).run(nothing) == 3
    assert sum("started" in line for line in said) == 3
    assert sum("ended with exit code 0" in line for line in said) == 2
    assert WorkerGroup(programs("", ""), said.append).run(nothing) == 0


def test_a_hangup_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    said: list[str] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        force = WorkerGroup(programs(POLITE, argument=f"{tmp_path}/"), said.append)

        def hang_up() -> None:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not force.stop_signals
            force.workers[0].process.send_signal(signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)

        assert force.run(when_ready(tmp_path, 1, hang_up)) == 130
    finally:
        signal.signal(signal.SIGHUP, before)


REPORTING = """
import json, os, sys
number, restarts, pipe = map(int, os.environ["CRAWLPROJ_WORKER"].split(":"))
for report in ({"line": "odd"}, {"stats": {"pages/first": 1}}, {"stats": {"pages/first": number}}):
    os.write(pipe, json.dumps(report).encode() + b"\\n")
if number == 2 and not restarts:
    os.kill(os.getpid(), 9)
os.write(pipe, b'{"end": {"reason": "finished", "examples": {"failed/dns": "http://%d/"}}}\\n' % number)
"""


def test_what_workers_report_is_shown_with_their_number_and_added_up() -> None:
    said: list[str] = []
    common = CommonReport(said.append)
    group = WorkerGroup(programs(REPORTING, REPORTING), said.append, take_report=common.take)
    assert group.run(nothing) == 0
    assert said.count("worker 1: odd") == 1
    assert said.count("worker 2: odd") == 2
    assert common.stats == {"pages/first": 1 + 2 + 2}, "also of the process that was killed"
    assert (common.reason, len(common.ends)) == ("finished", 2)
    assert common.examples.keys() == {"failed/dns"}


def test_warnings_of_workers_do_not_flood_the_screen() -> None:
    said: list[str] = []
    common = CommonReport(said.append)
    for number in range(1000):
        common.take(1, 1, {"line": f"warning {number}"})
    common.say_left_out()
    assert len(said) <= 2 * LINES_A_MINUTE + 2
    assert "more warnings in the logs" in said[-1]


def test_a_worker_never_waits_for_whoever_should_read_its_reports() -> None:
    read_end, write_end = os.pipe()
    pipe = ReportPipe(write_end)
    for _ in range(100):
        pipe.send({"line": "x" * 100_000})
    reader = ReportReader(read_end)
    assert {report["line"][:1] for report in reader.take_reports()} <= {"x"}
    reader.close()
    pipe.send({"line": "nobody reads"})
    os.close(write_end)


@pytest.mark.parametrize(
    ("feed", "numbered"),
    [
        ("items.jsonl", "items-2.jsonl"),
        ("a.b/items", "a.b/items-2"),
        ("items.jsonl.gz", "items-2.jsonl.gz"),
        ("file:///x/%(name)s-%(time)s.csv", "file:///x/%(name)s-%(time)s-2.csv"),
        ("stdout:", "stdout:"),
    ],
)
def test_each_worker_has_a_feed_of_its_own(feed: str, numbered: str) -> None:
    assert numbered_feed(feed, 2) == numbered


def test_a_pid_file_names_one_living_process_and_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "w.pid"
    with pid_file(path):
        assert path.read_text() == f"{os.getpid()}\n"
        assert [file.name for file in tmp_path.iterdir()] == ["w.pid"]
    assert not path.exists()
    path.write_text("1\n")
    with pytest.raises(CrawlprojError, match="names process 1, which still runs"), pid_file(path):
        pass
    path.write_text("4194305\n")  # no process has such a number
    with pid_file(path):
        assert path.read_text() == f"{os.getpid()}\n"
        path.write_text("1\n")
    assert path.exists(), "it is another's by now"
    path.write_text("my notes")
    with pytest.raises(CrawlprojError, match="something else"), pid_file(path):
        pass


def test_a_stop_is_passed_on_once_and_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    force = WorkerGroup(programs(POLITE, POLITE, argument=f"{tmp_path}/"), said.append)
    before = signal.getsignal(signal.SIGTERM)
    assert force.run(when_ready(tmp_path, 2, lambda: os.kill(os.getpid(), signal.SIGTERM))) == 130
    assert sum("ended with exit code 130" in line for line in said) == 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_stop_kills(tmp_path: Path) -> None:
    said: list[str] = []
    force = WorkerGroup(programs(STUBBORN, argument=f"{tmp_path}/"), said.append)
    stop = when_ready(tmp_path, 1, lambda: os.kill(os.getpid(), signal.SIGINT))

    def tick(running: int) -> None:
        if force.stop_signals == 1:
            os.kill(os.getpid(), signal.SIGINT)
        stop(running)

    assert force.run(tick) == 130
    assert force.workers[0].process.returncode == -signal.SIGKILL
    assert "was killed" in said[-1]


def test_a_worker_that_is_killed_is_started_again_and_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    dies_once = (
        "import os, pathlib, sys\nif pathlib.Path(sys.argv[1]).exists(): "
        f"sys.exit()\n{READY}\nos.kill(os.getpid(), 9)"
    )
    assert WorkerGroup(programs(dies_once, argument=f"{tmp_path}/"), said.append).run(nothing) == 0
    assert sum("was killed by signal 9: started again as process" in line for line in said) == 1


def test_a_worker_that_dies_again_and_again_is_given_up() -> None:
    said: list[str] = []
    assert (
        WorkerGroup(programs("import os; os.kill(os.getpid(), 9)", ""), said.append).run(nothing)
        == 1
    )
    assert sum("started again" in line for line in said) == MAX_RESTARTS
    assert any("given up" in line for line in said)


def test_no_process_is_left_behind_whatever_happens(tmp_path: Path) -> None:
    force = WorkerGroup(programs(STUBBORN, argument=f"{tmp_path}/"), print)

    def fail() -> None:
        raise RuntimeError("the screen broke")

    try:
        force.run(when_ready(tmp_path, 1, fail))
    except RuntimeError:
        assert force.workers[0].process.returncode == -signal.SIGKILL
    else:
        raise AssertionError("it went on")
