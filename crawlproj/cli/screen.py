"""Where a crawl is shown: lines that stay, and on a terminal a few at the bottom that are drawn
anew.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

DEFAULT_WIDTH = 100
BOLD = "\x1b[1m"
PLAIN = "\x1b[0m"
UP = "\x1b[{}F"
CLEAR_BELOW = "\x1b[J"
WRAP_OFF = "\x1b[?7l"
WRAP_ON = "\x1b[?7h"


class Screen:
    """Safe to use from several threads. `live` None: live if the stream is a terminal that can do
    it.

    A stream that is gone (a closed pipe or terminal) is no reason to stop a crawl: nothing more is
    shown.
    """

    def __init__(self, stream: TextIO, live: bool | None = None) -> None:
        self._stream = stream
        self.live = _can_draw(stream) if live is None else live
        self._bold = self.live and "NO_COLOR" not in os.environ
        self._drawn: list[str] = []
        self._lock = threading.RLock()

    @property
    def width(self) -> int:
        with suppress(OSError, ValueError):
            return max(40, os.get_terminal_size(self._stream.fileno()).columns - 1)
        return DEFAULT_WIDTH

    def print_line(self, text: str) -> None:
        """A line that stays, above what is drawn."""
        with self._lock:
            drawn = self._drawn
            self._write(self._erase() + text + "\n")
            if drawn:
                self.draw_lines(drawn)

    def draw_lines(self, lines: Sequence[str]) -> None:
        """Show these in place of the last ones; the first is the title."""
        with self._lock:
            title, *rest = lines
            first = f"{BOLD}{title}{PLAIN}" if self._bold else title
            # One write, and lines that are never wrapped: nothing flickers, and going up hits the
            # right line.
            self._write(self._erase() + WRAP_OFF + "\n".join([first, *rest]) + "\n" + WRAP_ON)
            self._drawn = list(lines)

    def clear(self) -> None:
        with self._lock:
            self._write(self._erase())

    def _erase(self) -> str:
        size = len(self._drawn)
        self._drawn = []
        return UP.format(size) + CLEAR_BELOW if size else ""

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _can_draw(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


MODES = ("auto", "live", "lines", "off")


def output_stream(crawler: Crawler) -> TextIO:
    """Standard output, unless items are written there."""
    to_stdout = any(str(uri) in ("-", "stdout:") for uri in crawler.settings.getdict("FEEDS"))
    return sys.stderr if to_stdout else sys.stdout


def format_elapsed(elapsed_s: float) -> str:
    minutes, rest = divmod(int(elapsed_s), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
    )
