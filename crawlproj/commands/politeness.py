"""scrapy politeness audit: were the rules kept? Asked of the request logs of all
workers together.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crawlproj.cli.command import (
    BAD_INPUT,
    FINE,
    RULES_BROKEN,
    ProjectCommand,
    add_json,
    print_error,
    print_json,
    print_lines,
)
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count
from crawlproj.politeness.audit import TOLERANCE_S, Violation, find_violations
from crawlproj.politeness.log_reader import AuditedLogs, LogLine

SHOWN = 100


class Command(ProjectCommand):
    words = (1, sys.maxsize)

    def syntax(self) -> str:
        return "audit [LOG|FOLDER...] [--json] [--tolerance SECONDS]"

    def short_desc(self) -> str:
        return "Check the logs of requests against every rule of politeness"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, for all workers together: give the logs of all that ran at the "
            "time. A folder means all"
            " requests-*.jsonl in it; without any, CRAWL_DIR/log is taken. Exits with 3 if a rule "
            "was broken, with 2 if a line"
            " can't be read."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        parser.add_argument(
            "--tolerance", type=float, default=TOLERANCE_S, metavar="SECONDS",
            help=f"what clocks may differ and timers may be early (default: {TOLERANCE_S:g})",
        )  # fmt: skip

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        if words[0] != "audit":
            raise ConfigError(
                f"there is no {words[0]!r} (usage: scrapy politeness {self.syntax()})"
            )
        if not 0 <= opts.tolerance <= 60:
            raise ConfigError("--tolerance must be a number of seconds from 0 to 60")
        evidence = read_logs(log_files([Path(word) for word in words[1:]] or [config.log_dir]))
        found = find_violations(evidence, opts.tolerance)
        for text in evidence.bad:
            print_error(f"can't be read: {text}")
        print_json(as_values(evidence, found)) if opts.json else print_lines(
            as_text(evidence, found)
        )
        return RULES_BROKEN if found else BAD_INPUT if evidence.bad else FINE


def log_files(places: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for place in places:
        files = sorted(place.glob("requests-*.jsonl")) if place.is_dir() else [place]
        if not files:
            raise ConfigError(f"there is no requests-*.jsonl in {place}")
        found += files
    return list(dict.fromkeys(found))


def read_logs(files: Sequence[Path]) -> AuditedLogs:
    evidence = AuditedLogs()
    for file in files:
        try:
            with file.open("rb") as lines:
                evidence.read_file(str(file), lines)
        except OSError as error:
            raise ConfigError(f"can't read {file}: {error.strerror or error}") from None
    return evidence


def as_values(evidence: AuditedLogs, found: Sequence[Violation]) -> dict[str, Any]:
    sent = [line for line in evidence.lines if line.sent]
    return {
        "requests": len(sent),
        "refusals": len(evidence.lines) - len(sent),
        "hosts": len({line.host for line in sent}),
        "addresses": len({line.ip for line in sent}),
        "workers": len({line.worker for line in evidence.lines}),
        "unreadable": evidence.bad,
        "lost": evidence.lost,
        "violations": [
            {
                "rule": v.rule,
                "who": v.who,
                "by_s": round(v.by_s, 6),
                "says": v.says,
                "first": v.first and line_values(v.first),
                "second": line_values(v.second),
            }
            for v in found
        ],
    }


def line_values(line: LogLine) -> dict[str, Any]:
    return {
        "place": line.location,
        "start": line.start,
        "end": line.end,
        "worker": line.worker,
        "url": line.url,
        "ip": line.ip,
        "status": line.status,
        "reason": line.reason,
    }


def as_text(evidence: AuditedLogs, found: Sequence[Violation]) -> list[str]:
    facts = as_values(evidence, ())
    lines = [describe_violation(violation) for violation in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"... and {len(found) - SHOWN:,} more (--json prints all)")
    seen = (
        f"{format_count(facts['requests'], 'request')} to {format_count(facts['hosts'], 'host')} by "
        f"{format_count(facts['workers'], 'worker')}"
    )
    seen += f", {format_count(facts['refusals'], 'URL')} not asked"
    if evidence.lost:
        lines.append(
            f"{format_count(evidence.lost, 'line')} could not be written when the disk was full: nothing "
            "is known of them"
        )
    rules = ", ".join(
        f"{rule} {number:,}" for rule, number in Counter(v.rule for v in found).most_common()
    )
    lines.append(
        f"{seen}: "
        + (f"{format_count(len(found), 'violation')} ({rules})" if found else "every rule was kept")
    )
    return lines


def describe_violation(found: Violation) -> str:
    """`crawl-delay, example.org: 0.300 s too early (10 s from start to start): LINE after LINE`."""
    how = f"{found.by_s:.3f} s too early ({found.says})" if found.by_s else found.says
    places = f"{found.second.location} {found.second.url}"
    if found.first is not None:
        places += f" after {found.first.location} {found.first.url}"
    return f"{found.rule}, {found.who}: {how}: {places}"
