"""The price of a visit: what a visit must be worth to be made, so that all visits together keep to
the budget. Pages have one price, sources another.

A crawl serves what is due, never before its time, and does not run always. So the price is steered
by what is *planned*: over all visits the mean of the planned intervals is pages / rate of visits,
and it must become the mean interval that the budget allows. Nothing of that depends on when or how
long the crawl runs, nor on how many workers share the price. What comes late although the crawl was
running says that it can't keep up: then the mean interval grows until it can.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from math import exp, isfinite, log

from crawlproj.revisit.base import Bounds

KAPPA = 0.5
"""How far the price moves while each page is visited once, if all intervals are wrong by all."""
LATE_WEIGHT = 3.0
LATE_MOST = 4.0
"""So many mean intervals of lateness count at most."""
LATE_BEARABLE = 0.25
"""A crawl that is late by more than this part of the mean interval can't keep up."""
FEWEST_PAGES = 20
"""The price of a small crawl moves as if it had so many pages, or single visits would shake it."""
UNCOUNTED_PAGES = 1_000
LONGEST_STEP = 0.5


class PriceControl:
    """One price, relative to the one at which a page of which nothing is known has the mean
    interval: 1 at the start. `threshold` is what a visit must be worth at this price.

    `value_of` says what a visit to a page of which nothing is known is worth after an interval, for
    a mean interval (both in seconds). `take_factor` gives what this worker has multiplied the price
    by since it was asked last: workers multiply these into the shared price, and take that over by
    `set_price`.
    """

    def __init__(
        self, bounds: Bounds, value_of: Callable[[float, float], float], kappa: float = KAPPA
    ) -> None:
        self.kappa = kappa
        self.pages = UNCOUNTED_PAGES
        self.price = 1.0
        self.threshold = 0.0
        self.mean_s = 0.0
        self._bounds = bounds
        self._value_of = value_of
        self._change = 0.0
        self.set_target(UNCOUNTED_PAGES, bounds.first())

    def set_target(self, pages: int, mean_interval: timedelta) -> None:
        """So many pages share the budget, so that each is visited at that interval in the mean."""
        self.pages = max(pages, 1)
        mean_s = self._bounds.clamp(mean_interval).total_seconds()
        if mean_s == self.mean_s:
            return
        self.mean_s = mean_s
        self._unit = self._value_of(mean_s, mean_s)
        # A page of which nothing is known is visited within the bounds, whatever happens.
        shortest_s = self._bounds.shortest.total_seconds()
        longest_s = self._bounds.longest.total_seconds()
        self._least = self._value_of(shortest_s, mean_s) / self._unit
        self._most = self._value_of(longest_s, mean_s) / self._unit
        self.set_price(self.price)

    def set_price(self, price: float) -> None:
        """Take over the shared price; one that can't be is left alone."""
        if isfinite(price) and price > 0:
            self.price = min(max(price, self._least), self._most)
            self.threshold = self.price * self._unit

    def note_planned(self, interval_s: float, late_s: float = 0.0) -> None:
        """An interval was planned, at a visit that came so late."""
        late = min(max(late_s / self.mean_s, -1.0), LATE_MOST)
        wanted = (self.mean_s - interval_s) / self.mean_s
        if late > LATE_BEARABLE:
            # The budget is more than can be kept: it does not make visits cheaper.
            wanted = max(wanted, 0.0)
        self._move(wanted + LATE_WEIGHT * late)

    def take_factor(self) -> float:
        """What the price was multiplied by since this was asked last."""
        factor = exp(self._change)
        self._change = 0.0
        return factor

    def _move(self, wanted: float) -> None:
        step = self.kappa / max(self.pages, FEWEST_PAGES) * wanted
        step = min(max(step, -LONGEST_STEP), LONGEST_STEP)
        before = self.price
        self.set_price(before * exp(step))
        # Only what took effect, so that a price at its limit does not run away.
        self._change += log(self.price / before)


class Prices:
    """The two prices of a crawl."""

    def __init__(self, pages: PriceControl, sources: PriceControl, bounds: Bounds) -> None:
        self.pages = pages
        self.sources = sources
        self._bounds = bounds

    def of_kind(self, source: bool) -> PriceControl:
        if source:
            return self.sources
        return self.pages

    def set_counts(self, pages: int, sources: int, budget: float | None) -> None:
        """So many pages and sources are visited again, with so many visits per day; None: what
        uniform would spend. A budget is shared in the proportion that uniform would spend.
        """
        page_interval = self._bounds.first(source=False)
        source_interval = self._bounds.first(source=True)
        stretch = 1.0
        if budget:
            day = timedelta(days=1)
            wanted = pages * (day / page_interval) + sources * (day / source_interval)
            stretch = min(max(wanted / budget, 1e-6), 1e6)
        for control, count, interval in (
            (self.pages, pages, page_interval),
            (self.sources, sources, source_interval),
        ):
            control.set_target(count, timedelta(seconds=interval.total_seconds() * stretch))
