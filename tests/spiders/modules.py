"""Yields what it was told, and which modules of Redis its process has loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import Response


class ModulesSpider(scrapy.Spider):
    name = "modules"

    def __init__(self, url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [url] if url else []

    def parse(self, response: Response) -> Iterator[Any]:
        loaded = sorted(
            name for name in sys.modules if name.partition(".")[0] in ("redis", "scrapy_redis")
        )
        asked = (
            {"method": response.request.method, "body": response.request.body.decode()}
            if response.request
            else {}
        )
        yield {
            "url": response.url,
            "word": response.meta.get("word"),
            "modules": loaded[:3],
            **asked,
        }
