"""A crawl goes on on a database that an older version has left: known pages are revisited, and
those that are read anew are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from crawlproj.database.migrations import list_migrations
from crawlproj.urls.canonical import host_of, url_key
from tests.support.copies import article, html
from tests.support.crawling import Result, run_crawl

BEFORE = 4
"""So many steps had the older version."""
SETTINGS = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SERVER_DELAY": 0,
}
PAGES = {
    "/": html(article(1), "Start") + "<a href=/stays>one</a><a href=/changes>two</a>",
    "/stays": html(article(2), "Stays") + "<a href=/changes>two</a>",
    "/changes": html(article(3), "Changes"),
}


@pytest.fixture
def site() -> Iterator[tuple[dict[str, str], str]]:
    pages = dict(PAGES)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((page or "").encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield pages, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def fill_older(db: Database, base: str) -> None:
    """What the older version had of the site; its digests of texts were others than ours."""
    for step in list_migrations()[:BEFORE]:
        with db.transaction() as tx:
            tx.run_script(step.sql)
            tx.run("migration_mark", number=step.number, name=step.name)
    db.run_script(f"""
        set search_path = crawlproj;
        insert into crawl (name, ordering, max_depth) values ('site', 'best', 0);
        insert into host (name) values ('{host_of(base)}');
        insert into crawl_host (crawl, host, name, stage, revisit) values (1, 1, '{host_of(base)}', 0, 0)""")
    for path, page in PAGES.items():
        id_ = url_key("site", base + path)
        body = sha256(page.encode()).hexdigest()[:32]
        db.run_script(f"""
            set search_path = crawlproj;
            insert into url (id, crawl, host, canonical, state, lane, rank, depth, score, first_seen, visit, status, last_visit,
                last_change, next_visit, interval_s, body_digest, block_digest, found)
            values ({id_}, 1, 1, '{base + path}', 'waiting', 2, 0, {int(path != "/")}, 1, now() - interval '1 day', 1, 200,
                now() - interval '1 day', now() - interval '1 day', now(), 3600, '\\x{body}', '\\x{"22" * 16}', 1);
            insert into page (url, at, title, content_type, charset, language, length, noindex, noarchive, elapsed_s)
            values ({id_}, now() - interval '1 day', 'Old', 'text/html', 'utf-8', 'en', {len(page)}, false, false, 0);
            insert into page_version (url, at, status, body_digest, block_digest, length)
            values ({id_}, now() - interval '1 day', 200, '\\x{body}', '\\x{"22" * 16}', {len(page)});
            insert into page_links values ({id_}, '{{{url_key("site", base + "/changes")}}}', 'a', 'two', '', '', '')""")


def test_a_crawl_of_the_older_version_goes_on(
    site: tuple[dict[str, str], str],
    any_server: str,
    new_database: Callable[[str], str],
    tmp_path: Path,
) -> None:
    pages, base = site
    dsn = new_database("template0")
    older = Database(dsn)
    fill_older(older, base)
    older.close()

    def crawl() -> Result:
        words = ["site", "-a", f"seeds={base}/"]
        done = run_crawl(words, {"DATABASE_URL": dsn, **SETTINGS}, tmp_path)
        assert done.code == 0, done.stderr + done.log
        assert "log_count/ERROR" not in done.stats, done.log
        return done

    def stored() -> dict[str, tuple[Any, ...]]:
        """Path -> what the database has of a page."""
        db = Database(dsn)
        rows = db.run_script("""
            select u.canonical, u.visit, u.changes, (select count(*) from crawlproj.page_version v where v.url = u.id),
                t.url is not null, o.canonical, cardinality(l.known)
            from crawlproj.url u join crawlproj.page p on p.url = u.id left join crawlproj.page_text t on t.url = u.id
            left join crawlproj.url o on o.id = p.duplicate_of left join crawlproj.page_links l on l.url = u.id""")
        db.close()
        return {
            url.removeprefix(base): (*row, of and of.removeprefix(base), links)
            for url, *row, of, links in rows
        }

    pages["/changes"] = html(article(4), "Changes")
    pages["/new"] = html(article(5), "New")
    pages["/"] += "<a href=/new>three</a>"
    done = crawl()
    assert done.stats["pages/same_bytes"] == 1 and done.stats["pages/first"] == 1
    found = stored()
    assert found["/stays"] == (2, 0, 1, False, None, 1), "it is as the older version left it"
    assert found["/changes"] == (2, 1, 2, True, None, 0)
    assert found["/"][3:] == (True, None, 3)

    # A page that was read by the older version only becomes the copy of one that was read anew.
    db = Database(dsn)
    db.run_script("update crawlproj.url set next_visit = now(), rank = 0 where lane = 2")
    db.run_script("update crawlproj.crawl_host set revisit = 0")
    db.close()
    pages["/stays"] = html(article(4), "Changes", frame="<p>Elsewhere.</p>")
    done = crawl()
    found = stored()
    assert found["/stays"][3:] == (True, "/changes", 0)
    assert found["/stays"][1] == 1 and done.stats["duplicates/near"] == 1
    assert found["/changes"][3:5] == (True, None)
    assert done.stats["pages/same_bytes"] >= 2
