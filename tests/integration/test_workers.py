"""Several workers on one crawl: nothing is fetched twice, nothing is lost when one is killed, and
the auditor is content.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile
from tests.support.crawling import Crawl, run_command
from tests.support.webs import asked, demo_settings, in_state, roots, rows

pytestmark = [pytest.mark.proof, pytest.mark.kills]

DELAY_S = 0.15
LEASE_S = 3.0


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer(
        grid_profile(12, addresses=6, like=HostSpec("", articles=12, latency_s=(0.0, 0.02))),
        clock=FrozenClock(),
    ) as server:
        yield server


def workers(
    demo: DemoServer, database_url: str, crawl_dir: Path, *words: str, **more: object
) -> Crawl:
    settings = demo_settings(
        demo,
        database_url,
        POLITENESS_DELAY=DELAY_S,
        POLITENESS_MAX_DELAY=60,
        FRONTIER_SERVERS=2,
        FRONTIER_LEASE=LEASE_S,
        DOWNLOAD_TIMEOUT=1,
        PANEL_INTERVAL=1,
        **more,
    )
    return Crawl(
        ["workers", "site", "-n", "3", "-a", "seeds=" + ",".join(roots(demo)), *words],
        crawl_dir,
        settings,
    )


def wait_for(done: Callable[[], bool], crawl: Crawl) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert crawl.process.poll() is None, crawl.wait()
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Lines:
    """What a process says, line by line, while it runs."""

    def __init__(self, crawl: Crawl) -> None:
        self.found: list[str] = []
        self._thread = threading.Thread(
            target=self._read, args=(crawl.process.stdout,), daemon=True
        )
        self._thread.start()

    def _read(self, stream: Iterator[str]) -> None:
        self.found.extend(iter(stream))  # grows line by line

    def pids(self) -> list[int]:
        return [
            int(match[1])
            for line in list(self.found)
            if (match := re.match(r"worker \d+ \(process (\d+)\) started", line))
        ]


def test_three_workers_of_which_one_is_killed_fetch_everything(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    logs = tmp_path / "log"
    with workers(demo, database_url, tmp_path) as crawl:
        lines = Lines(crawl)
        wait_for(
            lambda: (
                len(lines.pids()) == 3
                and all(list(logs.glob(f"requests-*_{pid}_*")) for pid in lines.pids())
            ),
            crawl,
        )
        wait_for(lambda: len(demo.log.records()) > 60, crawl)
        began = time.time()
        os.kill(lines.pids()[1], signal.SIGKILL)
        killed_at = time.time()
        assert crawl.process.wait(120) == 0, (
            crawl.process.stderr.read() if crawl.process.stderr else ""
        )
        said = "".join(lines.found)
    assert said.count("was killed by signal 9: started again as process") == 1
    assert said.count("ended with exit code 0") == 3
    assert re.search(
        r"s  3 workers: \d+ URLs known, \d+ visited, \d+ pages read; \d+ due now; \d servers? in "
        r"use",
        said,
    )

    truth = demo.web.truth_at(demo.now(), seeds=roots(demo))
    assert in_state(rows(database_url), "waiting") == set(truth.pages)
    again = {url for url, times in asked(demo).items() if times > 1}
    first = {f"http://{r.host}{r.path}": r.started_at for r in reversed(demo.log.records())}
    assert all(began - LEASE_S < first[url] <= killed_at + 0.1 for url in again), (
        "only what the killed one had not stored yet"
    )
    names = {path.name for path in logs.iterdir()}
    assert {"site-1.log", "site-2.log", "site-3.log"} <= names

    verdict = run_command(["politeness", "audit", str(logs), "--json"], tmp_path)
    assert (verdict.code, verdict.json["violations"]) == (0, [])
    assert [log["why"] for log in verdict.json["without_end"]] == ["killed"]
    logged = {
        json.loads(line).get("url")
        for log in logs.glob("requests-*")
        for line in log.read_text().splitlines()
    }
    assert set(truth.pages) <= logged, "what counts as done is in the log, whoever was killed"
    assert verdict.json["workers"] == len(list(logs.glob("requests-*"))) >= 3


def test_a_stop_is_passed_on_to_all_and_the_next_run_goes_on(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    with workers(demo, database_url, tmp_path) as crawl:
        wait_for(
            lambda: (
                len(demo.log.records()) > 30
                and len(list((tmp_path / "log").glob("requests-*"))) == 3
            ),
            crawl,
        )
        crawl.stop(signal.SIGINT)
        result = crawl.wait()
    assert result.code == 130, result.stderr
    assert result.stdout.count("ended with exit code 130") == 3
    with workers(demo, database_url, tmp_path) as crawl:
        assert crawl.wait(120).code == 0
    assert in_state(rows(database_url), "waiting") == set(
        demo.web.truth_at(demo.now(), seeds=roots(demo)).pages
    )
    assert max(asked(demo).values()) == 1


def test_the_embedded_database_is_shared_by_all_and_stopped_at_the_end(
    demo: DemoServer, tmp_path: Path
) -> None:
    items = tmp_path / "items.jsonl"
    pid = tmp_path / "workers.pid"
    words = ["-o", str(items), "--pid-file", str(pid)]
    seeds = ["-a", "seeds=" + ",".join([*roots(demo), "http://127.0.0.1:9/"])]
    with workers(
        demo, "", tmp_path, *seeds, *words, FRONTIER_PAGES=20, DOWNLOAD_WARNSIZE=9
    ) as crawl:
        wait_for(pid.exists, crawl)
        assert pid.read_text() == f"{crawl.process.pid}\n"
        second = run_command(["workers", "site", *words], tmp_path)
        assert (second.code, "which still runs" in second.stderr) == (1, True), second.stderr
        result = crawl.wait(120)
    assert result.code == 0, result.stderr + result.log
    assert not pid.exists()
    assert sorted(path.name for path in tmp_path.glob("items*")) == [
        f"items-{number}.jsonl" for number in (1, 2, 3)
    ]
    assert re.search(r"^worker [123]: \S+ warning: .*larger than", result.stdout, re.M)
    summary = result.stdout[result.stdout.index("Crawl site ended after") :]
    pages = re.search(r"Pages +(\d+)  \1 new", summary)
    assert pages is not None and int(pages[1]) >= 20, summary
    assert "refused" in summary or "port" in summary
    assert re.search(r"\d+ URLs known in all", summary)
    assert "site-*.log" in summary and "items-*.jsonl" in summary and "Try next:" in summary
    assert not (tmp_path / "pg" / "data" / "postmaster.pid").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["site", "-n", "0", "-a", "seeds=http://127.0.0.1:9/"],
            "-n must be a number from 1 to 64",
        ),
        (["site", "-a", "seeds"], "use -a NAME=VALUE"),
        (["nosuch"], "there is no spider 'nosuch'"),
        ([], "usage: scrapy workers"),
        (["site"], "no seeds"),
    ],
)
def test_what_is_wrong_is_said_once_and_not_by_every_worker(
    words: list[str], says: str, database_url: str, tmp_path: Path
) -> None:
    result = run_command(["workers", *words], tmp_path, {"DATABASE_URL": database_url})
    assert (result.code, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert says in result.stderr


def test_a_violation_is_named_and_makes_the_auditor_exit_with_3(tmp_path: Path) -> None:
    rules = {
        "rules": {"POLITENESS_DELAY": 2},
        "worker": "w",
        "crawl": "c",
        "started": 100.0,
        "part": 0,
    }
    line = {
        "time": "",
        "worker": "w",
        "crawl": "c",
        "url": "http://a.test/",
        "status": 200,
        "reason": "",
        "ip": "192.0.2.1",
        "host": "a.test",
        "server": 1,
        "epoch": 1,
        "started": 101.0,
        "ended": 101.1,
        "ms": 100,
        "bytes": 1,
        "delay_s": 2,
        "kind": "page",
        "lane": "new",
        "robots_at": 50.0,
    }
    end = {"end": 103.0, "worker": "w"}
    log = tmp_path / "requests-w.jsonl"
    log.write_text(
        "".join(
            json.dumps(one) + "\n"
            for one in (rules, line, line | {"started": 102.5, "ended": 102.6}, end)
        )
    )
    result = run_command(["politeness", "audit", str(log)], tmp_path)
    assert result.code == 3
    assert result.stdout.splitlines() == [
        f"host delay, a.test: 0.500 s too early (2 s from start to start): {log}:3 http://a.test/ "
        f"after {log}:2 http://a.test/",
        "2 requests to 1 host by 1 worker, 0 URLs not asked: 1 violation (host delay 1)",
    ]
    log.write_text("\n".join([json.dumps(rules), json.dumps(line), "rubbish", json.dumps(end), ""]))
    result = run_command(["politeness", "audit", str(tmp_path)], tmp_path)
    assert result.code == 2
    assert f"{log}:3: Expecting value" in result.stderr
    assert "every rule was kept" in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [(["audit"], "there is no requests-"), (["check"], "there is no 'check'"), ([], "usage")],
)
def test_the_auditor_says_what_it_needs(words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    result = run_command(["politeness", *words], tmp_path)
    assert (result.code, says in result.stderr) == (2, True), result.stderr


def test_the_page_for_webmasters_is_written_or_refused(tmp_path: Path) -> None:
    assert run_command(["robot_page"], tmp_path).code == 2
    result = run_command(
        ["robot_page", "-o", str(tmp_path / "bot.html")],
        tmp_path,
        {"ROBOT_CONTACT": "mailto:a@b.org"},
    )
    assert (result.code, result.stdout) == (0, f"Written to {tmp_path / 'bot.html'}\n")
    assert (tmp_path / "bot.html").read_text().startswith("<!DOCTYPE html>")
    assert (
        run_command(["robot_page"], tmp_path, {"ROBOT_CONTACT": "mailto:a@b.org"}).stdout
        == (tmp_path / "bot.html").read_text()
    )
    assert (
        run_command(
            ["robot_page", "-o", str(tmp_path / "no" / "x")], tmp_path, {"ROBOT_CONTACT": "a@b.org"}
        ).code
        == 1
    )
