"""Every request says who asks, how to reach a person, and how the response may be compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from crawlproj.config import config_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


REPLAYABLE_ENCODINGS = "gzip, deflate, br"
"""What programs that replay archives can decompress: not zstd, which Scrapy would offer too."""


class IdentityMiddleware:
    def __init__(self, user_agent: str, archived: bool) -> None:
        self._user_agent = user_agent
        self._archived = archived

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = config_of(crawler)
        return cls(config.user_agent, config.warc is not None)

    def process_request(self, request: Request) -> None:
        request.headers.setdefault("User-Agent", self._user_agent)
        if self._archived:
            request.headers.setdefault("Accept-Encoding", REPLAYABLE_ENCODINGS)
