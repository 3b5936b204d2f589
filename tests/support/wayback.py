"""pywb, which replays web archives, in an environment of its own: it wants versions of libraries
that are older than ours.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "replay.lock"
HOME = ROOT / "build" / "replay"
STARTED_S = 60.0


def installed() -> Path:
    """The program, installed at its first use and again when the lock file changes; by one process,
    while others wait.
    """
    HOME.parent.mkdir(exist_ok=True)
    with (HOME.parent / "replay.busy").open("w") as busy:
        flock(busy, LOCK_EX)
        _install()
    return HOME / "bin" / "wayback"


def _install() -> None:
    stamp = HOME / "installed.lock"
    if not stamp.exists() or stamp.read_bytes() != LOCK.read_bytes():
        shutil.rmtree(HOME, ignore_errors=True)
        if uv := shutil.which("uv"):
            commands = [
                [uv, "venv", "-q", "--python", sys.executable, HOME],
                [uv, "pip", "install", "-q", "--python", HOME, "-r", LOCK],
            ]
        else:
            commands = [
                [sys.executable, "-m", "venv", HOME],
                [HOME / "bin" / "pip", "install", "-q", "-r", LOCK],
            ]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                _missing(f"pywb can't be installed: {done.stderr.strip()[-500:]}")
        stamp.write_bytes(LOCK.read_bytes())


def _missing(reason: str) -> None:
    """In CI a failure, or nobody would notice."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def replaying(warc: Path, folder: Path) -> Iterator[str]:
    """Serves the archive as it is; gives the URL that captures begin with."""
    program = installed()
    port = _free_port()
    folder.mkdir()
    config = (
        f"collections:\n  all:\n    archive_paths: {warc}/\n    index_paths: "
        f"{warc / 'index.cdxj'}\n"
    )
    (folder / "config.yaml").write_text(config)
    with (folder / "log.txt").open("w") as log:
        command = [program, "-b", "127.0.0.1", "-p", str(port), "-d", folder]
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait(server, port, folder / "log.txt")
            yield f"http://127.0.0.1:{port}/all/"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + STARTED_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
