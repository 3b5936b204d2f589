"""The audit finds requests that broke the rules of politeness in the logs of all workers.

It does not ask what the crawler believes: every rule is derived anew from two lines, what one
request and its response demand, and when the next one started. The rules are those that the worker
of the earlier line said it keeps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crawlproj.http.status import RETRYABLE
from crawlproj.politeness.log_reader import AuditedLogs, LogLine, is_server

TOLERANCE_S = 0.005
"""How far the clocks of two workers may differ, and how early a timer may be."""
STALE_S = 1.0
"""robots.txt may grow too old between the moment a URL is chosen and the moment it is requested."""
OWN_FAULT = ("decompression", "shutdown")
"""Reasons for a missing response that say nothing about the server."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    `second` came `by_s` seconds too early after `first`, or should not have come at all (`by_s` 0).
    """

    rule: str
    who: str
    by_s: float
    first: LogLine | None
    second: LogLine
    says: str


def find_violations(logs: AuditedLogs, tolerance_s: float = TOLERANCE_S) -> list[Violation]:
    """Every violation, in the order of time."""
    lines = sorted(logs.lines, key=lambda line: (line.start, line.epoch, line.end))
    sent = [line for line in lines if line.sent]
    crawl_delays = _CrawlDelays(sent)
    found: list[Violation] = []
    for name, requests in _grouped(sent, lambda line: line.host):
        found += _one_at_a_time(name, requests, tolerance_s)
        found += _host_pauses(name, requests, crawl_delays, tolerance_s=tolerance_s)
    for name, requests in _grouped(sent, server_of):
        found += _server_delay(name, requests, tolerance_s)
        found += _hosts_in_flight(name, requests, tolerance_s)
        found += _general_pause(name, requests, tolerance_s)
    for name, requests in _grouped(sent, lambda line: str(line.server)):
        found += _lease(name, requests, tolerance_s)
    reads = [line.end for line in lines if line.robots and line.robots_unreachable is not None]
    for name, requests in _grouped(lines, lambda line: line.origin):
        found += _robots_first(
            name, requests, logs.complete_since, reads=reads, tolerance_s=tolerance_s
        )
        found += _refused(name, requests)
    for name, requests in _grouped(lines, lambda line: line.worker):
        found += _guarded(name, requests)
    return sorted(found, key=lambda violation: (violation.second.start, violation.rule))


def server_of(line: LogLine) -> str:
    """Whom the server's rules protect: the address, or the host if it is shared or not known."""
    if is_server(line.rules, line.ip):
        return line.ip
    return f"host {line.host}"


def _grouped(
    lines: Iterable[LogLine], key: Callable[[LogLine], str]
) -> Iterable[tuple[str, list[LogLine]]]:
    groups: defaultdict[str, list[LogLine]] = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return groups.items()


def _too_early(
    rule: str,
    who: str,
    first: LogLine,
    second: LogLine,
    allowed: float,
    tolerance_s: float,
    says: str,
) -> Iterator[Violation]:
    """The violation, if `second` started before `allowed`."""
    by_s = allowed - second.start
    if by_s > tolerance_s:
        yield Violation(rule, who, by_s, first=first, second=second, says=says)


def _one_at_a_time(
    name: str, requests: Sequence[LogLine], tolerance_s: float
) -> Iterator[Violation]:
    """A host is asked for one thing at a time."""
    last = requests[0]
    for line in requests[1:]:
        yield from _too_early(
            "one at a time",
            name,
            last,
            second=line,
            allowed=last.end,
            tolerance_s=tolerance_s,
            says="the one before had not ended",
        )
        last = max(last, line, key=lambda one: one.end)


class _CrawlDelays:
    """Crawl-delays by origin, from the lines that read robots.txt."""

    def __init__(self, requests: Iterable[LogLine]) -> None:
        self._robots_lines: defaultdict[str, list[LogLine]] = defaultdict(list)
        for line in requests:
            if line.robots and line.crawl_delay_s is not None:
                self._robots_lines[line.origin].append(line)

    def delay_after(self, line: LogLine) -> float:
        """The Crawl-delay that was known when `line` started, 0 if there was none.

        That of a robots.txt counts only from the next request on.
        """
        known = [
            read
            for read in self._robots_lines.get(line.origin, ())
            if read is not line and read.end <= line.start
        ]
        if not known:
            return 0.0
        return known[-1].crawl_delay_s or 0.0


def _host_pauses(
    name: str, requests: Sequence[LogLine], crawl_delays: _CrawlDelays, tolerance_s: float
) -> Iterator[Violation]:
    """A host rests after each request, as long as the strictest rule demands."""
    failures = 0
    for line, after in pairwise(requests):
        if has_failed(line):
            failures += 1
        else:
            failures = 0
        demands = _demands(line, failures, crawl_delays.delay_after(line))
        for rule, (allowed, says) in demands.items():
            yield from _too_early(
                rule, name, line, second=after, allowed=allowed, tolerance_s=tolerance_s, says=says
            )


def _demands(line: LogLine, failures: int, crawl_delay_s: float) -> dict[str, tuple[float, str]]:
    """Rule -> when the host may be asked again after `line`, and what the rule says."""
    rules = line.rules
    elapsed_s = line.end - line.start
    if line.took_s is not None:
        elapsed_s = min(elapsed_s, line.took_s)
    # The texts are printed by `scrapy politeness`.
    demands = {
        "host delay": (line.start + rules.delay_s, f"{rules.delay_s:g} s from start to start")
    }
    delay_s = max(rules.delay_s, min(max(line.delay_s, crawl_delay_s), rules.max_crawl_delay_s))
    if delay_s > rules.delay_s:
        demands["crawl-delay"] = (line.start + delay_s, f"{delay_s:g} s from start to start")
    if rules.slowdown:
        rest_s = min(rules.slowdown * elapsed_s, rules.max_delay_s)
        demands["slowdown"] = (
            line.end + rest_s,
            f"{rest_s:.3f} s after an answer that took {elapsed_s:.3f} s",
        )
    if failures:
        rest_s = min(max(delay_s, 1.0) * 2 ** min(failures, 20), rules.max_delay_s)
        demands["back-off"] = (
            line.end + rest_s,
            f"{rest_s:g} s after failure number {failures} in a row",
        )
    if line.status in RETRYABLE and line.retry_after_s is not None:
        rest_s = min(max(line.retry_after_s, 0.0), rules.max_retry_after_s)
        demands["retry-after"] = (line.end + rest_s, f"the answer asked for {rest_s:g} s")
    return demands


def has_failed(line: LogLine) -> bool:
    return line.status in RETRYABLE or (line.status == 0 and not line.reason.startswith(OWN_FAULT))


def _server_delay(
    name: str, requests: Sequence[LogLine], tolerance_s: float
) -> Iterator[Violation]:
    """The hosts of one server are asked one after the other, with a delay in between."""
    for line, after in pairwise(requests):
        delay_s = 0.0
        if is_server(line.rules, line.ip):
            delay_s = line.rules.server_delay_s
        yield from _too_early(
            "server delay",
            name,
            line,
            second=after,
            allowed=line.start + delay_s,
            tolerance_s=tolerance_s,
            says=f"{delay_s:g} s from start to start",
        )


def _hosts_in_flight(
    name: str, requests: Sequence[LogLine], tolerance_s: float
) -> Iterator[Violation]:
    """Only so many hosts of one server are asked at the same time."""
    in_flight: list[LogLine] = []
    for line in requests:
        in_flight = [
            other
            for other in in_flight
            if other.end > line.start + tolerance_s and other.host != line.host
        ]
        limit = int(line.rules.hosts_per_server)
        if limit and len(in_flight) >= limit:
            by_end = sorted(in_flight, key=lambda other: other.end)
            first = by_end[len(in_flight) - limit]
            says = f"{len(in_flight) + 1} hosts at a time, {limit} are allowed"
            yield Violation(
                "hosts per server",
                name,
                first.end - line.start,
                first=first,
                second=line,
                says=says,
            )
        in_flight.append(line)


def _general_pause(
    name: str, requests: Sequence[LogLine], tolerance_s: float
) -> Iterator[Violation]:
    """Between two general pauses only so many hosts of a server are asked, each only so often.

    After so many requests to a host the server rests. A rest that was as long without being
    demanded counts, if no request was under way.
    """
    asked: Counter[str] = Counter()
    resting: LogLine | None = None
    busy: LogLine | None = None
    for line in requests:
        rules = line.rules
        if resting is not None and line.start > resting.end:
            says = (
                f"{resting.rules.pause_s:g} s of rest after {resting.rules.pause_after:g} "
                f"requests to {resting.host}"
            )
            yield from _too_early(
                "general pause",
                name,
                resting,
                second=line,
                allowed=resting.end + resting.rules.pause_s,
                tolerance_s=tolerance_s,
                says=says,
            )
            asked.clear()
            resting = None
        elif busy is not None:
            pause_s = min(busy.rules.pause_s, rules.pause_s)
            if line.start - busy.end >= pause_s - tolerance_s:
                asked.clear()
        if not rules.pause_after or not rules.pause_s:
            asked.clear()
        else:
            asked[line.host] += 1
            yield from _round(name, line, asked, busy)
            if resting is None and asked[line.host] >= rules.pause_after:
                resting = line
        if busy is None or line.end > busy.end:
            busy = line


def _round(
    name: str, line: LogLine, asked: Counter[str], before: LogLine | None
) -> Iterator[Violation]:
    """The violations of a request that is one too many since the last general pause."""
    rules = line.rules
    says = ""
    if rules.hosts_per_server and asked[line.host] == 1 and len(asked) > rules.hosts_per_server:
        says = f"host {len(asked)} since the last pause, {rules.hosts_per_server:g} are allowed"
    elif asked[line.host] > rules.pause_after:
        says = f"request {asked[line.host]} since the last pause, {rules.pause_after:g} are allowed"
    if says:
        early_s = 0.0
        if before is not None:
            early_s = max(0.0, before.end + rules.pause_s - line.start)
        yield Violation("general pause", name, early_s, first=before, second=line, says=says)


def _lease(name: str, requests: Sequence[LogLine], tolerance_s: float) -> Iterator[Violation]:
    """A server is leased to one worker at a time, and the epochs of its leases only grow."""
    who = f"server {name}"
    last = requests[0]
    for line in requests[1:]:
        if line.worker != last.worker:
            yield from _too_early(
                "lease",
                who,
                last,
                second=line,
                allowed=last.end,
                tolerance_s=tolerance_s,
                says="another worker was still asking this server",
            )
            if line.epoch <= last.epoch and line.start - last.start > tolerance_s:
                says = f"epoch {line.epoch} after epoch {last.epoch} of another worker"
                yield Violation("lease", who, 0.0, first=last, second=line, says=says)
        if line.worker != last.worker or line.end >= last.end:
            last = line


def _was_read(line: LogLine, complete_since: float, reads: Sequence[float]) -> bool:
    """Whether the robots.txt that `line` went by was read where its origin has no line of it.

    That is: before the logs begin, or for another origin that shares the file.
    """
    at = line.robots_at
    if at is None or line.start - at > line.rules.robots_ttl_s + STALE_S:
        return False
    return at < complete_since or any(abs(at - read) < STALE_S for read in reads)


def _robots_first(
    name: str,
    lines: Sequence[LogLine],
    complete_since: float,
    reads: Sequence[float],
    tolerance_s: float,
) -> Iterator[Violation]:
    """No page is requested before robots.txt was read, when it is too old, or can't be reached.

    One that has moved to another host may have been read there (`reads`: when any was read).
    """
    read: LogLine | None = None
    for line in lines:
        if line.robots and line.robots_unreachable is not None:
            read = line
        if line.robots or not line.sent:
            continue
        if read is None or line.start - read.end > read.rules.robots_ttl_s + STALE_S:
            if not _was_read(line, complete_since, reads):
                says = "robots.txt was read too long ago"
                if read is None:
                    says = "robots.txt was not read before"
                yield Violation("robots.txt first", name, 0.0, first=read, second=line, says=says)
        elif read.robots_unreachable:
            yield Violation(
                "robots.txt first",
                name,
                0.0,
                first=read,
                second=line,
                says="robots.txt could not be reached: keep away",
            )
        else:
            yield from _too_early(
                "robots.txt first",
                name,
                read,
                second=line,
                allowed=read.end,
                tolerance_s=tolerance_s,
                says="robots.txt was still being read",
            )


def _refused(name: str, lines: Sequence[LogLine]) -> Iterator[Violation]:
    """What robots.txt forbids is not requested until robots.txt has been read again."""
    refused: dict[str, LogLine] = {}
    for line in lines:
        if line.robots:
            refused.clear()
        elif not line.sent and line.reason == "robots":
            refused[line.url] = line
        elif line.sent and line.url in refused:
            yield Violation(
                "nothing after a refusal",
                name,
                0.0,
                first=refused[line.url],
                second=line,
                says="robots.txt forbids it",
            )


def _guarded(name: str, lines: Sequence[LogLine]) -> Iterator[Violation]:
    """An address that the guard refused is never asked by the same worker."""
    refused: dict[str, LogLine] = {}
    for line in lines:
        if line.reason.startswith("guard") and line.ip:
            refused[line.ip] = line
        elif line.status and line.ip in refused:
            yield Violation(
                "nothing after a refusal",
                line.ip,
                0.0,
                first=refused[line.ip],
                second=line,
                says=f"the guard of {name} refused this address",
            )
