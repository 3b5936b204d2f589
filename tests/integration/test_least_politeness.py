"""What webmasters see, from the server's own log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from scrapy.core.engine import ExecutionEngine

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.log import AccessRecord
from crawlproj.demo.model import HostSpec
from tests.support.judge import Law, violations
from tests.support.webs import crawl_demo

pytestmark = pytest.mark.proof

SLACK_S = 0.01
"""The server sees a request a little later than it was sent."""


def by_host(demo: DemoServer) -> dict[str, list[AccessRecord]]:
    hosts: dict[str, list[AccessRecord]] = defaultdict(list)
    for record in sorted(demo.log.records(), key=lambda record: record.started):
        hosts[record.host].append(record)
    return hosts


def test_hosts_are_asked_one_request_at_a_time_with_the_delay_in_between(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
        result = crawl_demo(
            demo,
            database_url,
            tmp_path,
            POLITENESS_DELAY=0.3,
            POLITENESS_SLOWDOWN=5,
            POLITENESS_MAX_DELAY=60,
        )
        hosts = by_host(demo)
    assert result.code == 0
    gaps = [
        after.started - before.started
        for records in hosts.values()
        for before, after in pairwise(records)
    ]
    assert len(gaps) > 20
    assert min(gaps) >= 0.3 - SLACK_S
    assert all(
        after.started >= before.ended
        for records in hosts.values()
        for before, after in pairwise(records)
    )
    assert median(gaps) < ExecutionEngine._SLOT_HEARTBEAT_INTERVAL / 2, (
        "the engine was woken, it did not just look again"
    )
    assert result.stats.get("politeness/held", 0) == 0


def test_robots_txt_is_the_first_request_and_its_crawl_delay_is_kept(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("demo", clock=FrozenClock(1_790_000_000.0)) as demo:
        crawl_demo(
            demo,
            database_url,
            tmp_path,
            seeds=demo.url("news1", "/"),
            ROBOT_CONTACT="mailto:robot@example.org",
        )
        records = by_host(demo)[f"news1.demo.test:{demo.port}"]
    assert records[0].path == "/robots.txt"
    assert [record.path for record in records].count("/robots.txt") == 1
    assert (
        min(after.started - before.started for before, after in pairwise(records[1:]))
        >= 0.5 - SLACK_S
    )
    assert {record.user_agent for record in records} == {"crawlproj (+mailto:robot@example.org)"}


def test_retry_after_stops_the_whole_host(database_url: str, tmp_path: Path) -> None:
    with DemoServer("faults") as demo:
        seeds = ",".join(
            demo.url("status-429-wait.fault", path) for path in ("/status/429?retry_after=1", "/ok")
        )
        crawl_demo(
            demo, database_url, tmp_path, seeds=seeds, FRONTIER_RETRIES=0, FRONTIER_ORDER="bfs"
        )
        records = by_host(demo)[f"status-429-wait.fault.demo.test:{demo.port}"]
    limited = next(n for n, record in enumerate(records) if record.status == 429)
    assert all(
        after.started - records[limited].ended >= 1 - SLACK_S for after in records[limited + 1 :]
    )


def test_addresses_of_a_delivery_network_are_no_servers_and_others_are(
    new_database: Callable[..., str], tmp_path: Path
) -> None:
    """Twelve hosts on two addresses: with the list, hosts go side by side; without it, the
    addresses have their own pace.
    """
    law = Law(
        delay_s=0.5,
        server_delay_s=0.25,
        hosts_per_server=4,
        pause_after=0,
        pause_s=0,
        slowdown=0,
        max_delay_s=1,
    )
    web = grid_profile(12, 2, HostSpec("", sections=("world",), articles=3, keep=4))
    seen = {}
    for name, networks in (("listed", ["127.0.0.0/8"]), ("unlisted", [])):
        with DemoServer(web, clock=FrozenClock(1_790_000_000.0)) as demo:
            crawl_demo(
                demo,
                new_database(),
                tmp_path / name,
                POLITENESS_DELAY=law.delay_s,
                POLITENESS_SERVER_DELAY=law.server_delay_s,
                POLITENESS_HOSTS_PER_SERVER=law.hosts_per_server,
                POLITENESS_SHARED_NETWORKS=networks,
                POLITENESS_MAX_DELAY=1,
            )
            seen[name] = demo.log.records()
    assert violations(seen["unlisted"], law) == []
    assert violations(seen["listed"], replace(law, shared=True)) == []
    assert violations(seen["listed"], law) != [], "the addresses had a pace though they are listed"
    assert len(seen["listed"]) == len(seen["unlisted"]) > 60
