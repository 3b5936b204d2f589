"""The scope of a crawl from run to run: what is opened, what is left out, and what a change does to
what is known.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from crawlproj.frontier import changed_rules
from crawlproj.frontier.base import Rejudged
from crawlproj.frontier.changed_rules import RulesChange
from tests.contract.changed_rules import every, five_days
from tests.contract.worlds import DAY_S, Hand, PostgresWorld, page
from tests.support.crawling import run_command, run_crawl

HOSTS = 5


class Web(BaseHTTPRequestHandler):
    """A ministry with many hosts, which links to another one. Nothing in it ever changes."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        name, _, port = self.headers["Host"].partition(":")
        links = []
        if (name, self.path) == ("www.gov.test", "/"):
            links = [f"http://h{number}.gov.test:{port}/" for number in range(HOSTS)]
            links += ["/news/1", "/film.MP4?hd", f"http://elsewhere.test:{port}/x"]
        if self.path == "/robots.txt":
            self._answer(404, "")
            return
        self.asked.append(f"{name}{self.path}")
        if self.headers.get("If-None-Match"):
            self._answer(304, "")
        else:
            self._answer(200, "".join(f'<a href="{link}">{link}</a>' for link in links))

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("ETag", '"1"')
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_scope_and_what_its_changes_do(port: int, database_url: str, tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": json.dumps({"*.test": "127.0.0.1"}),
        "FRONTIER_DOMAIN_HOSTS": 2,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "POLITENESS_DELAY": 0,
        "POLITENESS_SERVER_DELAY": 0,
        "POLITENESS_SLOWDOWN": 0,
    }

    def crawl(*words: str, **more: object) -> tuple[list[str], dict[str, Any], str]:
        Web.asked.clear()
        result = run_crawl(["site", *words], {**settings, **more}, tmp_path)
        assert result.code == 0, result.stderr + result.log
        return sorted(Web.asked), result.stats, result.stdout + result.log

    def explain(word: str) -> dict[str, Any]:
        done = run_command(["explain", word, "--json"], tmp_path, settings)
        assert done.code == 0, done.stderr
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    seed = f"http://www.gov.test:{port}/"
    below = [f"h{number}.gov.test/" for number in range(HOSTS)]
    asked, stats, said = crawl("-a", f"seeds={seed}", "-a", "domains=gov.test")
    assert asked == [*below, "www.gov.test/", "www.gov.test/news/1"]
    assert stats["links/media"] == 1
    assert "1 host that links lead to is not part of the crawl" in said
    database = Database(database_url)
    stored = database.run_script("select other from page_links where other <> ''")
    database.close()
    assert [text.split("\n") for (text,) in stored] == [
        [f"{seed}film.MP4?hd", f"http://elsewhere.test:{port}/x"]
    ]

    host = explain("elsewhere.test")
    assert (host["state"], host["why"]) == ("left out", "host")
    assert host["rule"] == "seeds on gov.test, domains=gov.test"
    assert host["first_link"] == f"http://elsewhere.test:{port}/x"
    film = explain(f"{seed}film.MP4?hd")
    assert (film["state"], film["why"], film["rule"]) == ("left out", "suffix", "URL_SUFFIXES")

    often = {"REVISIT_INTERVAL": "1s", "REVISIT_MIN": "1s"}
    asked, stats, said = crawl("-a", "exclude=/news/", "-a", "domains=gov.test", **often)
    assert set(asked) == {*below, "www.gov.test/"}
    assert (stats["scope/out"], stats["scope/rescheduled"]) == (1, HOSTS + 2)
    assert "The scope has changed: 1 known URL left out now, 0 back, 0 added" in said
    assert explain(f"{seed}news/1")["why"] == "scope"

    # The page that links to it answers 304: its links are known from before.
    asked, stats, _ = crawl("-a", r"hosts=^elsewhere\.test$", "-a", "depth=5", **often)
    assert {"elsewhere.test/x", "www.gov.test/news/1"} <= set(asked)
    assert "www.gov.test/film.MP4?hd" not in asked
    assert (stats["scope/back"], stats["scope/added"]) == (1, 1)

    asked, stats, _ = crawl("-s", "URL_SUFFIXES=", **often)
    assert "www.gov.test/film.MP4?hd" in asked
    assert "elsewhere.test/x" not in asked


def test_a_kill_while_intervals_change_changes_none_of_them_twice(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PostgresWorld(database_url)
    frontier = world.frontier()
    paths = [f"/{number}" for number in range(5)]
    world.give(frontier, *paths)
    hand = Hand(world, frontier)
    for path in paths:
        hand.end(hand.ticket(path), content=page(), interval_s=DAY_S)
    frontier.apply_rules(five_days(), every)
    monkeypatch.setattr(changed_rules, "BATCH_SIZE", 2)
    write = RulesChange._write_intervals
    batches = iter(range(9))

    def die_at_second(self: RulesChange, *arguments: Any) -> int:
        if next(batches) == 1:
            raise KeyboardInterrupt
        return write(self, *arguments)

    monkeypatch.setattr(RulesChange, "_write_intervals", die_at_second)
    with pytest.raises(KeyboardInterrupt):
        frontier.apply_rules(five_days(interval=DAY_S), every)
    again = world.frontier()
    assert again.apply_rules(five_days(interval=DAY_S), every) == Rejudged(rescheduled=3)
    assert {world.see(again, path).interval_s for path in paths} == {DAY_S / 5}
    world.close()
