"""A crawl of news sites leaves a forum alone after some tries, and takes it up again when told to."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from tests.integration.test_articles import SETTINGS
from tests.support.crawling import Result, run_command, run_crawl
from tests.support.news_web import NewsWeb, listing, news_article, serve_news

TOPICS = 40
TALK = "<html><body><h1>Topic {0}</h1><p>Does anybody know it? I don't.</p></body></html>"


def crawl(web: NewsWeb, database_url: str, folder: Path, **settings: Any) -> Result:
    sites = folder / "sites.yaml"
    sites.write_text(f'sites:\n  - {{name: paper, domains: [127.0.0.1], seeds: ["{web.base}/"]}}\n')
    words = ["news", "-a", f"sites={sites}"]
    result = run_crawl(words, {**SETTINGS, "DATABASE_URL": database_url, **settings}, folder)
    assert result.code == 0, result.stderr + result.log
    return result


def ignored(database_url: str) -> list[str]:
    with closing(Database(database_url)) as database:
        rows = database.run_script(
            "select canonical from crawlproj.url where state = 'ignored' and why = 'barren'"
        )
    return [url for (url,) in rows]


def test_forum_is_left_out_after_some_tries_and_taken_up_when_told(
    database_url: str, tmp_path: Path
) -> None:
    stories = {f"/world/the-bridge-of-village-{n}-is-open.html": news_article(n) for n in range(9)}
    topics = {f"/forum/topic-{n}": TALK.format(n) for n in range(TOPICS)}
    pages = {
        "/": listing({path: f"Bridge {n}" for n, path in enumerate(stories)}),
        "/forum": listing({path: path for path in topics}, "Forum"),
    }
    pages["/"] = pages["/"].replace("</body>", '<a href="/forum">Forum</a></body>')
    with serve_news({**pages, **stories, **topics}) as web:
        first = crawl(web, database_url, tmp_path, BARREN_TRIES=3)
        assert set(stories) <= set(web.asked)
        left_out = ignored(database_url)
        assert len(left_out) > TOPICS / 2
        assert first.stats["links/barren"] == len(left_out)
        assert all(web.asked[url.removeprefix(web.base)] == 0 for url in left_out)
        told = run_command(["explain", left_out[0]], tmp_path, {"DATABASE_URL": database_url})
        assert "barren" in told.stdout
        crawl(web, database_url, tmp_path, BARREN_TRIES=0)
        assert ignored(database_url) == []
        assert set(topics) <= set(web.asked)
