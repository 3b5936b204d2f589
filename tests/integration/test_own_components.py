"""Whatever components a spider sets itself, the crawl stays polite, and its own parts get what is
theirs.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock, grid_profile
from crawlproj.demo.model import HostSpec
from tests.support.crawling import run_command, run_crawl
from tests.support.judge import Law, violations
from tests.support.webs import demo_settings, rows

LAW = Law(
    delay_s=0.15,
    server_delay_s=0.1,
    hosts_per_server=1,
    pause_after=0,
    pause_s=0,
    slowdown=0,
    max_delay_s=0.2,
    disallow={"h0.demo.test": ("/sport/",)},
)


def test_components_of_a_spider_come_on_top_of_ours_and_break_no_rule(
    database_url: str, tmp_path: Path
) -> None:
    """A page that robots.txt forbids, another name, files that a pipeline fetches, and a middleware
    that fails with what came: by the server's log and by the auditor every rule is kept.
    """
    spec = HostSpec("", sections=("world", "sport"), articles=4, keep=4, disallow=("/sport/",))
    profile = grid_profile(1, 1, spec)
    with DemoServer(profile, clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as demo:
        (host,) = demo.web.sites
        law = dataclasses.replace(LAW, disallow={host: ("/sport/",)})
        settings = demo_settings(
            demo,
            database_url,
            SPIDER_MODULES="tests.spiders",
            POLITENESS_DELAY=law.delay_s,
            POLITENESS_SERVER_DELAY=law.server_delay_s,
            FRONTIER_RETRIES=0,
            FILES_STORE=str(tmp_path / "files"),
            RECORD=str(tmp_path),
            FRONTIER_PAGES=14,
            CRAWL_PATIENCE=2,
        )
        args = ["own", "-a", f"seed={demo.url(host, '/')}", "-o", str(tmp_path / "items.jsonl")]
        result = run_crawl(args, settings, tmp_path)
        records = demo.log.records()
    assert result.code == 0, result.stderr + result.log
    assert violations(records, law) == []
    assert {record.user_agent.partition("/")[0] for record in records} == {"crawlproj"}
    assert sum(record.path.startswith("/world") for record in records) >= 2

    audited = run_command(["politeness", "audit", *_logs(tmp_path)], tmp_path)
    assert "every rule was kept" in audited.stdout
    texts = [line for log in _logs(tmp_path) for line in Path(log).read_text().splitlines()]
    lines = [json.loads(text) for text in texts]
    asked = Counter(line["url"] for line in lines if line.get("started") and "rules" not in line)
    assert asked == Counter(f"http://{record.host}{record.path}" for record in records)

    found = rows(database_url, "own")
    broken = [row for url, row in found.items() if "/world" in url and row.visits]
    assert broken and all(row.why.startswith("error: ZeroDivisionError") for row in broken)
    assert all(row.why == "robots" for url, row in found.items() if "/sport/" in url and row.visits)

    assert set((tmp_path / "Recorder").read_text().splitlines()) == {"dict True"}
    kinds = {line.split()[0] for line in (tmp_path / "PageRecorder").read_text().splitlines()}
    assert kinds == {"dict", "Page"}
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert items and any(item.get("files") for item in items)


def _logs(folder: Path) -> list[str]:
    return [str(path) for path in folder.glob("log/requests-*.jsonl")]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "DOWNLOADER_MIDDLEWARES",
            {"middlewares.politeness.PolitenessMiddleware": None},
            "DOWNLOADER_MIDDLEWARES: middlewares.politeness.PolitenessMiddleware can't be",
        ),
        ("SCHEDULER", "scrapy.core.scheduler.Scheduler", "SCHEDULER = "),
        (
            "DOWNLOAD_HANDLERS",
            {"http": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"},
            "DOWNLOAD_HANDLERS: 'http' must stay crawlproj.fetch.handler.GuardedHandler",
        ),
        ("ADDONS", {"tests.spiders.own.Stamp": 1}, "ADDONS: those of the spider leave out"),
    ],
)
def test_what_can_t_be_merged_is_refused_with_one_line(
    name: str, value: object, said: str, database_url: str, tmp_path: Path
) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "SPIDER_MODULES": "tests.spiders",
        "REPLACED": name,
        "REPLACED_BY": value,
    }
    result = run_crawl(["replacing"], settings, tmp_path)
    assert result.code == 2
    assert result.stderr.startswith(f"crawlproj: {said}")
    assert result.stderr.count("\n") == 1
