"""Spiders written as people write them run unchanged, politely, with the items that Scrapy itself
gives; a second run asks for the start again, for what is new, and for nothing else.

All spiders run once on the first day of a town of small sites, and once on the second. They come in
by all three doors: a project of somebody else that joins by one line, this project with their
package in SPIDER_MODULES, and `scrapy runspider FILE`. The sites' own logs are the judge.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from settings import base as defaults
from tests.conftest import TEMPLATE, beside
from tests.foreign.town import Town, impolite_acts, open_town
from tests.support.crawling import ROOT
from tests.support.webs import rows

PROJECT = ROOT / "tests" / "foreign" / "project"
DOORS = {
    "quotes": "joined",
    "components": "joined",
    "pipes": "joined",
    "products": "products.py",
    "export": "joined",
    "patient": "own",
    "crawlrules": "own",
    "maps": "joined",
    "rss": "own",
    "table": "joined",
    "members": "own",
    "errors": "own",
    "limit": "own",
    "enough": "joined",
}
"""How each spider comes in; a name of a file: by `runspider`."""
DELAY_S = 0.1
JOINING = """
ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}
COMMANDS_MODULE = "crawlproj.commands"
"""
AGENT = "habitbot"
AT_A_TIME = 3


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run of a spider."""

    code: int
    log: str
    items: list[dict[str, Any]]
    stats: dict[str, Any]
    asked: list[str]
    first_path: str
    complaints: list[str]


class Habits:
    """The spiders, their town and their database."""

    def __init__(self, folder: Path, town: Town, database_url: str) -> None:
        self.folder = folder
        self.town = town
        self.database_url = database_url
        self.project = folder / "project"
        shutil.copytree(PROJECT, self.project)
        with (self.project / "shop" / "habits_settings.py").open("a") as file:
            file.write(JOINING)
        contracts = self.project / "shop" / "habits" / "contracts.py"
        port = str(town.sites["contracts"].port)
        contracts.write_text(contracts.read_text().replace("PORT", port))

    def settings(self, spider: str) -> dict[str, object]:
        return {
            "DATABASE_URL": self.database_url,
            "CRAWL_DIR": self.folder / "data" / spider,
            "GUARD_ALLOW_PRIVATE": 1,
            "DNS_HOSTS": json.dumps(self.town.dns_hosts),
            "ROBOT_NAME": AGENT,
            "POLITENESS_DELAY": DELAY_S,
            "POLITENESS_SLOWDOWN": 0,
            "POLITENESS_SERVER_DELAY": 0,
            "CRAWL_PATIENCE": 5,
            "FRONTIER_FLUSH": 0.2,
            "SOURCE_MIN": 0.01,
            "DOCUMENTS_ENABLED": 0,
            "OWN_FILE": self.folder / "own.jsonl",
        }

    def stats_file(self, path: Path) -> dict[str, object]:
        return {"STATS_CLASS": "tests.support.crawling.StatsFile", "STATS_FILE": path}

    def scrapy(
        self, words: Sequence[str], settings: Mapping[str, object], *, joined: bool, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """`scrapy WORDS...` in the joined project, or in this one."""
        command = [sys.executable, "-m", "scrapy", *words]
        for name, value in settings.items():
            command += ["-s", f"{name}={value}"]
        clean = {key: value for key, value in os.environ.items() if key not in defaults.OURS}
        env = {
            **clean,
            "PYTHONPATH": f"{ROOT}:{self.project}",
            "https_proxy": "http://127.0.0.1:9",  # cookies would ask for a list of domains
            "NO_PROXY": "127.0.0.1",
            **more,
        }
        folder = ROOT
        if joined:
            folder = self.project
            env["SCRAPY_SETTINGS_MODULE"] = "shop.habits_settings"
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=120
        )

    def run(self, spider: str) -> Run:
        site = self.town.sites[spider]
        out = self.folder / f"{spider}-{site.day}.jsonl"
        stats = self.folder / f"{spider}-{site.day}.stats"
        settings = self.settings(spider) | self.stats_file(stats)
        door = DOORS[spider]
        words = ["crawl", spider, "-a", f"base={site.base}"]
        if door.endswith(".py"):
            words[:2] = ["runspider", str(self.project / "shop" / "habits" / door)]
        if door == "own":
            settings["SPIDER_MODULES"] = "shop.habits"
        if spider == "export":
            out = self.project / "export-export.jsonl"
        else:
            words += ["-o", str(out)]
        done = self.scrapy(words, settings, joined=door == "joined")
        log = done.stderr + done.stdout
        for file in (self.folder / "data" / spider / "log").glob("*.log"):
            log += file.read_text()
        delay_s = 0.3 if spider == "patient" else DELAY_S
        return Run(
            done.returncode,
            log,
            read_items(out),
            json.loads(stats.read_text()) if stats.exists() else {},
            site.asked,
            min(site.visits, key=lambda visit: visit.started).path if site.visits else "",
            impolite_acts(site, delay_s, AGENT),
        )

    def run_all(self) -> dict[str, Run]:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return dict(zip(DOORS, pool.map(self.run, DOORS), strict=True))

    def run_stock(self) -> dict[str, list[dict[str, Any]]]:
        """The items of each spider with Scrapy as it comes."""
        folder = self.folder / "stock"
        folder.mkdir()
        bases = {name: self.town.sites[name].base for name in DOORS}
        order = {"bases": bases, "names": self.town.dns_hosts, "module": "shop.habits_settings"}
        command = [sys.executable, str(ROOT / "tests/foreign/stock.py"), json.dumps(order)]
        env = {**os.environ, "PYTHONPATH": str(PROJECT), "https_proxy": "http://127.0.0.1:9"}
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        names = {name: f"{name}.jsonl" for name in DOORS} | {"export": "export-export.jsonl"}
        return {name: read_items(folder / file) for name, file in names.items()}


def read_items(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


@pytest.fixture(scope="module")
def habits(
    servers: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Habits]:
    server = servers("embedded")
    name = f"habits_{os.getpid()}"
    admin = Database(server)
    admin.run_script(f"create database {name} template {TEMPLATE}")
    with open_town([*DOORS, "contracts", "single"]) as town:
        yield Habits(tmp_path_factory.mktemp("habits"), town, beside(server, name))
    admin.run_script(f"drop database {name} with (force)")
    admin.close()


@pytest.fixture(scope="module")
def stock(habits: Habits) -> dict[str, list[dict[str, Any]]]:
    habits.town.begin_day(1)
    return habits.run_stock()


@pytest.fixture(scope="module")
def first(habits: Habits, stock: dict[str, list[dict[str, Any]]]) -> dict[str, Run]:
    habits.town.begin_day(1)
    return habits.run_all()


@pytest.fixture(scope="module")
def second(habits: Habits, first: dict[str, Run]) -> dict[str, Run]:
    habits.town.begin_day(2)
    return habits.run_all()


LIMITED = ("limit", "enough")
"""Which items these have depends on the order of the requests."""


@pytest.mark.parametrize("spider", [name for name in DOORS if name not in LIMITED])
def test_a_spider_gives_the_same_items_as_with_scrapy_alone(
    spider: str, first: dict[str, Run], stock: dict[str, list[dict[str, Any]]]
) -> None:
    run = first[spider]
    assert run.code == 0, run.log
    # Scrapy lets start requests that are not to be filtered past robots.txt.
    wanted = [item for item in stock[spider] if "/private/" not in item.get("url", "")]
    assert run.items == wanted, run.log
    assert run.items
    assert len(run.asked) == len(set(run.asked)), "every request once"


@pytest.mark.parametrize("spider", DOORS)
def test_every_spider_is_polite_on_both_days(
    spider: str, first: dict[str, Run], second: dict[str, Run]
) -> None:
    for run in (first[spider], second[spider]):
        assert run.asked, run.log
        assert run.complaints == []
        assert not run.stats.get("politeness/held"), run.log
        if spider != "errors":
            assert " ERROR: " not in run.log, run.log


def test_robots_txt_is_asked_for_first(first: dict[str, Run]) -> None:
    assert {run.first_path for run in first.values()} == {"/robots.txt"}


SECOND_DAY = {
    "quotes": (["/page/1"], 0),
    "components": (["/", "/item/7"], 2),
    "pipes": (["/"], 7),
    "products": (["/", "/item/7"], 1),
    "patient": (["/item/1", "/item/2", "/slow"], 0),
    "crawlrules": (["/", "/item/7"], 1),
    "maps": (["/item/7", "/sitemap-items.xml", "/sitemap.xml"], 1),
    "rss": (["/feed.xml", "/item/7"], 8),
    "table": (["/table.csv"], 7),
    "members": (["/login", "POST /enter"], 0),
    "errors": (["/item/1", "/missing", "/taken"], 2),
}
"""What a second run asks for, and how many items it has: those of new pages, and of starts that have
changed.
"""


@pytest.mark.parametrize("spider", SECOND_DAY)
def test_a_second_run_asks_for_the_start_and_for_what_is_new(
    spider: str, second: dict[str, Run]
) -> None:
    run = second[spider]
    asked, items = SECOND_DAY[spider]
    assert run.code == 0, run.log
    assert sorted(run.asked) == asked
    assert len(run.items) == items


def test_a_second_run_appends_nothing_to_a_feed_when_nothing_has_changed(
    first: dict[str, Run], second: dict[str, Run]
) -> None:
    assert sorted(second["export"].asked) == ["/item/1", "/item/2"]
    assert second["export"].items == first["export"].items
    assert len(first["export"].items) == 2


def test_components_of_every_kind_have_done_their_part(first: dict[str, Run]) -> None:
    run = first["components"]
    assert {item["seen"] for item in run.items} == {"components"}
    assert all(item["marked"] and item["counted"] for item in run.items)
    assert run.stats["own/items"] == run.stats["own/signals"] == 7
    assert run.stats["own/responses"] >= 7


def test_items_count_what_spiders_yield_and_drop(first: dict[str, Run]) -> None:
    assert first["pipes"].stats["item_dropped_count"] == 1
    assert first["pipes"].stats["item_scraped_count"] == 7


def crawls(habits: Habits) -> set[str]:
    """The names of the crawls that the database knows."""
    database = Database(habits.database_url)
    try:
        return {name for (name,) in database.fetch_rows("crawl_names")}
    finally:
        database.close()


def test_each_spider_has_a_crawl_of_its_name(habits: Habits, first: dict[str, Run]) -> None:
    """Also that which `runspider` ran."""
    assert crawls(habits) == set(DOORS)
    assert len(rows(habits.database_url, "products")) >= 7


def test_list_names_all_spiders(habits: Habits) -> None:
    settings = {"SPIDER_MODULES": "shop.habits"}
    for joined in (True, False):
        done = habits.scrapy(["list"], {} if joined else settings, joined=joined)
        assert set(done.stdout.split()) == {*DOORS, "contracts"}, done.stderr


def test_check_asks_for_the_pages_of_contracts_and_leaves_no_crawl(habits: Habits) -> None:
    site = habits.town.sites["contracts"]
    site.visits.clear()
    done = habits.scrapy(["check", "contracts"], habits.settings("check"), joined=True)
    assert done.returncode == 1, done.stderr
    assert "FAILED (failures=1)" in done.stderr
    assert "[contracts] parse_item (@scrapes post-hook)" in done.stderr
    assert sorted(site.asked) == ["/", "/item/1"]
    assert impolite_acts(site, DELAY_S, AGENT) == []
    assert "contracts" not in crawls(habits)
    listed = habits.scrapy(["check", "-l"], habits.settings("check"), joined=True)
    assert listed.stdout.split() == ["contracts", "*", "parse", "*", "parse_item"], listed.stderr


def test_view_opens_a_page_as_scrapy_sees_it(habits: Habits) -> None:
    site = habits.town.sites["single"]
    site.visits.clear()
    noted = habits.folder / "viewed"
    browser = habits.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}\ncat "${{1#file://}}" >> {noted}\n')
    browser.chmod(0o755)
    settings = habits.settings("view") | {"SPIDER_MODULES": "shop.habits"}
    url = f"{site.base}/item/2"
    done = habits.scrapy(["view", url], settings, joined=False, BROWSER=f"{browser} %s")
    assert done.returncode == 0, done.stderr
    assert noted.read_text().startswith("file://"), done.stderr
    assert "<h1>Item 2</h1>" in noted.read_text()
    assert site.asked == ["/item/2"]
    assert not (habits.folder / "data" / "view" / "warc").exists()


def test_bench_runs_and_leaves_nothing_behind(habits: Habits) -> None:
    settings = habits.settings("bench") | {"CLOSESPIDER_TIMEOUT": 1, "LOGSTATS_INTERVAL": 0.5}
    known = crawls(habits)
    done = habits.scrapy(["bench"], settings, joined=False)
    assert done.returncode == 0, done.stderr
    assert "closespider_timeout" in done.stderr
    assert "Crawled " in done.stderr
    assert crawls(habits) == known
    assert not (habits.folder / "data" / "bench" / "warc").exists()


def test_runspider_refuses_what_is_no_spider(habits: Habits, tmp_path: Path) -> None:
    settings = habits.settings("refused")
    (tmp_path / "broken.py").write_text("import nowhere_at_all\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    for name, words in (
        ("missing.py", "there is no file"),
        ("broken.py", "can't be loaded: No module named 'nowhere_at_all'"),
        ("empty.py", "there is no spider in"),
    ):
        done = habits.scrapy(["runspider", str(tmp_path / name)], settings, joined=False)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr


RENAMED = """
import scrapy
class RenamedSpider(scrapy.Spider):
    name = "renamed"
    custom_settings = {{"CONCURRENT_REQUESTS": 1, "ROBOT_CONTACT": "mailto:a@example.org"}}
    start_urls = ["{base}/"]
    def parse(self, response):
        yield from response.follow_all(css="nav a", callback=self.{callback})
    def {callback}(self, response):
        yield {{"title": response.css("h1::text").get()}}
"""


def test_a_callback_that_was_renamed_ends_its_requests_and_not_the_crawl(
    habits: Habits, tmp_path: Path
) -> None:
    """Two versions of a spider; the first has left requests for a method that the second lacks."""
    site = habits.town.sites["single"]
    site.day = 1
    file = tmp_path / "renamed.py"
    stats = tmp_path / "stats"
    settings = habits.settings("renamed") | habits.stats_file(stats)
    found = []
    for callback, limit in (("parse_old", 2), ("parse_new", 0)):
        file.write_text(RENAMED.format(base=site.base, callback=callback))
        more = settings | {"CLOSESPIDER_PAGECOUNT": limit}
        done = habits.scrapy(["runspider", str(file)], more, joined=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(stats.read_text()))
        site.day = 2
    assert found[0]["finish_reason"] == "closespider_pagecount"
    assert found[1]["finish_reason"] == "finished"
    assert found[1]["requests/unloadable"] >= 3
    assert found[1]["end/dead"] == found[1]["requests/unloadable"]
    known = rows(habits.database_url, "renamed")
    assert known[f"{site.base}/item/7"].state == "waiting", "found by the second"


def test_limits_end_a_crawl_and_the_next_run_goes_on(
    first: dict[str, Run], second: dict[str, Run]
) -> None:
    assert first["limit"].stats["finish_reason"] == "closespider_itemcount"
    assert 3 <= len(first["limit"].items) <= 4
    assert first["enough"].stats["finish_reason"] == "enough_of_it"
    titles = [
        item["title"] for name in ("limit",) for run in (first, second) for item in run[name].items
    ]
    assert len(titles) == len(set(titles)), "no item twice"
    assert len(second["limit"].items) >= 3


def test_allowed_domains_are_kept_without_a_line_of_settings(
    habits: Habits, second: dict[str, Run]
) -> None:
    for spider in ("quotes", "crawlrules"):
        known = rows(habits.database_url, spider)
        assert len(known) > 3
        assert not [url for url in known if "elsewhere.test" in url]


def test_a_lambda_is_refused_said_and_counted(first: dict[str, Run]) -> None:
    assert first["errors"].stats["requests/unstorable"] == 1
    assert "This request can't be stored, refused: <GET http://errors.test" in first["errors"].log
    assert "/item/2" not in first["errors"].asked
