"""What a source is, and when it is visited again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.content.document import Document, Link
from crawlproj.errors import ConfigError
from crawlproj.frontier.base import Found, Lane, State, Ticket, compute_rank
from crawlproj.items import ChangeVerdict, Page
from crawlproj.revisit.base import NO_NUMBERS, Numbers
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.sources import is_hub, is_source
from settings import base

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ROOT = "https://example.org/"
DEEP = "https://example.org/a"
MINUTE = 60.0
DAY = 86_400.0


def settings(**more: object) -> Settings:
    ours = {name: getattr(base, name) for name in base.OURS}
    return Settings(ours | {"DOWNLOAD_TIMEOUT": base.DOWNLOAD_TIMEOUT} | more)


def page(url: str = DEEP, kind: str = "html", status: int = 200, **fields: Any) -> Page:
    ticket = Ticket(
        1,
        url,
        "example.org",
        server=1,
        epoch=1,
        visit=0,
        lane=Lane.NEW,
        **{"state": State.NEW, "depth": 2, "found": Found.LINK, **fields},
    )
    return Page(ticket, url, status, NOW, kind=kind)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (page(), False),
        (page(kind="feed"), True),
        (page(kind="sitemap"), True),
        (page(depth=0, found=Found.SEED), True),
        (page(depth=0, found=None), True),
        (page(depth=0, found=Found.REDIRECT), True),
        (page(depth=0, found=Found.PUSH), False),
        (page(depth=1, found=Found.PUSH), False),
        (page(ROOT), True),
        (page("https://example.org/?page=2"), False),
        (page(kind="", status=304, source=True), True),
        (page(kind="", status=304, source=False), False),
        (page(kind="", status=503, source=True), True),
        (page(kind="html", source=True), False),
    ],
)
def test_a_feed_a_sitemap_a_seed_and_a_root_are_sources(given: Page, expected: bool) -> None:
    assert is_source(given) is expected


def interval_s(given: Page, **more: object) -> float:
    rules = OutcomeRules.from_config(read_config(settings(**more), "site"))
    assert isinstance(given.ticket, Ticket)
    outcome = rules.decide_outcome(given, given.ticket)
    assert outcome.source is is_source(given)
    assert outcome.interval_s is not None
    return outcome.interval_s


@pytest.mark.parametrize("policy", ["optimal", "adaptive", "classes", "uniform"])
def test_a_source_starts_at_its_own_interval(policy: str) -> None:
    assert interval_s(page(ROOT), REVISIT_POLICY=policy) == 15 * MINUTE
    assert interval_s(page(), REVISIT_POLICY=policy) == 5 * DAY
    assert interval_s(page(ROOT), REVISIT_POLICY=policy, SOURCE_INTERVAL="7m") == 7 * MINUTE
    # Whoever wants all pages more often means sources too.
    quick = {"REVISIT_INTERVAL": "1m", "REVISIT_MIN": "10s"}
    assert interval_s(page(ROOT), REVISIT_POLICY=policy, **quick) == MINUTE


def test_the_interval_of_a_page_is_not_that_of_a_source() -> None:
    visited = {"block_digest": b"x", "state": State.WAITING, "last_change": NOW}
    old_page = page(ROOT, interval_s=5 * DAY, source=False, **visited)
    assert interval_s(old_page, REVISIT_POLICY="adaptive") == 15 * MINUTE, (
        "a database from before, or a new seed"
    )
    known = page(ROOT, interval_s=20 * MINUTE, source=True, **visited)
    assert interval_s(known, REVISIT_POLICY="adaptive") == pytest.approx(24 * MINUTE)
    no_feed_any_more = page(interval_s=20 * MINUTE, source=True, **visited)
    assert interval_s(no_feed_any_more, REVISIT_POLICY="adaptive") == 5 * DAY
    changed = page(ROOT, interval_s=5 * MINUTE, source=True, **visited)
    changed.changed = True
    assert interval_s(changed, REVISIT_POLICY="adaptive") == 5 * MINUTE, "not below SOURCE_MIN"


def test_an_ordinary_request_for_a_feed_is_made_again_and_others_are_not() -> None:
    rules = OutcomeRules.from_config(read_config(settings(), "site"))

    def is_queued(kind: str, method: str = "GET", dont_filter: bool = False) -> bool:
        request = {"url": DEEP, "method": method, "dont_filter": dont_filter, "meta": {}}
        given = page(kind=kind, request=request, found=Found.REQUEST)
        assert isinstance(given.ticket, Ticket)
        return rules.decide_outcome(given, given.ticket).next_visit is not None

    assert is_queued("sitemap")
    assert is_queued("feed")
    assert not is_queued("html")
    assert not is_queued("feed", method="POST")
    assert not is_queued("feed", dont_filter=True), "each of them is a row of its own"


@pytest.mark.parametrize(
    "wrong", [{"SOURCE_MIN": "20m"}, {"SOURCE_MIN": 0}, {"SOURCE_INTERVAL": "1m"}]
)
def test_a_shortest_interval_above_the_first_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"SOURCE_MIN = .* at most SOURCE_INTERVAL"):
        read_config(settings(**wrong), "site")


def test_breadth_first_ranks_tell_ten_microseconds_apart_at_any_depth_below_256() -> None:
    late = datetime(2036, 12, 31, 23, 59, 59, tzinfo=UTC)
    step = timedelta(microseconds=10)
    for depth in (0, 1, 255):
        for at in (datetime(2026, 1, 1, tzinfo=UTC), NOW, late):
            first = compute_rank("bfs", depth, 0.5, at)
            assert depth <= first < compute_rank("bfs", depth, 0.5, at + step) < depth + 1
    before = compute_rank("bfs", 3, 0.5, datetime(1999, 1, 1, tzinfo=UTC))
    assert before == 3
    assert compute_rank("bfs", 3, 0.5, datetime(2100, 1, 1, tzinfo=UTC)) < 4


HOUR = 3600.0


@pytest.mark.parametrize(
    ("mean_h", "brought", "before", "expected"),
    [
        (11, 2, False, True),
        (11, 1, False, False),
        (13, 9, False, False),
        (13, 9, True, True),
        (23, 0, True, True),
        (25, 9, True, False),
    ],
)
def test_a_hub_is_one_by_its_rate(
    mean_h: float, brought: int, before: bool, expected: bool
) -> None:
    numbers = Numbers(2.0, 2.0 * mean_h * HOUR)
    longest = timedelta(hours=12)
    assert is_hub(numbers, longest, brought=brought, before=before) is expected
    assert is_hub(NO_NUMBERS, longest, brought=brought, before=before) is before


def visited(new_links: int, articles: int, page_kind: str = "listing", **fields: Any) -> Page:
    known: dict[str, Any] = {
        "state": State.WAITING,
        "block_digest": b"x",
        "last_read": NOW - timedelta(hours=12),
        "page_state": b"L",
        "interval_s": 12 * HOUR,
        "rate_a": 5.0,
        "rate_b": 60 * HOUR,
        "changes": 3,
    }
    given = page(**{**known, **fields})
    given.page_kind = page_kind
    given.changed = new_links > 0
    given.verdict = ChangeVerdict(given.changed, new_links=new_links, new_articles=articles)
    given.fresh_articles = articles
    return given


def decide(given: Page) -> Any:
    assert isinstance(given.ticket, Ticket)
    rules = OutcomeRules.from_config(read_config(settings(), "site"))
    return rules.decide_outcome(given, given.ticket)


def test_a_listing_that_brings_articles_becomes_a_hub_and_keeps_what_was_learned() -> None:
    outcome = decide(visited(4, 4))
    assert (outcome.source, outcome.source_note.kind) == (True, "")
    outcome = decide(with_document(visited(4, 4)))
    assert (outcome.source, outcome.source_note.kind, outcome.source_note.new_links) == (
        True,
        "hub",
        4,
    )
    assert (outcome.rate_a, outcome.rate_b) == pytest.approx((9.0, 72 * HOUR))
    assert outcome.interval_s <= HOUR, "the bounds of a source"
    for other in (visited(4, 1), visited(4, 4, "article"), visited(4, 4, changes=0)):
        assert not decide(with_document(other)).source, "threads are no articles"


def with_document(given: Page) -> Page:
    given.document = Document(given.url, title="World")
    return given


def test_a_hub_that_brings_nothing_is_let_go_and_keeps_what_was_learned() -> None:
    hub = {"source": True, "source_kind": "hub"}
    still = decide(visited(0, 0, rate_b=90 * HOUR, **hub))
    assert (still.source, still.rate_a, still.rate_b) == (True, 5.0, pytest.approx(102 * HOUR))
    gone = decide(visited(0, 0, rate_b=119 * HOUR, **hub))
    assert (gone.source, gone.source_note.kind) == (False, "former hub")
    assert (gone.rate_a, gone.rate_b) == (5.0, pytest.approx(131 * HOUR))
    assert gone.interval_s >= 12 * HOUR, "the bounds of a page"
    same = replace(page(**hub, status=304).ticket, block_digest=b"x", last_read=NOW)
    unread = Page(same, DEEP, 304, NOW)
    assert decide(unread).source


def test_a_hub_that_fails_or_shows_a_wall_stays_one() -> None:
    hub = {"source": True, "source_kind": "hub"}
    failed = decide(page(status=503, **hub))
    assert (failed.source, failed.source_note.problem) == (True, "status 503")
    wall = visited(0, 0, **hub)
    wall.verdict = ChangeVerdict(False, set_aside="wall")
    assert (decide(wall).source, decide(wall).source_note.problem) == (True, "wall")


def test_what_is_noted_of_a_source() -> None:
    feed = page(kind="feed")
    feed.document = Document(DEEP, links=[Link("https://example.org/1", "feed")])
    feed.document.list_kind, feed.document.newest = "feed", NOW
    feed.fresh_links = 1
    note = decide(feed).source_note
    assert (note.kind, note.site, note.entries, note.newest, note.new_links) == (
        "feed",
        "example.org",
        1,
        NOW,
        1,
    )
    feed.document.links.clear()
    assert decide(feed).source_note.problem == "no entries"
    lost = decide(with_document(page(source=True, source_kind="feed")))
    assert (lost.source, lost.source_note.problem) == (True, "no longer a feed")
    assert decide(with_document(page(ROOT))).source_note.kind == "front page"
    assert decide(with_document(page(depth=0, found=Found.SEED))).source_note.kind == "seed"
    assert decide(page()).source_note is None
