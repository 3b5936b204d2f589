from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.robots_directives import RobotsDirectives
from crawlproj.frontier.base import LANE_OF, Content, Lane, State, Ticket, lane_of
from crawlproj.http.status import parse_retry_after
from crawlproj.items import ChangeVerdict, Page
from crawlproj.revisit.base import Bounds
from crawlproj.revisit.uniform import UniformPolicy
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.spider import revisits_of
from crawlproj.urls.rules import SiteRevisit, SiteRules

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ENDS = OutcomeRules(
    UniformPolicy(Bounds(5 * HOUR, HOUR)),
    retries=3,
    retry_delay=HOUR,
    gone_limit=3,
    gone_interval=5 * HOUR,
)
URL = "https://example.org/a"
MINUTE = timedelta(minutes=1)
RULES_OF_SOURCES = replace(
    ENDS, retry_delay=MINUTE, source_soon=15 * MINUTE, gone_interval=timedelta(days=5)
)


def ticket(**more: object) -> Ticket:
    known = {"state": State.NEW, "depth": 1, **more}
    return Ticket(1, URL, "example.org", 1, 1, 0, Lane.NEW, **known)  # type: ignore[arg-type]


FEED = ticket(depth=2, source=True, source_kind="feed", interval_s=900.0)
HUB = ticket(depth=2, source=True, source_kind="hub", interval_s=900.0)
FRONT = ticket(depth=0, source=True, source_kind="seed", interval_s=900.0)


KNOWN = ticket(block_digest=b"x", etag='"1"')


def page(status: int, given: Ticket, reason: str = "", **headers: str) -> Page:
    return Page(
        given,
        URL,
        status,
        NOW,
        reason=reason,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, State.WAITING),
        (204, State.WAITING),
        (304, State.RETRY),
        (401, State.FORBIDDEN),
        (403, State.FORBIDDEN),
        (404, State.GONE),
        (410, State.GONE),
        (429, State.RETRY),
        (500, State.RETRY),
        (503, State.RETRY),
        (418, State.DEAD),
        (301, State.DEAD),
    ],
)
def test_the_status_decides_the_state(status: int, state: State) -> None:
    assert ENDS.decide_outcome(page(status, ticket()), ticket()).state is state


def test_a_redirect_ends_as_moved_to_its_canonical_target() -> None:
    end = ENDS.decide_outcome(page(302, ticket(), location="../B?utm_source=x#y"), ticket())
    assert (end.state, end.moved_to) == (State.MOVED, "https://example.org/B")


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("robots", State.FORBIDDEN),
        ("guard: private address", State.FORBIDDEN),
        ("too big", State.DEAD),
        ("decompression", State.DEAD),
        ("timeout", State.RETRY),
        ("dns", State.RETRY),
        ("refused", State.RETRY),
        ("error: ValueError: x", State.RETRY),
    ],
)
def test_without_an_answer_the_reason_decides(reason: str, state: State) -> None:
    assert ENDS.decide_outcome(page(0, ticket(), reason), ticket()).state is state


def test_a_change_that_could_not_be_kept_is_judged_again() -> None:
    """Else the next try would be compared with itself, and its version be lost."""
    known = ticket(block_digest=b"x", body_digest=b"x", page_state=b"old")
    read = page(200, known)
    read.verdict = ChangeVerdict(True, "edit", state=b"new")
    read.changed = True
    assert ENDS.decide_outcome(read, known).page_state == b"new"
    failed = ENDS.retry_outcome(read, known, "pipeline: no room")
    assert (failed.state, failed.page_state, failed.changed) == (State.RETRY, None, False)


@pytest.mark.parametrize("what", ["wall", "soft 404"])
def test_validators_of_what_is_not_the_page_are_not_kept(what: str) -> None:
    """Else a 304 would say later that the page is as it was."""
    known = ticket(block_digest=b"x", body_digest=b"x", etag='"page"')
    read = page(200, known, etag='"error page"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
    read.verdict = ChangeVerdict(False, what, set_aside=what)
    outcome = ENDS.decide_outcome(read, known)
    assert outcome.set_aside and (outcome.etag, outcome.modified) == (None, None)


def test_a_page_whose_own_time_is_over_is_retired() -> None:
    for of, orders in (
        (KNOWN, RobotsDirectives(unavailable_after="31 Dec 2025 23:59:59 GMT")),
        (replace(KNOWN, expires=NOW), RobotsDirectives()),
    ):
        for status in (200, 304):
            seen = page(status, of)
            seen.directives = orders
            end = ENDS.decide_outcome(seen, of)
            assert (end.state, end.why, end.next_visit) == (
                State.RETIRED,
                "unavailable_after",
                NOW + 10 * HOUR,
            )


def test_a_page_is_looked_at_once_more_when_its_own_time_is_over() -> None:
    seen = page(200, ticket())
    seen.directives = RobotsDirectives(unavailable_after="2026-01-01T02:00:00Z")
    end = ENDS.decide_outcome(seen, ticket())
    assert (end.state, end.next_visit, end.expires) == (
        State.WAITING,
        NOW + 2 * HOUR,
        NOW + 2 * HOUR,
    )
    seen.directives = RobotsDirectives(unavailable_after="2026-01-01T09:00:00Z")
    assert ENDS.decide_outcome(seen, ticket()).next_visit == NOW + 5 * HOUR
    seen.directives = RobotsDirectives(unavailable_after="some day")
    assert ENDS.decide_outcome(seen, ticket()).next_visit == NOW + 5 * HOUR


def test_a_page_that_is_read_again_and_names_no_end_has_none() -> None:
    of = ticket(block_digest=b"x", expires=NOW)
    seen = page(200, of)
    seen.content = Content(b"body", b"block")
    end = ENDS.decide_outcome(seen, of)
    assert (end.state, end.expires) == (State.WAITING, None)


def test_a_304_that_was_not_asked_for_tells_nothing() -> None:
    """Neither that the page is as it was, nor that a document needs no other try to be read."""
    end = ENDS.decide_outcome(page(304, ticket()), ticket(block_digest=b"x"))
    assert (end.state, end.why, end.saw_page) == (State.RETRY, "status 304", False)
    unread = ticket(state=State.WAITING, tries=1, block_digest=b"x", etag='"1"')
    end = ENDS.decide_outcome(page(304, unread), unread)
    assert (end.state, end.tries, end.saw_page) == (State.WAITING, 2, False)
    assert end.next_visit == NOW + 2 * HOUR
    unread = ticket(state=State.WAITING, tries=3, block_digest=b"x", etag='"1"')
    assert ENDS.decide_outcome(page(304, unread), unread).state is State.RETRY


def test_a_304_that_was_asked_for_is_a_visit_without_change() -> None:
    known = ticket(block_digest=b"x", etag='"1"')
    assert ENDS.decide_outcome(page(304, known), known).state is State.WAITING


@pytest.mark.parametrize(
    ("status", "again"), [(301, False), (308, False), (302, True), (303, True), (307, True)]
)
def test_a_redirect_that_is_temporary_is_looked_at_again(status: int, again: bool) -> None:
    end = ENDS.decide_outcome(page(status, ticket(), location="/b"), ticket())
    assert (end.state, end.next_visit is not None) == (State.MOVED, again)
    assert (lane_of(end) is Lane.REVISIT) == again


def test_retries_come_later_and_later_and_end_in_dead() -> None:
    given = ticket()
    pauses = []
    while (end := ENDS.decide_outcome(page(500, given), given)).state is State.RETRY:
        assert end.next_visit is not None
        pauses.append((end.next_visit - NOW) / HOUR)
        given = ticket(state=end.state, tries=end.tries)
    assert (pauses, end.state) == ([1, 2, 4], State.DEAD)


def pauses_of(status: int, known: Ticket, count: int, reason: str = "") -> list[timedelta]:
    """How long it is waited after each of some failures in a row."""
    pauses = []
    for _ in range(count):
        end = RULES_OF_SOURCES.decide_outcome(page(status, known, reason), known)
        assert end.state in LANE_OF and end.next_visit is not None and end.source, end
        pauses.append(end.next_visit - NOW)
        known = replace(known, state=end.state, tries=end.tries, source=end.source)
    return pauses


@pytest.mark.parametrize("known", [FEED, FRONT, HUB])
def test_source_that_was_good_is_asked_for_ever_however_it_fails(known: Ticket) -> None:
    """After a few minutes of an outage, a 404, or a refusal it may be there again."""
    for status, reason in ((503, ""), (0, "timeout"), (0, "dns")):
        pauses = pauses_of(status, known, 3000, reason)
        assert [pause / MINUTE for pause in pauses[:5]] == [1, 2, 4, 15, 16]
        assert pauses == sorted(pauses) and max(pauses) == 6 * HOUR
    for status, reason in ((404, ""), (410, ""), (403, ""), (400, ""), (0, "too big")):
        pauses = pauses_of(status, known, 3000, reason)
        assert [pause / MINUTE for pause in pauses[:3]] == [15, 30, 60]
        assert pauses == sorted(pauses) and max(pauses) == 24 * HOUR


def test_seed_that_never_answered_is_asked_for_ever_but_rarely() -> None:
    seed = replace(FRONT, interval_s=None, source=False)
    assert max(pauses_of(503, seed, 3000)) == timedelta(days=1)
    assert max(pauses_of(404, seed, 3000)) == timedelta(days=7)
    linked = replace(seed, depth=1, url=URL)
    end = RULES_OF_SOURCES.decide_outcome(
        page(503, linked), replace(linked, tries=3, state=State.RETRY)
    )
    assert end.state is State.DEAD


def test_retry_after_is_waited_for() -> None:
    end = ENDS.decide_outcome(page(503, ticket(), retry_after="36000"), ticket())
    assert end.next_visit == NOW + 10 * HOUR


def test_a_page_that_is_gone_is_tried_rarer_and_rarer_and_then_retired() -> None:
    first = ENDS.decide_outcome(page(404, ticket()), ticket())
    again = ticket(state=State.GONE, tries=first.tries)
    second = ENDS.decide_outcome(page(404, again), again)
    last = ticket(state=State.GONE, tries=second.tries)
    assert first.next_visit == NOW + 5 * HOUR
    assert second.next_visit == NOW + 10 * HOUR
    assert ENDS.decide_outcome(page(404, last), last).state is State.RETIRED


def test_failures_before_a_page_was_gone_do_not_count_as_gone() -> None:
    assert (
        ENDS.decide_outcome(
            page(404, ticket(state=State.RETRY, tries=3)), ticket(state=State.RETRY, tries=3)
        ).tries
        == 1
    )


@given(st.integers(0, 999), st.sampled_from(State), st.integers(0, 10), st.text(max_size=20))
def test_every_end_is_consistent(status: int, state: State, tries: int, reason: str) -> None:
    given = ticket(state=state, tries=tries)
    end = ENDS.decide_outcome(page(status, given, reason if not status else ""), given)
    assert (end.id, end.visit, end.epoch) == (given.id, given.visit, given.epoch)
    assert (end.next_visit is not None) == (end.state in LANE_OF)
    assert end.next_visit is None or end.next_visit > NOW


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("99999999999999999999", 9999999999),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
        ("٣", None),
        ("1e3", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2026 00:00:00 +9999999999999", None),
        ("Fri, 31 Dec 9999 23:59:59 -9999", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_a_document_that_only_lacked_room_comes_again_soon() -> None:
    """A few times, each time twice as late; one that could not be read, at its next visit."""
    tries = 0
    pauses = []
    for _ in range(6):
        known = ticket(state=State.WAITING, tries=tries)
        fetched = page(200, known)
        fetched.unread = fetched.lacked_room = True
        outcome = ENDS.decide_outcome(fetched, known)
        assert outcome.state is State.WAITING and outcome.next_visit is not None
        pauses.append((outcome.next_visit - NOW) / HOUR)
        tries = outcome.tries
    assert pauses == [1, 2, 4, 5, 5, 5]
    fetched = page(200, ticket())
    fetched.unread = True
    assert ENDS.decide_outcome(fetched, ticket()).next_visit == NOW + 5 * HOUR


def test_sites_of_a_file_have_revisits_of_their_own() -> None:
    """What a spider's sites say is in force, for a host or for whole domains."""
    daily = SiteRevisit("uniform", timedelta(days=1))
    hourly = SiteRevisit("", timedelta(hours=1))

    class Spider:
        sites = (
            SiteRules("a", ("a.example", "b.example"), revisit=daily),
            SiteRules("c", ("c.example",), host="www.c.example", revisit=hourly),
            SiteRules("d", ("d.example",)),
        )

    assert revisits_of(Spider()) == {
        "a.example": daily,
        "b.example": daily,
        "www.c.example": hourly,
    }
    assert revisits_of(object()) == {}
