"""A real Redis for tests, on a socket of its own: started, stopped, killed, frozen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
import redis


def redis_program() -> str:
    """The system's Redis. Without one: skipped, but in CI a failure, or nobody would notice."""
    if found := shutil.which("redis-server"):
        return found
    reason = "no redis-server on the path (apt install redis-server)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class RedisServer:
    """`words` are options of redis-server; by default every write is in its log at once, as after a
    stop or a kill.
    """

    def __init__(self, *words: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self._words = words or ("--appendonly", "yes", "--appendfsync", "no", "--save", "")
        self.socket = self._folder / "s"
        self.url = f"unix://{self.socket}"
        self.client = redis.Redis(unix_socket_path=str(self.socket))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            redis_program(),
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--dir",
            str(self._folder),
            *self._words,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while True:
            with suppress(redis.RedisError):
                if self.client.ping():
                    return
            assert self.process.poll() is None and time.monotonic() < deadline, (
                "redis-server does not start"
            )
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(20)
            self.process = None

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)
