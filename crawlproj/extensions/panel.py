"""The crawl on the screen: a live panel on a terminal, a line every few seconds elsewhere, a
summary at the end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import time
from collections import Counter, deque
from datetime import datetime
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlproj.cli.next_commands import current_command, option_words, scrapy_program
from crawlproj.cli.screen import MODES, Screen, format_elapsed, output_stream
from crawlproj.cli.summary import CrawlSummary, format_summary
from crawlproj.config import SettingsReader, one_of, parse_seconds, read_config
from crawlproj.formatting import format_count, shorten_line
from crawlproj.scheduling.snapshot import HostSnapshot, Tally, count_outcomes, host_snapshot

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from crawlproj.scheduling.scheduler import CrawlScheduler

REFRESH_S = 0.5
RATE_OVER_S = 10.0
ALIKE = 5
"""So many warnings of one kind are shown; the rest is in the log."""


class Panel:
    """A Scrapy extension. `PANEL`: auto, live, lines or off; `PANEL_INTERVAL`: seconds between two
    lines.
    """

    def __init__(self, crawler: Crawler) -> None:
        read = SettingsReader(crawler.settings)
        mode = read("PANEL", one_of(*MODES))
        if mode == "off":
            raise NotConfigured
        self._crawler = crawler
        self._config = read_config(crawler.settings, crawler.spidercls.name or "")
        self._screen = Screen(output_stream(crawler), live={"live": True, "lines": False}.get(mode))
        self._interval_s = (
            REFRESH_S if self._screen.live else max(0.1, read("PANEL_INTERVAL", parse_seconds))
        )
        self._timer: asyncio.TimerHandle | None = None
        self._recent: deque[tuple[float, int]] = deque()
        self._started = time.monotonic()
        self._handler = TerminalLog(self._screen)
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def _scheduler(self) -> CrawlScheduler:
        return self._crawler.engine.scheduler  # type: ignore[return-value]

    def spider_opened(self, spider: Spider) -> None:
        self._started = time.monotonic()
        if self._crawler.settings.get("LOG_FILE"):  # else warnings are on the screen already
            logging.root.addHandler(self._handler)
        if self._screen.live:
            self._tick()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)
        done = count_outcomes(self._crawler.stats.get_stats())
        at = host_snapshot(self._scheduler.dispatcher, self._scheduler.dispatcher.times.now())
        elapsed_s = time.monotonic() - self._started
        rate = self._rate(done.pages_read)
        stopping = self._stopping()
        if self._screen.live:
            title = f"crawlproj  {self._config.spec.name}"
            self._screen.draw_lines(
                panel_lines(
                    title,
                    done,
                    at,
                    rate=rate,
                    elapsed_s=elapsed_s,
                    stopping=stopping,
                    width=self._screen.width,
                )
            )
        else:
            self._screen.print_line(
                status_line(done, at, rate, elapsed_s=elapsed_s, stopping=stopping)
            )

    def _stopping(self) -> bool:
        slot = self._crawler.engine._slot
        return slot is not None and slot.closing is not None

    def _rate(self, read: int) -> float:
        """Pages a second over the last seconds."""
        now = time.monotonic()
        self._recent.append((now, read))
        while now - self._recent[0][0] > max(RATE_OVER_S, 2 * self._interval_s):
            self._recent.popleft()
        then, before = self._recent[0] if len(self._recent) > 1 else (self._started, 0)
        return (read - before) / max(0.1, now - then)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        self._screen.clear()
        scheduler = self._scheduler
        now = scheduler.dispatcher.times.now()
        end = CrawlSummary(
            self._config.spec.name,
            reason,
            time.monotonic() - self._started,
            tally=count_outcomes(self._crawler.stats.get_stats()),
            now=now,
            counts=scheduler.counts,
            outlook=scheduler.dispatcher.leases.outlook,
            examples=scheduler.examples,
            places=self._places(),
            commands=self._commands(),
        )
        for text in format_summary(end, self._screen.width):
            self._screen.print_line(text)
        logging.root.removeHandler(self._handler)

    def _places(self) -> dict[str, str]:
        settings = self._crawler.settings
        config = self._config
        own = (
            f"our own Postgres in {config.crawl_dir / 'pg'} (scrapy db "
            f"url{option_words(config, settings)})"
        )
        places = {"Database": self._scheduler.database_location if config.database_url else own}
        if config.warc is not None:
            places["Archive"] = str(config.warc_dir)
        if log := settings.get("LOG_FILE"):
            places["Log"] = str(log)
        return places | {"Folder": str(config.crawl_dir)}

    def _commands(self) -> dict[str, str]:
        config = self._config
        scrapy = scrapy_program()
        words = option_words(config, self._crawler.settings)
        crawl = f" --crawl {shlex.quote(config.spec.name)}{words}"
        example = next((url for url in self._seeds() if len(url) < 80), "URL")
        return {
            "what is known of each crawl": f"{scrapy} status{words}",
            "why a page is where it is": f"{scrapy} explain {shlex.quote(example)}{crawl}",
            "what comes next, and when": f"{scrapy} plan -n 20{crawl}",
            "visit again what is due": current_command(self._crawler.settings)
            or "the same command again",
        }

    def _seeds(self) -> list[str]:
        return list(getattr(self._crawler.spider, "seeds", ()))


def pages_text(done: Tally, rate: float) -> str:
    return (
        f"{format_count(done.pages_read, 'page')}, {rate:.1f}/s: {done.new:,} new, {done.changed:,} "
        f"changed, {done.unchanged:,} unchanged"
    )


def others_text(done: Tally) -> str:
    parts = [
        (done.moved, "moved"),
        (done.gone, "gone"),
        (done.forbidden, "forbidden"),
        (done.failed, "failed"),
    ]
    text = ", ".join(f"{number:,} {name}" for number, name in parts if number) or "none"
    reasons = Counter(done.reasons.get("failed", {})).most_common(3)
    return text + (
        f" ({', '.join(f'{reason} {number:,}' for reason, number in reasons)})" if reasons else ""
    )


def hosts_text(at: HostSnapshot) -> str:
    resting = sum(at.resting.values())
    why = ", ".join(f"{reason} {number:,}" for reason, number in Counter(at.resting).most_common(3))
    return f"{at.known:,} in hand: {at.busy:,} asked now, {resting:,} resting" + (
        f" ({why})" if why else ""
    )


def status_line(
    done: Tally, at: HostSnapshot, rate: float, elapsed_s: float, stopping: bool
) -> str:
    """All of it in one line."""
    text = f"{format_elapsed(elapsed_s)}  {pages_text(done, rate)}"
    if done.urls_ended > done.pages_read:
        text += f"; {others_text(done)}"
    text += f"; {format_count(at.held, 'URL')} of {format_count(at.known, 'host')} in hand"
    return text + ("; stopping" if stopping else f"; {at.wait_reason}" if at.wait_reason else "")


def panel_lines(
    title: str,
    done: Tally,
    at: HostSnapshot,
    rate: float,
    elapsed_s: float,
    stopping: bool,
    width: int,
) -> list[str]:
    """The same in a few lines; the first is the title."""
    now = at.wait_reason or ("fetching" if at.busy else "between two requests")
    rows = {
        "pages": pages_text(done, rate),
        "others": others_text(done),
        "queue": f"{format_count(at.held, 'URL')} in hand, {format_count(done.found, 'URL')} found in this run",
        "hosts": hosts_text(at),
        "now": "stopping: what is under way gets a few seconds (Ctrl-C again: at once)"
        if stopping
        else now,
    }
    return [
        f"{title}  {format_elapsed(elapsed_s)}",
        *(f"  {name:<7} {shorten_line(text, width - 10)}" for name, text in rows.items()),
    ]


class TerminalLog(logging.Handler):
    """Warnings and errors as short lines; what comes again and again is shown a few times."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._seen: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        kind = (record.name, str(record.msg))
        self._seen[kind] += 1
        if self._seen[kind] > ALIKE or len(self._seen) > 1000:
            return
        more = " (more of these are in the log only)" if self._seen[kind] == ALIKE else ""
        text = (
            f"{datetime.now():%H:%M:%S} {record.levelname.lower()}: "
            f"{record.getMessage().strip().partition(os.linesep)[0]}"
        )
        self._screen.print_line(shorten_line(text, 200) + more)
