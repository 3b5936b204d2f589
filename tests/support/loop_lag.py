"""How late the event loop of a worker is, where, and over whose page."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from scrapy import signals

TICK_S = 0.02
LATE_S = 0.05
OURS = ("/crawlproj/", "/middlewares/", "/pipelines/", "/spiders/")


class LoopLag:
    """Extension: a line of JSON in the file that the setting LAG_FILE names, each time that the
    loop was late.

    A thread looks where the loop is while it is late; where it was seen most is written. While code
    in C holds the interpreter the thread has to wait, and then sees who called that code. `cpu_s` is
    what the loop's thread itself worked meanwhile: on a busy machine it says more than `late_s`.
    """

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", buffering=1)  # noqa: SIM115
        self._task: asyncio.Task[None] | None = None
        self._beat = time.monotonic()
        self._seen: Counter[tuple[str, str]] = Counter()
        self._loop_thread = threading.get_ident()

    @classmethod
    def from_crawler(cls, crawler: Any) -> LoopLag:
        lag = cls(crawler.settings["LAG_FILE"])
        crawler.signals.connect(lag.start, signal=signals.spider_opened)
        return lag

    def start(self) -> None:
        self._loop_thread = threading.get_ident()
        self._task = asyncio.get_running_loop().create_task(self._measure())
        threading.Thread(target=self._watch, daemon=True).start()

    async def _measure(self) -> None:
        while True:
            self._beat = time.monotonic()
            cpu_s = time.thread_time()
            await asyncio.sleep(TICK_S)
            late_s = time.monotonic() - self._beat - TICK_S
            if late_s > LATE_S:
                url, where = max(self._seen, key=self._seen.__getitem__, default=("", ""))
                line = {
                    "at": self._beat,
                    "late_s": round(late_s, 3),
                    "cpu_s": round(time.thread_time() - cpu_s, 3),
                    "url": url,
                    "where": where,
                }
                self._file.write(json.dumps(line) + "\n")
            self._seen = Counter()

    def _watch(self) -> None:
        while True:
            time.sleep(TICK_S)
            if time.monotonic() - self._beat > TICK_S + LATE_S:
                frame = sys._current_frames().get(self._loop_thread)
                with suppress(RuntimeError):  # a frame may go on meanwhile
                    self._seen[_url(frame), _place(frame)] += 1


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(frame: FrameType | None) -> str:
    """The innermost function of ours, or the innermost one."""
    first = ""
    for outer in _outwards(frame):
        code = outer.f_code
        name = f"{Path(code.co_filename).stem}.{code.co_qualname}"
        first = first or name
        if any(part in code.co_filename for part in OURS):
            return name
    return first


def _url(frame: FrameType | None) -> str:
    """The URL of what is at hand, if some function on the way has one in a variable."""
    for names in (("page", "item", "response", "request"), ("url",)):
        for outer in _outwards(frame):
            for name in names:
                value = outer.f_locals.get(name)
                url = value if isinstance(value, str) else getattr(value, "url", "")
                if isinstance(url, str) and url.startswith("http"):
                    return url
    return ""
