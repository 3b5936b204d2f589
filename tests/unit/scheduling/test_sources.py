"""What a source is, and when it is visited again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.errors import ConfigError
from crawlproj.frontier.base import Found, Lane, State, Ticket, compute_rank
from crawlproj.items import Page
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.sources import is_source
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
