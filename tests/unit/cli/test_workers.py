"""Workers as processes: small programs stand in for crawls."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from crawlproj.cli.workers import MAX_RESTARTS, WorkerGroup

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
