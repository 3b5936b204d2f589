"""The panel shows a crawl on the screen: live on a terminal, else a line every few seconds.

At the end it prints a summary. Without a screen (Scrapyd) the lines are in the log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import time
from collections import Counter, deque
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlproj.cli.next_commands import option_words, repeated_command, scrapy_program
from crawlproj.cli.screen import MODES, LogLines, Screen, format_elapsed, output_stream
from crawlproj.cli.summary import CrawlSummary, format_summary
from crawlproj.cli.worker_reports import ReportPipe
from crawlproj.config import SettingsReader, config_of, one_of, parse_seconds
from crawlproj.extensions.log_rotation import LogRotation
from crawlproj.formatting import format_count, format_duration, format_share, shorten_line
from crawlproj.scheduling.scheduler import scheduler_of, worker_of
from crawlproj.scheduling.snapshot import HostSnapshot, Tally, count_outcomes, host_snapshot
from crawlproj.scheduling.spider import seeds_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler


REFRESH_S = 0.5
RATE_OVER_S = 10.0
ALIKE = 5
"""How many warnings of one kind are shown; the rest is in the log."""
MAX_KINDS = 1000
"""So many kinds of warnings are shown at all: a crawl may run for months."""


class Panel:
    """The Scrapy extension.

    `PANEL`: auto, live, lines, log or off; `PANEL_INTERVAL`: seconds between two lines.
    """

    def __init__(self, crawler: Crawler) -> None:
        read = SettingsReader(crawler.settings)
        mode = read("PANEL", one_of(*MODES))
        if mode == "off":
            raise NotConfigured
        self._crawler = crawler
        self._config = config_of(crawler)
        self._in_log = mode == "log"
        self._screen: Screen | LogLines = LogLines()
        if not self._in_log:
            live = {"live": True, "lines": False}.get(mode)
            self._screen = Screen(output_stream(crawler), live=live)
        self._interval_s = REFRESH_S
        if not self._screen.live:
            self._interval_s = max(0.1, read("PANEL_INTERVAL", parse_seconds))
        self._rotation = LogRotation(crawler.settings.get("LOG_FILE"), self._config.log_dir)
        self._timer: asyncio.TimerHandle | None = None
        self._recent: deque[tuple[float, int]] = deque()
        self._started = time.monotonic()
        self._handler = TerminalLog(self._screen)
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self, spider: Spider) -> None:
        self._started = time.monotonic()
        # Without a log file all warnings are on the screen anyway.
        if self._crawler.settings.get("LOG_FILE") and not self._in_log:
            logging.root.addHandler(self._handler)
        for notice in worker_of(self._crawler).notices:
            self._screen.print_line(notice)
        if self._screen.live:
            self._tick()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)
        self._rotation.rotate_if_due()
        done = count_outcomes(self._crawler.stats.get_stats())
        at = host_snapshot(worker_of(self._crawler))
        elapsed_s = time.monotonic() - self._started
        rate = self._rate(done.pages_read)
        stopping = self._is_stopping()
        if not self._screen.live:
            line = status_line(done, at, rate, elapsed_s=elapsed_s, stopping=stopping)
            if self._in_log:
                line = f"crawl {self._config.spec.name} {line}"
            self._screen.print_line(line)
            return
        lines = panel_lines(
            f"crawlproj  {self._config.spec.name}",
            done,
            at,
            rate=rate,
            elapsed_s=elapsed_s,
            stopping=stopping,
            width=self._screen.width,
        )
        self._screen.draw_lines(lines)

    def _is_stopping(self) -> bool:
        slot = self._crawler.engine._slot
        return slot is not None and slot.closing is not None

    def _rate(self, pages: int) -> float:
        """Pages a second over the last seconds."""
        now = time.monotonic()
        self._recent.append((now, pages))
        while now - self._recent[0][0] > max(RATE_OVER_S, 2 * self._interval_s):
            self._recent.popleft()
        then, pages_then = self._recent[0]
        if len(self._recent) == 1:
            then = self._started
            pages_then = 0
        return (pages - pages_then) / max(0.1, now - then)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        self._screen.clear()
        if self._in_log:
            return  # Scrapy says how it ended, with all stats
        for text in format_summary(self._summary(reason), self._screen.width):
            self._screen.print_line(text)
        logging.root.removeHandler(self._handler)

    def _summary(self, reason: str) -> CrawlSummary:
        worker = worker_of(self._crawler)
        done = count_outcomes(self._crawler.stats.get_stats())
        return CrawlSummary(
            self._config.spec.name,
            reason,
            time.monotonic() - self._started,
            tally=done,
            now=worker.clock.now(),
            counts=worker.counts,
            left_out=worker.left_out,
            outlook=worker.outlook,
            examples=worker.examples,
            locations=self._places(),
            commands=self._commands(done),
            freshness=worker.freshness,
            age_s=worker.age_s,
            articles_of_day=worker.articles_of_day,
            delays=worker.delays,
            slow_sites=worker.slow_sites,
            source_kinds=worker.source_kinds,
            notices=worker.changed_rules,
            time_use=scheduler_of(self._crawler).time_use,
        )

    def _places(self) -> dict[str, str]:
        settings = self._crawler.settings
        config = self._config
        own = (
            f"our own Postgres in {config.crawl_dir / 'pg'} (scrapy db "
            f"url{option_words(config, settings)})"
        )
        if config.database_url:
            places = {"Database": worker_of(self._crawler).database.location}
        else:
            places = {"Database": own}
        if config.warc is not None:
            places["Archive"] = str(config.warc_dir)
        log_file = settings.get("LOG_FILE")
        if log_file:
            places["Log"] = str(log_file)
        return places | {"Folder": str(config.crawl_dir)}

    def _commands(self, done: Tally) -> dict[str, str]:
        config = self._config
        scrapy = scrapy_program()
        options = option_words(config, self._crawler.settings)
        crawl = f" --crawl {shlex.quote(config.spec.name)}{options}"
        example = next((url for url in self._seeds() if len(url) < 80), "URL")
        again = repeated_command(self._crawler.settings)
        commands = {}
        if done.articles.found:
            export = f"{scrapy} export --what articles -o articles.jsonl{crawl}"
            commands["articles in a file"] = export
        commands |= {
            "what is known of each crawl": f"{scrapy} status{options}",
            "the same for each host": f"{scrapy} status --hosts{options}",
            "why a page is where it is": f"{scrapy} explain {shlex.quote(example)}{crawl}",
            "what comes next, and when": f"{scrapy} plan -n 20{crawl}",
        }
        if done.changed:
            export = f"{scrapy} export --what changes{crawl}"
            commands["how pages have changed"] = export
        if done.silent_sources or done.disagreeing_sources:
            commands["which sources miss pages"] = f"{scrapy} sources{crawl}"
        elif worker_of(self._crawler).source_kinds:
            commands["where new pages are found"] = f"{scrapy} sources{crawl}"
        if done.copies:
            commands["which pages are copies"] = f"{scrapy} duplicates{crawl}"
        return commands | {
            "was every rule kept": f"{scrapy} politeness audit{options}",
            "visit again what is due": again,
        }

    def _seeds(self) -> list[str]:
        return seeds_of(self._crawler.spider)


def pages_text(done: Tally, rate: float) -> str:
    pages = f"{format_count(done.pages_read, 'page')}, {rate:.1f}/s"
    text = f"{pages}: {done.new:,} new, {done.changed:,} changed, {done.unchanged:,} unchanged"
    articles = done.articles.new + done.articles.versions
    if articles:
        text += f", {format_count(articles, 'article')}"
        if done.useful_share is not None:
            text += f" ({done.useful_share:.0%} useful)"
    if done.copies:
        text += f", {format_count(sum(done.copies.values()), 'copy', 'copies')}"
    return text


def others_text(done: Tally) -> str:
    parts = [
        (done.moved, "moved"),
        (done.gone, "gone"),
        (done.forbidden, "forbidden"),
        (done.failed, "failed"),
    ]
    text = ", ".join(f"{number:,} {name}" for number, name in parts if number) or "none"
    return text + _in_brackets(done.reasons.get("failed", {}))


def hosts_text(at: HostSnapshot) -> str:
    resting = sum(at.resting.values())
    text = f"{at.known:,} in hand: {at.busy:,} asked now, {resting:,} resting"
    return text + _in_brackets(at.resting)


def _in_brackets(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons; empty if there is none."""
    common = Counter(reasons).most_common(3)
    if not common:
        return ""
    return f" ({', '.join(f'{reason} {number:,}' for reason, number in common)})"


def status_line(
    done: Tally, at: HostSnapshot, rate: float, elapsed_s: float, stopping: bool
) -> str:
    """The state of the crawl in one line."""
    text = f"{format_elapsed(elapsed_s)}  {pages_text(done, rate)}"
    if done.urls_ended > done.pages_read:
        text += f"; {others_text(done)}"
    text += f"; {format_count(at.held, 'URL')} of {format_count(at.known, 'host')} in hand"
    if stopping:
        text += "; stopping"
    elif at.wait_reason:
        text += f"; {at.wait_reason}"
    return text


def panel_lines(
    title: str,
    done: Tally,
    at: HostSnapshot,
    rate: float,
    elapsed_s: float,
    stopping: bool,
    width: int,
) -> list[str]:
    """The state of the crawl in a few lines; the first is the title."""
    held = format_count(at.held, "URL")
    found = format_count(done.found, "URL")
    rows = {
        "pages": pages_text(done, rate),
        "others": others_text(done),
        "queue": f"{held} in hand, {found} found in this run",
        "hosts": hosts_text(at),
        "copies": fresh_text(done, at),
        "now": _now_text(at, stopping),
    }
    return [
        f"{title}  {format_elapsed(elapsed_s)}",
        *(f"  {name:<7} {shorten_line(text, width - 10)}" for name, text in rows.items() if text),
    ]


def fresh_text(done: Tally, at: HostSnapshot) -> str:
    """How fresh the copies are, how many revisits were worth it, and the articles of a day; empty:
    nobody knows yet.
    """
    parts = []
    if at.freshness is not None and at.age_s is not None:
        fresh = f"{format_share(at.freshness)} up to date"
        parts.append(f"{fresh} by estimate, mean age {format_duration(at.age_s)}")
    if done.revisits:
        text = f"{done.unchanged:,} of {format_count(done.revisits, 'revisit')} wasted"
        if done.change_ratio is not None:
            text += f", change ratio {format_share(done.change_ratio)}"
        parts.append(text)
    if at.articles_of_day:
        parts.append(f"{format_count(at.articles_of_day, 'article')} in 24 h")
    return "; ".join(parts)


def _now_text(at: HostSnapshot, stopping: bool) -> str:
    if stopping:
        return "stopping: what is under way gets a few seconds (Ctrl-C again: at once)"
    if at.wait_reason:
        return at.wait_reason
    if at.busy:
        return "fetching"
    return "between two requests"


class TerminalLog(logging.Handler):
    """Prints warnings and errors as short lines, those of one kind a few times only."""

    def __init__(self, screen: Screen | LogLines | ReportPipe) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._seen: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        kind = (record.name, str(record.msg))
        if self._seen[kind] >= ALIKE or len(self._seen) >= MAX_KINDS:
            return
        self._seen[kind] += 1
        first_line = record.getMessage().strip().partition(os.linesep)[0]
        text = f"{datetime.now():%H:%M:%S} {record.levelname.lower()}: {first_line}"
        text = shorten_line(text, 200)
        if self._seen[kind] == ALIKE:
            text += " (more of these are in the log only)"
        self._screen.print_line(text)
