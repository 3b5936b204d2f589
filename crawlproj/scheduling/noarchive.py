"""Whether a response may be archived: by what it says itself, also if nobody has parsed it, such as
an error or half a page.
"""

from __future__ import annotations

import re
from typing import Final

from crawlproj.content.html import parse_page
from crawlproj.content.robots_directives import parse_robots_headers
from crawlproj.fetch.wire import WireCapture
from crawlproj.frontier.base import Ticket
from crawlproj.http import heads
from crawlproj.http.encodings import decode_body
from crawlproj.items import Page

LOOK: Final = 64_000
"""Bytes of a body, decompressed, in which a meta element is looked for."""
MAX_WORK_S: Final = 0.1
"""Time for decompressing them."""
_WORDS: Final = re.compile(rb"no(?:archive|cache)", re.IGNORECASE).search


def says_noarchive(page: Page, wire: WireCapture, agents: tuple[str, ...]) -> bool:
    """Whether the page says noarchive. One that has not changed is not parsed again, and one that
    failed can't be: it still says what it said.
    """
    ticket = page.ticket
    if isinstance(ticket, Ticket) and ticket.noarchive:
        unchanged = page.status in (0, 304) or page.body_digest == ticket.body_digest
        if unchanged:
            return True
    if page.status == 304 or 200 <= page.status < 300:
        return page.directives.noarchive
    return _response_says_noarchive(wire, page.url, agents)


def _response_says_noarchive(wire: WireCapture, url: str, agents: tuple[str, ...]) -> bool:
    """Whether a response says noarchive: in a header, or by an element in what has come of it."""
    head = wire.head
    body = wire.body
    if not heads.is_http(head):
        body = head + body
        head = b""
    if _WORDS(head) and parse_robots_headers(_robots_tags(head), agents).noarchive:
        return True
    encoding = heads.get_header(head, "Content-Encoding")
    text = decode_body(body, encoding, LOOK, max_work_s=MAX_WORK_S)
    return _WORDS(text) is not None and parse_page(text, url, agents=agents).robots.noarchive


def _robots_tags(head: bytes) -> list[str]:
    fields = (line.partition(b":") for line in heads.strict_lines(head))
    return [value.decode("latin-1") for name, _, value in fields if name.lower() == b"x-robots-tag"]
