"""Every request says who asks and how to reach a person (F-POL-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from crawlproj.config import read_config

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class IdentityMiddleware:
    def __init__(self, user_agent: str) -> None:
        self._user_agent = user_agent

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(read_config(crawler.settings, crawler.spidercls.name or "").user_agent)

    def process_request(self, request: Request) -> None:
        request.headers.setdefault("User-Agent", self._user_agent)
