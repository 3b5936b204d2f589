"""A spider and pipelines that end badly on purpose, chosen by the path of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.exceptions import DropItem
from scrapy.http import Response

from crawlproj.items import Page


class Spoiler:
    """A pipeline before ours that drops or fails."""

    wants_pages = True

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and item.url.endswith("end=drop"):
            raise DropItem("not wanted")
        if isinstance(item, Page) and item.url.endswith("end=pipeline"):
            raise KeyError("broken pipeline")
        return item


class LateSpoiler:
    """A pipeline after ours."""

    wants_pages = True

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and item.url.endswith("end=late-drop"):
            raise DropItem("too late")
        return item


class EndsSpider(scrapy.Spider):
    name = "ends"
    custom_settings = {  # noqa: RUF012
        "ITEM_PIPELINES": {
            "tests.spiders.ends.Spoiler": 350,
            "tests.spiders.ends.LateSpoiler": 950,
        },
    }

    def __init__(self, urls: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls.split(",")
        self.wants = set(self.urls).__contains__

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response: Response) -> Any:
        end = response.url.partition("end=")[2]
        if end == "callback":
            raise ValueError("broken callback")
        if end == "generator":
            return self.broken(response)
        if end == "two":
            return [{"n": 1}, {"n": 2}]
        return None

    def broken(self, response: Response) -> Iterator[dict[str, int]]:
        yield {"n": 1}
        raise ValueError("broken generator")
