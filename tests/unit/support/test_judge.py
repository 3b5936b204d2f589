"""The judge notices every rule that is broken, and only then: else its silence would
prove nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawlproj.demo.log import AccessRecord
from tests.support.judge import Law, violations

LAW = Law(
    delay_s=1,
    server_delay_s=0.25,
    hosts_per_server=3,
    pause_after=4,
    pause_s=5,
    slowdown=2,
    max_delay_s=10,
    crawl_delay_s={"slow.test": 3},
)


def record(
    host: str, started: float, path: str = "/p", lasts: float = 0.01, **more: object
) -> AccessRecord:
    made = AccessRecord(
        started, started + lasts, 0, 0, 1, "127.0.0.1", "127.0.0.9", host, "GET", path, 200, 1
    )
    return replace(made, **more)  # type: ignore[arg-type]


def legal() -> list[AccessRecord]:
    return [
        record("a.test", 0.0, "/robots.txt"),
        record("b.test", 0.3, "/robots.txt"),
        record("slow.test", 0.6, "/robots.txt"),
        record("a.test", 1.1),
        record("b.test", 1.4),
        record("a.test", 2.2, lasts=0.9),
        record("b.test", 2.5),
        record("slow.test", 3.7),
        record("a.test", 5.0),
        record("b.test", 10.1),
    ]


def test_a_legal_log_is_legal() -> None:
    assert violations(legal(), LAW) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ([record("a.test", 1.9)], "asked for"),
        ([record("slow.test", 2.0)], "3 s asked for"),
        ([record("a.test", 2.5)], "before /p had ended"),
        ([record("a.test", 3.4)], "slow answer"),
        ([record("new.test", 7.0)], "before robots.txt"),
        ([record("c.test", 1.2, "/robots.txt")], "between"),
        (
            [record(f"{n}.test", 2.8 + n / 20, "/robots.txt", 2.0) for n in range(3)],
            "hosts at a time",
        ),
        ([record("a.test", 7.0)], "pause after"),
        ([record("b.test", 4.0, lasts=1.2), record("b.test", 5.005)], "b.test was asked 5 times"),
        ([record("new.test", 4.3, "/robots.txt")], "new.test is host 4 between two pauses"),
    ],
)
def test_each_rule_that_is_broken_is_noticed(change: list[AccessRecord], words: str) -> None:
    assert any(words in text for text in violations([*legal(), *change], LAW))


def test_any_rest_of_the_server_begins_a_round_unless_something_is_under_way() -> None:
    new = [record("new.test", 15.2, "/robots.txt"), record("c.test", 16.0, "/robots.txt")]
    three = [record("slow.test", 17.0), record("a.test", 18.0)]
    rested = violations([*legal(), *new, *three], LAW)
    assert rested == ["127.0.0.9: a.test is host 4 between two pauses"]
    under_way = [*legal()[:-1], record("b.test", 10.1, lasts=3.0), *new]
    assert violations(under_way, LAW) == []
    assert violations([*under_way, *three[:1]], LAW) == [
        "127.0.0.9: slow.test is host 4 between two pauses"
    ]


def test_retry_after_that_is_not_waited_for_is_noticed() -> None:
    log = [record("a.test", 0, "/robots.txt", status=503, retry_after_s=60.0), record("a.test", 30)]
    assert any("Retry-After" in text for text in violations(log, LAW))


def test_shared_addresses_are_no_servers() -> None:
    log = [
        record("a.test", 0, "/robots.txt"),
        record("b.test", 0.01, "/robots.txt"),
        record("c.test", 0.02, "/robots.txt"),
    ]
    assert violations(log, LAW) and violations(log, replace(LAW, shared=True)) == []
