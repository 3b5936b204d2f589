"""What a crawl says of its time, and that a quick host is never kept waiting by us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec
from tests.support.crawling import Result
from tests.support.webs import crawl_demo

SMALL = HostSpec("", sections=("world",), articles=4, keep=4)
USES = ("servers", "clocks", "reading", "database", "storing", "idle")


def crawl_host(like: HostSpec, database_url: str, folder: Path, **settings: object) -> Result:
    with DemoServer(grid_profile(1, like=like), clock=FrozenClock()) as demo:
        return crawl_demo(demo, database_url, folder, **settings)


def main_use(result: Result) -> str:
    """What most of the time went to."""
    assert result.code == 0, result.stderr
    return max(USES, key=lambda use: float(result.stats[f"time/{use}_s"]))


def test_a_crawl_with_long_delays_says_that_it_waited_for_clocks(
    database_url: str, tmp_path: Path
) -> None:
    result = crawl_host(SMALL, database_url, tmp_path, POLITENESS_DELAY=0.6, CRAWL_PATIENCE=0)
    assert main_use(result) == "clocks"
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("  Time ")]
    assert line.split()[1].endswith("%") and "% in politeness pauses" in line


def test_a_crawl_of_a_slow_server_says_that_it_waited_for_servers(
    database_url: str, tmp_path: Path
) -> None:
    slow = replace(SMALL, latency_s=(0.6, 0.6))
    result = crawl_host(slow, database_url, tmp_path, CRAWL_PATIENCE=0)
    assert main_use(result) == "servers"
    assert "% waiting for servers" in result.stdout


def test_a_quick_host_does_not_wait_for_urls_that_the_database_has(
    database_url: str, tmp_path: Path
) -> None:
    big = HostSpec("", sections=("world",), articles=400, keep=400, per_page=200)
    result = crawl_host(big, database_url, tmp_path, CRAWL_PATIENCE=0, POLITENESS_PAUSE_AFTER=0)
    assert result.code == 0 and result.stats["end/waiting"] > 400
    assert result.stats["frontier/refills_ahead"] > 0
    assert result.stats.get("scheduler/starved", 0) <= 2, "a busy machine may bring some too late"
