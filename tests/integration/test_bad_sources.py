"""Sources that are bad in each way, beside honest news sites: each is noticed, and nobody starves."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean, quantiles

import pytest

from crawlproj.database.connection import Database
from tests.support.crawling import Result, start_crawl

GAP_S = 0.5
"""How often each honest site publishes an article."""
RUN_S = 24.0
ALONE_S = 16.0
LAST_S = 6.0
GRACE_S = 2.0
HONEST = ("one.test", "two.test")
STOPS_AFTER = 24
DEAD = 1_000
DAY_S = 86_400.0


class BadWeb:
    """Two honest sites whose feeds list their last articles; and, with `bad`, a feed that stops,
    one that repeats itself, one whose dates are all now, and an index of dead sitemaps.
    """

    def __init__(self) -> None:
        self.began = 0.0
        """When somebody asked first: nothing is published before."""
        self.ended = 0.0
        self.port = 0
        self.asked: list[tuple[float, str, str]] = []
        """When each page was asked for: its host and path."""

    def published(self, number: int) -> float:
        return self.began + number * GAP_S

    def answer(self, host: str, path: str, now: float) -> tuple[int, str, str]:
        """Status, type and body."""
        if path == "/":
            return 200, "text/html", f"<h1>{host}</h1><p>This is the site of {host}."
        if path.startswith("/article-"):
            number = int(path.removeprefix("/article-"))
            text = f"Story {number} of {host}. " + " ".join(f"w{number}x{n}" for n in range(80))
            return 200, "text/html", f"<h1>Story {number}</h1><p>{text}</p>"
        if path == "/feed":
            return 200, "application/rss+xml", self.feed(host, now)
        if path == "/index.xml" and host == "dead.test":
            rows = "".join(f"<sitemap><loc>/{number}.xml</loc></sitemap>" for number in range(DEAD))
            return 200, "application/xml", f"<sitemapindex>{rows}</sitemapindex>"
        return 404, "text/html", ""

    def feed(self, host: str, now: float) -> str:
        latest = int((now - self.began) / GAP_S)
        head = ""
        if host == "stops.test":
            latest = min(latest, STOPS_AFTER)
        elif host not in HONEST:
            # Made anew each time, so that its bytes are never the same.
            latest = 20
            head = f"<description>{now}</description>"
        items = []
        for number in range(max(1, latest - 19), latest + 1):
            at = self.published(number)
            if host == "now.test":
                at = now
            elif host == "again.test":
                at -= DAY_S
            date = format_datetime(datetime.fromtimestamp(at, UTC))
            items.append(
                f"<item><title>Story {number}</title><link>/article-{number}</link>"
                f"<pubDate>{date}</pubDate></item>"
            )
        return f"<rss version='2.0'><channel>{head}{''.join(reversed(items))}</channel></rss>"

    def judge(self) -> tuple[list[int], int]:
        """Of the articles of honest sites that were fetched, how many others of its site had been
        published meanwhile, of each; and how many should have been fetched.
        """
        first: dict[tuple[str, str], float] = {}
        for at, host, path in self.asked:
            first.setdefault((host, path), at)
        behind = []
        expected = 0
        for host in HONEST:
            begun = int((first[host, "/feed"] - self.began) / GAP_S) + 1
            ended = int((self.ended - GRACE_S - self.began) / GAP_S)
            for number in range(begun, ended):
                expected += 1
                at = first.get((host, f"/article-{number}"))
                if at is not None:
                    behind.append(int((at - self.published(number)) / GAP_S))
        return behind, expected


@contextmanager
def serving() -> Iterator[BadWeb]:
    web = BadWeb()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            now = time.time()
            web.began = web.began or now
            host = self.headers["Host"].partition(":")[0]
            web.asked.append((now, host, self.path))
            status, kind, body = web.answer(host, self.path, now)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        web.port = server.server_address[1]
        yield web
        server.shutdown()


def wait_until(is_so: Callable[[], bool], most_s: float) -> bool:
    """Whether it is so in time."""
    until = time.monotonic() + most_s
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def crawl(
    web: BadWeb,
    seeds: list[str],
    database_url: str,
    folder: Path,
    *,
    run_s: float,
    ages: bool = False,
) -> Result:
    """Crawl for a while. `ages`: days go by for what does not bring anything new any more."""
    settings = {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
        "CRAWL_NAME": folder.name,
        "CRAWL_CONTINUOUS": 1,
        "FRONTIER_FLUSH": 0.2,
        "SOURCE_INTERVAL": "0.5s",
        "SOURCE_MIN": "0.25s",
        "REVISIT_INTERVAL": "1h",
        "REVISIT_MIN": "10m",
        "ARTICLE_PROCESSES": 0,
        "WARC_ENABLED": False,
    }
    addresses = ",".join(f"http://{seed.format(web.port)}" for seed in seeds)
    with start_crawl(["site", "-a", f"seeds={addresses}"], settings, folder) as running:
        assert wait_until(lambda: web.began > 0, 60)
        time.sleep(run_s - LAST_S)
        if ages:
            database = Database(database_url)
            database.run_script("""
                update crawlproj.source s set visits = visits + 40,
                    first_visit = first_visit - interval '3 days', last_new = last_new - interval '3 days'
                from crawlproj.url u where u.id = s.url and u.canonical ~ '(stops|again|now).test.*feed'""")
            database.close()
            # Sources are looked at 5, 15, 35 and 75 seconds after the start.
            log = folder / "log" / f"{folder.name}.log"
            wait_until(lambda: "Silent: the feed" in log.read_text(), 75)
        time.sleep(LAST_S)
        web.ended = time.time()
        running.stop(signal.SIGTERM)
        return running.wait()


@pytest.mark.proof
def test_bad_sources_are_noticed_and_starve_nobody(database_url: str, tmp_path: Path) -> None:
    good = [f"{host}:{{}}/feed" for host in HONEST]
    bad = [f"{name}.test:{{}}/feed" for name in ("stops", "again", "now")]
    bad.append("dead.test:{}/index.xml")
    with serving() as web:
        folder = tmp_path / "alone"
        crawl(web, good, database_url, folder, run_s=ALONE_S)
        alone = web.judge()
    with serving() as web:
        folder = tmp_path / "beside"
        log = crawl(web, good + bad, database_url, folder, run_s=RUN_S, ages=True).log
        beside = web.judge()
        asked = Counter(host for _, host, path in web.asked if path == "/feed")

    for line in (
        "Silent: the feed http://stops.test:{}/feed: ",
        "Source: the feed http://again.test:{}/feed: it repeats itself: nothing new on",
        "Source: the feed http://now.test:{}/feed: its dates are those of the visit",
        f"Source: the sitemap index http://dead.test:{{}}/index.xml: all {DEAD:,} of its sitemaps",
    ):
        assert log.count(line.format(web.port)) == 1, (line, log)

    # Each article is fetched, and before the next but one is published, as without the bad ones.
    for behind, expected in (alone, beside):
        assert len(behind) == expected > 25
        assert quantiles(behind, n=10)[-1] <= 2, (alone, beside)
    assert mean(beside[0]) <= mean(alone[0]) + 0.5, (alone, beside)
    # Feeds that bring something are asked more often than those that don't.
    assert min(asked[host] for host in HONEST) > max(asked["again.test"], asked["now.test"])
