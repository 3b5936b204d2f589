"""Whether dead and stuck names slow good hosts down: `python -m benchmarks.flood`.

20 good hosts are crawled alone, then among 10,000 bad names. Half of the bad names have no address,
half lead to one of 50 addresses that accept a connection and never respond. The time that the good
hosts take, seen from their server, is compared; 1 is perfect.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec
from tests.support.crawling import start_crawl
from tests.support.webs import demo_settings, roots

BAD = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
STUCK_ADDRESSES = 50
GOOD = 20
LONGEST_S = 120.0


@contextmanager
def stuck_servers(port: int) -> Iterator[dict[str, str]]:
    """Names -> addresses of servers that never respond; the kernel accepts their connections."""
    with ExitStack() as stack:
        names = {}
        for number in range(1, STUCK_ADDRESSES + 1):
            names[f"*.stuck{number}.test"] = f"127.9.0.{number}"
            stack.enter_context(socket.create_server((f"127.9.0.{number}", port), backlog=4096))
        yield names


def bad_seeds(port: int) -> list[str]:
    dead = [f"http://n{number}.invalid/" for number in range(BAD // 2)]
    return dead + [
        f"http://n{number}.stuck{number % STUCK_ADDRESSES + 1}.test:{port}/"
        for number in range(BAD // 2)
    ]


def crawl_s(
    seeds: Sequence[str], expected: int | None, demo: DemoServer, names: dict[str, str]
) -> tuple[int, float]:
    """Requests that the good hosts saw, and seconds from the start of the crawl to the last."""
    with (
        tempfile.TemporaryDirectory(prefix="flood-") as name,
        EmbeddedPostgres(Path(name) / "db") as postgres,
    ):
        folder = Path(name)
        (folder / "seeds.txt").write_text("\n".join(seeds))
        settings = demo_settings(
            demo,
            postgres.start(),
            POLITENESS_DELAY=0.5,
            POLITENESS_SERVER_DELAY=0.1,
            DOWNLOAD_TIMEOUT=10,
            CRAWL_PATIENCE=1,
            POLITENESS_SLOWDOWN=1,
            ROBOT_CONTACT="mailto:robot@example.org",
            POLITENESS_HOSTS_PER_SERVER=4,
            DNS_HOSTS=demo.dns_hosts | names,
        )
        with start_crawl(
            ["site", "-a", f"seeds_file={folder / 'seeds.txt'}"], settings, folder / "crawl"
        ) as crawl:
            started = time.monotonic()
            until = started + LONGEST_S
            while crawl.process.poll() is None and time.monotonic() < until:
                if expected is not None and len(demo.log.records()) >= expected:
                    break
                time.sleep(0.1)
            if crawl.process.poll() is None:
                crawl.stop()
            result = crawl.wait(60)
    records = demo.log.records()
    assert records, result.stderr + result.log
    demo.log.clear()
    return len(records), max(r.ended for r in records) - started


def main() -> int:
    web = grid_profile(GOOD, 10, HostSpec("", sections=("world",), articles=40, keep=50))
    with (
        DemoServer(web, clock=FrozenClock(1_790_000_000.0)) as demo,
        stuck_servers(demo.port) as names,
    ):
        alone, alone_s = crawl_s(roots(demo), None, demo, names=names)
        among, among_s = crawl_s([*bad_seeds(demo.port), *roots(demo)], alone, demo, names=names)
    figures = {
        "requests": [alone, among],
        "alone_s": round(alone_s, 1),
        "among_s": round(among_s, 1),
    }
    print(json.dumps(figures | {"ratio": round(among_s / alone_s, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
