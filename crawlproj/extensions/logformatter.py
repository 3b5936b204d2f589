"""Log lines without passwords, and none per page or item unless LOG_LEVEL is DEBUG."""

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
DATABASE = re.compile(r"((?:redis|rediss|unix|postgres|postgresql)://[^\s:/@'\"]*:)([^\s'\"]+)")
"""Its password may have any character, also one that should have been escaped: it ends at the last
`@`.
"""
OPTION = re.compile(r"([?&\s](?:\w*password|pass|secret)=)[^\s&'\"]+", re.IGNORECASE)


def without_passwords(record: logging.LogRecord) -> bool:
    """A filter of the log that blots out passwords in URLs, as in that of the database."""
    text = record.getMessage()
    if "://" in text:
        text = PASSWORD.sub(r"\1***@", DATABASE.sub(_without_password, text))
        record.msg = OPTION.sub(r"\1***", text)
        record.args = None
    return True


def _without_password(found: re.Match[str]) -> str:
    start, rest = found.groups()
    password, _, end = rest.rpartition("@")
    if not password:
        return found[0]
    return f"{start}***@{end}"


class QuietFormatter(LogFormatter):
    """Formats lines about pages and items only for debugging: Scrapy would make one for each."""

    def __init__(self, debug: bool = False) -> None:
        self._debug = debug

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        # Called just before Scrapy writes all settings that were changed into the log.
        logging.getLogger("scrapy.crawler").addFilter(without_passwords)
        return cls(crawler.settings.get("LOG_LEVEL") == "DEBUG")

    def crawled(  # type: ignore[override]  # Scrapy allows None, its types don't
        self, request: Request, response: Response, spider: Spider
    ) -> LogFormatterResult | None:
        if not self._debug:
            return None
        return super().crawled(request, response, spider)

    def scraped(  # type: ignore[override]
        self, item: Any, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        if not self._debug or isinstance(item, Page):
            return None
        return super().scraped(item, response, spider)

    def item_error(
        self,
        item: Any,
        exception: BaseException,
        response: Response | Failure | None,
        spider: Spider,
    ) -> LogFormatterResult:
        """A line with the URL, not with the whole Page, which is long."""
        return {
            "level": logging.ERROR,
            "msg": "A pipeline failed on %(url)s: %(error)s",
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


class OneOffFormatter(QuietFormatter):
    """Formats a line for each page that a command such as `scrapy fetch` asked for."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult:
        line = LogFormatter.crawled(self, request, response, spider)
        return {**line, "level": logging.INFO}


def _url(item: Page | Any) -> str:
    return getattr(item, "url", None) or repr(item)[:200]
