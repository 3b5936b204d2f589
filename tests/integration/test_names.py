"""Crawls of names that do not resolve: said at once, with the names, and nothing is waited for."""

from __future__ import annotations

import time
from pathlib import Path

from crawlproj.demo import DemoServer, FrozenClock
from tests.support.crawling import run_crawl, start_crawl
from tests.support.webs import demo_settings, rows

SEEDS = "seeds=http://one.invalid/,http://two.invalid/"
SETTINGS = {"CRAWL_PATIENCE": "10m", "FRONTIER_FLUSH": 0.2, "FRONTIER_RETRY_DELAY": "60s"}
LINE = "nothing could be fetched: one.invalid, two.invalid do not resolve ("


def test_a_crawl_whose_names_do_not_resolve_ends_at_once_with_their_names(
    database_url: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "DATABASE_URL": database_url, "ROBOT_CONTACT": "mailto:a@example.org"}
    for run in ("first", "second"):
        result = run_crawl(["site", "-a", SEEDS], settings, tmp_path, timeout_s=30)
        assert (result.code, result.stats["finish_reason"]) == (3, "unresolved"), run
        assert LINE in result.stderr
        assert "no name of a host could be resolved" in result.stdout
    states = {url: row.state for url, row in rows(database_url).items()}
    assert states == {"http://one.invalid/": "retry", "http://two.invalid/": "retry"}

    continuous = {**settings, "CRAWL_CONTINUOUS": True}
    with start_crawl(["site"], continuous, tmp_path) as crawl:
        said = tmp_path / "log" / "site.log"
        deadline = time.monotonic() + 30
        while "it is tried on: one.invalid, two.invalid do not resolve" not in said.read_text():
            assert time.monotonic() < deadline and crawl.process.poll() is None
            time.sleep(0.05)
        crawl.stop()
        assert crawl.wait().code == 130


def test_a_name_that_does_not_resolve_ends_no_crawl_that_has_other_work(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
        settings = demo_settings(demo, database_url)
        settings["ROBOT_CONTACT"] = "mailto:a@example.org"
        seeds = f"seeds=http://one.invalid/,{demo.url('one', '/')}"
        result = run_crawl(["site", "-a", seeds], settings, tmp_path)
    assert (result.code, result.stats["finish_reason"]) == (0, "finished")
    assert result.stats["pages/first"] > 5
    assert result.stats["failed/dns"] == 1
    assert rows(database_url)["http://one.invalid/"].state == "retry"
