"""Hubs are learned within hours, and let go when they stop; what is none costs little."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.content.document import Document, Link
from crawlproj.frontier.base import GAP_PART, Found, Lane, Outcome, State, Ticket
from crawlproj.items import ChangeVerdict, Page
from crawlproj.scheduling.hub_trials import MAX_STARTS, HubTrials
from crawlproj.scheduling.outcomes import OutcomeRules
from settings import base

START = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SITE = "https://example.org"


def make_rules(**more: object) -> OutcomeRules:
    ours = {name: getattr(base, name) for name in base.OURS}
    config = read_config(
        Settings(ours | {"DOWNLOAD_TIMEOUT": base.DOWNLOAD_TIMEOUT} | more), "site"
    )
    trials = HubTrials(config.source_bounds.interval, config.bounds.shortest)
    return replace(OutcomeRules.from_config(config), trials=trials)


def first_ticket(path: str) -> Ticket:
    return Ticket(
        1, SITE + path, "example.org", server=1, epoch=1, visit=0, lane=Lane.NEW, state=State.NEW,
        depth=2, found=Found.LINK,
    )  # fmt: skip


def visit(
    rules: OutcomeRules, ticket: Ticket, at: datetime, new: int, known: int = 0, **facts: Any
) -> tuple[Outcome, Ticket]:
    """A visit that finds so many new articles, of which the crawl knows some; and the next ticket."""
    page = Page(ticket, ticket.url, 200, at, kind="html", page_kind="listing")
    for name, value in facts.items():
        setattr(page, name, value)
    links = [Link(f"{SITE}/world/the-mayor-opened-bridge-{n}", "a") for n in range(20)]
    page.document = Document(ticket.url, links=links)
    if ticket.block_digest is not None:
        page.verdict = ChangeVerdict(new > 0, new_links=new, new_articles=new)
        page.changed = new > 0
        page.fresh_articles = new - known
    outcome = rules.decide_outcome(page, ticket)
    note = outcome.source_note
    last_new, gap_s = ticket.source_last_new, ticket.source_gap_s
    if note is not None and note.new_links:
        if last_new is not None:
            last_s = (at - last_new).total_seconds()
            gap_s = last_s if gap_s is None else gap_s + GAP_PART * (last_s - gap_s)
        last_new = at
    return outcome, replace(
        ticket,
        visit=ticket.visit + 1,
        state=State.WAITING,
        lane=Lane.REVISIT,
        block_digest=b"x",
        page_state=b"L",
        last_visit=at,
        interval_s=outcome.interval_s,
        changes=ticket.changes + page.changed,
        rate_a=outcome.rate_a,
        rate_b=outcome.rate_b,
        source=outcome.source,
        source_kind=(note.kind if note is not None and note.kind else ticket.source_kind),
        source_last_new=last_new,
        source_gap_s=gap_s,
    )


@pytest.mark.parametrize("daily", [4, 40, 400])
def test_a_section_is_a_hub_within_a_day_and_none_when_it_has_stopped(daily: int) -> None:
    rules = make_rules()
    gap = DAY / daily
    stop = START + 5 * DAY
    at, seen, became = START, 0, None
    ticket = first_ticket("/world")
    ends: list[datetime] = []
    while at < stop + 20 * DAY:
        # Each time is a little off, so that visits and articles have no common beat.
        there = int((min(at, stop) - START + gap / 3) / gap)
        outcome, ticket = visit(rules, ticket, at, there - seen)
        seen = there
        if outcome.source and became is None:
            became = at
        if at > stop:
            ends.append(at)
            if not outcome.source:
                break
        assert outcome.next_visit is not None
        at = outcome.next_visit
    assert became is not None and became - START < (DAY if daily == 4 else 4 * HOUR)
    assert not ticket.source
    assert ends[-1] - stop < max(12 * HOUR, 8 * gap) + 3 * HOUR
    assert len(ends) < 40


def test_a_page_that_brings_nothing_has_few_visits_and_then_those_of_any_page() -> None:
    rules = make_rules()
    ticket = first_ticket("/world")
    at = START
    visits = 0
    while at < START + 4 * DAY:
        outcome, ticket = visit(rules, ticket, at, 0)
        assert outcome.next_visit is not None and not outcome.source
        at = outcome.next_visit
        visits += 1
    assert visits <= 6
    assert ticket.interval_s is not None and ticket.interval_s >= 5 * DAY.total_seconds() * 0.9


def test_a_page_whose_articles_others_show_first_is_no_hub() -> None:
    rules = make_rules()
    ticket = first_ticket("/world")
    at = START
    while at < START + 2 * DAY:
        outcome, ticket = visit(rules, ticket, at, 4, known=3)
        assert not outcome.source
        assert outcome.next_visit is not None
        at = outcome.next_visit


def test_bait_sites_with_feeds_and_too_many_pages_get_no_trial() -> None:
    def first_interval(rules: OutcomeRules, path: str, **facts: Any) -> timedelta:
        outcome, _ = visit(rules, first_ticket(path), START, 0, **facts)
        assert outcome.interval_s is not None
        return timedelta(seconds=outcome.interval_s)

    rules = make_rules()
    assert first_interval(rules, "/world") < HOUR
    assert first_interval(rules, "/about-this-place", page_kind="other") < HOUR
    for path in ("/forum/bridges/", "/calendar/2026/03/", "/world?page=2", "/archive/2026/04/"):
        assert first_interval(rules, path) >= 12 * HOUR, path
    assert first_interval(rules, "/world", page_kind="article") >= 12 * HOUR
    for number in range(MAX_STARTS):
        first_interval(rules, f"/tag/t{number}")
    assert first_interval(rules, "/tag/one-more") >= 12 * HOUR

    rules = make_rules()
    feed = Page(first_ticket("/feed"), f"{SITE}/feed", 200, START, kind="feed")
    feed.document = Document(feed.url, links=[Link(f"{SITE}/1", "feed")])
    feed.document.newest = START - HOUR
    assert isinstance(feed.ticket, Ticket)
    rules.decide_outcome(feed, feed.ticket)
    assert first_interval(rules, "/world") >= 12 * HOUR
