"""A second run asks again for what it starts with, and finds what is new there: one habit for all
spiders.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from crawlproj.database.migrations import list_migrations
from crawlproj.frontier.base import Found
from tests.support.crawling import Result, run_command, run_crawl
from tests.support.webs import rows

SETTINGS = {"SOURCE_MIN": "1s", "CRAWL_PATIENCE": 0, "FRONTIER_FLUSH": 0.2}
SPIDERS = {"SPIDER_MODULES": "tests.spiders.starts"}


class Paper(BaseHTTPRequestHandler):
    """A newspaper whose front page, feed and sitemap list its articles; its pages have ETags."""

    protocol_version = "HTTP/1.1"
    asked: Counter[str]
    order: list[str]
    articles: list[str]

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        body, kind = self.page(self.path)
        etag = f'"{hashlib.sha256(body.encode()).hexdigest()[:16]}"'
        status = 200 if body else 404
        if body and self.headers.get("If-None-Match") == etag:
            status = 304
            body = ""
        where = {"/moved": "/"}.get(self.path)
        if where:
            status = 301
        self.asked[f"{self.command} {self.path} {status}"] += 1
        self.order.append(self.path)
        self.send_response(status)
        if where:
            self.send_header("Location", where)
        if self.path != "/robots.txt":
            self.send_header("ETag", etag)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def page(self, path: str) -> tuple[str, str]:
        base = f"http://{self.headers['Host']}"
        if path == "/robots.txt":
            return f"User-agent: *\nDisallow:\nSitemap: {base}/sitemap.xml\n", "text/plain"
        if path in ("/", "/search"):
            links = "".join(f'<a href="/{name}">{name}</a>' for name in self.articles)
            return f"<h1>Front page</h1>{links}", "text/html"
        if path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{base}/{name}</loc></url>" for name in self.articles)
            space = "http://www.sitemaps.org/schemas/sitemap/0.9"
            return f'<urlset xmlns="{space}">{urls}</urlset>', "application/xml"
        if path == "/feed":
            items = "".join(
                f"<item><title>{name}</title><link>{base}/{name}</link></item>"
                for name in self.articles
            )
            return (
                f'<rss version="2.0"><channel><title>t</title>{items}</channel></rss>',
                "application/rss+xml",
            )
        if path[1:] in self.articles:
            return f"<h1>Article {path}</h1>", "text/html"
        return "", "text/html"

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving() -> Iterator[tuple[type[Paper], str]]:
    class Own(Paper):
        asked: Counter[str] = Counter()  # noqa: RUF012
        order: list[str] = []  # noqa: RUF012
        articles: list[str] = ["m", "c", "x", "a", "t"]  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Own, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def paper() -> Iterator[tuple[type[Paper], str]]:
    with serving() as served:
        yield served


def again(paper: type[Paper]) -> None:
    """Time for SOURCE_MIN to pass; meanwhile something is new."""
    paper.asked.clear()
    paper.order.clear()
    paper.articles.append(f"news{len(paper.articles)}")
    time.sleep(1.1)


def crawl(words: list[str], database_url: str, crawl_dir: Path, **more: object) -> Result:
    settings: Mapping[str, object] = {"DATABASE_URL": database_url, **SETTINGS, **more}
    done = run_crawl(words, settings, crawl_dir)
    assert done.code == 0, done.stderr + done.log
    return done


@pytest.mark.proof
def test_a_second_run_of_a_site_finds_a_new_article(
    paper: tuple[type[Paper], str], database_url: str, tmp_path: Path
) -> None:
    served, base = paper
    words = ["site", "-a", f"seeds={base}/moved"]
    crawl(words, database_url, tmp_path, FRONTIER_ORDER="bfs")
    assert served.order[1:3] == ["/moved", "/"]
    articles = [path for path in served.order[3:] if path[1:] in served.articles]
    assert articles == ["/m", "/c", "/x", "/a", "/t"], "in the order of the page"
    # With its seeds: the redirect is followed to the front page, which is asked again too.
    again(served)
    crawl(words, database_url, tmp_path, FRONTIER_ORDER="bfs")
    assert served.asked == {
        "GET /moved 301": 1,
        "GET / 200": 1,
        "GET /news5 200": 1,
    }
    # Without seeds: the stored ones; and nothing is asked twice.
    again(served)
    crawl(["site"], database_url, tmp_path)
    assert served.asked == {"GET /moved 301": 1, "GET / 200": 1, "GET /news6 200": 1}
    # Once more at once: all was visited just now.
    served.asked.clear()
    crawl(words, database_url, tmp_path, SOURCE_MIN="5m")
    assert served.asked == {}
    # Nothing is new: a conditional request.
    time.sleep(1.1)
    crawl(words, database_url, tmp_path)
    assert served.asked == {"GET /moved 301": 1, "GET / 304": 1}
    # Where URLs came from, and what is a source.
    stored = {row.url.removeprefix(base): row for row in stored_urls(database_url)}
    assert stored["/moved"].found is Found.SEED
    assert stored["/"].found is Found.REDIRECT
    assert stored["/m"].found is Found.LINK
    assert stored["/sitemap.xml"].found is Found.ROBOTS
    assert {path for path, row in stored.items() if row.source} == {"/moved", "/", "/sitemap.xml"}
    assert 5 * 60 <= stored["/"].interval_s <= 24 * 60
    assert stored["/m"].interval_s == 5 * 86_400
    told = run_command(["explain", f"{base}/sitemap.xml"], tmp_path, {"DATABASE_URL": database_url})
    assert "a sitemap that a robots.txt names" in told.stdout
    facts = run_command(
        ["explain", "--json", f"{base}/m"], tmp_path, {"DATABASE_URL": database_url}
    ).json
    assert (facts["found"], facts["parent"]) == ("link", f"{base}/")


def test_the_first_summary_after_an_upgrade_says_what_is_different(
    any_server: str,
    paper: tuple[type[Paper], str],
    new_database: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Before, the policy was adaptive, and pages were visited again after ten minutes."""
    _, base = paper
    url = new_database("template0")
    with closing(Database(url)) as old:
        for step in list_migrations()[:4]:
            with old.transaction() as tx:
                tx.run_script(step.sql)
                tx.run("migration_mark", number=step.number, name=step.name)
        scope = {"include": "", "exclude": "", "domains": [], "hosts": "", "everything": False}
        scope["seed_hosts"] = [base.removeprefix("http://").partition(":")[0]]
        year_s = 365 * 86400.0
        intervals = {"pages": [432000.0, 600.0, year_s], "sources": [900.0, 600.0, year_s]}
        rules = {"scope": scope, "suffixes": [], "intervals": {**intervals, "policy": "adaptive"}}
        old.run_script(f"""
            insert into crawlproj.crawl (name, ordering, max_depth, rules)
            values ('site', 'best', 50, '{json.dumps(rules)}')""")
    words = ["site", "-a", f"seeds={base}/"]
    first, second = (run_crawl(words, {"DATABASE_URL": url}, tmp_path) for _ in range(2))
    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    _, _, summary = " ".join(first.stdout.split()).partition("Crawl site ended")
    assert "Note Revisits follow the policy optimal now, before it was adaptive" in summary
    assert (
        "REVISIT_MIN: a page is visited again after 12 h at the earliest now, before it was 10 min"
        in (summary)
    )
    assert "Note" not in second.stdout


def stored_urls(database_url: str) -> list[Any]:
    from crawlproj.database.connection import Database
    from crawlproj.frontier.base import CrawlSpec
    from crawlproj.frontier.postgres import PostgresFrontier
    from crawlproj.urls.canonical import url_key

    frontier = PostgresFrontier(Database(database_url), CrawlSpec("site", order="best"))
    frontier.open()
    found = frontier.get_urls([url_key("site", url) for url in rows(database_url)])
    frontier.close()
    return list(found.values())


@pytest.mark.parametrize(
    ("spider", "first"),
    [
        ("start_own", "/"),
        ("start_form", "/search"),
        ("start_map", "/sitemap.xml"),
        ("start_robots_map", "/robots.txt"),
    ],
)
def test_a_second_run_of_any_spider_finds_a_new_article(
    paper: tuple[type[Paper], str], database_url: str, tmp_path: Path, spider: str, first: str
) -> None:
    served, base = paper
    words = [spider, "-a", f"base={base}"]
    crawl(words, database_url, tmp_path, **SPIDERS)
    assert {path[1:] for path in served.order} >= set(served.articles)
    again(served)
    done = crawl(words, database_url, tmp_path, **SPIDERS)
    new = {key: number for key, number in served.asked.items() if "robots.txt" not in key}
    expected = {"GET /news5 200": 1}
    if spider == "start_form":
        expected["POST /search 200"] = 1
    elif "map" in spider:
        expected["GET /sitemap.xml 200"] = 1
    else:
        expected["GET / 200"] = 1
    assert new == expected, done.log
    assert first in served.order
