"""Where the crawl hands documents in: one at a time to the process that reads, which is watched and
replaced.
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
    parse_reply,
)

PER_PROCESS: Final = 200
"""Documents, then a new process reads: libraries leak."""
START_S: Final = 60.0
MAX_TROUBLES = 3
FORGET_S = 3600.0
"""A server whose documents hung or crashed the reader so often is left alone for a while: others
wait for the reader too.
"""

_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[5:]; from "
    "crawlproj.content.documents.reader_main import main; main(*map(int, "
    "sys.argv[1:5]))"
)


class DocumentReader:
    """Use it on one event loop. `stop` ends what is under way and refuses what comes later, `close`
    also waits for the end.
    """

    def __init__(self, terms: DocumentBudget, per_process: int = PER_PROCESS) -> None:
        self._budget = terms
        self._per_process = per_process
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._left = 0
        self._stopped = False
        self._trouble: dict[int, tuple[int, float]] = {}
        self.started = 0

    async def read(self, body: bytes, url: str, server: int = 0) -> Document:
        """What the document says; UnreadError if that can't be found out."""
        if len(body) > self._budget.max_bytes:
            raise DocumentReadError("too_big")
        async with self._turn:
            if self._is_trouble(server):
                raise DocumentReadError("given_up")
            answer = await self._read_reply(body, server)
            try:
                return parse_reply(answer, url)
            except DocumentReadError as error:
                if str(error) in ("garbage", "memory"):
                    self._kill_process()
                raise

    async def read_with_retry(self, body: bytes, url: str, server: int = 0) -> Document:
        """As `read`, with a second try by a new process if the first one ended over it."""
        try:
            return await self.read(body, url, server)
        except DocumentReadError as error:
            if str(error) not in PROCESS_FAILURES:
                raise
        return await self.read(body, url, server)

    async def _read_reply(self, body: bytes, server: int) -> bytes:
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
            late = isinstance(error, TimeoutError)
            if (
                late or self._left >= self._per_process - 1
            ):  # else an earlier document, of another server, may have spoilt it
                self._note_trouble(server)
            raise DocumentReadError("timeout" if late else "crashed") from None
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
        if self._process is not None and (self._left <= 0 or self._process.returncode is not None):
            self._kill_process()
        if self._process is None:
            self._process = await self._start()
            async with asyncio.timeout(START_S):
                await _read_frame(self._process)
        return self._process

    async def _start(self) -> Process:
        terms = self._budget
        self._left = self._per_process
        self.started = self.started + 1
        numbers = (terms.memory, ceil(terms.timeout_s), self._per_process, os.getpid())
        # Nothing of the environment, except where Python's own libraries are.
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
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
            env=kept,
            cwd="/",
            start_new_session=True,
        )

    def _is_trouble(self, server: int) -> bool:
        times, last = self._trouble.get(server, (0, 0.0))
        return times >= MAX_TROUBLES and time.monotonic() - last < FORGET_S

    def _note_trouble(self, server: int) -> None:
        if len(self._trouble) >= 10_000:
            self._trouble.clear()
        now = time.monotonic()
        times, last = self._trouble.get(server, (0, now))
        self._trouble[server] = (times + 1 if now - last < FORGET_S else 1, now)

    def _kill_process(self) -> Process | None:
        process = self._process
        self._process = None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        return process

    def stop(self) -> None:
        self._stopped = True
        self._kill_process()

    async def close(self) -> None:
        self._stopped = True
        if (process := self._kill_process()) is not None:
            await process.wait()


async def _read_frame(process: Process) -> bytes:
    assert process.stdout is not None
    size = HEAD.unpack(await process.stdout.readexactly(HEAD.size))[0]
    if size > MAX_REPLY:
        return b""  # garbage
    return await process.stdout.readexactly(size)
