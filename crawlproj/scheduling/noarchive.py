"""Whether what came may be kept: by the page's own words, also of one that nobody has read, such as
an error or half a page.
"""

from __future__ import annotations

import re
from typing import Final

from crawlproj.content.html import parse
from crawlproj.content.robots_directives import read_headers
from crawlproj.fetch.wire import Wire
from crawlproj.frontier.base import Ticket
from crawlproj.http import heads
from crawlproj.http.encodings import decode
from crawlproj.items import Page

LOOK: Final = 256_000
"""Bytes of a body, unpacked, in which a meta element is looked for."""
_WORDS: Final = re.compile(rb"no(?:archive|cache)", re.IGNORECASE).search


def is_private(page: Page, wire: Wire, agents: tuple[str, ...]) -> bool:
    """Whether the page says noarchive. One that has not changed is not read again, and one that
    failed can't be: it still says what it said.
    """
    ticket = page.ticket
    if (
        isinstance(ticket, Ticket)
        and ticket.noarchive
        and (page.status in (0, 304) or page.body_digest == ticket.body_digest)
    ):
        return True
    if page.status == 304 or 200 <= page.status < 300:
        return page.orders.noarchive
    return _says_so(wire, page.url, agents)


def _says_so(wire: Wire, url: str, agents: tuple[str, ...]) -> bool:
    """By its header, or by an element in what has come of it."""
    head = wire.head
    body = wire.body
    if not heads.is_http(head):
        head, body = b"", head + body
    if _WORDS(head) and read_headers(_tags(head), agents).noarchive:
        return True
    text = decode(body, heads.field(head, "Content-Encoding"), LOOK)
    return _WORDS(text) is not None and parse(text, url, agents=agents).robots.noarchive


def _tags(head: bytes) -> list[str]:
    fields = (line.partition(b":") for line in heads.lines(head))
    return [value.decode("latin-1") for name, _, value in fields if name.lower() == b"x-robots-tag"]
