"""The forecast: hosts' clocks, lanes and shares played forward."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.commands.plan import as_text
from crawlproj.frontier.base import TIMED_LANES, Lane
from crawlproj.reports.plan import PlannedHost, PlannedUrl, play_queues
from crawlproj.revisit.shares import Shares

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Offers = list[tuple[Lane, int]]
offers = st.lists(st.tuples(st.sampled_from(Lane), st.integers(0, 100)), max_size=12)


def queue(name: str, offered: Offers, delay_s: float = 2.0, starts_s: int = 0) -> PlannedHost:
    found = PlannedHost(
        name, NOW + timedelta(seconds=starts_s), delay_s, Shares({"new": 0.3, "revisit": 0.4})
    )
    entries = []
    for number, (lane, due_s) in enumerate(offered):
        due = NOW + timedelta(seconds=due_s) if lane in TIMED_LANES else None
        entries.append(
            PlannedUrl(
                f"http://{name}/{number}", name, lane, "new", 0, 1.0, lane is Lane.REVISIT, due
            )
        )
    for planned in entries:
        if planned.due is None:
            found.lanes.setdefault(planned.lane, deque()).append(planned)
    found.later = deque(
        sorted((p for p in entries if p.due is not None), key=lambda p: p.due or NOW)
    )
    return found


@given(st.lists(st.tuples(offers, st.integers(0, 60)), min_size=1, max_size=4))
def test_every_url_comes_once_never_early_and_never_too_soon_after_the_last(
    hosts: list[tuple[Offers, int]],
) -> None:
    queues = [queue(f"h{n}", entries, starts_s=starts) for n, (entries, starts) in enumerate(hosts)]
    found = list(play_queues(queues))
    offered = [
        f"http://h{n}/{i}" for n, (entries, _) in enumerate(hosts) for i in range(len(entries))
    ]
    assert sorted(p.url for p in found) == sorted(offered)
    times = [p.at for p in found if p.at is not None]
    assert len(times) == len(found)
    assert times == sorted(times)
    assert all(p.due is None or (p.at is not None and p.at >= p.due) for p in found)
    for n, (_, starts) in enumerate(hosts):
        own = [p.at for p in found if p.host == f"h{n}" and p.at is not None]
        assert all(at >= NOW + timedelta(seconds=starts) for at in own)
        assert all(later - earlier >= timedelta(seconds=2) for earlier, later in pairwise(own))


def test_urls_are_shown_whole_so_that_they_can_be_taken_from_the_plan() -> None:
    url = f"http://example.org/{'long/' * 60}page.html"
    assert as_text(
        [PlannedUrl(url, "example.org", Lane.NEW, "new", 0, 1.0, False, None, NOW)], "site", NOW
    )[1].endswith(f" {url}")


def test_what_is_urgent_comes_first_and_revisits_get_their_share() -> None:
    offered = [(Lane.NEW, 0)] * 10 + [(Lane.REVISIT, 0)] * 10 + [(Lane.URGENT, 0)]
    lanes = [p.lane for p in play_queues([queue("h", offered)])]
    assert lanes[0] is Lane.URGENT
    assert lanes[1:11].count(Lane.REVISIT) >= 2
    assert lanes[1:11].count(Lane.NEW) >= 1
