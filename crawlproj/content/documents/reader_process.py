"""The crawl's side of the reader process, which gets one document at a time and is replaced when it
hangs, crashes or has read many.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

from crawlproj.content.document import Document
from crawlproj.content.documents.budget import DocumentBudget
from crawlproj.content.documents.reader_main import HEAD
from crawlproj.content.documents.reply import (
    MAX_REPLY,
    PROCESS_FAILURES,
    DocumentReadError,
    parse_reply_in_slices,
)
from crawlproj.content.slices import Slices

PER_PROCESS: Final = 200
"""Documents that one process reads before it is replaced: libraries leak."""
START_S: Final = 60.0
MAX_TROUBLES = 3
FORGET_S = 3600.0
"""Documents of a server that hung or crashed the process so often are not read for a while: those
of others wait for the process too.
"""

_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[5:]; from "
    "crawlproj.content.documents.reader_main import main; main(*map(int, "
    "sys.argv[1:5]))"
)


class DocumentReader:
    """The reader of documents, for use on one event loop.

    `stop` ends what is under way and refuses what comes later, `close` also waits for the end.
    """

    def __init__(self, budget: DocumentBudget, per_process: int = PER_PROCESS) -> None:
        self._budget = budget
        self._per_process = per_process
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._left = 0
        self._stopped = False
        self._trouble: dict[int, tuple[int, float]] = {}
        self.processes_started = 0

    async def read(self, body: bytes, url: str, server: int = 0) -> Document:
        """Read a document; DocumentReadError if that can't be done."""
        self.check_document(len(body), server)
        async with self._turn:
            self.check_document(len(body), server)
            reply = await self._read_reply(body, server)
            try:
                return await _run_slices(parse_reply_in_slices(reply, url))
            except DocumentReadError as error:
                if str(error) in ("garbage", "memory"):
                    self._kill_process()
                raise

    def check_document(self, size: int, server: int) -> None:
        """Raise DocumentReadError if a document of that size and server is not read for now."""
        if self._stopped:
            raise DocumentReadError("shutdown")
        if size > self._budget.max_bytes:
            raise DocumentReadError("too_big")
        if self._is_trouble(server):
            raise DocumentReadError("given_up")

    async def read_with_retry(self, body: bytes, url: str, server: int = 0) -> Document:
        """Read a document; a second time, by a new process, if the first one ended over it."""
        try:
            return await self.read(body, url, server)
        except DocumentReadError as error:
            if str(error) not in PROCESS_FAILURES:
                raise
        return await self.read(body, url, server)

    async def _read_reply(self, body: bytes, server: int) -> bytes:
        """The process's reply to a document; whatever goes wrong ends the process."""
        if self._stopped:
            raise DocumentReadError("shutdown")
        try:
            process = await self._ready_process()
            async with asyncio.timeout(self._budget.timeout_s):
                return await self._send_document(process, body)
        except Exception as error:  # uvloop has its own ideas of what a broken pipe raises
            self._kill_process()
            if self._stopped:
                raise DocumentReadError("shutdown") from None
            if isinstance(error, TimeoutError):
                self._note_trouble(server)
                raise DocumentReadError("timeout") from None
            # Of a process that has read others before, one of those may have spoilt it.
            if self._left >= self._per_process - 1:
                self._note_trouble(server)
            raise DocumentReadError("crashed") from None
        except BaseException:
            self._kill_process()
            raise

    async def _send_document(self, process: Process, body: bytes) -> bytes:
        assert process.stdin is not None
        self._left -= 1
        process.stdin.write(HEAD.pack(len(body)))
        process.stdin.write(body)
        await process.stdin.drain()
        return await _read_frame(process)

    async def _ready_process(self) -> Process:
        """The process, or a new one if it has ended or has read enough."""
        if self._process is not None and (self._left <= 0 or self._process.returncode is not None):
            self._kill_process()
        if self._process is None:
            self._process = await self._start_process()
            async with asyncio.timeout(START_S):
                await _read_frame(self._process)
        return self._process

    async def _start_process(self) -> Process:
        self._left = self._per_process
        self.processes_started += 1
        memory = self._budget.memory
        timeout_s = ceil(self._budget.timeout_s)
        numbers = (memory, timeout_s, self._per_process, os.getpid())
        # Nothing of the environment, except where Python's own libraries are.
        environment = {}
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-c",
            _CODE,
            *map(str, numbers),
            *(str(Path(name).absolute()) for name in sys.path),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )

    def _is_trouble(self, server: int) -> bool:
        """Whether the server's documents are not read for now."""
        times, last = self._trouble.get(server, (0, 0.0))
        return times >= MAX_TROUBLES and time.monotonic() - last < FORGET_S

    def _note_trouble(self, server: int) -> None:
        if len(self._trouble) >= 10_000:
            self._trouble.clear()
        now = time.monotonic()
        times, last = self._trouble.get(server, (0, now))
        if now - last >= FORGET_S:
            times = 0
        self._trouble[server] = (times + 1, now)

    def _kill_process(self) -> Process | None:
        """Kill the process, if there is one, and return it."""
        process = self._process
        self._process = None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        return process

    def stop(self) -> None:
        """Kill the process, and read nothing more."""
        self._stopped = True
        self._kill_process()

    async def close(self) -> None:
        """As `stop`; the process is gone afterwards."""
        self._stopped = True
        process = self._kill_process()
        if process is not None:
            await process.wait()


async def _run_slices(slices: Slices[Document]) -> Document:
    """The result, with a turn of the event loop after each slice."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            document: Document = end.value
            return document
        await asyncio.sleep(0)


async def _read_frame(process: Process) -> bytes:
    assert process.stdout is not None
    (size,) = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
    if size > MAX_REPLY:
        return b""  # which `parse_reply` takes for garbage
    return await process.stdout.readexactly(size)
