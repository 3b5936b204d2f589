"""Each rule of politeness is broken once on purpose: the judge at the server's side and the auditor
must both say so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec, Profile
from tests.support.breakers import RULE
from tests.support.crawling import run_command, run_crawl
from tests.support.judge import Law, violations
from tests.support.webs import demo_settings, roots

pytestmark = pytest.mark.proof

LAW = Law(
    delay_s=0.2,
    server_delay_s=0.1,
    hosts_per_server=2,
    pause_after=6,
    pause_s=0.7,
    slowdown=2,
    max_delay_s=2,
    crawl_delay_s={"h6.demo.test": 0.4},
    disallow={"h4.demo.test": ("/world/",)},
)
NOTICED = {
    "host_delay": ("s asked for", "host delay"),
    "forgotten_answers": ("s asked for", "host delay"),
    "crawl_delay": ("0.4 s asked for", "crawl-delay"),
    "slowdown": ("after a slow answer", "slowdown"),
    "retry_after": ("before Retry-After", "retry-after"),
    "back_off": ("after failure", "back-off"),
    "server_delay": ("0.1 s asked for", "server delay"),
    "hosts_per_server": ("hosts at a time", "hosts per server"),
    "general_pause": ("before the pause", "general pause"),
    "hosts_between_pauses": ("is host 3 between two pauses", "host 3 since the last pause"),
    "robots_first": ("before robots.txt", "robots.txt first"),
    "robots_rules": ("forbids", ""),
}
"""Rule -> words of the judge, name in the audit. What a robots.txt says is not in the log, so the
auditor can't know it.
"""


def web() -> Profile:
    """Six hosts on two addresses: one asks for a pause, three are slow, one is busy now and then,
    one forbids a part.
    """
    plain = grid_profile(6, 2, HostSpec("", sections=("world",), articles=10, keep=12))
    odd = (
        {"latency_s": (0.3, 0.4)},
        {"busy_every": 4, "retry_after_s": 1},
        {"latency_s": (0.3, 0.4)},
        {"disallow": ("/world/",)},
        {"latency_s": (0.3, 0.4)},
        {"crawl_delay_s": 0.4},
    )
    hosts = tuple(
        dataclasses.replace(host, **more) for host, more in zip(plain.hosts, odd, strict=True)
    )
    return dataclasses.replace(plain, hosts=hosts)


def judged(database_url: str, folder: Path, **more: object) -> tuple[str, str]:
    """What both judges say about a crawl of that web."""
    with DemoServer(web(), clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as demo:
        settings = demo_settings(
            demo,
            database_url,
            POLITENESS_DELAY=LAW.delay_s,
            POLITENESS_SERVER_DELAY=LAW.server_delay_s,
            POLITENESS_HOSTS_PER_SERVER=LAW.hosts_per_server,
            POLITENESS_PAUSE_AFTER=LAW.pause_after,
            POLITENESS_PAUSE=LAW.pause_s,
            POLITENESS_SLOWDOWN=LAW.slowdown,
            POLITENESS_MAX_DELAY=LAW.max_delay_s,
            FRONTIER_PAGES=60,
            FRONTIER_RETRIES=1,
            CRAWL_PATIENCE=0,
            **more,
        )
        run_crawl(["site", "-a", "seeds=" + ",".join(roots(demo))], settings, folder, 200)
        seen = violations(demo.log.records(), LAW)
    audited = run_command(
        ["politeness", "audit", *map(str, folder.glob("log/requests-*.jsonl"))], folder
    )
    return "\n".join(seen), audited.stdout


def test_every_rule_can_be_broken() -> None:
    assert NOTICED.keys() == RULE.keys()


def test_both_judges_notice_each_broken_rule_and_blame_nobody_else(
    new_database: Callable[..., str], tmp_path: Path
) -> None:
    def judge(rule: str) -> tuple[str, str]:
        broken = (
            {"EXTENSIONS": {"tests.support.breakers.Breaker": 0}, "BROKEN": rule} if rule else {}
        )
        return judged(databases[rule], tmp_path / (rule or "kept"), **broken)

    rules = ["", *NOTICED]
    databases = {rule: new_database() for rule in rules}
    with ThreadPoolExecutor(4) as pool:
        verdicts = dict(zip(rules, pool.map(judge, rules), strict=True))
    seen, audited = verdicts.pop("")
    assert seen == ""
    assert "every rule was kept" in audited
    for rule, (words, name) in NOTICED.items():
        seen, audited = verdicts[rule]
        assert words in seen, f"{rule}: the judge saw only {seen!r}"
        assert name in audited, f"{rule}: the auditor saw only {audited!r}"
