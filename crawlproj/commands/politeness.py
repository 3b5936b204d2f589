"""`scrapy politeness audit`: were the rules kept, by the request logs of all workers together."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
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
from crawlproj.politeness.log_reader import AuditedLogs, LogLine, LogPart
from crawlproj.scheduling.worker import is_alive, is_dead

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
            "time. A folder means all requests-*.jsonl in it; without any, CRAWL_DIR/log is taken. "
            "A log that ends without its last line is named: what was under way then is not in it. "
            "Exits with 3 if a rule was broken, with 2 if a line can't be read."
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
        paths = [Path(word) for word in words[1:]]
        logs = read_logs(log_files(paths or [config.log_dir]))
        found = find_violations(logs, opts.tolerance)
        for text in logs.unreadable:
            print_error(f"can't be read: {text}")
        if opts.json:
            print_json(as_values(logs, found))
        else:
            print_lines(as_text(logs, found))
        if found:
            return RULES_BROKEN
        if logs.unreadable:
            return BAD_INPUT
        return FINE


def log_files(paths: Sequence[Path]) -> list[Path]:
    """These files, and the request logs in these folders; ConfigError if a folder has none."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        files = sorted(path.glob("requests-*.jsonl"))
        if not files:
            raise ConfigError(f"there is no requests-*.jsonl in {path}")
        found += files
    return list(dict.fromkeys(found))


def read_logs(files: Sequence[Path]) -> AuditedLogs:
    logs = AuditedLogs()
    for file in files:
        try:
            with file.open("rb") as lines:
                logs.read_file(str(file), lines)
        except OSError as error:
            raise ConfigError(f"can't read {file}: {error.strerror or error}") from None
    return logs


def as_values(logs: AuditedLogs, found: Sequence[Violation]) -> dict[str, Any]:
    sent = [line for line in logs.lines if line.sent]
    return {
        "requests": len(sent),
        "refusals": len(logs.lines) - len(sent),
        "hosts": len({line.host for line in sent}),
        "addresses": len({line.ip for line in sent}),
        "workers": len({line.worker for line in logs.lines}),
        "unreadable": logs.unreadable,
        "lost": logs.lost_lines,
        "without_end": [part_values(part) for part in logs.without_end],
        "violations": [violation_values(violation) for violation in found],
    }


def part_values(part: LogPart) -> dict[str, Any]:
    return {
        "log": part.file,
        "worker": part.worker,
        "at": part.last_at,
        "why": why_without_end(part),
    }


def why_without_end(part: LogPart) -> str:
    """`running`, `killed`, or, of a worker on another machine or in an earlier boot, `unknown`;
    `goes on`: its next part is not here.
    """
    if part.ended:
        return "goes on"
    if is_dead(part.worker):
        return "killed"
    if is_alive(part.worker):
        return "running"
    return "unknown"


def violation_values(violation: Violation) -> dict[str, Any]:
    first = None
    if violation.first is not None:
        first = line_values(violation.first)
    return {
        "rule": violation.rule,
        "who": violation.who,
        "by_s": round(violation.by_s, 6),
        "says": violation.says,
        "first": first,
        "second": line_values(violation.second),
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


def as_text(logs: AuditedLogs, found: Sequence[Violation]) -> list[str]:
    """A line per violation, up to `SHOWN`, and the totals."""
    facts = as_values(logs, ())
    lines = [describe_violation(violation) for violation in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"... and {len(found) - SHOWN:,} more (--json prints all)")
    if logs.lost_lines:
        lines.append(
            f"{format_count(logs.lost_lines, 'line')} could not be written when the disk was full: "
            "nothing is known of them"
        )
    lines += [describe_missing_end(part) for part in logs.without_end[:SHOWN]]
    seen = (
        f"{format_count(facts['requests'], 'request')} to {format_count(facts['hosts'], 'host')} "
        f"by {format_count(facts['workers'], 'worker')}, "
        f"{format_count(facts['refusals'], 'URL')} not asked"
    )
    if not found and logs.without_end:
        number = format_count(len(logs.without_end), "log ends", "logs end")
        return [*lines, f"{seen}: no rule was broken as far as they tell, but {number} too early"]
    if not found:
        return [*lines, f"{seen}: every rule was kept"]
    by_rule = Counter(violation.rule for violation in found)
    rules = ", ".join(f"{rule} {number:,}" for rule, number in by_rule.most_common())
    return [*lines, f"{seen}: {format_count(len(found), 'violation')} ({rules})"]


def describe_missing_end(part: LogPart) -> str:
    at = datetime.fromtimestamp(part.last_at, UTC).isoformat(sep=" ", timespec="seconds")
    at = at.replace("+00:00", " UTC")
    match why_without_end(part):
        case "goes on":
            return f"{part.file} goes on after {at} in part {part.next_part}, which is not here"
        case "running":
            return f"{part.file} is still written: it tells of what had ended by {at}"
        case "killed":
            return (
                f"{part.file} ends without an end at {at}: its worker was killed, and what was "
                "under way or not stored then is not in it"
            )
    return (
        f"{part.file} ends without an end at {at}: its worker was killed or runs elsewhere, and "
        "what was under way or not stored then is not in it"
    )


def describe_violation(found: Violation) -> str:
    """`crawl-delay, example.org: 0.300 s too early (10 s from start to start): LINE after LINE`."""
    what = found.says
    if found.by_s:
        what = f"{found.by_s:.3f} s too early ({found.says})"
    lines = f"{found.second.location} {found.second.url}"
    if found.first is not None:
        lines += f" after {found.first.location} {found.first.url}"
    return f"{found.rule}, {found.who}: {what}: {lines}"
