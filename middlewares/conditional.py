"""Conditional requests: only what has changed since the last visit is asked for."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from crawlproj.frontier.base import Ticket
from crawlproj.items import RobotsTicket

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

NOT_MODIFIED = 304


class ConditionalMiddleware:
    """A spider that takes every status itself is given pages, not a 304 that it did not ask for."""

    def __init__(self, taken: Container[int] = ()) -> None:
        self._taken = taken

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        if settings.getbool("HTTPERROR_ALLOW_ALL"):
            return cls((NOT_MODIFIED,))
        allowed = [int(status) for status in settings.getlist("HTTPERROR_ALLOWED_CODES")]
        own = getattr(crawler.spider, "handle_httpstatus_list", None) or ()
        return cls((*allowed, *own))

    def _takes_status(self, request: Request) -> bool:
        meta = request.meta
        if meta.get("handle_httpstatus_all"):
            return True
        return NOT_MODIFIED in meta.get("handle_httpstatus_list", self._taken)

    def process_request(self, request: Request) -> None:
        ticket = request.meta.get("ticket")
        if request.method != "GET" or not isinstance(ticket, Ticket | RobotsTicket):
            return
        if isinstance(ticket, Ticket) and (
            ticket.block_digest is None or ticket.unread or self._takes_status(request)
        ):
            return
        if ticket.etag:
            request.headers.setdefault("If-None-Match", ticket.etag)
        if ticket.modified:
            request.headers.setdefault("If-Modified-Since", ticket.modified)
