"""How soon a pushed URL is requested while 100,000 others wait: `python -m benchmarks.push`.

URLs are pushed through Redis and as `scrapy push` does, each to one of many hosts that are being
crawled. The time counts from the moment it is in Redis (or committed and notified) to the moment
the server sees the request; printed is also what of it is beyond the host's clock as it stood then.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from crawlproj.commands.push import pushed_url
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate
from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile
from crawlproj.frontier.base import CrawlSpec, NewUrl
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.notifications import PUSHES
from crawlproj.urls.canonical import host_of, url_key
from tests.support.crawling import Crawl, start_crawl
from tests.support.redis_server import RedisServer
from tests.support.webs import demo_settings, roots

WAITING = 100_000
HOSTS = 40
DELAY_S = 1.0
PUSHED = 40


def fill(frontier: PostgresFrontier, root_urls: Sequence[str]) -> None:
    urls = [f"{root_urls[n % len(root_urls)]}?n={n}" for n in range(WAITING)]
    rows = [NewUrl(url_key("site", url), url, host_of(url)) for url in urls]
    for at in range(0, len(rows), 2000):
        frontier.add(rows[at : at + 2000])


def latencies(
    demo: DemoServer, crawl: Crawl, root_urls: Sequence[str], name: str, push: Callable[[str], None]
) -> dict[str, object]:
    """Push one URL after the other, to random hosts, and time each."""
    chance = random.Random(1)
    took = []
    unforced = []
    for n in range(PUSHED):
        root_url = chance.choice(root_urls)
        path = f"/?{name}={n}"
        at = time.time()
        push(root_url.rstrip("/") + path)
        while not (seen := [r for r in demo.log.records() if r.path == path]):
            assert crawl.process.poll() is None and time.time() - at < 60, crawl.wait()
            time.sleep(0.02)
        started = seen[0].started_at
        before = [
            r.started_at for r in demo.log.records() if r.host == seen[0].host and r.started_at < at
        ]
        took.append(started - at)
        unforced.append(started - max([at, *(start + DELAY_S for start in before[-1:])]))
        time.sleep(chance.random() / 2)
    return {
        "way": name,
        "pushes": PUSHED,
        "p50_s": round(statistics.median(took), 2),
        "max_s": round(max(took), 2),
        "beyond_clock_p50_s": round(statistics.median(unforced), 2),
        "beyond_clock_max_s": round(max(unforced), 2),
    }


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="push-"))
    web = grid_profile(HOSTS, HOSTS, HostSpec("", articles=12))
    with (
        DemoServer(web, clock=FrozenClock()) as demo,
        EmbeddedPostgres(folder / "db") as postgres,
        RedisServer() as redis,
    ):
        url = postgres.start()
        root_urls = roots(demo)
        database = Database(url)
        migrate(database)
        frontier = PostgresFrontier(database, CrawlSpec("site"))
        frontier.open()
        fill(frontier, root_urls)
        settings = demo_settings(
            demo,
            url,
            REDIS_URL=redis.url,
            POLITENESS_DELAY=DELAY_S,
            POLITENESS_PAUSE_AFTER=0,
            FRONTIER_FLUSH=1,
            POLITENESS_MAX_DELAY=60,
        )

        def by_command(url: str) -> None:
            frontier.add([pushed_url("site", url, frontier.get_urls([url_key("site", url)]))])
            database.notify(PUSHES, "site")

        def by_redis(url: str) -> None:
            redis.client.rpush("site:start_urls", url)

        with start_crawl(["site"], settings, folder / "crawl") as crawl:
            while len(demo.log.records()) < 4 * HOSTS:
                time.sleep(0.1)
            print(
                json.dumps(latencies(demo, crawl, root_urls, name="redis", push=by_redis)),
                flush=True,
            )
            print(
                json.dumps(latencies(demo, crawl, root_urls, name="command", push=by_command)),
                flush=True,
            )
        database.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
