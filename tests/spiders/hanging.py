"""A spider with a regular expression that some pages make it hang on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response


def hang() -> None:
    """Takes years, and holds the GIL all the time."""
    re.search(r"(a+)+$", "a" * 100 + "b")


class HangingSpider(scrapy.Spider):
    name = "hanging"

    def __init__(self, base: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [base + "/start"]

    def parse(self, response: Response) -> Iterator[Any]:
        if "hangs" in response.url:
            hang()
        for path in response.text.split():
            if path.startswith("/later"):
                yield response.follow(path, self.parse_later)
            elif path.startswith("/now"):
                yield response.follow(path)

    async def parse_later(self, response: Response) -> AsyncIterator[Any]:
        await asyncio.sleep(0.1)
        if "hangs" in response.url:
            hang()
        yield {"url": response.url}
