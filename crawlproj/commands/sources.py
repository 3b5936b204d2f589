"""`scrapy sources`: where new pages are found, and what is wrong there."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from typing import Any

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    ProjectCommand,
    add_crawl,
    add_json,
    is_host,
    print_error,
    print_json,
    print_lines,
)
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import (
    format_count,
    format_duration,
    format_table,
    format_time,
    printable,
)
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_frontier
from crawlproj.reports.sources import site_figures, source_facts, sources_as_opml

DEFAULT_LIMIT = 50
HEAD = ["kind", "new links", "a day", "entries", "last new", "visited", "next visit", "every"]
SITE_HEAD = ["site", "articles", "a day", "half within", "95 % within"]


class Command(ProjectCommand):
    words = (0, 1)

    def syntax(self) -> str:
        return "[HOST] [--limit N] [--opml] [--json] [--crawl NAME]"

    def short_desc(self) -> str:
        return "Where new pages are found: feeds, sitemaps, front pages, hubs, and which are silent"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Those with a problem come first. With a host: the sources of "
            "that host or site; exits with 1 if it has none."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--limit", metavar="N", help=f"how many sources are shown (default: {DEFAULT_LIMIT})"
        )
        parser.add_argument("--opml", action="store_true", help="print the feeds as OPML")
        add_json(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        limit = _read_limit(opts)
        host = ""
        if words:
            host = words[0].strip().lower().rstrip(".")
            if not host or not is_host(host):
                raise ConfigError(f"{words[0]!r} is no host: give a name such as example.org")
        try:
            with open_for_reading(config) as database:
                name = self.crawl_name(database, opts)
                frontier = open_frontier(database, config, name)
                crawl = frontier.crawl_id
                now: datetime = database.fetch_value("now")
                sources = source_facts(database, crawl, config.source_silence, host)
                sites = {}
                if not opts.opml:
                    sites = site_figures(database, crawl, now)
                since = now - timedelta(days=1)
                useful = database.fetch_row("report_useful", crawl=crawl, since=since)
        except NoCrawlYet as no_crawl:
            print_error(str(no_crawl))
            return COULD_NOT_RUN
        if host and not sources:
            print_error(f"crawl {name} has no source on {host}")
            return COULD_NOT_RUN
        if opts.opml:
            text = sources_as_opml(f"Feeds of crawl {name}", sources)
            print_lines(text.splitlines())
            return FINE
        shown = sources[:limit]
        if host:
            own = {source["site"] for source in sources}
            sites = {site: figures for site, figures in sites.items() if site in own}
        if opts.json:
            print_json(
                {
                    "crawl": name,
                    "total": len(sources),
                    "silent": sum(source["silent_since"] is not None for source in sources),
                    "sources": shown,
                    "sites": dict(list(sites.items())[:limit]),
                    "useful_share": _useful_share(useful),
                }
            )
            return FINE
        print_lines(_as_text(name, sources, limit, now=now))
        if sites:
            print_lines(_sites_as_text(sites, limit))
        return FINE


def _read_limit(opts: argparse.Namespace) -> int:
    if opts.opml and (opts.json or opts.limit):
        raise ConfigError("--opml prints all feeds, as XML: not with --json or --limit")
    text = opts.limit or str(DEFAULT_LIMIT)
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise ConfigError(f"--limit {text}: a whole number from 1 on")
    return int(text)


def _useful_share(row: tuple[Any, ...] | None) -> float | None:
    """Of what was fetched in a day how much brought an article."""
    if row is None or not row[0]:
        return None
    fetches, useful = map(int, row)
    return round(min(1.0, useful / fetches), 4)


def _as_text(crawl: str, sources: list[dict[str, Any]], limit: int, now: datetime) -> list[str]:
    """A table with a row for each source, and below it what is wrong with it."""
    if not sources:
        return [f"Crawl {crawl} has no sources yet: its first visits make them known."]
    shown = sources[:limit]
    head, *rows = format_table([*HEAD, "source"], [_cells(source, now) for source in shown])
    lines = [head]
    for source, row in zip(shown, rows, strict=True):
        lines.append(row)
        if source["silent_since"] is not None:
            lines.append(f"    SILENT: {printable(source['problem'])}")
        elif source["problem"]:
            lines.append(f"    {printable(source['problem'])}")
    if len(sources) > limit:
        lines.append(f"and {len(sources) - limit:,} more (--limit N)")
    silent = sum(source["silent_since"] is not None for source in sources)
    odd = sum(bool(source["problem"]) for source in sources) - silent
    total = f"{format_count(len(sources), 'source')} of crawl {crawl}: {silent:,} silent, "
    total += f"{odd:,} with another problem"
    return [*lines, "", total]


def _cells(source: dict[str, Any], now: datetime) -> list[str]:
    per_day = "-"
    if source["links_per_day"] is not None:
        per_day = f"{source['links_per_day']:,.1f}"
    interval = "-"
    if source["interval_s"] is not None:
        interval = format_duration(source["interval_s"])
    times = [source[name] for name in ("last_new", "last_visit", "next_visit")]
    return [
        source["kind"],
        f"{source['new_links']:,}",
        per_day,
        f"{source['entries']:,}",
        *("-" if at is None else format_time(at, now) for at in times),
        interval,
        printable(source["url"]),
    ]


def _sites_as_text(sites: dict[str, dict[str, Any]], limit: int) -> list[str]:
    """How soon the articles of each site are fetched."""
    rows = []
    for site, figures in list(sites.items())[:limit]:
        delays = [figures["delay_p50_s"], figures["delay_p95_s"]]
        rows.append(
            [
                printable(site),
                f"{figures['articles']:,}",
                f"{figures['articles_per_day']:,.1f}",
                *("-" if delay is None else format_duration(delay) for delay in delays),
            ]
        )
    lines = ["", "Articles of the last 7 days, and how soon after publication they were fetched:"]
    lines += format_table(SITE_HEAD, rows)
    if len(sites) > limit:
        lines.append(f"and {len(sites) - limit:,} more (--limit N)")
    return lines
