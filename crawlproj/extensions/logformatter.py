"""A line per page is for debugging only, so it is not even made unless LOG_LEVEL is DEBUG."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter, LogFormatterResult

from crawlproj.items import Page

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure


PASSWORD = re.compile(r"(://[^\s:/@'\"]*:)[^\s/'\"]+@")


def without_passwords(record: logging.LogRecord) -> bool:
    """Those in URLs of databases are nobody's business."""
    if "://" in (text := record.getMessage()):
        record.msg = PASSWORD.sub(r"\1***@", text)
        record.args = None
    return True


class QuietFormatter(LogFormatter):
    def __init__(self, debug: bool = False) -> None:
        self._debug = debug

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called just before Scrapy writes all settings that were changed into the log."""
        logging.getLogger("scrapy.crawler").addFilter(without_passwords)
        return cls(crawler.settings.get("LOG_LEVEL") == "DEBUG")

    def crawled(  # type: ignore[override]  # Scrapy allows None, its types don't
        self, request: Request, response: Response, spider: Spider
    ) -> LogFormatterResult | None:
        return super().crawled(request, response, spider) if self._debug else None

    def scraped(  # type: ignore[override]
        self, item: Any, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        return (
            super().scraped(item, response, spider)
            if self._debug and not isinstance(item, Page)
            else None
        )

    def item_error(
        self,
        item: Any,
        exception: BaseException,
        response: Response | Failure | None,
        spider: Spider,
    ) -> LogFormatterResult:
        """Without the whole Page, which is long."""
        message = "A pipeline failed on %(url)s: %(error)s"
        return {
            "level": logging.ERROR,
            "msg": message,
            "args": {"url": _url(item), "error": exception},
        }

    def dropped(
        self,
        item: Any,
        exception: BaseException,
        response: Response | Failure | None,
        spider: Spider,
    ) -> LogFormatterResult:
        return {
            "level": logging.DEBUG,
            "msg": "Dropped %(url)s: %(error)s",
            "args": {"url": _url(item), "error": exception},
        }


def _url(item: Page | Any) -> str:
    return getattr(item, "url", None) or repr(item)[:200]
