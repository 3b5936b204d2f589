"""A spider whose articles are wanted, and a pipeline that writes each down at once."""

from __future__ import annotations

import json
import os
import time
from typing import Any, ClassVar

from crawlproj.items import Article
from crawlproj.news.spider import NewsSpider
from spiders.site import SiteSpider


class ArticlesSpider(SiteSpider):
    """The general one, with articles."""

    name = "articles"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(articles="1", **kwargs)


class ArticleLedger:
    """Writes each article into a file as soon as it comes: what is there outlives a kill."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Article):
            line = json.dumps([time.time(), item.url, item.version]) + "\n"
            handle = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, line.encode())
            os.close(handle)
        return item


class MendedSpider(NewsSpider):
    """Reads the sections of articles from elsewhere than the page says."""

    name = "mended"
    domains = ("127.0.0.1",)
    fields: ClassVar = {"section": "xpath:concat('Sections: ', normalize-space(//nav))"}
