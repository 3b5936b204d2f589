"""robots.txt and the orders of pages, from the answers of a server to the states of URLs."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from crawlproj.demo import DemoServer
from crawlproj.demo.faults import gzip_bomb
from crawlproj.demo.wire import LAST_DATA_RECEIVED, TCP_INFO_BYTES
from crawlproj.frontier.base import Batch, CrawlSpec, NewUrl, RobotsRow
from crawlproj.frontier.postgres import PostgresFrontier
from tests.support.crawling import Result, run_command, run_crawl, start_crawl
from tests.support.webs import demo_settings, make_due, rows

RULES = b"User-agent: *\nDisallow: /private\n"
Answer = tuple[int, dict[str, str], bytes]


def arrived(connection: socket.socket) -> float:
    """When the last bytes came, as the kernel saw it: this process may have been too busy
    to look.
    """
    facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return time.monotonic() - int(struct.unpack_from("=I", facts, LAST_DATA_RECEIVED)[0]) / 1000


class Site:
    """A server whose answers a test writes down: path -> answer, or what to do with the connection.
    Some hosts of it have a robots.txt of their own.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Callable[[Any], None]] = {}
        self.robots: dict[str, Answer | Callable[[Any], None]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.times: dict[str, list[float]] = defaultdict(list)
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host = self.headers.get("Host", "").partition(".test")[0]
                site.times[host].append(arrived(self.connection))
                own = site.robots.get(host) if self.path == "/robots.txt" else None
                path = f"{host} {self.path}" if host in site.robots else self.path
                site.asked.append(
                    (path, {name.lower(): value for name, value in self.headers.items()})
                )
                answer = own or site.pages.get(self.path, (404, {}, b""))
                if callable(answer):
                    answer(self)
                    return
                status, headers, body = answer
                if status == 200 and headers.get("ETag", "-") == self.headers.get("If-None-Match"):
                    status = 304
                    body = b""
                self.send_response(status)
                for name, value in (
                    {"Content-Type": "text/html", "Content-Length": str(len(body))} | headers
                ).items():
                    for part in value.split("|"):
                        self.send_header(name, part)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.second = ThreadingHTTPServer(("127.0.0.2", self.server.server_port), Handler)
        for server in (self.server, self.second):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_port}"

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}.test:{self.server.server_port}{path}"

    def paths(self) -> Counter[str]:
        return Counter(path for path, _ in self.asked)

    def links(self, *paths: str) -> None:
        """A home page with links to pages of that name."""
        self.pages["/"] = (
            200,
            {},
            "".join(f"<a href='{path}'>{path}</a>" for path in paths).encode(),
        )
        for path in paths:
            self.pages[path] = 200, {}, f"<p>page {path}</p>".encode()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    for server in (site.server, site.second):
        server.shutdown()
        server.server_close()


def crawl(site: Site, database_url: str, crawl_dir: Path, **more: object) -> Result:
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "REVISIT_INTERVAL": "1h",
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
        **more,
    }
    seeds = [site.url(host) for host in site.robots] or [f"{site.base}/"]
    return run_crawl(["site", "-a", "seeds=" + ",".join(seeds)], settings, crawl_dir)


def states(site: Site, database_url: str) -> dict[str, tuple[str, str]]:
    return {
        url.removeprefix(site.base): (row.state, row.why) for url, row in rows(database_url).items()
    }


def pass_a_day(database_url: str) -> None:
    """All pages are due, and all robots.txt are too old."""
    make_due(database_url)
    database = Database(database_url)
    database.run_script("update crawlproj.origin set expires = to_timestamp(0)")
    database.run_script("update crawlproj.host set next_allowed = null")
    database.close()


def endless(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(RULES)
    try:
        while True:
            handler.wfile.write(b"# more\n" * 1000)
    except OSError:
        handler.close_connection = True


def test_a_file_is_used_as_far_as_it_is_read(site: Site, database_url: str, tmp_path: Path) -> None:
    site.links("/private", "/b")
    long, very_long = RULES + b"# more\n" * 1_000_000, RULES + b"# more\n" * 10_000_000
    site.robots = {
        "endless": endless,
        "huge": (200, {}, long),
        "packed": (200, {"Content-Encoding": "gzip"}, gzip.compress(very_long, 1)),
        "packed-twice": (
            200,
            {"Content-Encoding": "gzip, gzip"},
            gzip.compress(gzip.compress(very_long, 1)),
        ),
        "not-packed": (200, {"Content-Encoding": "gzip"}, RULES),
        "marked": (200, {"Content-Type": "text/plain"}, b"\xef\xbb\xbf" + RULES),
    }
    result = crawl(site, database_url, tmp_path)
    assert result.code == 0, result.stderr + result.log
    ends = {"/": ("waiting", ""), "/b": ("waiting", ""), "/private": ("forbidden", "robots")}
    assert states(site, database_url) == {
        site.url(host, path): end for host in site.robots for path, end in ends.items()
    }
    assert site.paths() == {
        f"{host} {path}": 1 for host in site.robots for path in ("/robots.txt", "/", "/b")
    }


def test_without_a_usable_file_everything_is_allowed(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/private")
    site.robots = {
        "missing": (404, {}, RULES),
        "closed": (403, {}, RULES),
        "page": (
            200,
            {},
            b"<!DOCTYPE html>\n<title>Log in</title>\n<pre>\nUser-agent: *\nDisallow: /\n</pre>",
        ),
        "bomb": (200, {"Content-Encoding": "gzip"}, gzip_bomb()),
        "loop": (302, {"Location": "/robots.txt"}, b""),
        "nowhere": (301, {}, b""),
        "elsewhere": (301, {"Location": "ftp://x.invalid/"}, b""),
    }
    assert crawl(site, database_url, tmp_path).code == 0
    assert states(site, database_url) == {
        site.url(host, path): ("waiting", "") for host in site.robots for path in ("/", "/private")
    }
    assert {host: site.paths()[f"{host} /robots.txt"] for host in site.robots} == dict.fromkeys(
        site.robots, 1
    ) | {"loop": 6}


def test_while_it_cannot_be_reached_nothing_else_is_asked(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a")
    packed = bytearray(gzip.compress(bytes(range(256)) * 50, 1))
    packed[40:60] = b"\xff" * 20
    site.robots = {
        "busy": (503, {}, b""),
        "limited": (429, {"Retry-After": "7200"}, b""),
        "unchanged": (304, {}, b""),
        "broken": (200, {"Content-Encoding": "gzip"}, bytes(packed)),
    }
    crawl(site, database_url, tmp_path, FRONTIER_RETRY_DELAY="1h")
    assert site.paths() == {f"{host} /robots.txt": 1 for host in site.robots}
    found = states(site, database_url)
    assert found.pop(site.url("broken")) == ("retry", "bad answer")
    assert found == {site.url(host): ("new", "") for host in ("busy", "limited", "unchanged")}


def test_a_redirect_to_another_host_gives_the_rules_of_the_first(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/private", "/b")
    site.robots = {"a": (301, {"Location": site.url("other", "/robots.txt")}, b"")}
    site.pages["/robots.txt"] = 200, {}, RULES
    assert crawl(site, database_url, tmp_path).code == 0
    ends = {"/": ("waiting", ""), "/b": ("waiting", ""), "/private": ("forbidden", "robots")}
    assert states(site, database_url) == {site.url("a", path): end for path, end in ends.items()}
    assert site.paths() == {"a /robots.txt": 1, "/robots.txt": 1, "a /": 1, "a /b": 1}


def moved_to(site: Site, hosts: str, path: str = "/robots.txt") -> None:
    """The robots.txt of each of these hosts is on one other."""
    site.links()
    site.robots = {
        host: (302, {"Location": site.url("rules", path.format(host=host))}, b"") for host in hosts
    }


def test_files_that_have_moved_to_one_host_are_asked_for_at_its_pace(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    moved_to(site, "abcd", "/of-{host}.txt")
    assert crawl(site, database_url, tmp_path, POLITENESS_DELAY=0.5).code == 0
    gaps = [after - before for before, after in pairwise(site.times["rules"])]
    assert len(gaps) == 3 and min(gaps) > 0.48
    assert {url: row.state for url, row in rows(database_url).items()} == {
        site.url(host): "waiting" for host in "abcd"
    }


def test_a_file_that_many_hosts_share_is_asked_for_once(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    moved_to(site, "abcd")
    site.links("/private")
    site.pages["/robots.txt"] = 200, {}, RULES
    assert crawl(site, database_url, tmp_path).code == 0
    pages = [f"{host} {path}" for host in "abcd" for path in ("/robots.txt", "/")]
    assert site.paths() == {"/robots.txt": 1, **dict.fromkeys(pages, 1)}
    assert Counter(row.state for row in rows(database_url).values()) == {
        "waiting": 4,
        "forbidden": 4,
    }
    audited = run_command(
        ["politeness", "audit", *map(str, tmp_path.glob("log/requests-*.jsonl"))], tmp_path
    )
    assert "every rule was kept" in audited.stdout


def held_elsewhere(site: Site, database_url: str) -> PostgresFrontier:
    """Another crawl's frontier, whose worker "other" holds the server of the host `rules`."""
    frontier = PostgresFrontier(Database(database_url), CrawlSpec("other"))
    frontier.open()
    frontier.add([NewUrl(1, site.url("rules"), "rules.test")])
    frontier.put_addresses({"rules.test": "127.0.0.2"})
    assert frontier.lease("other", 1)
    return frontier


def test_a_file_on_a_host_that_another_worker_holds_waits_for_it(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    moved_to(site, "a")
    names = {
        "DNS_HOSTS": {"rules.test": "127.0.0.2", "*.test": "127.0.0.1"},
        "DATABASE_URL": database_url,
        "CRAWL_PATIENCE": 0,
    }
    frontier = held_elsewhere(site, database_url)
    with start_crawl(["site", "-a", "seeds=" + site.url("a")], names, tmp_path) as worker:
        while not site.asked:
            time.sleep(0.05)
        time.sleep(1.5)
        assert site.paths() == {"a /robots.txt": 1}
        frontier.release_servers("other", list(frontier.renew_leases("other", range(1, 10))))
        assert worker.wait().code == 0
    frontier.close()
    assert site.paths() == {"a /robots.txt": 1, "/robots.txt": 1, "a /": 1}


def test_rules_that_another_worker_reads_hold_here_at_once(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links(*(f"/{number}" for number in range(40)))
    settings = {"DATABASE_URL": database_url, "POLITENESS_DELAY": 0.25, "CRAWL_PATIENCE": 0}
    frontier = PostgresFrontier(Database(database_url), CrawlSpec("other"))
    with start_crawl(["site", "-a", f"seeds={site.base}/"], settings, tmp_path) as worker:
        while len(site.asked) < 4:
            time.sleep(0.05)
        now = frontier.now()
        row = RobotsRow(
            site.base, "127.0.0.1", 200, "User-agent: *\nDisallow: /", now, now + timedelta(days=1)
        )
        frontier.commit(Batch(robots=[row]))
        assert worker.wait().code == 0
    frontier.close()
    assert len(site.asked) < 20
    assert Counter(state for state, _ in states(site, database_url).values())["forbidden"] > 20


def test_an_expired_file_is_asked_for_only_if_it_has_changed(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/private", "/b")
    site.pages["/robots.txt"] = (
        200,
        {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"},
        RULES,
    )
    crawl(site, database_url, tmp_path)
    pass_a_day(database_url)
    site.asked.clear()
    crawl(site, database_url, tmp_path)
    headers = dict(site.asked)["/robots.txt"]
    assert (headers["if-none-match"], headers["if-modified-since"]) == (
        '"1"',
        "Thu, 01 Jan 2026 00:00:00 GMT",
    )
    assert site.paths() == {"/robots.txt": 1, "/": 1, "/b": 1}
    assert states(site, database_url)["/private"] == ("forbidden", "robots")


def test_rules_that_were_read_stay_in_force_while_the_server_is_in_trouble(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/private", "/b")
    site.pages["/robots.txt"] = 200, {}, RULES
    crawl(site, database_url, tmp_path)
    pass_a_day(database_url)
    site.asked.clear()
    site.pages["/robots.txt"] = 500, {}, b""
    crawl(site, database_url, tmp_path, CRAWL_PATIENCE=5)
    assert site.paths() == {"/robots.txt": 1, "/": 1, "/b": 1}


def test_a_changed_file_judges_urls_again_both_ways(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/private", "/private/2", "/b")
    site.pages["/robots.txt"] = 200, {}, RULES
    crawl(site, database_url, tmp_path)
    pass_a_day(database_url)
    site.asked.clear()
    site.pages["/robots.txt"] = 200, {}, b"User-agent: *\nDisallow: /b\nDisallow: /private/2\n"
    assert crawl(site, database_url, tmp_path).code == 0
    found = {path: state for path, (state, _) in states(site, database_url).items()}
    assert found == {
        "/": "waiting",
        "/private": "waiting",
        "/b": "forbidden",
        "/private/2": "forbidden",
    }
    assert site.paths() == {"/robots.txt": 1, "/": 1, "/private": 1}


def test_a_site_that_forbade_everything_is_found_open_again(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a", "/b")
    site.pages["/robots.txt"] = 200, {}, b"User-agent: *\nDisallow: /\n"
    crawl(site, database_url, tmp_path)
    assert states(site, database_url) == {"/": ("forbidden", "robots")}
    for _ in range(2):
        pass_a_day(database_url)
        site.asked.clear()
        crawl(site, database_url, tmp_path)
        assert site.paths() == {"/robots.txt": 1}
    pass_a_day(database_url)
    site.asked.clear()
    site.pages["/robots.txt"] = 404, {}, b""
    crawl(site, database_url, tmp_path)
    assert site.paths() == {"/robots.txt": 1, "/": 1, "/a": 1, "/b": 1}


def test_orders_of_pages_by_header_and_by_element(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/header", "/other", "/both", "/over", "/later", "/file")
    site.pages["/header"] = (
        200,
        {"X-Robots-Tag": "crawlproj: noindex|noarchive, nofollow"},
        b"<a href='/hidden'>x</a>",
    )
    site.pages["/other"] = (
        200,
        {"X-Robots-Tag": "otherbot: noindex, nofollow"},
        b"<a href='/seen'>x</a>",
    )
    site.pages["/both"] = (
        200,
        {"X-Robots-Tag": "noarchive"},
        b"<meta name=crawlproj content=noindex><p>both</p>",
    )
    site.pages["/over"] = (
        200,
        {"X-Robots-Tag": "unavailable_after: Thu, 01 Jan 2015 00:00:00 GMT"},
        b"<p>over</p>",
    )
    site.pages["/later"] = (
        200,
        {},
        b"<meta name=robots content='unavailable_after: 2999-01-01'><p>later</p>",
    )
    site.pages["/file"] = (
        200,
        {"X-Robots-Tag": "none", "Content-Type": "application/pdf"},
        b"%PDF-1.4\0\0",
    )
    site.pages["/seen"] = 200, {}, b"<p>seen</p>"
    result = crawl(site, database_url, tmp_path)
    assert result.code == 0, result.log
    database = Database(database_url)
    found = database.run_script(
        "select canonical, noindex, noarchive from crawlproj.page p join crawlproj.url u on u.id = "
        "p.url"
    )
    database.close()
    orders = {
        url.removeprefix(site.base): (noindex, noarchive) for url, noindex, noarchive in found
    }
    assert orders == {
        "/": (False, False),
        "/header": (True, True),
        "/other": (False, False),
        "/both": (True, True),
        "/over": (True, False),
        "/later": (False, False),
        "/file": (True, False),
        "/seen": (False, False),
    }
    assert states(site, database_url)["/over"] == ("retired", "unavailable_after")
    assert result.stats["gone/unavailable_after"] == 1
    ends = states(site, database_url)
    assert ends.pop("/file") == ("waiting", "document: broken")
    assert {state for path, state in ends.items() if path != "/over"} == {("waiting", "")}
    assert "/hidden" not in states(site, database_url)
    site.asked.clear()
    pass_a_day(database_url)
    crawl(site, database_url, tmp_path)
    assert set(site.paths()) == {
        "/robots.txt",
        "/",
        "/header",
        "/other",
        "/both",
        "/later",
        "/seen",
    }


def test_broken_files_of_the_demo_web_are_taken_as_the_rfc_says(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("faults") as demo:
        names = [
            name
            for name in demo.web.sites
            if name.startswith("robots-") and "timeout" not in name and "slow" not in name
        ]
        seeds = [demo.url(name, "/") for name in names]
        truth = demo.web.truth_at(demo.now(), seeds=seeds, depth=3)
        settings = demo_settings(
            demo, database_url, FRONTIER_DEPTH=3, CRAWL_PATIENCE=0, FRONTIER_RETRY_DELAY="1h"
        )
        result = run_crawl(["site", "-a", "seeds=" + ",".join(seeds)], settings, tmp_path)
    assert result.code in (0, 3), result.log
    found = rows(database_url)
    fetched = {url for url, row in found.items() if row.state == "waiting"}
    mine = {url for url in truth.pages if any(f"//{name}." in url for name in names)}
    assert fetched >= mine and not fetched & set(truth.forbidden)
