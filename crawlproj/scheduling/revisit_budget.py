"""What the workers of a crawl share about revisits: the prices of visits, how many pages and
sources wait for one, how fresh their copies are by estimate, and what came of it: the articles of a
day. In the database thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.revisit.base import Numbers
from crawlproj.scheduling.messages import BudgetNews

COUNT_GAP_S: Final = 60.0
FIRST_GAP_S: Final = 5.0
SAMPLE: Final = 2_000
MIN_SAMPLE: Final = 200
SAMPLE_HOSTS: Final = 100
NO_MOVES: Final = (1.0, 1.0)

Estimate = Callable[[Numbers, float, bool], tuple[float, float]]


class RevisitBudget:
    """`estimate` gives of a page's numbers, the time since its visit, and whether it is a source,
    how likely its copy is fresh, and since when it is expected to be out of date.
    """

    def __init__(
        self,
        frontier: PostgresFrontier,
        estimate: Estimate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._frontier = frontier
        self._estimate = estimate
        self._clock = clock
        self._moves = NO_MOVES
        self._count_at = clock()
        self._gap_s = FIRST_GAP_S

    def take_turn(self, moves: tuple[float, float]) -> BudgetNews | None:
        """Move the shared prices; what is new, if something is. If another worker writes just now
        what is theirs as well, they are moved at the next turn.
        """
        is_due = self._clock() >= self._count_at
        pages = self._moves[0] * moves[0]
        sources = self._moves[1] * moves[1]
        if not is_due and (pages, sources) == NO_MOVES:
            return None
        db = self._frontier.db
        row = db.fetch_row(
            "move_prices", crawl=self._frontier.crawl_id, pages=pages, sources=sources
        )
        if row is None:
            self._moves = (pages, sources)
            return None
        self._moves = NO_MOVES
        if not is_due:
            return BudgetNews(*row)
        self._count_at = self._clock() + self._gap_s
        self._gap_s = min(2 * self._gap_s, COUNT_GAP_S)
        return self._count(*row)

    def _count(self, page_price: float, source_price: float) -> BudgetNews:
        crawl = self._frontier.crawl_id
        row = self._frontier.db.fetch_row("count_sources", crawl=crawl)
        assert row is not None
        waiting, sources = row
        freshness, age_s = self.estimate_freshness()
        return BudgetNews(
            page_price,
            source_price,
            pages=max(waiting - sources, 0),
            sources=max(sources, 0),
            freshness=freshness,
            age_s=age_s,
            articles_of_day=self._frontier.db.fetch_value("articles_of_day", crawl=crawl),
        )

    def estimate_freshness(self) -> tuple[float | None, float | None]:
        """The means over a sample of all pages, which are stored; None if there are none."""
        frontier = self._frontier
        rows = frontier.db.fetch_rows(
            "sample_pages",
            crawl=frontier.crawl_id,
            now=frontier.now(),
            first=random.randrange(-(2**63), 2**63),
            count=SAMPLE,
        )
        if len(rows) < MIN_SAMPLE:
            # Most rows are those of other crawls, or wait for their first visit.
            rows = self.sample_hosts()
        if not rows:
            return None, None
        fresh = 0.0
        age_s = 0.0
        for since_s, rate_a, rate_b, source in rows:
            likely, late_s = self._estimate(Numbers(rate_a, rate_b), since_s, source)
            fresh += likely
            age_s += late_s
        means = (fresh / len(rows), age_s / len(rows))
        frontier.db.run(
            "put_freshness", crawl=frontier.crawl_id, freshness=means[0], age_s=means[1]
        )
        return means

    def sample_hosts(self) -> list[tuple[Any, ...]]:
        """Pages of some hosts, for a crawl that has few of all rows."""
        frontier = self._frontier
        return frontier.db.fetch_rows(
            "sample_hosts",
            crawl=frontier.crawl_id,
            now=frontier.now(),
            part=random.random(),
            hosts=SAMPLE_HOSTS,
            count=SAMPLE,
        )
