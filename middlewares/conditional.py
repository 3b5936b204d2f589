"""Conditional requests: only what has changed since the last visit is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.frontier.base import Ticket
from crawlproj.items import RobotsTicket

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler


class ConditionalMiddleware:
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls()

    def process_request(self, request: Request) -> None:
        ticket = request.meta.get("ticket")
        if request.method != "GET" or not isinstance(ticket, Ticket | RobotsTicket):
            return
        if isinstance(ticket, Ticket) and (ticket.block_digest is None or ticket.unread):
            return
        if ticket.etag:
            request.headers.setdefault("If-None-Match", ticket.etag)
        if ticket.modified:
            request.headers.setdefault("If-Modified-Since", ticket.modified)
