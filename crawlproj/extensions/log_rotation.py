"""The log of a crawl that runs for months: set aside when it has grown long, as at a start."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawlproj.cli.preflight import rotate_log

LOOK_S: Final = 60.0


class LogRotation:
    """Looks now and then at a log file of ours, in `folder`; those elsewhere are their owners'."""

    def __init__(
        self, log_file: str | None, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path: Path | None = None
        if log_file and Path(log_file).absolute().parent == folder.absolute():
            self._path = Path(log_file).absolute()
        self._clock = clock
        self._look_at = clock() + LOOK_S

    def rotate_if_due(self) -> None:
        """Begin a new file if this one has grown too long. A disk that is full stops no crawl."""
        if self._path is None or self._clock() < self._look_at:
            return
        self._look_at = self._clock() + LOOK_S
        for handler in logging.root.handlers:
            if isinstance(handler, logging.FileHandler) and handler.baseFilename == str(self._path):
                with suppress(OSError):
                    _reopen(handler, self._path)


def _reopen(handler: logging.FileHandler, path: Path) -> None:
    """Let a handler write to what stands at its path after a rotation."""
    handler.acquire()
    try:
        rotate_log(path)
        old = handler.stream
        handler.stream = handler._open()
        if old is not None:
            old.close()
    finally:
        handler.release()
