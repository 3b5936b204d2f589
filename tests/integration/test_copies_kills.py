"""Workers that are killed leave no page half-judged and lose no item."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.support.copies import article, html
from tests.support.crawling import start_crawl

pytestmark = [pytest.mark.proof, pytest.mark.kills]

KILLS = 20
GROUPS = 60
HOSTS = 5
FLUSH_S = 0.2
LATE_S = 0.5
"""A commit on a busy machine takes so much longer."""
SETTINGS: dict[str, object] = {
    "SPIDER_MODULES": "tests.spiders",
    "ITEM_PIPELINES": json.dumps({"tests.spiders.copies.Ledger": 500}),
    "DNS_HOSTS": json.dumps({"*.test": "127.0.0.1"}),
    "FRONTIER_FLUSH": FLUSH_S,
    "FRONTIER_LEASE": "8s",
    "DOWNLOAD_TIMEOUT": 5,
    "CRAWL_PATIENCE": 10,
    "POLITENESS_DELAY": 0.1,
    "POLITENESS_SERVER_DELAY": 0,
    "POLITENESS_MAX_DELAY": 0.2,
    "POLITENESS_HOSTS_PER_SERVER": HOSTS,
    "REVISIT_INTERVAL": "1h",
    "SOURCE_INTERVAL": "1h",
    "SOURCE_MIN": "1h",
}


def page_of(number: int) -> str:
    """Pages come in groups of four: a text, the same bytes, other case, and a letter changed."""
    group, variant = divmod(number, 4)
    texts = article(group + 1)
    if variant == 2:
        texts = [text.upper() for text in texts]
    if variant == 3:
        texts[-1] = texts[-1].replace("a", "o", 1)
    return html(texts)


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = self.path.removeprefix("/p").removesuffix(".html")
        body = ""
        if self.path == "/":
            port = self.server.server_port  # type: ignore[attr-defined]
            links = "".join(
                f"<a href='http://h{n % HOSTS}.test:{port}/p{n}.html'>{n}</a> "
                for n in range(GROUPS * 4)
            )
            body = f"<html><body>{links}</body></html>"
        elif number.isdecimal():
            body = page_of(int(number))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def read_ledger(path: Path) -> list[tuple[float, str, str | None]]:
    if not path.exists():
        return []
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]  # type: ignore[misc]


def test_kills_lose_no_verdict_and_no_item(port: int, database_url: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    dice = random.Random(1)
    moments = sorted(dice.sample(range(5, GROUPS * 4), KILLS))
    killed_at = []
    arguments = ["copies", "-a", f"seeds=http://h0.test:{port}/", "-a", "domains=test"]
    arguments += ["-a", "hosts=h[0-9]\\.test", "-a", "depth=2"]
    settings = {**SETTINGS, "DATABASE_URL": database_url}
    env = {"LEDGER": str(ledger)}
    deadline = time.monotonic() + 240
    for number in [*moments, None]:
        with start_crawl(arguments, settings, tmp_path / "crawl", env) as crawl:
            if number is None:
                result = crawl.wait(120)
                break
            while len(read_ledger(ledger)) < number and crawl.process.poll() is None:
                assert time.monotonic() < deadline, read_ledger(ledger)[-3:]
                time.sleep(0.005)
            time.sleep(dice.random() * 2 * FLUSH_S)
            crawl.process.kill()
            crawl.process.wait()
            killed_at.append(time.time())
    assert result.code == 0, result.stderr + result.log
    database = Database(database_url)
    found = database.run_script("""
        select u.canonical, o.canonical, p.duplicate_kind from crawlproj.page p join crawlproj.url u on u.id = p.url
        left join crawlproj.url o on o.id = p.duplicate_of where u.canonical like '%/p%.html'""")
    database.close()
    assert len(found) == GROUPS * 4
    groups: dict[int, dict[str, str | None]] = defaultdict(dict)
    for url, original, _ in found:
        assert url != original
        groups[int(url.rpartition("/p")[2].removesuffix(".html")) // 4][url] = original
    for members in groups.values():
        originals = [url for url, original in members.items() if original is None]
        assert len(originals) == 1, members
        assert {original for original in members.values() if original} == set(originals)
    items = read_ledger(ledger)
    assert {url for url, _, _ in found} <= {url for _, url, _ in items}
    times = Counter(url for _, url, _ in items)
    again = 0
    for at, url, _ in items:
        last = max(when for when, same, _ in items if same == url)
        if times[url] > 1 and at < last:
            again += 1
            kill = min((killed for killed in killed_at if killed >= at), default=0.0)
            assert kill - at <= 2 * FLUSH_S + LATE_S, (url, kill - at)
    kinds = Counter(kind for *_, kind in found)
    print(f"{len(killed_at)} kills, {len(items)} items of which {again} were sent again; {kinds}")
    assert len(killed_at) == KILLS
