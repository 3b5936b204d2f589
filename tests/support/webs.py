"""Crawls of the demo web, and what the frontier and the server say of them afterwards."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.demo import DemoServer, Profile, find_profile
from tests.support.crawling import Result, run_crawl


@dataclass(frozen=True, slots=True)
class Row:
    """A URL as the frontier has it."""

    state: str
    status: int
    visits: int
    depth: int
    why: str
    changes: int
    tries: int


def demo_settings(demo: DemoServer, database_url: str, **more: object) -> dict[str, object]:
    return {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": demo.dns_hosts | {"refused.fault.demo.test": "127.0.0.1"},
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 5,
        "POLITENESS_DELAY": 0,
        "FRONTIER_RETRY_DELAY": 1,
        "POLITENESS_MAX_DELAY": 0.2,
        **more,
    }


def crawl_demo(
    demo: DemoServer,
    database_url: str,
    crawl_dir: Path,
    seeds: str = "",
    timeout_s: float = 120,
    **more: object,
) -> Result:
    args = ["site", "-a", "seeds=" + (seeds or ",".join(roots(demo)))]
    return run_crawl(args, demo_settings(demo, database_url, **more), crawl_dir, timeout_s)


MODEL_HOSTS = ("lantern", "ridgeway", "echo")
MODEL_PORT = 8780
"""The port that the spiders of these hosts name."""


def serve_models(**options: Any) -> DemoServer:
    """The hosts of the demo web that spiders are made for, where those expect them; on an address
    of this process alone, so that the port is free.
    """
    hosts = tuple(host for host in find_profile("demo").hosts if host.name in MODEL_HOSTS)
    pid = os.getpid()
    address = f"127.{100 + pid // 62_500 % 100}.{pid // 250 % 250}.{1 + pid % 250}"
    profile = Profile("models", hosts, MODEL_HOSTS)
    return DemoServer(profile, port=MODEL_PORT, address=address, **options)


def roots(demo: DemoServer) -> list[str]:
    """All hosts as seeds: a crawl stays on the domains of its seeds."""
    return [demo.url(name, "/") for name in demo.web.sites]


def rows(database_url: str, crawl: str = "site") -> dict[str, Row]:
    """Everything that the crawl knows, by URL."""
    database = Database(database_url)
    try:
        found = database.run_script(
            "select canonical, state::text, status, visit, depth, why, changes, tries from "
            "crawlproj.url u"
            f" join crawlproj.crawl c on c.id = u.crawl where c.name = '{crawl}'"
        )
    finally:
        database.close()
    return {row[0]: Row(*row[1:]) for row in found}


def make_due(database_url: str) -> None:
    """As if all pages had been visited long ago."""
    database = Database(database_url)
    database.run_script(
        "update crawlproj.url set rank = 0, next_visit = to_timestamp(0) where lane = 2"
    )
    database.run_script("update crawlproj.crawl_host set revisit = 0 where revisit is not null")
    database.close()


def asked(demo: DemoServer, since: int = 0) -> Counter[str]:
    """What the server was asked for, how often."""
    return Counter(f"http://{record.host}{record.path}" for record in demo.log.records()[since:])


def in_state(found: Mapping[str, Row], *states: str) -> set[str]:
    return {url for url, row in found.items() if row.state in states}
