"""Every kind of end: each URL ends exactly once, in the right state, and nothing comes back by
itself.
"""

from __future__ import annotations

from pathlib import Path

from crawlproj.demo import DemoServer
from crawlproj.demo.broken import REFUSED
from tests.support.crawling import run_crawl
from tests.support.webs import asked, demo_settings, make_due, rows

PRIVATE = "http://10.0.0.1/"
MAIL = "http://ok.fault.demo.test:25/"
NOWHERE = "http://nowhere.invalid/"


def crawl(
    demo: DemoServer,
    urls: list[str],
    database_url: str,
    crawl_dir: Path,
    code: int = 0,
    **more: object,
) -> dict[str, object]:
    settings = demo_settings(
        demo,
        database_url,
        SPIDER_MODULES="tests.spiders",
        FRONTIER_RETRY_DELAY="1h",
        CRAWL_PATIENCE=0,
        DOWNLOAD_TIMEOUT=2,
        FRONTIER_LEASE="60s",
        REVISIT_INTERVAL="1h",
        **more,
    )
    result = run_crawl(["ends", "-a", "urls=" + ",".join(urls)], settings, crawl_dir)
    assert result.code == code, result.stderr + result.log
    return result.stats


def test_every_kind_of_end_is_one_end_in_the_right_state(database_url: str, tmp_path: Path) -> None:
    with DemoServer("faults") as demo:
        expected = {
            demo.url("fault", "/ok"): ("waiting", 200, ""),
            demo.url("status-301.fault", "/status/301"): ("moved", 301, "redirect 301"),
            demo.url("redirect-loop.fault", "/redirect-loop"): ("moved", 302, "redirect 302"),
            demo.url("status-404.fault", "/status/404"): ("gone", 404, "status 404"),
            demo.url("status-410.fault", "/status/410"): ("gone", 410, "status 410"),
            demo.url("status-403.fault", "/status/403"): ("forbidden", 403, "status 403"),
            demo.url("status-418.fault", "/status/418"): ("dead", 418, "status 418"),
            demo.url("status-503.fault", "/status/503"): ("retry", 503, "status 503"),
            demo.url("timeout.fault", "/timeout"): ("retry", 0, "timeout"),
            demo.url("reset.fault", "/reset"): ("retry", 0, "reset"),
            REFUSED: ("retry", 0, "refused"),
            NOWHERE: ("retry", 0, "dns"),
            MAIL: ("forbidden", 0, "port: 25 is not for the web"),
            demo.url("huge.fault", "/huge"): ("dead", 0, "too big"),
            demo.url("bomb.fault", "/bomb"): ("dead", 0, "decompression"),
            demo.url("ok.fault", "/ok?end=callback"): (
                "waiting",
                200,
                "callback: ValueError: broken callback",
            ),
            demo.url("ok.fault", "/ok?end=generator"): (
                "waiting",
                200,
                "callback: ValueError: broken generator",
            ),
            demo.url("ok.fault", "/ok?end=pipeline"): (
                "retry",
                200,
                "pipeline: KeyError: 'broken pipeline'",
            ),
            demo.url("ok.fault", "/ok?end=drop"): ("waiting", 200, "dropped: not wanted"),
            demo.url("ok.fault", "/ok?end=late-drop"): ("waiting", 200, ""),
            demo.url("ok.fault", "/ok?end=two"): ("waiting", 200, ""),
            demo.url("ok.fault", "/ok?end=none"): ("waiting", 200, ""),
        }
        stats = crawl(demo, list(expected), database_url, tmp_path)
        found = rows(database_url, "ends")
        seen = asked(demo)
    assert {
        url: (found[url].state, found[url].status, found[url].why) for url in expected
    } == expected
    assert {url: found[url].visits for url in expected} == dict.fromkeys(expected, 1)
    assert not {url for url, times in seen.items() if times > 1}
    ends = sum(number for name, number in stats.items() if name.startswith("end/"))  # type: ignore[misc]
    assert ends == sum(row.visits for row in found.values())
    assert stats.get("politeness/held", 0) == 0
    assert (stats["refused/port"], stats["forbidden/port"]) == (1, 1)


def test_the_guard_refuses_private_addresses_before_and_after_names_are_resolved(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("faults") as demo:
        seeds = [
            demo.url("fault", "/ok"),
            f"http://127.0.0.1:{demo.port}/ok",
            f"http://localhost:{demo.port}/ok",
            PRIVATE,
        ]
        contact = "mailto:robot@example.org"
        crawl(
            demo, seeds, database_url, tmp_path, 3, GUARD_ALLOW_PRIVATE=False, ROBOT_CONTACT=contact
        )
        found = rows(database_url, "ends")
        assert {row.state for row in found.values()} == {"forbidden"}
        assert {row.why for row in found.values()} == {"guard: private address"}
        assert not demo.log.records()


def test_an_unchanged_page_ends_with_304(database_url: str, tmp_path: Path) -> None:
    with DemoServer("faults") as demo:
        url = demo.url("etag.fault", "/etag")
        crawl(demo, [url], database_url, tmp_path)
        make_due(database_url)
        stats = crawl(demo, [url], database_url, tmp_path)
        row = rows(database_url, "ends")[url]
    assert (row.state, row.status, row.visits, row.changes) == ("waiting", 304, 2, 0)
    assert stats["pages/not_modified"] == 1


def test_retries_are_the_frontiers_and_no_run_waits_for_a_seed_that_is_out(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("faults") as demo:
        url = demo.url("status-503.fault", "/status/503")
        more = {"FRONTIER_RETRIES": 2, "FRONTIER_RETRY_DELAY": 0.2, "CRAWL_PATIENCE": 20}
        settings = demo_settings(demo, database_url, SPIDER_MODULES="tests.spiders", **more)
        result = run_crawl(["ends", "-a", f"urls={url}"], settings, tmp_path)
        assert asked(demo)[url] == 3
    assert result.code == 3, "nothing could be fetched"
    row = rows(database_url, "ends")[url]
    assert (row.state, row.visits, row.tries) == ("retry", 3, 3)
