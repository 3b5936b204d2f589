"""A process beside the crawl that is asked over its two pipes by one plain thread, and both ends of
these pipes.

It has no files, no environment but the little that is named, and a session of its own. What is
sent is a frame: its length, then so many bytes. Whatever the process does, a call ends in time.
"""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

HEAD: Final = struct.Struct("<Q")
"""The length of what follows, before each frame."""
_KEPT: Final = ("LD_LIBRARY_PATH", "TMPDIR")
"""Where libraries and room for files are."""


class ChildProcess:
    """The crawl's end: starts the process, writes to it, reads from it, kills it.

    `code` is Python that gets `arguments` as `sys.argv[1:]`, and after them the path of modules.
    OSError or SubprocessError if it cannot be started.
    """

    def __init__(
        self, code: str, arguments: Iterable[object], environment: Mapping[str, str]
    ) -> None:
        names = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-c",
                code,
                *map(str, arguments),
                *(str(Path(name).absolute()) for name in sys.path),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**environment, **names},
            cwd="/",
            start_new_session=True,
        )
        self.pid = self._process.pid
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def exit_signal(self, wait_s: float = 1.0) -> int:
        """The signal that ended it; 0 if none did or it goes on."""
        try:
            return max(0, -self._process.wait(wait_s))
        except subprocess.TimeoutExpired:
            return 0

    def write_frame(self, body: bytes, end: float) -> None:
        """Send a frame until the moment `end` of the monotonic clock: TimeoutError after it,
        BrokenPipeError if nobody is there.
        """
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        left = memoryview(HEAD.pack(len(body)) + body)
        while left:
            _wait_for(pipe, select.POLLOUT, end)
            with suppress(BlockingIOError):
                left = left[os.write(pipe, left) :]

    def read_frame(self, limit: int, end: float) -> bytes:
        """Receive a frame; ValueError if it is longer than the limit."""
        (size,) = HEAD.unpack(self._read_bytes(HEAD.size, end))
        if size > limit:
            raise ValueError("garbage")
        return self._read_bytes(size, end)

    def rss_bytes(self) -> int:
        """Its memory; 0 if the system does not say."""
        return read_rss(self.pid)

    def kill(self) -> None:
        """Kill it and wait until it is gone."""
        with suppress(OSError):
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(OSError, subprocess.SubprocessError):
            self._process.wait(5)  # at once, unless the system is in trouble

    def _read_bytes(self, size: int, end: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        body = bytearray()
        while len(body) < size:
            _wait_for(pipe, select.POLLIN, end)
            with suppress(BlockingIOError):
                piece = os.read(pipe, size - len(body))
                if not piece:
                    raise BrokenPipeError("ended")
                body += piece
        return bytes(body)


def read_rss(pid: int | str) -> int:
    """The memory of a process; 0 if the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def take_pipes() -> tuple[int, int]:
    """The process's end: its pipes in and out. What a library prints goes nowhere from then on, it
    must not get into the replies.
    """
    incoming = os.dup(0)
    outgoing = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    return incoming, outgoing


def receive_frame(pipe: int) -> bytes:
    """The process's end: wait for a frame; the end of the pipe ends the process."""
    (size,) = HEAD.unpack(_receive_bytes(pipe, HEAD.size))
    return _receive_bytes(pipe, size)


def send_frame(pipe: int, body: bytes) -> None:
    """The process's end: send a frame."""
    left = memoryview(HEAD.pack(len(body)) + body)
    while left:
        left = left[os.write(pipe, left) :]


def _receive_bytes(pipe: int, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        piece = os.read(pipe, min(size - len(body), 1 << 20))
        if not piece:
            sys.exit()
        body += piece
    return bytes(body)


def _wait_for(pipe: int, event: int, end: float) -> None:
    """Wait until a pipe can be used, or has ended; TimeoutError if that takes too long."""
    poll = select.poll()  # `select.select` fails for numbers above 1024
    poll.register(pipe, event)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise TimeoutError
