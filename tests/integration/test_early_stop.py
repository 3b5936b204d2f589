"""A stop that comes while the crawl is still being opened."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, FrozenClock
from tests.support.crawling import start_crawl
from tests.support.webs import demo_settings, roots

pytestmark = [pytest.mark.proof, pytest.mark.kills]


def test_a_stop_that_comes_before_the_engine_runs_is_not_forgotten(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
        settings = demo_settings(demo, database_url, CRAWL_CONTINUOUS=True)
        for number in range(3):
            log = tmp_path / str(number) / "log" / "site.log"
            with start_crawl(
                ["site", "-a", "seeds=" + ",".join(roots(demo))], settings, tmp_path / str(number)
            ) as crawl:
                while crawl.process.poll() is None and not (
                    log.exists() and "Enabled item pipelines" in log.read_text()
                ):
                    time.sleep(0.002)
                crawl.process.send_signal(signal.SIGTERM)
                assert crawl.wait().code == 130
