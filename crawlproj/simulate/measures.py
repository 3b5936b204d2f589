"""How good the copies of a crawl were: exact, from the times of all changes and all visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawlproj.simulate.populations import Floats, Population


@dataclass(frozen=True, slots=True)
class CopyMeasures:
    """Means over pages and time, from the first mean interval on, when every page was visited once.

    `age_s`: how long ago the first change was that a copy lacks, 0 if it lacks none. `captured`:
    the part of all changes that a visit saw before the next one (of sources, of all links).
    `delay_s`: how long a change waited until a visit.
    """

    visits: int
    captured: float
    changed_visits: int
    freshness: float
    age_s: float
    delay_s: float


def measure_copies(population: Population, visits: list[Floats]) -> CopyMeasures:
    start_s = population.interval.total_seconds()
    length_s = population.end_s - start_s
    stale_s = 0.0
    aged_s2 = 0.0
    waited_s = 0.0
    changes_seen = 0
    changed_visits = 0
    changes_made = 0
    for changes, times in zip(population.changes, visits, strict=True):
        if not len(times):
            continue
        ends = np.append(times[1:], population.end_s)
        first = np.searchsorted(changes, times, side="right")
        last = np.searchsorted(changes, ends, side="right")
        has_change = last > first
        lacks_from = changes[first[has_change]]
        until = ends[has_change]
        # What happens before the start does not count.
        from_s = np.maximum(lacks_from, start_s) - lacks_from
        until_s = np.maximum(until, start_s) - lacks_from
        stale_s += float((until_s - from_s).sum())
        aged_s2 += float((until_s**2 - from_s**2).sum()) / 2
        changed_visits += int(has_change[:-1].sum())
        late = changes[np.searchsorted(changes, max(times[0], start_s), side="right") :]
        found_at = np.append(times, population.end_s)[np.searchsorted(times, late, side="left")]
        waited_s += float((found_at - late).sum())
        changes_made += len(late)
        if population.sources:
            changes_seen += int((late <= times[-1]).sum())
        else:
            changes_seen += int((has_change[:-1] & (ends[:-1] > start_s)).sum())
    number = population.pages
    return CopyMeasures(
        visits=sum(map(len, visits)),
        captured=changes_seen / max(changes_made, 1),
        changed_visits=changed_visits,
        freshness=1 - stale_s / (number * length_s),
        age_s=aged_s2 / (number * length_s),
        delay_s=waited_s / max(changes_made, 1),
    )
