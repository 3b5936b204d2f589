"""Whoever is killed while articles are taken: none is lost, and no host waits."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from crawlproj.database.connection import Database
from tests.support.crawling import start_crawl
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
}


def slow_article() -> str:
    """An article whose reading takes longer than anybody waits."""
    links = "".join(f"<a href='/{n}'>l {n}</a> w " for n in range(70_000))
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
    urls = {f"/world/{n}.html": f"Gardeners of village {n} rebuilt" for n in range(ARTICLES)}
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
    times = Counter(url for _, url, _ in read_ledger(ledger))
    assert set(times) == expected
    again = sum(times.values()) - len(times)
    print(f"{readers_killed} readers and {KILLED_WORKERS} workers killed; {again} items sent again")
    assert again <= 250 * KILLED_WORKERS
    assert max(times.values()) <= 1 + KILLED_WORKERS
    assert readers_killed >= KILLED_READERS - 1
