from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

from crawlproj.scheduling import worker
from crawlproj.scheduling.worker import is_dead, machine_id, worker_name

HERE = socket.gethostname()


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    """A process that has ended, and that nobody has asked for its exit code yet."""
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return process


def test_a_name_says_where_and_who_and_is_never_given_twice() -> None:
    assert re.fullmatch(rf"{re.escape(HERE)}:{os.getpid()}:[0-9a-z]+-[0-9a-f]{{6}}", worker_name())
    assert worker_name() != worker_name()


def test_a_worker_whose_process_lives_is_not_dead() -> None:
    assert not is_dead(worker_name())


@pytest.mark.skipif(not machine_id(), reason="the kernel does not say which boot this is")
def test_a_worker_of_this_machine_is_dead_when_its_process_has_ended(
    child: subprocess.Popen[bytes],
) -> None:
    name = f"{HERE}:{child.pid}:{machine_id()}-abcdef"
    assert is_dead(name), "also while it is a zombie"
    child.wait()
    assert is_dead(name)


def test_nothing_is_known_of_others(child: subprocess.Popen[bytes]) -> None:
    child.wait()
    others = (
        f"elsewhere:{child.pid}:{machine_id()}-abcdef",
        f"{HERE}:{child.pid}:00000000-abcdef",
        f"{HERE}:{child.pid}:unknown-abcdef",
        f"{HERE}:{child.pid}:abcdef",
        f"{HERE}:x:{machine_id()}-abcdef",
        f"{HERE}:{'9' * 40}:{machine_id()}-abcdef",
        "",
        "worker",
        ":::",
    )
    assert [name for name in others if is_dead(name)] == []


def test_where_the_kernel_says_nothing_nobody_is_dead(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    child.wait()
    monkeypatch.setattr(worker, "machine_id", lambda: "")
    assert not is_dead(f"{HERE}:{child.pid}:unknown-abcdef") and not is_dead(
        f"{HERE}:{child.pid}:-abcdef"
    )
