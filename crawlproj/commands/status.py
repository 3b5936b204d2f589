"""`scrapy status`: what each crawl knows."""

from __future__ import annotations

import argparse
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
    """A table of URLs by state, and a line per crawl."""
    if not crawls:
        return ["Nothing was crawled yet: scrapy crawl site -a seeds=URL, or scrapy demo"]
    rows = [
        [name, *(f"{crawl['urls'][column]:,}" for column in COLUMNS)]
        for name, crawl in crawls.items()
    ]
    lines = [*format_table(["crawl", *COLUMNS], rows), ""]
    for name, crawl in crawls.items():
        lines.append(f"{name}: {describe_crawl(crawl, now)}.")
    return lines


def describe_crawl(crawl: dict[str, Any], now: datetime) -> str:
    """`N pages read in N versions, N copies of other pages; N URLs due now, ...; N hosts, ...`."""
    text = (
        f"{format_count(crawl['urls']['documents'], 'page')} read in "
        f"{format_count(crawl['versions'], 'version')}"
    )
    copies = sum(crawl["duplicates"].values())
    if copies:
        text += f", {format_count(copies, 'copy', 'copies')} of other pages"
    if crawl["articles"]:
        text += f", {format_count(crawl['articles'], 'article')}"
        text += f" ({crawl['articles_per_day']:,} of them in the last 24 hours"
        if crawl["useful_share"] is not None:
            text += f", {crawl['useful_share']:.0%} of what was fetched then was useful"
        text += ")"
    if crawl["freshness"] is not None:
        text += f"; {format_share(crawl['freshness'])} of the copies are up to date by estimate"
    if crawl["revisits"]:
        text += f", {format_count(crawl['revisits'], 'revisit')} in the last 24 hours, "
        text += f"{format_share(crawl['change_ratio'])} of them found a change"
    if crawl["articles_waiting"]:
        text += f", {crawl['articles_waiting']:,} still to be taken from their pages"
    if crawl["delay_p50_s"] is not None:
        text += "; half of the new articles of a week were fetched within "
        text += f"{format_duration(crawl['delay_p50_s'])} of their publication"
        text += f", 95 % within {format_duration(crawl['delay_p95_s'])}"
    if crawl["silent_sources"]:
        text += f"; {crawl['silent_sources']:,} of {format_count(crawl['sources'], 'source')} "
        text += "silent (scrapy sources)"
    if crawl["due_now"]:
        text += f"; {format_count(crawl['due_now'], 'URL')} due now"
    else:
        text += "; nothing due now"
    if crawl["next_due"]:
        text += f", the next at {format_when(crawl['next_due'], now)}"
    text += f"; {format_count(crawl['hosts'], 'host')}"
    if crawl["leased_servers"]:
        text += f", {format_count(crawl['leased_servers'], 'server')} in use by a running crawl"
    if crawl["warc_bytes"]:
        text += f"; archive of {format_bytes(crawl['warc_bytes'])}"
    return text


def history_as_text(name: str, history: dict[str, Any], now: datetime) -> list[str]:
    """A table with a row for each minute, hour or day, the newest first."""
    if not history["rows"]:
        return ["", f"{name}: nothing was fetched since its history is kept"]
    head = ["from", "fetched", "failed", "new", "changed", "unchanged", "copies", "articles"]
    head += ["versions", "useful", "bytes", "fresh"]
    rows = []
    for row in history["rows"]:
        useful = "-"
        if row["fetches"] and row["useful"]:
            useful = f"{min(1.0, row['useful'] / row['fetches']):.0%}"
        numbers = [row["fetches"], row["failed"], row["new"], row["changed"], row["unchanged"]]
        numbers += [row["copies"], row["articles"], row["article_versions"]]
        rows.append(
            [
                format_time(row["at"], now),
                *(f"{number:,}" for number in numbers),
                useful,
                format_bytes(row["bytes"]),
                "-" if row["freshness"] is None else format_share(row["freshness"]),
            ]
        )
    return ["", f"{name} by {history['unit']}:", *format_table(head, rows)]


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
