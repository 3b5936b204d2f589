"""What a server says of changes of a page, and what came of what it had said: Last-Modified, ETag,
Expires and max-age, lastmod of a sitemap.

Hints are stored and counted; only a Last-Modified that can be right tells when a page has changed,
and none is ever believed against what the page itself shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from crawlproj.frontier.base import ServerHints, Ticket
from crawlproj.items import Page

MAX_TAG: Final = 500
"""Characters; a longer ETag is not sent back to its server."""
MAX_DATE: Final = 100
JUST_NOW: Final = timedelta(seconds=2)
"""A page that was always modified just now says nothing of its changes."""
EARLIEST: Final = datetime(1990, 1, 1, tzinfo=UTC)
LONGEST: Final = timedelta(days=3650)
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,12})", re.IGNORECASE)


def parse_http_date(value: str | None) -> datetime | None:
    """A date of a header; None if it is none."""
    if not value or len(value) > MAX_DATE:
        return None
    try:
        at = parsedate_to_datetime(value.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        at = at.astimezone(UTC)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    return at if at >= EARLIEST else None


def read_hints(page: Page) -> ServerHints | None:
    """What the server says with this page; None if it says nothing, or no such thing."""
    headers = page.headers
    modified_at = parse_http_date(headers.get("last-modified"))
    fresh_until = _fresh_until(page)
    if modified_at is None and fresh_until is None:
        return None
    if modified_at is not None and modified_at > page.at:
        modified_at = None
    return ServerHints(modified_at, fresh_until)


def _fresh_until(page: Page) -> datetime | None:
    control = page.headers.get("cache-control")
    if control:
        found = _MAX_AGE.search(control[:1000])
        if found:
            return page.at + min(timedelta(seconds=int(found[1])), LONGEST)
    at = parse_http_date(page.headers.get("expires"))
    if at is None:
        return None
    return min(at, page.at + LONGEST)


def listed_changes(
    listed: Mapping[str, str], since: datetime, now: datetime
) -> dict[str, datetime]:
    """Of the pages that a sitemap names those that it says were changed since it was read last, and
    when. A day without a time is that whole day.
    """
    changes = {}
    earliest = since - timedelta(days=1)
    for url, text in listed.items():
        at = parse_listed(text)
        if at is not None and earliest <= at <= now:
            changes[url] = at
    return changes


def parse_listed(text: str) -> datetime | None:
    """A date of a sitemap; None if it is none."""
    try:
        at = datetime.fromisoformat(text[:40].strip())
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return None


def trusted_change(page: Page, ticket: Ticket) -> datetime | None:
    """When a changed page was changed last, if its server says so and can be right: since the visit
    before, and not just now, as servers say of whatever they make.
    """
    if ticket.last_read is None or page.headers.get("last-modified") == ticket.modified:
        return None
    at = parse_http_date(page.headers.get("last-modified"))
    if at is None or not ticket.last_read < at <= page.at - JUST_NOW:
        return None
    return at


def met_hints(page: Page, ticket: Ticket) -> tuple[tuple[str, bool], ...]:
    """What hints have said of this visit to a known page: the name of each, and whether it spoke of
    a change. A 304 rests on the validators, so it can't be held against them.
    """
    if ticket.block_digest is None or ticket.last_read is None:
        return ()
    met = []
    if 200 <= page.status < 300:
        for name, before, now in (
            ("etag", ticket.etag, page.headers.get("etag")),
            ("modified", ticket.modified, page.headers.get("last-modified")),
        ):
            if before and now:
                met.append((name, before != now))
    if ticket.listed_at is not None:
        met.append(("lastmod", ticket.listed_at > ticket.last_read))
    if ticket.fresh_until is not None and ticket.fresh_until > ticket.last_read:
        met.append(("expires", ticket.fresh_until <= page.at))
    return tuple(met)


def short_tag(page: Page) -> str | None:
    """The ETag, if it is of a length to be sent back."""
    tag = page.headers.get("etag")
    if tag is None or len(tag) > MAX_TAG:
        return None
    return tag


def short_date(page: Page) -> str | None:
    """The Last-Modified as it is sent back to its server."""
    text = page.headers.get("last-modified")
    if text is None or len(text) > MAX_DATE:
        return None
    return text
