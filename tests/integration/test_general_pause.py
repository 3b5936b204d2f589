"""The general pause of a whole server, and the strictest rules of all workers: judged from the
server's side and from the logs.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec
from tests.support.crawling import Crawl, run_command, start_crawl
from tests.support.judge import Law, violations
from tests.support.webs import crawl_demo, demo_settings, in_state, roots, rows

LAW = Law(
    delay_s=0.02,
    server_delay_s=0,
    hosts_per_server=3,
    pause_after=8,
    pause_s=0.4,
    slowdown=0,
    max_delay_s=1,
)
RULES: dict[str, object] = {
    "POLITENESS_DELAY": LAW.delay_s,
    "POLITENESS_SERVER_DELAY": LAW.server_delay_s,
    "POLITENESS_HOSTS_PER_SERVER": LAW.hosts_per_server,
    "POLITENESS_PAUSE_AFTER": LAW.pause_after,
    "POLITENESS_PAUSE": LAW.pause_s,
    "POLITENESS_MAX_DELAY": LAW.max_delay_s,
}


def audit(folder: Path) -> str:
    logs = map(str, folder.glob("**/log/requests-*.jsonl"))
    return run_command(["politeness", "audit", *logs], folder).stdout


def test_a_server_with_many_hosts_rests_after_so_many_requests_and_so_many_hosts(
    database_url: str, tmp_path: Path
) -> None:
    """Also over a restart, with another crawl: the round goes on."""
    web = grid_profile(10, 1, HostSpec("", sections=("world",), articles=4, keep=5))
    with DemoServer(web, clock=FrozenClock(1_790_000_000.0)) as demo:
        first = crawl_demo(demo, database_url, tmp_path / "one", **RULES, FRONTIER_PAGES=12)
        second = crawl_demo(demo, database_url, tmp_path / "two", **RULES, CRAWL_NAME="two")
        records = sorted(demo.log.records(), key=lambda record: record.started)
        pages = set(demo.web.truth_at(demo.now(), seeds=roots(demo)).pages)
    assert (first.code, second.code) == (0, 0)
    assert in_state(rows(database_url, "two"), "waiting") == pages
    assert violations(records, LAW) == []
    assert "every rule was kept" in audit(tmp_path)
    for start in range(len(records)):
        rounds: Counter[str] = Counter()
        for before, record in zip(records[start:], records[start + 1 :], strict=False):
            rounds[before.host] += 1
            if record.started - before.ended >= LAW.pause_s - 0.015:
                break
        assert len(rounds) <= LAW.hosts_per_server
        assert rounds.total() <= LAW.hosts_per_server * LAW.pause_after


def test_workers_keep_the_strictest_rules_of_all_that_live(
    database_url: str, tmp_path: Path
) -> None:
    """One that comes says so and begins with them; one that runs learns of them."""
    strict = Law(
        delay_s=0.4,
        server_delay_s=0.1,
        hosts_per_server=1,
        pause_after=5,
        pause_s=0.6,
        slowdown=0,
        max_delay_s=1,
    )
    loose = {**RULES, "POLITENESS_DELAY": 0.05, "POLITENESS_PAUSE_AFTER": 0}
    web = grid_profile(2, 1, HostSpec("", articles=24, keep=30))
    with DemoServer(web, clock=FrozenClock(1_790_000_000.0)) as demo:

        def start(name: str, **more: object) -> Crawl:
            settings = demo_settings(demo, database_url, CRAWL_NAME=name, **more)
            args = ["site", "-a", "seeds=" + ",".join(roots(demo))]
            return start_crawl(args, {**settings, "FRONTIER_TENURE": "1s"}, tmp_path / name)

        def seen(number: int) -> None:
            until = time.monotonic() + 40
            while len(demo.log.records()) < number and time.monotonic() < until:
                time.sleep(0.05)
            assert len(demo.log.records()) >= number

        def told(name: str) -> None:
            """Wait until a worker has said that stricter rules than its own hold."""
            log = tmp_path / name / "log"
            until = time.monotonic() + 40
            while time.monotonic() < until:
                texts = [path.read_text() for path in log.glob("*") if path.is_file()]
                if any("stricter rules" in text for text in texts):
                    break
                time.sleep(0.05)

        with (
            start("early", **loose) as early,
            start(
                "strict",
                POLITENESS_DELAY=strict.delay_s,
                POLITENESS_SERVER_DELAY=strict.server_delay_s,
                POLITENESS_HOSTS_PER_SERVER=strict.hosts_per_server,
                POLITENESS_PAUSE_AFTER=strict.pause_after,
                POLITENESS_PAUSE=strict.pause_s,
                POLITENESS_MAX_DELAY=strict.max_delay_s,
                CRAWL_CONTINUOUS=True,
            ) as guardian,
        ):
            told("early")
            time.sleep(1.0)  # what was under way when it learned of them has ended
            before = len(demo.log.records())
            with start("late", **loose) as late:
                told("late")
                seen(before + 14)
                for crawl in (late, early, guardian):
                    crawl.stop()
                results = {"late": late.wait(), "early": early.wait(), "guardian": guardian.wait()}
        records = demo.log.records()[before:]
    hosts = {record.host for record in records}
    found = [text for text in violations(records, strict) if "before robots.txt" not in text]
    assert found == []
    assert len(hosts) > 0
    said = "POLITENESS_DELAY 0.4 (not 0.05), "
    for name in ("early", "late"):
        assert said in results[name].stdout
        assert "POLITENESS_PAUSE_AFTER 5 (not 0)" in results[name].stdout
    assert "stricter rules" not in results["guardian"].stdout
    assert "every rule was kept" in audit(tmp_path)
