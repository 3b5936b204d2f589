"""The time of a crawl against the time that the rules force: `python -m benchmarks.waiting`.

The demo web's own log says what was requested and how long each response took. A small scheduler
that knows all of it in advance plays the same requests as early as the rules allow, server by
server. The ratio of both times is printed; 1 is perfect.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.log import AccessRecord
from crawlproj.demo.model import HostSpec, Profile
from tests.support.crawling import run_crawl
from tests.support.judge import Law, violations
from tests.support.webs import demo_settings, roots

LAW = Law(
    delay_s=0.5,
    server_delay_s=0.1,
    hosts_per_server=4,
    pause_after=0,
    pause_s=0,
    slowdown=2,
    max_delay_s=10,
)
CROWD = Law(
    delay_s=0.1,
    server_delay_s=0.02,
    hosts_per_server=4,
    pause_after=5,
    pause_s=0.5,
    slowdown=0,
    max_delay_s=1,
)
"""For many hosts on one address, which are asked in rounds with general pauses in between."""


def forced_s(records: Sequence[AccessRecord], law: Law) -> float:
    """How long the same requests take at least.

    Each server is played by itself, its hosts in turn, as early as allowed.
    """
    servers: dict[str, dict[str, list[AccessRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(records, key=lambda record: record.started):
        servers[record.host if law.shared else record.local][record.host].append(record)
    return max(_server_s(hosts, law) for hosts in servers.values())


def _server_s(hosts: dict[str, list[AccessRecord]], law: Law) -> float:
    ready = dict.fromkeys(hosts, 0.0)
    left = {host: list(seen) for host, seen in hosts.items()}
    free = 0.0
    busy = list[float]()
    last = 0.0
    asked: Counter[str] = Counter()
    while any(left.values()):
        may_ask = _hosts_of_round(left, asked, law)
        if not may_ask:  # a general pause: a new round begins
            free = max(free, last + law.pause_s)
            asked.clear()
            may_ask = [h for h in left if left[h]]
        # Among those that may be asked the host with most work left goes first: nothing is faster.
        host = min(may_ask, key=lambda h: (max(ready[h], free), -len(left[h])))
        asked[host] += 1
        at = max(ready[host], free)
        busy = sorted(end for end in busy if end > at)
        if len(busy) >= law.hosts_per_server:
            at = busy[-law.hosts_per_server]
        took = left[host][0].ended - left[host].pop(0).started
        ready[host] = max(at + law.delay_s, at + took + min(law.slowdown * took, law.max_delay_s))
        free = at + (0.0 if law.shared else law.server_delay_s)
        last = max(last, at + took)
        busy.append(at + took)
    return last


def _hosts_of_round(
    left: Mapping[str, Sequence[AccessRecord]], asked: Counter[str], law: Law
) -> list[str]:
    """The hosts with work that may be asked before the next general pause."""
    waiting = [host for host in left if left[host]]
    if not law.pause_after or law.shared:
        return waiting
    if max(asked.values(), default=0) >= law.pause_after:
        return []
    if len(asked) >= law.hosts_per_server:
        return [host for host in waiting if host in asked]
    return waiting


def measure(name: str, profile: Profile, law: Law) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(prefix="waiting-"))
    settings = {
        "POLITENESS_DELAY": law.delay_s,
        "POLITENESS_SERVER_DELAY": law.server_delay_s,
        "POLITENESS_SLOWDOWN": law.slowdown,
        "POLITENESS_HOSTS_PER_SERVER": law.hosts_per_server,
        "POLITENESS_PAUSE_AFTER": law.pause_after,
        "POLITENESS_PAUSE": law.pause_s,
        "POLITENESS_MAX_DELAY": law.max_delay_s,
        "CRAWL_PATIENCE": 2,
        "POLITENESS_SHARED_NETWORKS": ["127.0.0.0/8"] if law.shared else [],
        "REVISIT_INTERVAL": "1h",
        "FRONTIER_SERVERS": 1000,
    }
    with (
        DemoServer(profile, clock=FrozenClock(1_790_000_000.0)) as demo,
        EmbeddedPostgres(folder / "db") as postgres,
    ):
        url = postgres.start()
        seeds = folder / "seeds.txt"
        seeds.write_text("\n".join(roots(demo)))
        args = ["site", "-a", f"seeds_file={seeds}"]
        result = run_crawl(args, demo_settings(demo, url, **settings), folder / "crawl", 600)
        records = demo.log.records()
    assert records, result.stderr + result.log
    took = max(record.ended for record in records) - min(record.started for record in records)
    forced = forced_s(records, law)
    return {
        "web": name,
        "exit": result.code,
        "requests": len(records),
        "took_s": round(took, 1),
        "forced_s": round(forced, 1),
        "ratio": round(took / forced, 3),
        "violations": len(violations(records, law)),
        "held": result.stats.get("politeness/held", 0),
        "awaited": result.stats.get("scheduler/awaited", 0),
        "late": result.stats.get("scheduler/late", 0),
    }


def main() -> int:
    small = HostSpec("", sections=("world",), articles=8, keep=12)
    cdn = replace(LAW, delay_s=2, shared=True)
    print(
        json.dumps(
            measure(
                "30 hosts on 10 addresses",
                grid_profile(30, 10, HostSpec("", articles=30, keep=36)),
                LAW,
            )
        ),
        flush=True,
    )
    crowd = grid_profile(100, 1, HostSpec("", sections=("world",), articles=4, keep=5))
    print(json.dumps(measure("100 hosts on 1 address", crowd, CROWD)), flush=True)
    print(
        json.dumps(measure("200 hosts behind a CDN", grid_profile(200, 2, small), cdn)), flush=True
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
