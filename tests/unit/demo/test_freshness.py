"""What the demo web says of a crawl's copies is what its pages really do."""

from __future__ import annotations

import pytest

from crawlproj.demo import EPOCH, Web, find_profile
from crawlproj.demo.freshness import VisitedPage, measure_freshness

STEP_S = 1.0
SPAN_S = 40


def test_freshness_and_age_of_copies_are_those_of_the_bodies_that_are_served() -> None:
    """Each page is compared second by second with what it was when it was visited."""
    web = Web(find_profile("demo"))
    visited_s = EPOCH + 100
    moments = [visited_s + STEP_S * n for n in range(SPAN_S + 1)]
    served = [{url: page.digest for url, page in web.truth_at(at).pages.items()} for at in moments]
    first = served[0]
    late: list[float] = []
    for url, digest in first.items():
        changed = next((n for n, pages in enumerate(served) if pages.get(url) != digest), None)
        late.append(0.0 if changed is None else SPAN_S - changed * STEP_S)
    visits = [VisitedPage(url, visited_s) for url in first]
    found = measure_freshness(web, [*visits, VisitedPage("http://x.test/", 0)], moments[-1])
    assert found is not None and found.pages == len(first) > 100
    assert 0.2 < found.freshness < 0.98
    assert found.freshness == pytest.approx(late.count(0.0) / len(late), abs=0.01)
    # A change is seen up to a step after it was made.
    assert sum(late) / len(late) <= found.age_s + 0.05
    assert found.age_s <= sum(late) / len(late) + STEP_S
    assert measure_freshness(web, [], moments[-1]) is None
