"""Guaranteed shares of the requests, so that neither new pages nor revisits starve."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil

CLASSES = ("new", "revisit", "backfill")
REVISITS_FIRST = ("revisit", "new", "backfill")
CAP = 3.0
"""A class that had no work saves up no more slots than this."""


class SpareSlots:
    """Who gets the slots that no class is owed: new pages while the copies are fresh enough, else
    revisits. One for all the `Shares` of a worker.
    """

    def __init__(self, freshness_target: float = 0.0) -> None:
        self._target = freshness_target
        self.order = CLASSES

    def set_freshness(self, freshness: float | None) -> None:
        """Say which part of the copies is thought to be fresh; None: nobody knows."""
        self.order = CLASSES
        if freshness is not None and freshness < self._target:
            self.order = REVISITS_FIRST


class Shares:
    """Gives one slot after another: `choose_class` names the class that gets it.

    A class with work waiting gets at least `share * N - 2` of any N slots in a row. What the others
    leave goes as `spare` says; without it to the first of `CLASSES` that has work.
    """

    def __init__(self, shares: Mapping[str, float], spare: SpareSlots | None = None) -> None:
        self.spare = spare or SpareSlots()
        self._shares = {name: shares.get(name, 0.0) for name in CLASSES}
        self._credit = dict.fromkeys(CLASSES, 0.0)

    def set_freshness(self, freshness: float | None) -> None:
        """Let `spare` know."""
        self.spare.set_freshness(freshness)

    def choose_class(self, waiting: Collection[str]) -> str | None:
        """The class that gets the next slot, out of those that have work waiting."""
        if not waiting:
            return None
        credit = self._credit
        for name, share in self._shares.items():
            credit[name] = min(credit[name] + share, CAP)
        owed = [name for name in CLASSES if name in waiting and credit[name] >= 1.0]
        if owed:
            chosen = max(owed, key=credit.__getitem__)
        else:
            chosen = next(name for name in self.spare.order if name in waiting)
        credit[chosen] = max(credit[chosen] - 1.0, 0.0)
        return chosen


def lease_limits(shares: Mapping[str, float], servers: int, held: Sequence[str]) -> tuple[int, int]:
    """How many servers may be leased besides those that are held, and how many of these by rank, so
    that the shares hold over all of them. `held` are the kinds of the leases.
    """
    ranked = ranked_servers(shares, servers)
    ranked_held = len(held) - held.count("timed")
    return servers - len(held), max(0, ranked - ranked_held)


def ranked_servers(shares: Mapping[str, float], servers: int) -> int:
    """How many of so many servers are leased by rank, for new URLs; the others are by time."""
    new = shares.get("new", 0.0)
    revisit = shares.get("revisit", 0.0)
    if not new + revisit:
        return servers
    return ceil(servers * new / (new + revisit))
