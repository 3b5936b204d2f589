"""A crawl whose feed has dried up says so, and ends with exit code 3."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from tests.integration.test_articles import SETTINGS
from tests.support.crawling import Result, run_command, run_crawl
from tests.support.news_web import NewsWeb, listing, news_article, serve_news
from tests.support.sources import Sources

DAY = 86_400
ITEM = "<item><title>{0}</title><link>{{base}}/world/{0}.html</link></item>"
FEED = "<rss version='2.0'><channel><title>The Weekly</title>{}</channel></rss>"


def crawl(web: NewsWeb, database_url: str, folder: Path, **settings: Any) -> Result:
    arguments = ["site", "-a", f"seeds={web.base}/,{web.base}/feed", "-a", "articles=1"]
    return run_crawl(arguments, {**SETTINGS, "DATABASE_URL": database_url, **settings}, folder)


def test_feed_that_stops_is_said_in_log_and_summary_and_exit_code_3(
    database_url: str, tmp_path: Path
) -> None:
    pages = {
        "/": listing({"/world/1.html": "Gardeners of village 1 rebuilt their old bridge"}),
        "/feed": FEED.format(ITEM.format(1)),
        "/world/1.html": news_article(1),
    }
    with serve_news(pages) as web:
        first = crawl(web, database_url, tmp_path)
        assert first.code == 0, first.stderr + first.log
        assert "Silent" not in first.stdout and "Delay" not in first.stdout
        database = Database(database_url)
        feed = f"{web.base}/feed"
        world = Sources(database)
        world.add(
            feed, first=10 * DAY, last=DAY, last_new=DAY, gap_s=3600, entries=1, new_links=241
        )
        world.database.run_script("update crawlproj.url set lane = 2, rank = 0 where source")
        now = datetime.now(UTC).isoformat()
        web.pages["/world/2.html"] = news_article(2).replace("2026-11-03T08:30:00+01:00", now)
        web.pages["/"] = listing({f"/world/{n}.html": f"Bridge {n} was rebuilt" for n in (1, 2)})
        # Until visits write it themselves.
        world.database.run_script("update crawlproj.source set last_visit = now()")

        second = crawl(web, database_url, tmp_path)
        assert second.code == 3, second.stdout + second.stderr + second.log
        assert "1 source brings nothing any more: scrapy sources says which" in second.stderr
        assert second.stats["sources/silent"] == second.stats["sources/fallen_silent"] == 1
        assert f"Silent: the feed {feed}: nothing new for 1 d" in second.log
        words = " ".join(second.stdout.split())
        assert f"Silent 1 source brings nothing any more: {feed}" in words
        assert "the new article was fetched" in words and "after its publication" in words
        assert "scrapy sources --crawl site" in words.replace("python -m ", "")

        # Said once, but each run ends with 3 until somebody looks.
        third = crawl(web, database_url, tmp_path)
        assert third.code == 3 and "sources/fallen_silent" not in third.stats
        off = crawl(web, database_url, tmp_path, SOURCE_SILENCE=0)
        assert off.code == 0, off.stderr
        database.close()


def test_feed_that_lists_nothing_of_what_the_front_page_brings_ends_with_3(
    database_url: str, tmp_path: Path
) -> None:
    """It was never seen to bring anything, so by itself it is not silent."""
    pages = {
        "/": listing({"/world/1.html": "Gardeners of village 1 rebuilt their old bridge"}),
        "/feed": FEED.format(ITEM.format(1)),
        "/world/1.html": news_article(1),
    }
    with serve_news(pages) as web:
        first = crawl(web, database_url, tmp_path)
        assert first.code == 0, first.stderr + first.log
        with closing(Database(database_url)) as database:
            world = Sources(database)
            feed = f"{web.base}/feed"
            known = {"first": 10 * DAY, "last": 60}
            world.add(feed, **known, last_new=10 * DAY, entries=1)
            front = {"last_new": 3600, "gap_s": 3600, "new_links": 20 + 240}
            world.add(f"{web.base}/", "front page", **known, **front)
            world.database.run_script("update crawlproj.url set lane = 2, rank = 0 where source")
            web.pages["/world/2.html"] = news_article(2)
            links = {f"/world/{n}.html": f"Bridge {n} was rebuilt" for n in (1, 2)}
            web.pages["/"] = listing(links)
            second = crawl(web, database_url, tmp_path)
        assert second.code == 3, second.stdout + second.stderr + second.log
        assert "1 source lists nothing of what others of the same site bring" in second.stderr
        assert second.stats["sources/disagreeing"] == 1 and "sources/silent" not in second.stats
        words = " ".join(second.stdout.split())
        assert f"Lacking 1 source lists nothing of what others of its site bring: {feed}" in words
        found = re.search(r"about (\d+) links missed by estimate", words)
        assert found and 200 < int(found[1]) < 300
        assert "which sources miss pages" in words
        status = run_command(["status"], tmp_path, {"DATABASE_URL": database_url})
        assert f"others of the site bring: about {found[1]} links missed" in status.stdout


def test_feed_that_became_a_page_is_said_and_silent_until_it_moves(
    database_url: str, tmp_path: Path
) -> None:
    """An error page that says 200 is visited as a feed, and what it links to is not news."""
    pages = {
        "/": listing({"/world/1.html": "Gardeners of village 1 rebuilt their old bridge"}),
        "/feed": FEED.format(ITEM.format(1)),
        "/new-feed": FEED.format(ITEM.format(1)),
        "/world/1.html": news_article(1),
    }
    with serve_news(pages) as web:
        seeds = f"seeds={web.base}/,{web.base}/feed,{web.base}/new-feed"
        settings = {**SETTINGS, "DATABASE_URL": database_url}

        def crawl_again() -> Result:
            world.database.run_script("update crawlproj.url set lane = 2, rank = 0 where source")
            return run_crawl(["site", "-a", seeds], settings, tmp_path)

        first = run_crawl(["site", "-a", seeds], settings, tmp_path)
        assert first.code == 0, first.stderr + first.log
        database = Database(database_url)
        world = Sources(database)
        feed = f"{web.base}/feed"
        history = {"entries": 1, "new_links": 241, "gap_s": 3600}
        world.add(feed, first=10 * DAY, last=DAY, last_new=DAY, **history)
        web.pages["/feed"] = web.pages["/new-feed"] = listing({"/help.html": "What went wrong"})
        web.pages["/help.html"] = news_article(3)

        second = crawl_again()
        assert second.code == 3, second.stdout + second.stderr + second.log
        assert f"Silent: the feed {feed}: no longer a feed; nothing new for 1 d" in second.log
        assert f"Source: the feed {web.base}/new-feed: no longer a feed" in second.log
        assert world.stored()[f"{web.base}/new-feed"] == (False, "no longer a feed")

        web.moved["/feed"] = "/new-feed"
        third = crawl_again()
        assert third.code == 0, third.stdout + third.stderr + third.log
        assert not world.stored()[feed][0]
        database.close()
