"""`scrapy status`: what each crawl knows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import Any

from crawlproj.archive.open_file import plain_name
from crawlproj.archive.open_file import sizes_by_prefix as archive_sizes
from crawlproj.cli.command import FINE, ProjectCommand, add_json, print_json, print_lines
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_share,
    format_table,
    format_time,
    format_when,
)
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.reports.facts import status_facts
from crawlproj.reports.history import crawl_history
from crawlproj.reports.host_figures import DEFAULT_ORDER, ORDERS, host_figures

COLUMNS = (
    "known",
    "new",
    "waiting",
    "retry",
    "moved",
    "gone",
    "retired",
    "forbidden",
    "ignored",
    "dead",
)
DONE_HEAD = ["from", "fetched", "failed", "new", "changed", "unchanged", "copies", "articles"]
DONE_HEAD += ["versions", "bytes"]
GOOD_HEAD = ["from", "useful", "half within", "95 % within", "fresh", "age", "change ratio"]
GOOD_HEAD += ["wasted"]
SHOWN_HOSTS = 50


class Command(ProjectCommand):
    def syntax(self) -> str:
        return "[--hosts [--sort NAME] [--limit N]] [--history] [--json]"

    def short_desc(self) -> str:
        return "What each crawl knows: its URLs by state, and what is due"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--hosts", action="store_true", help="the same figures of each host")
        parser.add_argument(
            "--sort",
            metavar="NAME",
            help=f"order of the hosts (default: {DEFAULT_ORDER}): {', '.join(ORDERS)}",
        )
        parser.add_argument(
            "--limit",
            metavar="N",
            help=f"how many hosts of each crawl are shown (default: {SHOWN_HOSTS})",
        )
        parser.add_argument(
            "--history", action="store_true", help="what each crawl did, by minute, hour or day"
        )
        add_json(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        order, limit = _read_host_options(opts)
        try:
            with open_for_reading(config) as database:
                now: datetime = database.fetch_value("now")
                crawls = status_facts(database, now)
                sizes = archive_sizes(config.warc_dir)
                for name, crawl in crawls.items():
                    crawl["warc_bytes"] = sizes[plain_name(name)]
                    if opts.history:
                        crawl["history"] = crawl_history(database, name, now)
                    if opts.hosts:
                        crawl["by_host"] = host_figures(
                            database, config, name, now, order=order, limit=limit
                        )
        except NoCrawlYet as no_crawl:
            if opts.json:
                print_json({"crawls": {}})
            else:
                print_lines(str(no_crawl))
            return FINE
        if opts.json:
            print_json({"crawls": crawls})
        else:
            print_lines(as_text(crawls, now))
            if opts.history:
                for name, crawl in crawls.items():
                    print_lines(history_as_text(name, crawl["history"], now))
            if opts.hosts:
                for name, crawl in crawls.items():
                    print_lines(hosts_as_text(name, crawl, order, now))
        return FINE


def _read_host_options(opts: argparse.Namespace) -> tuple[str, int]:
    """The order of the hosts, and how many are shown."""
    if not opts.hosts and (opts.sort or opts.limit):
        raise ConfigError("--sort and --limit go with --hosts")
    order = (opts.sort or DEFAULT_ORDER).replace("-", "_")
    if order not in ORDERS:
        raise ConfigError(f"--sort {opts.sort}: one of {', '.join(ORDERS)}")
    limit = opts.limit or str(SHOWN_HOSTS)
    if not limit.isdecimal() or not 0 < int(limit) < 2**31:
        raise ConfigError(f"--limit {limit}: a whole number from 1 on")
    return order, int(limit)


def as_text(crawls: dict[str, dict[str, Any]], now: datetime) -> list[str]:
    """A table of URLs by state, and some lines per crawl."""
    if not crawls:
        return ["Nothing was crawled yet: scrapy crawl site -a seeds=URL, or scrapy demo"]
    rows = [
        [name, *(f"{crawl['urls'][column]:,}" for column in COLUMNS)]
        for name, crawl in crawls.items()
    ]
    lines = [*format_table(["crawl", *COLUMNS], rows), ""]
    for name, crawl in crawls.items():
        first, *others = describe_crawl(crawl, now)
        lines += [f"{name}: {first}", *(f"  {line}" for line in others)]
    return lines


def describe_crawl(crawl: dict[str, Any], now: datetime) -> list[str]:
    """What is known of a crawl, a line for each matter: `N pages read in N versions, N copies of
    other pages`, articles, freshness, sources, `N URLs due now, ...`, `N hosts, ...`.
    """
    pages = (
        f"{format_count(crawl['urls']['documents'], 'page')} read in "
        f"{format_count(crawl['versions'], 'version')}"
    )
    copies = sum(crawl["duplicates"].values())
    if copies:
        pages += f", {format_count(copies, 'copy', 'copies')} of other pages"
    due = "nothing due now"
    if crawl["due_now"]:
        due = f"{format_count(crawl['due_now'], 'URL')} due now"
    if crawl["next_due"]:
        due += f", the next at {format_when(crawl['next_due'], now)}"
    hosts = format_count(crawl["hosts"], "host")
    if crawl["leased_servers"]:
        hosts += f", {format_count(crawl['leased_servers'], 'server')} in use by a running crawl"
    if crawl["warc_bytes"]:
        hosts += f"; archive of {format_bytes(crawl['warc_bytes'])}"
    lines = [
        pages,
        *_article_lines(crawl),
        *_freshness_lines(crawl),
        *_source_lines(crawl),
        due,
        hosts,
    ]
    return [f"{line};" for line in lines[:-1]] + [f"{lines[-1]}."]


def _article_lines(crawl: dict[str, Any]) -> list[str]:
    """How many articles there are, and how soon they were fetched."""
    lines = []
    waiting = f"{crawl['articles_waiting']:,} still to be taken from their pages"
    if crawl["articles"]:
        text = f"{format_count(crawl['articles'], 'article')}"
        text += f" ({crawl['articles_per_day']:,} of them in the last 24 hours"
        if crawl["useful_share"] is not None:
            text += f", {crawl['useful_share']:.0%} of fetches useful"
        text += ")"
        if crawl["articles_waiting"]:
            text += f", {waiting}"
        lines.append(text)
    elif crawl["articles_waiting"]:
        lines.append(f"articles: {waiting}")
    if crawl["delay_p50_s"] is not None:
        text = "half of a week's new articles were fetched within "
        text += f"{format_duration(crawl['delay_p50_s'])} of publication"
        lines.append(f"{text}, 95 % within {format_duration(crawl['delay_p95_s'])}")
    return lines


def _freshness_lines(crawl: dict[str, Any]) -> list[str]:
    """How fresh the copies are, and what came of the revisits of a day."""
    lines = []
    if crawl["freshness"] is not None:
        text = f"{format_share(crawl['freshness'])} of the copies are up to date by estimate"
        if crawl["age_s"] is not None:
            text += f", their mean age is {format_duration(crawl['age_s'])}"
        lines.append(text)
    if crawl["revisits"]:
        text = f"{format_count(crawl['revisits'], 'revisit')} in the last 24 hours, "
        text += f"{crawl['wasted']:,} wasted ({format_share(crawl['wasted_share'])})"
        if crawl["change_ratio"] is not None:
            text += f", change ratio {format_share(crawl['change_ratio'])}"
        lines.append(text)
    return lines


def _source_lines(crawl: dict[str, Any]) -> list[str]:
    """Which sources may miss something; nothing if none does."""
    silent = crawl["silent_sources"]
    lacking = crawl["disagreeing_sources"]
    if not silent and not lacking:
        return []
    parts = []
    if silent:
        parts.append(f"{silent:,} of {format_count(crawl['sources'], 'source')} silent")
    if lacking:
        words = "source lists" if lacking == 1 else "sources list"
        parts.append(f"{lacking:,} {words} nothing of what others of the site bring")
    missed = format_count(crawl["missed_links"], "link")
    return [f"{', '.join(parts)}: about {missed} missed (scrapy sources)"]


def history_as_text(name: str, history: dict[str, Any], now: datetime) -> list[str]:
    """Two tables with a row for each minute, hour or day, the newest first: what was done, and how
    good it was.
    """
    if not history["rows"]:
        return ["", f"{name}: nothing was fetched since its history is kept"]
    done = []
    good = []
    for row in history["rows"]:
        at = format_time(row["at"], now)
        numbers = [row["fetches"], row["failed"], row["new"], row["changed"], row["unchanged"]]
        numbers += [row["copies"], row["articles"], row["article_versions"]]
        done.append([at, *(f"{number:,}" for number in numbers), format_bytes(row["bytes"])])
        useful = "-"
        if row["fetches"] and row["useful"]:
            useful = f"{min(1.0, row['useful'] / row['fetches']):.0%}"
        good.append(
            [
                at,
                useful,
                *(
                    _or_dash(row[delay], format_duration)
                    for delay in ("delay_p50_s", "delay_p95_s")
                ),
                _or_dash(row["freshness"], format_share),
                _or_dash(row["age_s"], format_duration),
                _or_dash(row["change_ratio"], format_share),
                _wasted_cell(row),
            ]
        )
    return [
        "",
        f"{name} by {history['unit']}:",
        *format_table(DONE_HEAD, done),
        "",
        f"{name} by {history['unit']}, how good it was:",
        *format_table(GOOD_HEAD, good),
    ]


def _wasted_cell(row: dict[str, Any]) -> str:
    if not row["revisits"]:
        return "-"
    return f"{row['wasted']:,} ({format_share(row['wasted_share'])})"


def _or_dash(value: float | None, as_text: Callable[[float], str]) -> str:
    return "-" if value is None else as_text(value)


def hosts_as_text(name: str, crawl: dict[str, Any], order: str, now: datetime) -> list[str]:
    """A table of hosts; states in which no URL of them is have no column."""
    by_host = crawl["by_host"]
    states = [
        state
        for state in (*COLUMNS, "fetched")
        if state == "known" or any(figures["urls"][state] for figures in by_host.values())
    ]
    head = ["host", *states, "due now", "next due", "may be asked", "delay"]
    head += ["pages", "bytes", "response", "failures"]
    rows = [_host_cells(host, figures, states, now) for host, figures in by_host.items()]
    shown = f"{len(by_host):,} of {format_count(crawl['hosts'], 'host')}"
    if len(by_host) == crawl["hosts"]:
        shown = format_count(crawl["hosts"], "host")
    return ["", f"{name}: {shown} by {order}", *format_table(head, rows)]


def _host_cells(host: str, figures: dict[str, Any], states: list[str], now: datetime) -> list[str]:
    next_due = "-"
    if figures["next_due"]:
        next_due = format_time(figures["next_due"], now)
    allowed = "now"
    if figures["next_allowed"] and figures["next_allowed"] > now:
        allowed = f"{format_time(figures['next_allowed'], now)} ({figures['reason']})"
    response = "-"
    if figures["response_ms"] is not None:
        response = f"{figures['response_ms']:,.0f} ms"
    return [
        host,
        *(f"{figures['urls'][state]:,}" for state in states),
        f"{figures['due_now']:,}",
        next_due,
        allowed,
        format_duration(figures["delay_s"]),
        f"{figures['pages']:,}",
        format_bytes(figures["bytes"]),
        response,
        f"{figures['failures']:,}",
    ]
