"""The server's delay is kept also when the event loop is late, as its servers see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crawling import run_crawl
from tests.support.late_loop import TimedServer

pytestmark = pytest.mark.proof

DELAY_S = 0.1
SLACK_S = 0.005
"""The kernel counts in ticks of some milliseconds."""


def test_servers_delay_is_kept_when_the_loop_is_late(database_url: str, tmp_path: Path) -> None:
    """It counts from when a request has left, or its connection has failed; also for hosts whose
    name is an IPv6 address.
    """
    with TimedServer("127.0.0.1", 15) as four, TimedServer("::1", 15) as six:
        names = {f"good{number}.test": "127.0.0.1" for number in range(3)}
        seeds = [f"http://{name}:{four.port}/" for name in names]
        for number in range(24):
            scheme = ("http", "https")[number % 2]
            seeds.append(f"{scheme}://bad{number}.test:{four.reset_port}/")
            names[f"bad{number}.test"] = "127.0.0.1"
        for number in range(2):
            seeds.append(f"http://six{number}.test:{six.port}/")
            names[f"six{number}.test"] = "::1"
        seeds.append(f"http://[::1]:{six.port}/")
        result = run_crawl(
            ["site", "-a", "seeds=" + ",".join(seeds)],
            {
                "DATABASE_URL": database_url,
                "DNS_HOSTS": names,
                "CRAWL_PATIENCE": 0,
                "POLITENESS_SERVER_DELAY": DELAY_S,
                "POLITENESS_HOSTS_PER_SERVER": 4,
                "POLITENESS_MAX_DELAY": 0.2,
                "EXTENSIONS": {"tests.support.late_loop.LateLoop": 1},
            },
            tmp_path,
        )
    assert result.code == 0, result.stderr
    assert result.stats["failed/reset"] >= 24
    assert len(four.gaps()) > 60
    assert len(six.gaps()) > 40
    for server in (four, six):
        assert [gap for gap in server.gaps() if gap < DELAY_S - SLACK_S] == []
