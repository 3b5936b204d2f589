"""Politeness judged from the server's own log: nothing of the crawler is used but the rules that it
was given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from crawlproj.demo.log import AccessRecord

SLACK_S = 0.015
"""The server sees a request a little later than it was sent, and ends an answer a little earlier
than it is read.
"""
FAILED = frozenset({0, 408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Law:
    """The settings of the crawl, and what each host's robots.txt asks for."""

    delay_s: float
    server_delay_s: float
    hosts_per_server: int
    pause_after: int
    pause_s: float
    slowdown: float
    max_delay_s: float
    crawl_delay_s: Mapping[str, float] = field(default_factory=dict)
    disallow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: bool = False
    """The addresses are those of a content delivery network: they are no servers."""


def violations(records: Iterable[AccessRecord], law: Law) -> list[str]:
    """Every rule that was broken, in words; empty: all were kept."""
    ordered = sorted(records, key=lambda record: record.started)
    hosts: dict[str, list[AccessRecord]] = defaultdict(list)
    servers: dict[str, list[AccessRecord]] = defaultdict(list)
    for record in ordered:
        hosts[record.host].append(record)
        servers[record.local].append(record)
    found = [text for host, seen in hosts.items() for text in _host(host, seen, law)]
    if not law.shared:
        found += [text for server, seen in servers.items() for text in _server(server, seen, law)]
    return found


def _host(host: str, seen: Sequence[AccessRecord], law: Law) -> Iterable[str]:
    delay = max(law.delay_s, law.crawl_delay_s.get(host.partition(":")[0], 0.0))
    if seen and not seen[0].path.startswith("/robots.txt"):
        yield f"{host}: {seen[0].path} was asked before robots.txt"
    forbidden = law.disallow.get(host.partition(":")[0], ())
    yield from (
        f"{host}: {record.path} was asked, robots.txt forbids it"
        for record in seen
        if record.path.startswith(forbidden)
    )
    failures = 0
    for before, after in pairwise(seen):
        failures = failures + 1 if before.status in FAILED else 0
        back_off = min(max(delay, 1.0) * 2**failures, law.max_delay_s)
        if failures and after.started - before.ended < back_off - SLACK_S:
            yield f"{host}: {after.path} {after.started - before.ended:.3f} s after failure {failures}, {back_off} s asked for"
        if after.started < before.ended - SLACK_S:
            yield f"{host}: {after.path} started before {before.path} had ended"
        if (gap := after.started - before.started) < delay - SLACK_S:
            yield f"{host}: {gap:.3f} s between {before.path} and {after.path}, {delay} s asked for"
        rest = min(law.slowdown * (before.ended - before.started), law.max_delay_s)
        if after.started - before.ended < rest - SLACK_S * (1 + law.slowdown):
            yield f"{host}: {after.path} {after.started - before.ended:.3f} s after a slow answer, {rest:.3f} s asked for"
        if before.retry_after_s and after.started - before.ended < before.retry_after_s - SLACK_S:
            yield f"{host}: {after.path} came before Retry-After of {before.retry_after_s} s was over"


def _server(server: str, seen: Sequence[AccessRecord], law: Law) -> Iterable[str]:
    for before, after in pairwise(seen):
        if (gap := after.started - before.started) < law.server_delay_s - SLACK_S:
            yield f"{server}: {gap:.3f} s between {before.host} and {after.host}, {law.server_delay_s} s asked for"
    for record in seen:
        together = {record.host} | {
            r.host for r in seen if r.started <= record.started < r.ended - SLACK_S
        }
        if len(together) > law.hosts_per_server:
            yield f"{server}: {len(together)} hosts at a time: {sorted(together)}"
    yield from _pauses(server, seen, law)


def _pauses(server: str, seen: Sequence[AccessRecord], law: Law) -> Iterable[str]:
    """Between two general pauses only so many hosts are asked, and each only so often. After that
    many requests to a host nothing starts on its server for a while. A rest for another reason
    counts as well, if nothing was under way.
    """
    if not law.pause_after or not law.pause_s:
        return
    asked: Counter[str] = Counter()
    last: AccessRecord | None = None
    busy_until = -inf
    for record in seen:
        rest = record.started - busy_until
        if last is not None and record.started > last.ended:
            rest = record.started - last.ended
            if rest < law.pause_s - SLACK_S:
                yield f"{server}: {record.host} was asked {law.pause_s - rest:.3f} s before the pause after {last.host} was over"
            asked.clear()
            last = None
        elif rest >= law.pause_s - SLACK_S:
            asked.clear()
        asked[record.host] += 1
        if asked[record.host] == 1 and len(asked) > law.hosts_per_server:
            yield f"{server}: {record.host} is host {len(asked)} between two pauses"
        if asked[record.host] > law.pause_after:
            yield f"{server}: {record.host} was asked {asked[record.host]} times between two pauses"
        if asked[record.host] >= law.pause_after and last is None:
            last = record
        busy_until = max(busy_until, record.ended)
