"""A spider with an item per page, and a pipeline that asks whether the page is a copy."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrapy.http import Response

from crawlproj.items import verdict_of
from spiders.site import SiteSpider


@dataclass
class Found:
    url: str
    duplicate_of: str | None = None
    duplicate_kind: str | None = None
    similarity: float | None = None


class CopiesSpider(SiteSpider):
    """Yields a dataclass with the fields of a verdict, and a plain dict."""

    name = "copies"
    arguments = (*SiteSpider.arguments, "many")

    def __init__(self, many: str = "0", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.many = int(many)

    def parse(self, response: Response) -> Iterator[Any]:
        yield Found(response.url)
        yield {"plain": response.url}
        if response.url.endswith("/copy"):
            for number in range(self.many):
                yield {"plain": response.url, "number": number}


class Witness:
    """Logs what `verdict_of` says of plain items."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, dict):
            verdict = verdict_of(item)
            logging.getLogger("witness").info("%s is %s", item["plain"], verdict and "a copy")
        return item


class Ledger:
    """Writes each item into a file as soon as it comes: what is there outlives a kill."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Found):
            line = json.dumps([time.time(), item.url, item.duplicate_of]) + "\n"
            handle = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, line.encode())
            os.close(handle)
        return item
