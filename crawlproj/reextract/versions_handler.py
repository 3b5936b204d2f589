"""The download handler of `--at TIME`: pages as they were at a time, read from the archive."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from crawlproj.archive import Archive, Capture
from crawlproj.config import config_of
from crawlproj.fetch.pages import RefusedError
from crawlproj.frontier.opening import open_for_reading
from crawlproj.oneoff.mode import AT_SETTING
from crawlproj.reextract.handler import response_of
from crawlproj.reextract.scheduler import ARCHIVED_AT
from crawlproj.reports.versions import find_versions, version_at

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

log = logging.getLogger(__name__)


class VersionsHandler:
    """Gives the version that was in force at the time of the command, and asks no network."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        self._config = config_of(crawler)
        self._archive = Archive(self._config.warc_dir)
        self._at = crawler.settings.get(AT_SETTING)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        capture = await asyncio.to_thread(self._find_capture, request.url)
        request.meta[ARCHIVED_AT] = capture.at
        log.info("From the archive, captured at %s: %s", capture.at, request.url)
        return response_of(capture, request.url)

    def _find_capture(self, url: str) -> Capture:
        """The version of a URL. The database is asked only for files that are still written."""
        entries = find_versions(self._archive, url, partial(open_for_reading, self._config))
        if not entries:
            raise RefusedError(f"not in the archive in {self._archive.folder}")
        return self._archive.read_capture(version_at(entries, self._at))

    async def close(self) -> None:
        """There is nothing to close."""
