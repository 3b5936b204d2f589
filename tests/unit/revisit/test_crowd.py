"""Sources that never bring anything do not slow down those that do."""

from __future__ import annotations

import heapq
import random
from datetime import UTC, datetime, timedelta

from crawlproj.revisit.base import NO_NUMBERS, Bounds, Numbers, RevisitSettings, Visit
from crawlproj.revisit.policies import choose_policy

START = datetime(2026, 5, 1, tzinfo=UTC)
MINUTE = 60.0
HOUR = 3600.0
SOURCES = Bounds(timedelta(minutes=15), timedelta(minutes=5))
REQUEST_S = 10.0
"""A request in so many seconds: a fifth of what a thousand sources want in their intervals."""


def median_delay_s(static: int, feeds: int = 20, hours: float = 48) -> float:
    """The median delay of new links of feeds (200 to 4 a day) in the second half of the time,
    beside so many sources without new links.
    """
    chance = random.Random(1)
    planner = choose_policy(RevisitSettings(bounds=Bounds(sources=SOURCES)))
    planner.set_counts(0, feeds + static)
    rates = [200 / 86_400 * 50 ** (-n / feeds) for n in range(feeds)] + [0.0] * static
    queue = [(chance.random() * 15 * MINUTE, n) for n in range(len(rates))]
    heapq.heapify(queue)
    known: dict[int, tuple[Numbers, float, timedelta]] = {}
    delays = []
    now_s = 0.0
    while now_s < hours * HOUR:
        due_s, n = heapq.heappop(queue)
        now_s = max(now_s + REQUEST_S, due_s)
        now = START + timedelta(seconds=now_s)
        visit = Visit(now, False, source=True, kind="feed", host=str(n), first=True)
        if n in known:
            numbers, last_s, interval = known[n]
            came = last_s
            new = []
            while rates[n]:
                came += chance.expovariate(rates[n])
                if came > now_s:
                    break
                new.append(now_s - came)
            if now_s > hours * HOUR / 2:
                delays += new
            visit = Visit(
                now,
                bool(new),
                interval=interval,
                last_visit=START + timedelta(seconds=last_s),
                source=True,
                kind="feed",
                host=str(n),
                new_links=len(new),
                numbers=numbers,
                visits=2,
            )
        plan = planner.plan(visit)
        known[n] = (plan.numbers or NO_NUMBERS, now_s, plan.interval)
        heapq.heappush(queue, (now_s + plan.interval.total_seconds(), n))
    return sorted(delays)[len(delays) // 2]


def test_a_thousand_sitemaps_without_news_do_not_slow_down_twenty_feeds() -> None:
    alone = median_delay_s(0)
    crowded = median_delay_s(1_000)
    assert alone < 10 * MINUTE
    assert crowded < 1.5 * alone
