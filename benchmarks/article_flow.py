"""Articles a minute from many small sites: `python -m benchmarks.article_flow [MINUTES] [SITES]`.

The sites publish all the time, more than is asked for; all durations of a crawl are divided by 60.
One process takes the articles. Prints articles stored in each minute, how long they waited, CPU
seconds per 1,000 of them, and how late the event loop was. By hand: ten minutes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.meter import children_cpu_s, postgres_cpu_s
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from tests.support.copies import article
from tests.support.news_web import listing, news_article

ROOT = Path(__file__).resolve().parents[1]
GOAL = 350
PER_SITE_S = 4.0
"""A site has a new article every so many seconds: 15 a minute."""
LISTED = 40
SPEED = 60
SETTINGS = {
    "GUARD_ALLOW_PRIVATE": "1",
    "POLITENESS_DELAY": str(2 / SPEED),
    "POLITENESS_SERVER_DELAY": "0",
    "POLITENESS_SLOWDOWN": "0",
    "POLITENESS_PAUSE_AFTER": "0",
    "SOURCE_INTERVAL": f"{15 * 60 / SPEED}s",
    "SOURCE_MIN": f"{5 * 60 / SPEED}s",
    "REVISIT_INTERVAL": f"{5 * 86400 / SPEED}s",
    "REVISIT_MIN": f"{12 * 3600 / SPEED}s",
    "CRAWL_CONTINUOUS": "1",
    "PANEL": "off",
    "LOG_LEVEL": "WARNING",
    "EXTENSIONS": '{"benchmarks.article_flow.LoopLag": 1}',
}
NAVIGATION = "".join(f"<li><a href='/section/{n}'>Section number {n}</a></li>" for n in range(80))
SCRIPT = "<script>" + "var adverts = [" + "'/track/pixel.gif'," * 400 + "];</script>"


class Site(BaseHTTPRequestHandler):
    started = time.time()

    def do_GET(self) -> None:
        self.close_connection = False
        host = self.headers.get("Host", "").partition(":")[0]
        newest = int((time.time() - self.started) / PER_SITE_S) + LISTED
        page = ""
        if self.path == "/":
            urls = {
                f"/world/{n}.html": f"News {n} of {host}" for n in range(newest - LISTED, newest)
            }
            page = listing(urls)
        elif self.path.startswith("/world/"):
            number = int(self.path.removeprefix("/world/").removesuffix(".html"))
            seed = int(host.rpartition(".")[2]) * 1_000_000 + number
            page = news_article(
                seed,
                title=f"{host} news {number}: {article(seed, 1)[0][:40]}",
                paragraphs=article(seed, 9),
                links=f"<aside><ul>{NAVIGATION}</ul></aside>{SCRIPT}",
            )
        body = page.encode()
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


class LoopLag:
    """Measures how late the event loop is, and writes it down when the crawl has ended."""

    def __init__(self, crawler: Any) -> None:
        import asyncio

        from scrapy import signals

        self._lags: list[float] = []
        self._asyncio = asyncio
        crawler.signals.connect(self._start, signals.engine_started)
        crawler.signals.connect(self._stop, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Any) -> LoopLag:
        return cls(crawler)

    def _start(self) -> None:
        self._loop = self._asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        due = self._loop.time() + 0.01

        def look() -> None:
            self._lags.append(self._loop.time() - due)
            self._next()

        self._loop.call_at(due, look)

    def _stop(self) -> None:
        lags = sorted(self._lags)
        cpu = {"own": time.process_time(), "children": children_cpu_s()}
        figures = {"lag_p99_ms": 1000 * lags[len(lags) * 99 // 100], "lag_max_ms": 1000 * lags[-1]}
        Path(os.environ["LAG_FILE"]).write_text(json.dumps(figures | cpu))


def main(minutes: float, sites: int) -> int:
    random.seed(1)
    server = ThreadingHTTPServer(("0.0.0.0", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = Path(tempfile.mkdtemp(prefix="flow-"))
    try:
        with EmbeddedPostgres(folder / "db") as postgres:
            url = postgres.start()
            return _measure(url, folder, server.server_port, minutes=minutes, sites=sites)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(url: str, folder: Path, port: int, *, minutes: float, sites: int) -> int:
    seeds = ",".join(f"http://127.0.2.{n}:{port}/" for n in range(1, sites + 1))
    settings = {**SETTINGS, "CRAWL_DIR": folder, "DATABASE_URL": url}
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"seeds={seeds}"]
    command += ["-a", "articles=1"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    command += ["-s", f"CLOSESPIDER_TIMEOUT={60 * minutes}"]
    environment = {**os.environ, "LAG_FILE": str(folder / "lag.json")}
    data = folder / "db" / "pg" / "data"
    before = postgres_cpu_s(data)
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    postgres_s = postgres_cpu_s(data) - before
    database = Database(url)
    rows = database.run_script("""
        select date_trunc('minute', found_at), count(*), percentile_cont(0.5) within group (order by extract(epoch from found_at - at)),
            percentile_cont(0.95) within group (order by extract(epoch from found_at - at))
        from crawlproj.article group by 1 order by 1""")
    total, waiting = database.run_script(
        "select (select count(*) from crawlproj.article), (select count(*) from crawlproj.article_queue)"
    )[0]
    fetched = database.run_script(
        "select sum(visits) from (select count(*) as visits from crawlproj.page) p"
    )[0][0]
    database.close()
    lag = json.loads((folder / "lag.json").read_text())
    for minute, number, median, p95 in rows:
        print(f"{minute:%H:%M} {number:>6} articles, waited {median:.1f} s (p95 {p95:.1f} s)")
    median_minute = statistics.median([number for _, number, *_ in rows][1:-1] or [0])
    if not total:
        print("NOT REACHED: there is no article")
        return 1
    cpu_s = (lag["own"] + lag["children"] + postgres_s) / total * 1000
    print(
        f"{total} articles of {fetched} pages, {waiting} waiting; median minute {median_minute:.0f}"
    )
    print(
        f"CPU seconds per 1,000 articles: {cpu_s:.1f} (crawl {lag['own'] / total * 1000:.1f}, "
        f"processes {lag['children'] / total * 1000:.1f}, Postgres {postgres_s / total * 1000:.1f})"
    )
    print(
        f"event loop late by {lag['lag_p99_ms']:.1f} ms (p99), {lag['lag_max_ms']:.0f} ms at most"
    )
    if median_minute < GOAL:
        print(f"NOT REACHED: {GOAL} in the median minute")
        return 1
    return 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(float(words[0]) if words else 10.0, int(words[1]) if len(words) > 1 else 40))
