"""Guaranteed shares of the fetch budget, so that neither new pages nor revisits starve (REVISIT.md,
4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil

CLASSES = ("new", "revisit", "backfill")
CAP = 3.0


class Shares:
    """One slot after another: `choose` names the class that gets it.

    A class with work waiting gets at least `share * N - 2` of any N slots in a row; what the others
    leave goes to the first of `CLASSES` that has work.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._shares = {name: shares.get(name, 0.0) for name in CLASSES}
        self._credit = dict.fromkeys(CLASSES, 0.0)

    def choose_class(self, waiting: Collection[str]) -> str | None:
        if not waiting:
            return None
        credit = self._credit
        for name, share in self._shares.items():
            credit[name] = min(credit[name] + share, CAP)
        owed = [name for name in CLASSES if name in waiting and credit[name] >= 1.0]
        chosen = (
            max(owed, key=lambda name: credit[name])
            if owed
            else next(name for name in CLASSES if name in waiting)
        )
        credit[chosen] = max(credit[chosen] - 1.0, 0.0)
        return chosen


def lease_limits(shares: Mapping[str, float], servers: int, held: Sequence[str]) -> tuple[int, int]:
    """How many servers may be leased besides those that are held (their kinds), and how many of
    these by rank: so that the shares hold over what is held, not only over what is new.
    """
    new = shares.get("new", 0.0)
    revisit = shares.get("revisit", 0.0)
    for_new = ceil(servers * new / (new + revisit)) if new + revisit else servers
    return servers - len(held), max(0, for_new - len(held) + held.count("timed"))
