"""A spider with components of its own in `custom_settings`, as the docs of Scrapy show it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.http import Request, Response
from scrapy.pipelines.files import FilesPipeline


class Disguise:
    """A downloader middleware that asks in another name."""

    def process_request(self, request: Request) -> None:
        request.headers["User-Agent"] = "Mozilla/5.0"


class Fragile:
    """The last one before the network: it fails with what comes back."""

    def process_response(self, request: Request, response: Response) -> Response:
        if "/world" in request.url:
            raise ZeroDivisionError("a bug")
        return response


class Stamp:
    """A spider middleware."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for output in result:
            if isinstance(output, dict):
                output["stamp"] = response.url
            yield output


class Recorder:
    """A pipeline that writes down the types that it sees."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(Path(crawler.settings["RECORD"]) / cls.__name__)

    def process_item(self, item: Any) -> Any:
        with self._path.open("a") as file:
            file.write(
                f"{type(item).__name__} {'stamp' in item if isinstance(item, dict) else ''}\n"
            )
        return item


class PageRecorder(Recorder):
    wants_pages = True


class OwnSpider(scrapy.Spider):
    """Follows links, and lets Scrapy's pipeline fetch the same few files from each page."""

    name = "own"
    custom_settings = {  # noqa: RUF012
        "DOWNLOADER_MIDDLEWARES": {
            "tests.spiders.own.Disguise": 543,
            "tests.spiders.own.Fragile": 999,
        },
        "SPIDER_MIDDLEWARES": {"tests.spiders.own.Stamp": 543},
        "ITEM_PIPELINES": {
            "tests.spiders.own.Recorder": 1,
            "tests.spiders.own.PageRecorder": 2,
            FilesPipeline: 3,
        },
        "DEFAULT_REQUEST_HEADERS": {"User-Agent": "Mozilla/4.0"},
        "USER_AGENT": "Mozilla/3.0",
        "ROBOTSTXT_OBEY": False,
    }

    def __init__(self, seed: str = "", **named: Any) -> None:
        super().__init__(**named)
        self.start_urls = [seed]

    def parse(self, response: Response) -> Iterator[Any]:
        links = [response.urljoin(link) for link in response.css("a::attr(href)").getall()]
        yield {"url": response.url, "file_urls": links[:3] if response.meta["depth"] == 0 else []}
        if response.meta["depth"] < 2:
            yield from (Request(link) for link in links)


class ReplacingSpider(scrapy.Spider):
    """Switches a part off that nobody may switch off, chosen by a setting."""

    name = "replacing"
    start_urls = ("http://127.0.0.1:9/",)

    @classmethod
    def update_settings(cls, settings: Any) -> None:
        super().update_settings(settings)
        given = str(settings["REPLACED_BY"])
        value = json.loads(given) if given.startswith("{") else given
        settings.set(settings["REPLACED"], value, "spider")
