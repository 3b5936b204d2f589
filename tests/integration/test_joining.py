"""A project of somebody else joins by one line, and its spiders give what they gave before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid
from settings import base as defaults
from tests.crawling import ROOT
from tests.foreign import web
from tests.webs import rows

ONE_LINE = 'ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}\n'
QUICK = {
    "GUARD_ALLOW_PRIVATE": 1, "POLITENESS_DELAY": 0, "POLITENESS_SLOWDOWN": 0, "POLITENESS_SERVER_DELAY": 0, "CRAWL_PATIENCE": 0,
    "FRONTIER_FLUSH": 0.2,
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the foreign project, as it was before."""
    shutil.copytree(ROOT / "tests" / "foreign" / "project", tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def shop() -> Iterator[type[web.Shop]]:
    with web.serving() as shop:
        yield shop


def join(project: Path, more: str = "") -> None:
    with (project / "shop" / "settings.py").open("a") as file:
        file.write(ONE_LINE + more)


def scrapy(project: Path, *words: str, settings: Mapping[str, object] | None = None) -> subprocess.CompletedProcess[str]:
    """`scrapy WORDS...` in the project's folder, with crawlproj on the path as if it were installed."""
    command = [sys.executable, "-m", "scrapy", *words]
    for name, value in (settings or {}).items():
        command += ["-s", f"{name}={json.dumps(value) if isinstance(value, dict | list) else value}"]
    # Scrapy's cookies would ask the internet for a list of domains.
    ours = {"PYTHONPATH": str(ROOT), "https_proxy": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    env = {name: value for name, value in os.environ.items() if name not in defaults.OURS} | ours
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=120)


def items_of(project: Path, spider: str, base: str, settings: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
    out = project / "out.jsonl"
    done = scrapy(project, "crawl", spider, "-a", f"base={base}", "-O", str(out), settings=settings)
    assert done.returncode == 0, done.stderr
    assert " ERROR: " not in done.stderr and " CRITICAL: " not in done.stderr, done.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


@pytest.mark.parametrize("spider", ["rules", "map", "login"])
def test_a_stock_spider_gives_the_same_items_as_before(spider: str, project: Path, shop: type[web.Shop], database_url: str) -> None:
    before = items_of(project, spider, shop.base)
    stock = dict(shop.asked)
    shop.asked.clear()
    join(project)
    after = items_of(project, spider, shop.base, {"DATABASE_URL": database_url, **QUICK})
    assert before == after
    assert len(after) > 8
    assert {key for key in shop.asked if "robots.txt" not in key} == {key for key in stock if "robots.txt" not in key}
    assert max(number for key, number in shop.asked.items() if "robots.txt" not in key) == 1, "every request exactly once"
    assert shop.asked["GET /private/item/x"] == 0
