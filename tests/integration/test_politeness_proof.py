"""Many hosts on few addresses, several workers and crawls, kills and restarts: judged from the
server's side.
"""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec, Profile
from tests.support.crawling import Crawl, run_command, start_crawl
from tests.support.judge import Law, violations
from tests.support.webs import demo_settings, in_state, roots, rows

pytestmark = [pytest.mark.proof, pytest.mark.kills]

LAW = Law(
    delay_s=0.5,
    server_delay_s=0.2,
    hosts_per_server=2,
    pause_after=25,
    pause_s=1.5,
    slowdown=2,
    max_delay_s=3,
    crawl_delay_s={f"h{n}.demo.test": 0.7 for n in (3, 13, 23)},
)
SETTINGS = {
    "POLITENESS_DELAY": LAW.delay_s,
    "POLITENESS_SERVER_DELAY": LAW.server_delay_s,
    "POLITENESS_HOSTS_PER_SERVER": LAW.hosts_per_server,
    "POLITENESS_PAUSE_AFTER": LAW.pause_after,
    "POLITENESS_PAUSE": LAW.pause_s,
    "POLITENESS_SLOWDOWN": LAW.slowdown,
    "POLITENESS_MAX_DELAY": LAW.max_delay_s,
    "FRONTIER_LEASE": "8s",
    "DOWNLOAD_TIMEOUT": 3,
    "FRONTIER_TENURE": "3s",
    "CRAWL_PATIENCE": 20,
    "REVISIT_INTERVAL": "1h",
    "FRONTIER_RETRY_DELAY": 1,
    "FRONTIER_RETRIES": 6,
}


def web() -> Profile:
    """30 hosts on 10 addresses with every kind of rule."""
    plain = grid_profile(30, 10, HostSpec("", articles=24, keep=30, feed="rss", sitemap=True))
    odd = {
        3: {"crawl_delay_s": 0.7},
        13: {"crawl_delay_s": 0.7},
        23: {"crawl_delay_s": 0.7},
        5: {"latency_s": (0.2, 0.5)},
        15: {"latency_s": (0.3, 0.6)},
        7: {"busy_every": 9},
        17: {"busy_every": 11},
        9: {"disallow": ("/world/",)},
        11: {"extras": ("redirects",)},
        21: {"extras": ("redirects", "dead")},
    }
    hosts = tuple(
        dataclasses.replace(host, **odd.get(number, {}))
        for number, host in enumerate(plain.hosts, 1)
    )
    return dataclasses.replace(plain, hosts=hosts)


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer(web(), clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as server:
        yield server


def asked_pages(demo: DemoServer) -> int:
    return len(demo.log.records())


def wait_for(demo: DemoServer, pages: int, crawls: list[Crawl]) -> None:
    while asked_pages(demo) < pages:
        time.sleep(0.1)
        assert any(crawl.process.poll() is None for crawl in crawls), "all workers ended too early"


def test_no_rule_is_broken_by_three_workers_and_two_crawls_over_kills_and_a_restart(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    args = ["site", "-a", "seeds=" + ",".join(roots(demo))]
    with ExitStack() as stack:

        def start(name: str, number: int) -> Crawl:
            settings = demo_settings(demo, database_url, **SETTINGS, CRAWL_NAME=name)
            return stack.enter_context(start_crawl(args, settings, tmp_path / f"{name}{number}"))

        crawls = [start("one", 1), start("one", 2), start("two", 1)]
        for number, pages in enumerate((300, 700)):
            wait_for(demo, pages, crawls)
            crawls[number].process.send_signal(signal.SIGKILL)
            crawls.append(start("one", 3 + number))
        wait_for(demo, 1000, crawls)
        crawls[2].stop()
        assert crawls[2].wait().code == 130
        crawls.append(start("two", 2))
        codes = [crawl.wait(400).code for crawl in crawls[3:]]
    assert violations(demo.log.records(), LAW) == []
    audited = run_command(
        ["politeness", "audit", *map(str, tmp_path.glob("*/log/requests-*.jsonl"))], tmp_path
    )
    assert audited.code == 0, audited.stdout
    # Two were killed: of them the audit says only what their logs tell.
    verdicts = ("every rule was kept", "no rule was broken as far as they tell")
    assert any(verdict in audited.stdout for verdict in verdicts), audited.stdout
    assert codes == [0, 0, 0]
    truth = demo.web.truth_at(demo.now(), seeds=roots(demo))
    for name in ("one", "two"):
        assert in_state(rows(database_url, name), "waiting") == set(truth.pages)
    assert asked_pages(demo) > 1800
