"""What is made of a page before it is stored: text and marks, if they are new, and whether the page
wants to be compared.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.content.slices import run_at_once
from crawlproj.duplicates.marks import WITHDRAWN, PageMarker
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.fetch.pages import page_in_slices
from crawlproj.frontier.base import Lane, State, Ticket
from crawlproj.frontier.clock import FrontierClock
from crawlproj.items import Page
from crawlproj.scheduling.marking import PageMarking
from settings import base

URL = "http://a.example/page"
TEXT = " ".join(f"The word number {n} of this page stands here." for n in range(40))
PLAIN = f"<html><head><title>Page</title></head><body><p>{TEXT}</p></body></html>"
META = PLAIN.replace("<head>", "<head><meta name=robots content=noindex>")
OLD_DATE = "unavailable_after: 2001-02-03"
CLOCK = FrontierClock(datetime.now(UTC), time.monotonic(), time.monotonic())
MARKING = PageMarking(
    read_config(Settings({n: getattr(base, n) for n in dir(base) if n.isupper()}), "one"),
    PageMarker(DuplicateRules(), 1),
)


def visit(html: str, tag: str = "", ticket: Ticket | None = None) -> Page:
    """The page of a visit, as crawls make it, and marked."""
    if ticket is None:
        ticket = Ticket(1, URL, "a.example", 1, 1, visit=0, lane=Lane.NEW, state=State.NEW)
    request = Request(URL, meta={"ticket": ticket})
    headers = {"Content-Type": "text/html; charset=utf-8"}
    if tag:
        headers["X-Robots-Tag"] = tag
    response = HtmlResponse(URL, 200, headers=headers, body=html.encode(), request=request)
    page = run_at_once(page_in_slices(response, request, CLOCK))
    assert MARKING.mark(page)
    return page


def after(html: str, noindex: bool) -> Ticket:
    """The ticket of a later visit, if the page was read so."""
    page = visit(html)
    assert page.document is not None
    return Ticket(
        *(1, URL, "a.example", 1, 1),
        visit=1,
        lane=Lane.REVISIT,
        state=State.WAITING,
        body_digest=sha256(html.encode()).digest()[:16],
        block_digest=page.document.block_digest,
        noindex=noindex,
    )


def marks_of(page: Page) -> Any:
    if page.marks is None:
        return None
    return "withdrawn" if page.marks == WITHDRAWN else page.marks.text


COMPARED = marks_of(visit(PLAIN))


@pytest.mark.parametrize(
    ("html", "tag", "first"),
    [(PLAIN, "", COMPARED), (META, "", "withdrawn"), (PLAIN, "none", "withdrawn")],
)
def test_a_page_is_compared_unless_it_says_noindex(html: str, tag: str, first: Any) -> None:
    page = visit(html, tag)
    assert marks_of(page) == first
    assert page.text is not None, "its text is kept all the same"


@pytest.mark.parametrize(
    ("before", "hidden", "html", "tag", "then"),
    [
        # As it was, read again or not.
        (PLAIN, False, PLAIN, "", None),
        (PLAIN, False, PLAIN + " ", "", None),
        (META, True, META, "", None),
        (META, True, META + " ", "", None),
        (PLAIN, True, PLAIN, "noindex", None),
        # It says noindex now.
        (PLAIN, False, META, "", "withdrawn"),
        (PLAIN, False, PLAIN, "noindex", "withdrawn"),
        (PLAIN, False, PLAIN, "otherbot: noindex", None),
        (PLAIN, False, PLAIN, OLD_DATE, "withdrawn"),
        # No longer.
        (META, True, PLAIN, "", COMPARED),
        (PLAIN, True, PLAIN, "", COMPARED),
        # From one place to the other.
        (META, True, PLAIN, "noindex", None),
        (PLAIN, True, META, "", None),
    ],
)
def test_noindex_that_comes_or_goes_counts_without_another_text(
    before: str, hidden: bool, html: str, tag: str, then: Any
) -> None:
    page = visit(html, tag, after(before, hidden))
    assert marks_of(page) == then
    if then == COMPARED:
        assert page.text is not None, "it is compared by its text"
    if page.body_digest == sha256(before.encode()).digest()[:16] and then is None:
        assert page.document is None, "of the same bytes nothing is stored anew"


def test_a_page_that_has_changed_but_not_its_noindex_is_still_withdrawn() -> None:
    page = visit(META.replace("stands", "stood"), ticket=after(META, noindex=True))
    assert marks_of(page) == "withdrawn"


def test_a_date_that_has_not_come_yet_hides_nothing() -> None:
    tag = f"unavailable_after: {datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
    assert marks_of(visit(PLAIN, tag, after(PLAIN, noindex=False))) is None
    assert (
        marks_of(visit(PLAIN, tag, replace(after(PLAIN, noindex=False), body_digest=b"x"))) is None
    )
