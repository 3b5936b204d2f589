"""Counts what the process that finds languages has done, and says once if it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable

from crawlproj.content.language_process import LanguageReader

log = logging.getLogger(__name__)


class LanguageWatch:
    """Lives on the event loop; the reader is asked by the database thread. `count` raises a
    stat.
    """

    def __init__(self, reader: LanguageReader, count: Callable[[str, int], None]) -> None:
        self._reader = reader
        self._count = count
        self._found = 0
        self._failed = 0
        self._missed = 0

    def take_look(self) -> None:
        """Count what is new since the last look."""
        found = self._reader.texts - self._found
        failed = self._reader.failures - self._failed
        missed = self._reader.missed - self._missed
        if failed and not self._failed:
            log.warning(
                "The process that finds languages has failed: pages are stored without theirs (%s)",
                self._reader.last_failure,
            )
        if found:
            self._count("languages/found", found)
        if failed:
            self._count("languages/failed", failed)
        if missed:
            self._count("languages/missed", missed)
        self._found += found
        self._failed += failed
        self._missed += missed
