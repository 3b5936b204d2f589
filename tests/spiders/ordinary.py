"""Spiders as people write them without knowing of any frontier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import JsonRequest, Response
from twisted.python.failure import Failure


class OrdinarySpider(scrapy.Spider):
    """POST, headers, callbacks, cb_kwargs, errbacks, a redirect, and a few requests that can't be
    stored.
    """

    name = "ordinary"

    def __init__(self, base: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base = base
        self.start_urls = [base + "/start"]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"got": "start"}
        yield JsonRequest(
            self.base + "/echo",
            data={"n": 1},
            headers={"X-Word": "hello"},
            callback=self.posted,
            cb_kwargs={"word": "kwargs"},
        )
        yield scrapy.Request(self.base + "/missing", callback=self.never, errback=self.missing)
        yield scrapy.FormRequest(
            self.base + "/redirect",
            formdata={"a": "b"},
            callback=self.posted,
            errback=self.missing,
            cb_kwargs={"word": "moved"},
        )
        yield scrapy.Request(self.base + "/lambda", callback=lambda r: None)
        yield scrapy.Request(self.base + "/object", meta={"x": object()})
        yield scrapy.Request(self.base + "/twice", callback=self.counted)
        yield scrapy.Request(self.base + "/twice", callback=self.counted)
        yield scrapy.Request(self.base + "/again", callback=self.counted, dont_filter=True)
        yield scrapy.Request(self.base + "/again", callback=self.counted, dont_filter=True)
        yield scrapy.Request(
            self.base + "/allowed-404",
            callback=self.counted,
            meta={"handle_httpstatus_list": [404]},
        )

    def posted(self, response: Response, word: str) -> Iterator[Any]:
        yield {"got": "posted", "word": word, "seen": response.json()}  # type: ignore[attr-defined]

    def counted(self, response: Response) -> Iterator[Any]:
        yield {"got": response.url.rpartition("/")[2], "status": response.status}

    def never(self, response: Response) -> Iterator[Any]:
        yield {"got": "never"}

    def missing(self, failure: Failure) -> Iterator[Any]:
        yield {"got": "errback", "status": failure.value.response.status}  # type: ignore[attr-defined]


class BrokenSpider(scrapy.Spider):
    """Breaks the scheduler from inside, as no spider should be able to."""

    name = "broken"

    def __init__(self, base: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [base + "/start"]

    def parse(self, response: Response) -> None:
        scheduler: Any = self.crawler.engine.scheduler
        scheduler.worker.dispatcher.window.due_host = None
