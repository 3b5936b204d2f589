"""Whoever is killed while articles are taken: none is lost, and no host waits.

More of them by hand: ARTICLES=2000.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from crawlproj.content.article_process import PAGE_CPU_S
from crawlproj.database.connection import Database
from tests.support.crawling import Result, run_crawl, start_crawl
from tests.support.news_web import listing, news_article, serve_news

pytestmark = [pytest.mark.proof, pytest.mark.kills]

ARTICLES = int(os.environ.get("ARTICLES", "300"))
KILLED_READERS = 4
KILLED_WORKERS = 3
SLOW = "/world/slow.html"
SETTINGS: dict[str, object] = {
    "SPIDER_MODULES": "tests.spiders",
    "ITEM_PIPELINES": json.dumps({"tests.spiders.articles.ArticleLedger": 500}),
    "FRONTIER_FLUSH": 0.2,
    "FRONTIER_LEASE": "8s",
    "DOWNLOAD_TIMEOUT": 5,
    "CRAWL_PATIENCE": 10,
    "POLITENESS_DELAY": 0,
    "POLITENESS_MAX_DELAY": 0.2,
    "REVISIT_INTERVAL": "1h",
    "SOURCE_INTERVAL": "1h",
    "SOURCE_MIN": "1h",
    "EXTENSIONS": {"tests.support.lag.LoopLag": 0},
}
REPEATED = 16
"""So many items at most are sent again after a kill: those whose end was not stored yet."""
AROUND_S = 5.0
HONEST = 3
HONEST_PAGES = 60
LONGEST_GAP_S = 2.0
"""Between two requests to a host that is asked ten times a second, on a machine that does much."""


def slow_article() -> str:
    """An article whose reading takes longer than anybody waits; its links lead to itself."""
    links = "".join(f"<a href='#{n}'>l {n}</a> w " for n in range(70_000))
    return news_article(9_999).replace("</article>", f"<p>{links}</p></article>")[:1_990_000]


def read_ledger(path: Path) -> list[tuple[float, str, int]]:
    if not path.exists():
        return []
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]  # type: ignore[misc]


def kill_reader(worker: int) -> bool:
    """Kill the process that takes articles for a worker; False if there is none now."""
    for child in psutil.Process(worker).children():
        if any("article_main" in word for word in child.cmdline()):
            child.send_signal(signal.SIGKILL)
            return True
    return False


def test_kills_lose_no_article(database_url: str, tmp_path: Path) -> None:
    # Numbers of five digits: some of four look like years.
    urls = {f"/world/{10_000 + n}.html": f"Gardeners of village {n}" for n in range(ARTICLES)}
    pages = {url: news_article(n) for n, url in enumerate(urls)}
    # On several pages: so many links on one would be cut.
    names = list(urls)
    lists = {f"/list/{n}": names[n : n + 100] for n in range(0, ARTICLES, 100)}
    pages |= {url: listing({name: urls[name] for name in part}) for url, part in lists.items()}
    pages |= {"/": listing({**dict.fromkeys(lists, "More of our news"), SLOW: "A slow one"})}
    pages[SLOW] = slow_article()
    ledger = tmp_path / "ledger"
    dice = random.Random(1)
    moments = sorted(dice.sample(range(10, ARTICLES - 10), KILLED_READERS + KILLED_WORKERS))
    workers = set(dice.sample(moments, KILLED_WORKERS))
    readers_killed = 0
    killed_at: list[float] = []
    started = time.monotonic()
    with serve_news(pages) as web:
        arguments = ["articles", "-a", f"seeds={web.base}/"]
        settings = {**SETTINGS, "DATABASE_URL": database_url}
        env = {"LEDGER": str(ledger)}
        crawl = start_crawl(arguments, settings, tmp_path / "crawl", env)
        deadline = time.monotonic() + 120 + ARTICLES / 5
        try:
            for moment in moments:
                while len({url for _, url, _ in read_ledger(ledger)}) < moment:
                    assert time.monotonic() < deadline, len(read_ledger(ledger))
                    assert crawl.process.poll() is None
                    time.sleep(0.02)
                if moment in workers:
                    crawl.process.kill()
                    killed_at.append(time.time())
                    crawl.process.wait()
                    crawl.__exit__()
                    crawl = start_crawl(arguments, settings, tmp_path / "crawl", env)
                else:
                    readers_killed += kill_reader(crawl.process.pid)
            result = crawl.wait(deadline - time.monotonic())
        finally:
            crawl.__exit__()
    assert result.code == 0, result.stderr + result.log
    database = Database(database_url)
    stored = database.run_script("""
        select u.canonical, a.version from crawlproj.article a join crawlproj.url u on u.id = a.page""")
    states = dict(
        database.run_script(
            "select p.article, count(*) from crawlproj.page p where p.article is not null group by 1"
        )
    )
    waiting = database.run_script("select count(*) from crawlproj.article_queue")[0][0]
    database.close()
    expected = {web.base + url for url in urls}
    assert {url for url, _ in stored} == expected
    assert {version for _, version in stored} == {1}
    assert waiting == 0
    assert states == {"sent": ARTICLES, "failed": 1}
    sent = read_ledger(ledger)
    times = Counter(url for _, url, _ in sent)
    assert set(times) == expected
    again = len(sent) - len(times)
    print(
        f"{ARTICLES} articles in {time.monotonic() - started:.0f} s, {readers_killed} readers and "
        f"{KILLED_WORKERS} workers killed; {again} items sent again; {describe_lag(result)}"
    )
    assert again <= REPEATED * KILLED_WORKERS
    for moment_s, url, _ in sent:
        times[url] -= 1
        if times[url]:
            assert any(0 <= kill - moment_s < AROUND_S for kill in killed_at), url
    assert readers_killed >= KILLED_READERS - 1


def describe_lag(result: Result) -> str:
    stats = result.stats
    return (
        f"event loop late by {1000 * stats['lag/p99_s']:.0f} ms (p99), "
        f"{1000 * stats['lag/largest_s']:.0f} ms at most"
    )


def test_hosts_are_asked_on_while_a_page_takes_long_to_be_read(
    database_url: str, tmp_path: Path
) -> None:
    names = [f"honest{number}.test" for number in range(HONEST)]
    urls = {f"/world/{n}.html": f"Gardeners of village {n} rebuilt" for n in range(HONEST_PAGES)}
    pages = {url: news_article(n) for n, url in enumerate(urls)}
    pages |= {"/": listing(urls), SLOW: slow_article()}
    ledger = tmp_path / "ledger"
    with serve_news(pages) as web:
        port = web.base.rpartition(":")[2]
        seeds = [f"http://slow.test:{port}{SLOW}", *(f"http://{name}:{port}/" for name in names)]
        settings = SETTINGS | {
            "DATABASE_URL": database_url,
            "DNS_HOSTS": dict.fromkeys(["slow.test", *names], "127.0.0.1"),
            "POLITENESS_DELAY": 0.1,
            "CRAWL_PATIENCE": 0,
            "DUPLICATES_ENABLED": False,
        }
        arguments = ["articles", "-a", "seeds=" + ",".join(seeds)]
        result = run_crawl(arguments, settings, tmp_path / "crawl", 110, {"LEDGER": str(ledger)})
    assert result.code == 0, result.stderr + result.log
    # By the clock on a machine that does much besides.
    failed = [result.stats.get(f"articles/failed/{why}", 0) for why in ("timeout", "late")]
    assert sum(failed) == 1
    assert result.stats["articles/sent"] == HONEST * HONEST_PAGES
    sent = [moment_s for moment_s, *_ in read_ledger(ledger)]
    asked = {name: sorted(at for at, host in web.asked_at if host == name) for name in names}
    first = min(at for at, _ in web.asked_at)
    slowest_s = max(after - before for before, after in pairwise([first, *sent]))
    gaps = {name: max(b - a for a, b in pairwise(times)) for name, times in asked.items()}
    print(
        f"a page took {slowest_s:.1f} s to be read, meanwhile hosts were asked every "
        f"{max(gaps.values()):.2f} s or quicker; {describe_lag(result)}"
    )
    assert slowest_s > PAGE_CPU_S * 0.9
    assert max(gaps.values()) < LONGEST_GAP_S
