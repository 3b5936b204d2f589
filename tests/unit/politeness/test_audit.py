"""The auditor: legal schedules give no violation, and each rule that is broken once by hand is
noticed and named.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.commands.politeness import as_text, as_values
from crawlproj.politeness.audit import Violation, find_violations
from crawlproj.politeness.log_reader import AuditedLogs
from crawlproj.scheduling.worker import worker_name

T0 = 1_790_000_000.0
RULES: dict[str, Any] = {
    "POLITENESS_DELAY": 2.0,
    "POLITENESS_SLOWDOWN": 5.0,
    "POLITENESS_MAX_DELAY": 60.0,
    "POLITENESS_SERVER_DELAY": 0.5,
    "POLITENESS_HOSTS_PER_SERVER": 2.0,
    "POLITENESS_PAUSE_AFTER": 500.0,
    "POLITENESS_PAUSE": 300.0,
    "ROBOTS_TTL": 86_400.0,
    "ROBOTS_MAX_CRAWL_DELAY": 300.0,
    "POLITENESS_SHARED_NETWORKS": ["198.51.100.0/24", "2001:db8::/32"],
}


def line(at: float, host: str = "a.test", took: float = 0.1, **more: Any) -> dict[str, Any]:
    """A request `at` seconds after the beginning."""
    fields = {
        "started": T0 + at,
        "ended": T0 + at + took,
        "worker": "w1",
        "crawl": "site",
        "url": f"http://{host}/p{at:g}",
        "host": host,
        "ip": "192.0.2.1",
        "server": 1,
        "epoch": 1,
        "status": 200,
        "reason": "",
        "bytes": 10,
        "ms": took * 1000,
        "kind": "page",
        "lane": "new",
        "delay_s": 2.0,
        "time": datetime.fromtimestamp(T0 + at, UTC).isoformat(),
        "robots_at": T0 - 50,
    } | more
    if fields["kind"] == "robots":
        fields = {"origin": f"http://{host}", "away": False, "crawl_delay_s": 0.0} | fields
    return fields


def refusal(at: float, reason: str, **more: Any) -> dict[str, Any]:
    return line(at, **{"status": 0, "reason": reason, "started": None, "ended": None, **more})


def header(rules: dict[str, Any] | None = None, worker: str = "w1", **more: Any) -> dict[str, Any]:
    return {
        "rules": RULES | (rules or {}),
        "worker": worker,
        "crawl": "site",
        "started": T0,
        "part": 0,
    } | more


def judge(
    lines: Sequence[dict[str, Any]], rules: dict[str, Any] | None = None, tolerance_s: float = 0.005
) -> list[Violation]:
    """The verdict on lines, each in the log of its worker."""
    evidence = AuditedLogs()
    workers = sorted({one["worker"] for one in lines})
    for worker in workers:
        own = [header(rules, worker), *(one for one in lines if one["worker"] == worker)]
        evidence.read_file(
            f"requests-{worker}.jsonl", [json.dumps(one).encode() + b"\n" for one in own]
        )
    assert evidence.unreadable == []
    return find_violations(evidence, tolerance_s)


def test_an_answer_without_times_was_asked_for_all_the_same() -> None:
    """So it is logged when parts that keep the rules are missing, or have failed."""
    untimed = {"started": None, "ended": None, "robots_at": None}
    found = judge([line(1, **untimed), line(1.5, **untimed)])
    assert {violation.rule for violation in found} == {"host delay", "robots.txt first"}
    assert judge([line(1, **untimed, reason="cached"), line(1.5, **untimed, reason="cached")]) == []


def test_a_status_that_a_middleware_failed_with_counts_as_it_came() -> None:
    failed = line(1, status=0, reason="error: KeyError: 1")
    assert [violation.rule for violation in judge([failed, line(3.2)])] == ["back-off"]
    assert judge([failed | {"answered": 200}, line(3.2)]) == []
    asked = failed | {"answered": 503, "retry_after_s": 60}
    assert "retry-after" in {violation.rule for violation in judge([asked, line(30)])}


# --- Legal schedules
# --------------------------------------------------------------------------------------------------
@dataclass
class Clock:
    """The rules of a host, as the tests understand them."""

    next: float = 0.0
    end: float = 0.0
    failures: int = 0
    crawl_delay_s: float = 0.0
    read: bool = False


@dataclass
class Round:
    """The hosts of a server that were asked since its last general pause."""

    busy: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    def count(self, name: str, start: float, rules: dict[str, Any], limit: int) -> float:
        """When the host may be asked, at `start` or after a pause."""
        is_over = max(self.asked.values(), default=0) >= rules["POLITENESS_PAUSE_AFTER"]
        if is_over or (name not in self.asked and len(self.asked) >= limit):
            start = max(start, self.busy + rules["POLITENESS_PAUSE"])
        if start - self.busy >= rules["POLITENESS_PAUSE"] - 1e-6:
            self.asked.clear()
        self.asked[name] += 1
        return start


@dataclass
class Schedule:
    """Makes one legal log after the other: each request starts as early as all rules allow, plus
    some idle time.
    """

    rules: dict[str, Any]
    draw: st.DrawFn
    lines: list[dict[str, Any]] = field(default_factory=list)

    def make(self, servers: int, hosts: int, requests: int) -> list[dict[str, Any]]:
        for server in range(servers):
            self.serve(server, [f"h{n}.s{server}.test" for n in range(hosts)], requests)
        return self.lines

    def serve(self, server: int, names: list[str], requests: int) -> None:
        shared = server == 2
        clocks: defaultdict[str, Clock] = defaultdict(Clock)
        worker = "w0"
        epoch = 1
        last = 0.0
        rounds: defaultdict[str, Round] = defaultdict(Round)
        flying = list[tuple[float, str]]()
        for _ in range(requests):
            name = self.draw(st.sampled_from(names))
            clock = clocks[name]
            start = max(clock.next, clock.end) if shared else max(clock.next, clock.end, last)
            if self.draw(st.integers(0, 9)) == 0:
                worker = self.draw(st.sampled_from(["w0", "w1", "w2"]))
                epoch = epoch + 1
                start = max([start, *(end for end, _ in flying)])
            limit = 99 if shared else int(self.rules["POLITENESS_HOSTS_PER_SERVER"])
            while len([end for end, host in flying if end > start and host != name]) >= limit:
                start = min(end for end, host in flying if end > start and host != name)
            start += self.draw(st.sampled_from([0.0, 0.0, 0.01, 3.0]))
            round_ = rounds[name if shared else ""]
            start = round_.count(name, start, self.rules, limit)
            made = self.ask(name, clock, start)
            made |= {
                "worker": worker,
                "epoch": epoch,
                "server": server * 100,
                "ip": f"192.0.2.{server}",
            }
            if shared:
                made |= {"ip": "198.51.100.7", "server": server * 100 + names.index(name)}
            last = start + self.rules["POLITENESS_SERVER_DELAY"]
            flying.append((clock.end, name))
            round_.busy = max(round_.busy, clock.end)
            self.lines.append(made)

    def ask(self, name: str, clock: Clock, start: float) -> dict[str, Any]:
        rules = self.rules
        took = self.draw(st.sampled_from([0.002, 0.05, 1.0, 30.0]))
        delay_s = max(
            rules["POLITENESS_DELAY"], min(clock.crawl_delay_s, rules["ROBOTS_MAX_CRAWL_DELAY"])
        )
        made = line(start, name, took, delay_s=delay_s)
        status, retry_after_s = self.draw(
            st.sampled_from(
                [(200, None), (304, None), (404, 9.0), (0, None), (503, None), (429, 40.0)]
            )
        )
        if not clock.read:
            asked = self.draw(st.sampled_from([0.0, 0.0, 5.0, 1e9]))
            made = line(start, name, took, delay_s=delay_s, kind="robots", crawl_delay_s=asked)
            clock.read = True
            clock.crawl_delay_s = asked
            status = 200
            retry_after_s = None
        clock.end = start + took
        failed = status in (0, 429, 503)
        clock.failures = clock.failures + 1 if failed else 0
        clock.next = max(
            start + delay_s,
            clock.end + min(rules["POLITENESS_SLOWDOWN"] * took, rules["POLITENESS_MAX_DELAY"]),
        )
        if failed:
            back_off_s = min(max(delay_s, 1.0) * 2**clock.failures, rules["POLITENESS_MAX_DELAY"])
            clock.next = max(clock.next, clock.end + max(back_off_s, retry_after_s or 0))
        return made | {
            "status": status,
            "retry_after_s": retry_after_s,
            "reason": "" if status else "timeout",
        }


@st.composite
def schedules(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    rules = RULES | {
        "POLITENESS_DELAY": draw(st.sampled_from([0.0, 0.5, 2.0])),
        "POLITENESS_SLOWDOWN": draw(st.sampled_from([0.0, 5.0])),
        "POLITENESS_SERVER_DELAY": draw(st.sampled_from([0.0, 0.5])),
        "POLITENESS_PAUSE_AFTER": draw(st.sampled_from([3.0, 500.0])),
        "POLITENESS_HOSTS_PER_SERVER": draw(st.sampled_from([1.0, 2.0, 4.0])),
    }
    return rules, Schedule(rules, draw).make(
        draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 25))
    )


@given(schedules())
def test_a_schedule_that_keeps_all_rules_has_no_violation(
    schedule: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    rules, lines = schedule
    assert judge(lines, rules, tolerance_s=1e-4) == []


# --- Each rule broken once
# ----------------------------------------------------------------------------------------------
BROKEN: dict[str, tuple[str, list[dict[str, Any]], float, dict[str, Any]]] = {
    "host delay": ("host delay", [line(10), line(11.9)], 0.1, {}),
    "crawl-delay as robots.txt asked": (
        "crawl-delay",
        [line(1, kind="robots", crawl_delay_s=10.0), line(3), line(12)],
        1.0,
        {},
    ),
    "crawl-delay as the crawler knew": ("crawl-delay", [line(1, delay_s=7.0), line(5)], 3.0, {}),
    "one at a time": (
        "one at a time",
        [line(1, took=9), line(7)],
        3.0,
        {"POLITENESS_SLOWDOWN": 0.0},
    ),
    "one at a time, a longer one before": (
        "one at a time",
        [line(1, took=20), line(4), line(7)],
        14.0,
        {"POLITENESS_SLOWDOWN": 0.0},
    ),
    "slowdown": ("slowdown", [line(1, took=3), line(10)], 9.0, {}),
    "slowdown, capped": ("slowdown", [line(1, took=100), line(150)], 11.0, {}),
    "retry-after": ("retry-after", [line(1, status=429, retry_after_s=100.0), line(90)], 11.1, {}),
    "back-off": ("back-off", [line(1, status=500), line(4)], 1.1, {}),
    "back-off of no answer": ("back-off", [line(1, status=0, reason="timeout"), line(4)], 1.1, {}),
    "back-off grows": ("back-off", [line(1, status=500), line(6, status=500), line(10)], 4.1, {}),
    "server delay": ("server delay", [line(1), line(1.3, "b.test")], 0.2, {}),
    "hosts per server": (
        "hosts per server",
        [line(1, took=9), line(2, "b.test", 5), line(3, "c.test")],
        4.0,
        {},
    ),
    "general pause": (
        "general pause",
        [line(1), line(10), line(20), line(30, "b.test")],
        290.1,
        {"POLITENESS_PAUSE_AFTER": 3.0},
    ),
    "general pause, too many hosts": (
        "general pause",
        [line(1), line(10, "b.test"), line(20, "c.test")],
        290.1,
        {"POLITENESS_PAUSE_AFTER": 3.0},
    ),
    "general pause, too many hosts while one is under way": (
        "general pause",
        [line(1, took=400), line(10, "b.test"), line(380, "c.test")],
        321.0,
        {"POLITENESS_PAUSE_AFTER": 3.0},
    ),
    "general pause, a host too often while another ends the round": (
        "general pause",
        [line(1, took=40), *(line(at, "b.test") for at in (5, 10, 15))],
        326.0,
        {"POLITENESS_PAUSE_AFTER": 1.0, "POLITENESS_SLOWDOWN": 0.0},
    ),
    "lease, two at a time": (
        "lease",
        [line(1, took=5), line(3, "b.test", worker="w2", epoch=2)],
        3.0,
        {},
    ),
    "lease, the same taking": ("lease", [line(1), line(5, worker="w2")], 0.0, {}),
    "lease, back to an old one": (
        "lease",
        [line(1), line(5, worker="w2", epoch=2), line(9, epoch=1)],
        0.0,
        {},
    ),
    "robots.txt never read": ("robots.txt first", [line(1, robots_at=None)], 0.0, {}),
    "robots.txt read, but not in the log": (
        "robots.txt first",
        [line(1, robots_at=T0 + 0.5)],
        0.0,
        {},
    ),
    "robots.txt too old": (
        "robots.txt first",
        [line(1, kind="robots"), line(90_000, robots_at=T0 + 1)],
        0.0,
        {},
    ),
    "robots.txt of an earlier run too old": (
        "robots.txt first",
        [line(1, robots_at=T0 - 90_000)],
        0.0,
        {},
    ),
    "robots.txt of another origin": (
        "robots.txt first",
        [line(1, kind="robots", origin="https://a.test"), line(5, robots_at=None)],
        0.0,
        {},
    ),
    "robots.txt only led elsewhere": (
        "robots.txt first",
        [line(1, kind="robots", status=301, away=None), line(5, robots_at=None)],
        0.0,
        {},
    ),
    "robots.txt out of reach": (
        "robots.txt first",
        [line(1, kind="robots", status=503, away=True), line(60)],
        0.0,
        {},
    ),
    "robots.txt still being read": (
        "robots.txt first",
        [line(1, kind="robots", took=9), line(4, "b.test", url="http://a.test/x")],
        6.0,
        {"POLITENESS_SLOWDOWN": 0.0},
    ),
    "forbidden by robots.txt": (
        "nothing after a refusal",
        [refusal(1, "robots", url="http://a.test/x"), line(5, url="http://a.test/x")],
        0.0,
        {},
    ),
    "refused by the guard": (
        "nothing after a refusal",
        [refusal(1, "guard: private address"), line(5, "b.test")],
        0.0,
        {},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named_with_both_lines_and_by_how_much(name: str) -> None:
    rule, lines, by_s, rules = BROKEN[name]
    verdict = judge(lines, rules)
    found = [violation for violation in verdict if violation.rule == rule][-1]
    own = [one for one in lines if one["worker"] == lines[-1]["worker"]]
    assert found.second.location == f"requests-{own[0]['worker']}.jsonl:{len(own) + 1}"
    assert found.by_s == pytest.approx(by_s, abs=1e-4)
    assert found.first is None or found.first.start <= found.second.start
    assert {violation.rule for violation in verdict} - {rule} <= ALSO.get(name, set())


ALSO = {
    "robots.txt still being read": {"one at a time"},
    "one at a time, a longer one before": {"host delay"},
    "hosts per server": {"general pause"},
}
"""What can't be broken alone."""


FINE: dict[str, list[dict[str, Any]]] = {
    "many hosts on an address that is shared": [
        line(1 + n / 100, f"h{n}.test", ip="198.51.100.1", server=n) for n in range(9)
    ],
    "shared, version 6": [
        line(1 + n / 100, f"h{n}.test", ip="2001:db8::1", server=n) for n in range(9)
    ],
    "two servers at once": [line(1), line(1, "b.test", ip="192.0.2.2", server=2)],
    "Retry-After of an answer that is fine": [line(1, status=200, retry_after_s=100.0), line(4)],
    "Retry-After beyond a day": [
        line(1, status=503, retry_after_s=1e9),
        line(86_405, kind="robots"),
    ],
    "Crawl-delay beyond its cap": [line(1, kind="robots", crawl_delay_s=1e9), line(4), line(305)],
    "forbidden, then robots.txt has changed": [
        refusal(1, "robots", url="http://a.test/x"),
        line(2, kind="robots"),
        line(5, url="http://a.test/x"),
    ],
    "cut off at the end, then another worker": [
        line(1, status=0, reason="shutdown"),
        line(4, worker="w2", epoch=2),
    ],
    "a rest that nobody asked for counts as pause": [line(1), line(10), line(400), line(410)],
    "the pause is kept": [line(1), line(10), line(20), line(321), line(330, "b.test")],
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_allowed_is_not_blamed(name: str) -> None:
    assert judge(FINE[name], {"POLITENESS_PAUSE_AFTER": 3.0}) == []


def test_the_tolerance_is_what_the_caller_says() -> None:
    lines = [line(1), line(2.99)]
    assert [v.rule for v in judge(lines, tolerance_s=0.005)] == ["host delay"]
    assert judge(lines, tolerance_s=0.02) == []


def test_rules_that_change_hold_for_requests_that_start_later() -> None:
    evidence = AuditedLogs()
    stricter = header() | {"rules": RULES | {"POLITENESS_SERVER_DELAY": 5.0}, "since": T0 + 3}
    lines = [
        header() | {"rules": RULES},
        line(2, "b.test"),
        stricter,
        line(1, took=4),  # in flight when they changed
        line(8, "b.test"),
        line(12, "a.test", delay_s=2.0),
    ]
    evidence.read_file("log", [json.dumps(one).encode() + b"\n" for one in lines])
    assert [(found.rule, found.second.location) for found in find_violations(evidence)] == [
        ("server delay", "log:6"),
        ("slowdown", "log:6"),
    ]


def test_a_rule_that_the_log_does_not_name_was_not_in_force() -> None:
    evidence = AuditedLogs()
    lines = [
        header() | {"rules": {"POLITENESS_DELAY": 1}},
        line(1, delay_s=1),
        line(2, took=3),
        line(5, delay_s=1),
    ]
    evidence.read_file("x", [json.dumps(one).encode() + b"\n" for one in lines])
    assert find_violations(evidence) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff\xfe\n", "can't decode"),
        (b"{\n", "Expecting"),
        (b"7\n", "not iterable"),
        (b"{}\n", "'url' is missing"),
        (json.dumps(line(1) | {"url": "mailto:x"}).encode() + b"\n", "not a web address"),
        (json.dumps(line(1) | {"ended": T0}).encode() + b"\n", "before it started"),
        (json.dumps(line(1) | {"started": "soon"}).encode() + b"\n", "not a time"),
        (json.dumps(line(1) | {"started": float("nan")}).encode() + b"\n", "not a time"),
        (json.dumps(header({"POLITENESS_DELAY": -1})).encode() + b"\n", "0 or more"),
        (json.dumps(header({"POLITENESS_SHARED_NETWORKS": ["home"]})).encode() + b"\n", "home"),
        (b"[" * 100_000 + b"\n", "recursion"),
    ],
)
def test_a_line_that_can_not_be_read_is_named_and_the_others_are_judged(
    text: bytes, says: str
) -> None:
    evidence = AuditedLogs()
    good = [json.dumps(one).encode() + b"\n" for one in (header(), line(1), line(2))]
    evidence.read_file("x", [good[0], good[1], text, good[2]])
    assert len(evidence.unreadable) == 1
    assert evidence.unreadable[0].startswith("x:3: ") and says in evidence.unreadable[0]
    assert [violation.rule for violation in find_violations(evidence)] == ["host delay"]


def test_a_log_must_begin_with_its_rules_and_may_end_in_the_middle_of_a_line() -> None:
    evidence = AuditedLogs()
    evidence.read_file("x", [json.dumps(line(1)).encode() + b"\n"])
    assert evidence.unreadable == ["x:1: no line with the rules comes before it"]
    evidence = AuditedLogs()
    evidence.read_file(
        "x",
        [
            json.dumps(header()).encode() + b"\n",
            json.dumps(line(1)).encode() + b"\n",
            b'{"time": "20',
        ],
    )
    assert (len(evidence.lines), evidence.unreadable) == (1, [])


def test_robots_txt_read_in_a_part_of_the_log_that_is_gone_is_believed() -> None:
    def verdict(part: int) -> list[str]:
        evidence = AuditedLogs()
        lines = [header(part=part, started=T0 + 100), line(200, robots_at=T0 + 50)]
        other = [header(worker="w2"), line(0, "b.test", worker="w2", server=2, ip="192.0.2.2")]
        for name, own in (("x", lines), ("y", other)):
            evidence.read_file(name, [json.dumps(one).encode() + b"\n" for one in own])
        return [violation.rule for violation in find_violations(evidence)]

    assert verdict(part=0) == ["robots.txt first"]
    assert verdict(part=3) == []


def test_lines_that_a_full_disk_swallowed_are_counted() -> None:
    evidence = AuditedLogs()
    evidence.read_file(
        "x", [json.dumps(header()).encode() + b"\n", b'{"lost": 12, "worker": "w1"}\n']
    )
    assert (evidence.lost_lines, find_violations(evidence)) == (12, [])


def read_lines(logs: AuditedLogs, name: str, *lines: dict[str, Any]) -> AuditedLogs:
    logs.read_file(name, [json.dumps(one).encode() + b"\n" for one in lines])
    return logs


def test_a_log_without_its_last_line_is_named_with_the_last_moment_it_tells_of() -> None:
    logs = read_lines(AuditedLogs(), "x", header(), line(1), {"end": T0 + 9, "worker": "w1"})
    assert (logs.without_end, logs.unreadable) == ([], [])
    read_lines(logs, "y", header(worker="w2"), line(3, worker="w2"), line(2, worker="w2"))
    read_lines(logs, "z", header(worker="w3", part=4), {"end": T0, "worker": "w3", "next_part": 5})
    cut, moved = logs.without_end
    assert (cut.file, cut.worker, cut.last_at) == ("y", "w2", logs.lines[1].end)
    assert (moved.file, moved.next_part) == ("z", 5)
    read_lines(logs, "z2", header(worker="w3", part=5), {"end": T0, "worker": "w3"})
    assert logs.without_end == [cut], "what goes on in a part that is here is whole"


@pytest.mark.parametrize(
    ("worker", "why", "says"),
    [
        (worker_name(), "running", "is still written"),
        (worker_name().replace(f":{os.getpid()}:", ":4194305:"), "killed", "ends without an end"),
        ("elsewhere:1:abcdef12-000000", "unknown", "killed or runs elsewhere"),
    ],
    ids=["running", "killed", "unknown"],
)
def test_nobody_is_told_that_all_was_kept_by_a_log_without_an_end(
    worker: str, why: str, says: str
) -> None:
    logs = read_lines(AuditedLogs(), "x", header(worker=worker), line(1, worker=worker))
    logs.lines.clear()
    values = as_values(logs, ())
    assert [part["why"] for part in values["without_end"]] == [why]
    first, last = as_text(logs, ())
    assert says in first
    assert "every rule was kept" not in last and "1 log ends too early" in last
