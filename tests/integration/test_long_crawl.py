"""A crawl that runs for months: new seeds while it runs, a log that is rotated, nothing that only
grows.
"""

from __future__ import annotations

import logging
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlproj.cli import preflight
from crawlproj.extensions.log_rotation import LOOK_S, LogRotation
from crawlproj.extensions.panel import ALIKE, MAX_KINDS, TerminalLog
from spiders.site import SiteSpider
from tests.integration.test_articles import SETTINGS
from tests.support.crawling import run_command, start_crawl
from tests.support.news_web import listing, news_article, serve_news


def wait_for(done: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    until = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < until, f"waited too long for {what}"
        time.sleep(0.05)


def test_seeds_that_are_added_while_a_crawl_runs_are_crawled_with_what_they_lead_to(
    database_url: str, tmp_path: Path
) -> None:
    # The first page links to what is no part of the crawl yet.
    other = "http://two.test:{port}"
    pages = {
        "/": listing({"/world/1.html": "Gardeners rebuilt"}) + f"<a href='{other}/world/1.html'>",
        "/world/1.html": news_article(1),
        "/start": listing({"/world/1.html": "Gardeners rebuilt", "/world/2.html": "Bridge"}),
        "/world/2.html": news_article(2),
    }
    settings = {
        **SETTINGS,
        "DATABASE_URL": database_url,
        "CRAWL_CONTINUOUS": True,
        "DNS_HOSTS": {"two.test": "127.0.0.1"},
        "REVISIT_INTERVAL": "1h",
        "SOURCE_INTERVAL": "1h",
    }
    with serve_news(pages) as web:
        port = web.base.rpartition(":")[2]
        web.pages["/"] = web.pages["/"].replace("{port}", port)

        def asked(host: str) -> int:
            return sum(name == host for _, name in web.asked_at)

        with start_crawl(["site", "-a", f"seeds={web.base}/"], settings, tmp_path) as crawl:
            wait_for(lambda: asked("127.0.0.1") >= 3, "the first pages")
            seed = f"http://two.test:{port}/start"
            added = run_command(["seeds", "add", seed], tmp_path, {"DATABASE_URL": database_url})
            assert added.code == 0, added.stderr
            assert "The running crawl takes them up" in added.stdout
            # robots.txt, the seed, and both pages that it links to.
            wait_for(lambda: asked("two.test") >= 4, "the pages of the new seed")
            crawl.stop()
            result = crawl.wait()
        assert result.code == 130 and result.stats["scope/new_seeds"] == 1
    again = run_command(["seeds", "add", seed], tmp_path, {"DATABASE_URL": database_url})
    assert "Start with: " in again.stdout


def test_log_of_a_running_crawl_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "LOG_BYTES", 1000)
    now = [0.0]
    path = tmp_path / "site.log"
    handler = logging.FileHandler(path)
    logging.root.addHandler(handler)
    try:
        own = LogRotation(str(path), tmp_path, clock=lambda: now[0])
        foreign = LogRotation(str(path), tmp_path / "log", clock=lambda: now[0])
        logging.getLogger("x").error("first %s", "x" * 2000)
        own.rotate_if_due()
        now[0] = LOOK_S
        foreign.rotate_if_due()
        assert not path.with_suffix(".log.1").exists()
        own.rotate_if_due()
        logging.getLogger("x").error("second")
    finally:
        logging.root.removeHandler(handler)
        handler.close()
    assert "first" in path.with_suffix(".log.1").read_text()
    assert path.read_text() == "second\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_remembered_of_warnings_and_seeds_does_not_grow() -> None:
    shown = []

    class Pipe:
        def print_line(self, text: str) -> None:
            shown.append(text)

    handler = TerminalLog(Pipe())  # type: ignore[arg-type]
    for n in range(3 * MAX_KINDS):
        handler.emit(logging.LogRecord("x", 30, "", 0, f"warning {n}", None, None))
    assert len(handler._seen) <= MAX_KINDS and len(shown) <= MAX_KINDS
    handler = TerminalLog(Pipe())  # type: ignore[arg-type]
    shown.clear()
    for _ in range(10):
        handler.emit(logging.LogRecord("x", 30, "", 0, "alike", None, None))
    assert len(shown) == ALIKE

    spider = SiteSpider(seeds="http://a.test/")
    for _ in range(1000):
        spider.learn_seeds(["http://www.a.test/"])
    assert len(spider._stored_seeds) == 1
