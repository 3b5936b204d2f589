"""The screen of a crawl: lines that stay, and on a terminal a few below that are drawn anew."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

MODES = ("auto", "live", "lines", "log", "off")
WITHOUT_SCREEN = ("log", "off")
"""Modes in which nothing is printed, and the log stays where Scrapy has it."""
DEFAULT_WIDTH = 100
BOLD = "\x1b[1m"
PLAIN = "\x1b[0m"
UP = "\x1b[{}F"
CLEAR_LINE = "\x1b[2K"
WRAP_OFF = "\x1b[?7l"
WRAP_ON = "\x1b[?7h"


class Screen:
    """A stream that shows lines; several threads may use it.

    `live` says whether lines can be drawn anew; by default, if the stream is a terminal that can.
    A stream that is gone (a closed pipe or terminal) is no reason to stop a crawl: nothing more is
    shown.
    """

    def __init__(self, stream: TextIO, live: bool | None = None) -> None:
        if live is None:
            live = _can_draw(stream)
        self._stream = stream
        self.live = live
        self._bold = self.live and "NO_COLOR" not in os.environ
        self._drawn: list[str] = []
        self._lock = threading.RLock()

    @property
    def width(self) -> int:
        """How many columns a line may have."""
        with suppress(OSError, ValueError):
            return max(40, os.get_terminal_size(self._stream.fileno()).columns - 1)
        return DEFAULT_WIDTH

    def print_line(self, text: str) -> None:
        """Print a line that stays, above what is drawn."""
        with self._lock:
            drawn = self._drawn
            self._write(self._erase() + text + "\n")
            if drawn:
                self.draw_lines(drawn)

    def draw_lines(self, lines: Sequence[str]) -> None:
        """Show these in place of the last ones; the first is the title."""
        with self._lock:
            title, *rest = lines
            if self._bold:
                title = f"{BOLD}{title}{PLAIN}"
            # One write, and lines that are never wrapped: nothing flickers, and going up hits the
            # right line.
            self._write(self._erase() + WRAP_OFF + "\n".join([title, *rest]) + "\n" + WRAP_ON)
            self._drawn = list(lines)

    def clear(self) -> None:
        """Remove the lines that are drawn."""
        with self._lock:
            self._write(self._erase())

    def _erase(self) -> str:
        """What to write to remove the drawn lines; they are forgotten.

        They are cleared one by one: a terminal that is told to clear all from its first line on,
        such as tmux after `clear`, would put the whole screen into its history each time.
        """
        size = len(self._drawn)
        self._drawn = []
        if not size:
            return ""
        up = UP.format(size)
        return up + size * f"{CLEAR_LINE}\n" + up

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


class LogLines:
    """In place of a screen: lines go to the log."""

    live = False
    width = DEFAULT_WIDTH

    def print_line(self, text: str) -> None:
        log.info("%s", text)

    def draw_lines(self, lines: Sequence[str]) -> None:
        """Nothing is drawn in a log."""

    def clear(self) -> None:
        """Nothing was drawn."""


def _can_draw(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def output_stream(crawler: Crawler) -> TextIO:
    """Standard output, unless items are written there."""
    if any(str(uri) in ("-", "stdout:") for uri in crawler.settings.getdict("FEEDS")):
        return sys.stderr
    return sys.stdout


def format_elapsed(elapsed_s: float) -> str:
    """The time as a clock shows it: `3:07`, `1:03:07`."""
    minutes, seconds = divmod(int(elapsed_s), 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
