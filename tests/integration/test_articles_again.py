"""A crawl that is stopped and started again brings each article once."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

from tests.integration.test_articles import SETTINGS, states
from tests.support.crawling import start_crawl
from tests.support.news_web import listing, news_article, serve_news

ARTICLES = 60
STOPS = 2


def test_job_that_is_stopped_and_started_again_brings_all_articles_once(
    database_url: str, tmp_path: Path
) -> None:
    urls = {f"/world/{n}.html": f"Gardeners of village {n} rebuilt" for n in range(ARTICLES)}
    pages = {url: news_article(n) for n, url in enumerate(urls)} | {"/": listing(urls)}
    out = tmp_path / "articles.jsonl"
    settings = SETTINGS | {
        "DATABASE_URL": database_url,
        "REVISIT_INTERVAL": "1h",
        "SOURCE_INTERVAL": "1h",
        "SOURCE_MIN": "1h",
        # The pages come quicker than their articles.
        "POLITENESS_DELAY": 0.02,
    }
    counted: Counter[str] = Counter()
    with serve_news(pages) as web:
        arguments = ["site", "-a", f"seeds={web.base}/", "-a", "articles=1", "-o", str(out)]
        for stop in range(STOPS + 1):
            with start_crawl(arguments, settings, tmp_path) as crawl:
                # Amid the fetching at first, then amid the articles.
                while stop < STOPS and crawl.process.poll() is None:
                    if web.asked.total() > (stop + 1) * ARTICLES / (STOPS + 1):
                        crawl.stop(signal.SIGTERM)
                        break
                    time.sleep(0.02)
                result = crawl.wait(90)
            assert result.code == (130 if stop < STOPS else 0), result.stderr + result.log
            counted.update({name: n for name, n in result.stats.items() if "articles/" in name})
    items = [json.loads(line) for line in out.read_text().splitlines()]
    assert Counter(item["url"] for item in items) == dict.fromkeys(
        (web.base + url for url in urls), 1
    )
    assert (counted["articles/new"], counted["articles/sent"]) == (ARTICLES, ARTICLES)
    assert [web.asked[url] for url in urls] == [1] * ARTICLES
    assert Counter(states(database_url).values()) == {"sent": ARTICLES, None: 1}
