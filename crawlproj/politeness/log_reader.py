"""Request logs as values that the audit can judge. Lines that can't be read are named."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from math import inf, isfinite
from sys import intern
from typing import Any

from crawlproj.politeness.clocks import HostRules
from crawlproj.urls.canonical import canonical_url, host_of, origin_of

Network = IPv4Network | IPv6Network

CACHED = "cached"
"""The reason in the line of an answer that a cache of the user's gave, and no server."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRules:
    """The rules that a worker said it keeps.

    A rule that its log does not name was not in force: 0, or endless.
    """

    delay_s: float = 0.0
    slowdown: float = 0.0
    max_delay_s: float = inf
    max_crawl_delay_s: float = inf
    server_delay_s: float = 0.0
    hosts_per_server: float = 0.0
    pause_after: float = 0.0
    pause_s: float = 0.0
    robots_ttl_s: float = inf
    max_retry_after_s: float = HostRules().max_retry_after_s
    shared: tuple[Network, ...] = ()


@lru_cache(maxsize=100_000)
def is_server(rules: LoggedRules, address: str) -> bool:
    """Whether an address is one server, not one of a network that many sites share."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return not any(ip in network for network in rules.shared)


RULE_SETTINGS = {
    "POLITENESS_DELAY": "delay_s",
    "POLITENESS_SLOWDOWN": "slowdown",
    "POLITENESS_MAX_DELAY": "max_delay_s",
    "ROBOTS_MAX_CRAWL_DELAY": "max_crawl_delay_s",
    "POLITENESS_SERVER_DELAY": "server_delay_s",
    "POLITENESS_HOSTS_PER_SERVER": "hosts_per_server",
    "POLITENESS_PAUSE_AFTER": "pause_after",
    "POLITENESS_PAUSE": "pause_s",
    "ROBOTS_TTL": "robots_ttl_s",
}


@dataclass(frozen=True, slots=True, eq=False)
class LogLine:
    """One request, or one URL that was not requested (`sent` False).

    `location` is file:number of the line. `host` is that of the URL, whoever's ticket it was;
    `server` and `epoch` are of the lease. For robots.txt, `origin` is the one it was read for, and
    `robots_unreachable` is None if the response was a redirect. `robots_at`: when the robots.txt in
    force had been read.
    """

    location: str
    rules: LoggedRules
    sent: bool
    start: float
    end: float
    worker: str
    url: str
    host: str
    origin: str
    ip: str
    server: int
    epoch: int
    status: int
    reason: str
    robots: bool
    delay_s: float = 0.0
    retry_after_s: float | None = None
    took_s: float | None = None
    crawl_delay_s: float | None = None
    robots_at: float | None = None
    robots_unreachable: bool | None = None


@dataclass(slots=True)
class LogPart:
    """One file, or that part of it which belongs to one worker, as far as it goes.

    `last_at` is the last moment of which it tells. `ended`: its last line says that it is the end;
    `next_part`: and that it goes on in this part.
    """

    file: str
    worker: str
    number: int
    last_at: float
    ended: bool = False
    next_part: int | None = None


@dataclass(slots=True)
class AuditedLogs:
    """The logs of all workers together.

    `unreadable`: lines that can't be read, and why; `lost_lines`: how many a full disk swallowed.
    """

    lines: list[LogLine] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    lost_lines: int = 0
    first_parts: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Worker -> number and time of the first part of its log that is here."""
    parts: list[LogPart] = field(default_factory=list)

    @property
    def without_end(self) -> list[LogPart]:
        """Parts that lack what was under way at their end: no line says that they end there, or
        the part in which they go on is not here.
        """
        here = {(part.worker, part.number) for part in self.parts}
        return [
            part
            for part in self.parts
            if not part.ended
            or (part.next_part is not None and (part.worker, part.next_part) not in here)
        ]

    @property
    def complete_since(self) -> float:
        """From when on every request is in these logs, unless it was lost.

        Before that not all workers had begun to write, or the first parts of their logs are gone.
        """
        begun = min((at for _, at in self.first_parts.values()), default=inf)
        later_parts = [at for part, at in self.first_parts.values() if part]
        return max([begun, *later_parts])

    def read_file(self, name: str, texts: Iterable[bytes]) -> None:
        """Read one file. A last line without an end is still being written and is left out."""
        changes: list[tuple[float, LoggedRules]] = []
        for number, text in enumerate(texts, 1):
            if not text.endswith(b"\n"):
                return
            try:
                fields = json.loads(text)
                if "rules" in fields:
                    change = self._read_header(fields, name)
                    if "since" not in fields:
                        changes.clear()
                    changes.append(change)
                elif "end" in fields and "url" not in fields:
                    self._read_end(fields)
                elif "lost" in fields:
                    self.lost_lines += int(fields["lost"])
                elif not changes:
                    raise ValueError("no line with the rules comes before it")
                else:
                    line = _parse_line(fields, f"{name}:{number}", changes)
                    self.lines.append(line)
                    self.parts[-1].last_at = max(self.parts[-1].last_at, line.end)
            except KeyError as error:
                self.unreadable.append(f"{name}:{number}: {error} is missing")
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                self.unreadable.append(f"{name}:{number}: {error}")

    def _read_header(self, fields: Mapping[str, Any], name: str) -> tuple[float, LoggedRules]:
        """The rules, and since when they are in force: always, unless the line says it."""
        number = int(fields.get("part", 0))
        began_at = _time(fields["started"])
        worker = str(fields["worker"])
        rules = parse_rules(fields["rules"])
        part = (number, began_at)
        self.first_parts[worker] = min(part, self.first_parts.get(worker, part))
        if "since" in fields:
            return _time(fields["since"]), rules
        self.parts.append(LogPart(name, worker, number, last_at=began_at))
        return -inf, rules

    def _read_end(self, fields: Mapping[str, Any]) -> None:
        if not self.parts:
            raise ValueError("no line with the rules comes before it")
        part = self.parts[-1]
        part.last_at = _time(fields["end"])
        if fields.get("next_part") is not None:
            part.next_part = int(fields["next_part"])
        part.ended = True


def parse_rules(settings: Mapping[str, Any]) -> LoggedRules:
    numbers: dict[str, Any] = {
        name: float(settings[setting])
        for setting, name in RULE_SETTINGS.items()
        if setting in settings
    }
    if not all(value >= 0 for value in numbers.values()):
        raise ValueError(f"rules that are not numbers, 0 or more: {numbers}")
    shared = settings.get("POLITENESS_SHARED_NETWORKS") or ()
    if isinstance(shared, str):
        shared = shared.replace(",", " ").split()
    networks = tuple(ip_network(str(network), strict=False) for network in shared)
    return LoggedRules(**numbers, shared=networks)


def _rules_at(start: float, changes: Sequence[tuple[float, LoggedRules]]) -> LoggedRules:
    """The rules that were in force when a request started, which may have ended later."""
    for since, rules in reversed(changes):
        if since <= start:
            return rules
    return changes[0][1]


def _parse_line(
    fields: Mapping[str, Any], location: str, changes: Sequence[tuple[float, LoggedRules]]
) -> LogLine:
    url = canonical_url(fields["url"])
    if url is None:
        raise ValueError(f"not a web address: {fields['url']!r}")
    timed = fields["started"] is not None
    # An answer without times did come from somewhere, unless it is said to be from a cache.
    sent = timed or (int(fields["status"]) != 0 and fields["reason"] != CACHED)
    robots = fields["kind"] == "robots"
    if timed:
        start = _time(fields["started"])
        end = _time(fields["ended"])
    else:
        start = datetime.fromisoformat(fields["time"]).timestamp()
        end = start
    if end < start:
        raise ValueError(f"it ended at {end} before it started at {start}")
    worker = str(fields["worker"])
    origin = str(fields["origin"]) if robots else origin_of(url)
    return LogLine(
        location,
        _rules_at(start, changes),
        sent,
        start=start,
        end=end,
        worker=intern(worker),
        url=url,
        host=intern(host_of(url)),
        origin=intern(origin),
        ip=intern(str(fields["ip"])),
        server=int(fields["server"]),
        epoch=int(fields["epoch"]),
        status=int(fields.get("answered", fields["status"])),
        reason=str(fields["reason"]),
        robots=robots,
        delay_s=float(fields["delay_s"]),
        retry_after_s=_optional_number(fields, "retry_after_s"),
        took_s=_optional_number(fields, "took_s"),
        crawl_delay_s=_optional_number(fields, "crawl_delay_s"),
        robots_at=_optional_number(fields, "robots_at"),
        robots_unreachable=fields.get("away"),
    )


def _optional_number(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    return float(value)


def _time(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"not a time: {value!r}")
    return float(value)
