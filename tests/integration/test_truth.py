"""The demo web crawled to its end: the frontier's figures and the server's log against the web's
own truth.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock, Truth
from tests.support.crawling import start_crawl
from tests.support.webs import asked, crawl_demo, demo_settings, in_state, make_due, roots, rows

T0 = 1_790_000_000.0
DEPTH = 8


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer("demo", clock=FrozenClock(T0 + 100), t0=T0) as server:
        yield server


def true(demo: DemoServer) -> Truth:
    return demo.web.truth_at(demo.now(), seeds=roots(demo), depth=DEPTH)


def compare(demo: DemoServer, database_url: str) -> None:
    truth = true(demo)
    found = rows(database_url)
    assert in_state(found, "waiting") == set(truth.pages)
    assert in_state(found, "moved") == set(truth.redirects)
    assert in_state(found, "gone", "retired", "dead", "retry") == set(truth.errors)
    assert in_state(found, "forbidden") == set(truth.forbidden)
    assert in_state(found, "new") == set()
    assert {url: row.depth for url, row in found.items() if url in truth.pages} == {
        u: p.depth for u, p in truth.pages.items()
    }


def test_every_reachable_page_is_fetched_once_and_nothing_forbidden(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    result = crawl_demo(demo, database_url, tmp_path, FRONTIER_DEPTH=DEPTH, REVISIT_INTERVAL="1h")
    assert result.code == 0, result.stderr + result.log
    compare(demo, database_url)
    truth = true(demo)
    seen = asked(demo)
    busy = {url for url, times in seen.items() if times > 1}
    assert set(seen) == truth.requested_urls
    assert all("busy" in url or truth.errors.get(url, 0) >= 500 for url in busy), busy
    assert result.stats.get("politeness/held", 0) == 0


@pytest.mark.proof
def test_the_second_run_revisits_and_sees_what_has_changed(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    settings = {"FRONTIER_DEPTH": DEPTH, "REVISIT_INTERVAL": "1h"}
    assert crawl_demo(demo, database_url, tmp_path, **settings).code == 0
    before = true(demo)
    first = len(demo.log.records())
    assert isinstance(demo.now, FrozenClock)
    demo.now.advance(600)
    make_due(database_url)
    result = crawl_demo(demo, database_url, tmp_path, **settings)
    assert result.code == 0, result.stderr
    after = true(demo)
    found = rows(database_url)
    again = asked(demo, first)
    assert set(after.pages) <= in_state(found, "waiting")
    kept = set(before.pages) & set(after.pages)
    changed = {url for url in kept if before.pages[url].digest != after.pages[url].digest}
    assert changed
    edited = {url for url in changed if before.pages[url].kind == "article"}
    # Where most of a text has gone, the host is asked for what nobody has, and the page once more.
    doubtful = {url for url in edited if not found[url].changes}
    assert len(doubtful) < len(edited) / 2
    assert {found[url].why for url in doubtful} <= {"wall"}
    calm = {url for url in kept if "//busy." not in url and "/files/" not in url}
    assert {url: (found[url].visits, again[url]) for url in calm} == dict.fromkeys(calm, (2, 1))
    assert set(after.pages) - kept <= set(again), "new articles are fetched too"
    unchanged = [record for record in demo.log.records()[first:] if record.status == 304]
    assert unchanged
    assert result.stats["pages/not_modified"] == len(unchanged)
    make_due(database_url)
    assert crawl_demo(demo, database_url, tmp_path, **settings).code == 0
    found = rows(database_url)
    assert edited <= {url for url in kept if found[url].changes}


@pytest.mark.proof
def test_five_interruptions_lose_nothing_and_fetch_nothing_twice(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    settings = demo_settings(
        demo, database_url, FRONTIER_DEPTH=DEPTH, REVISIT_INTERVAL="1h", POLITENESS_DELAY=0.05
    )
    args = ["site", "-a", "seeds=" + ",".join(roots(demo))]
    for number in range(1, 6):
        goal = len(demo.log.records()) + 30
        with start_crawl(args, settings, tmp_path) as crawl:
            while len(demo.log.records()) < goal and crawl.process.poll() is None:
                time.sleep(0.05)
            assert crawl.process.poll() is None, f"ended before interruption {number}"
            crawl.stop(signal.SIGTERM)
            result = crawl.wait()
        assert result.code == 130, result.stderr + result.log
    assert (
        crawl_demo(demo, database_url, tmp_path, FRONTIER_DEPTH=DEPTH, REVISIT_INTERVAL="1h").code
        == 0
    )
    compare(demo, database_url)
    truth = true(demo)
    twice = {url for url, times in asked(demo).items() if times > 1 and url not in truth.robots}
    assert all(
        "busy" in url or truth.errors.get(url, 0) >= 500 or "slow" in url for url in twice
    ), twice
