"""A project of somebody else joins by one line, and its spiders give what they gave before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile
from settings import base as defaults
from tests.foreign import web
from tests.support.crawling import ROOT
from tests.support.redis_server import RedisServer
from tests.support.webs import rows

ONE_LINE = 'ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}\n'
QUICK = {
    "GUARD_ALLOW_PRIVATE": 1,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SLOWDOWN": 0,
    "POLITENESS_SERVER_DELAY": 0,
    "CRAWL_PATIENCE": 0,
    "FRONTIER_FLUSH": 0.2,
}


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


def command_of(
    words: Sequence[str], settings: Mapping[str, object] | None
) -> tuple[list[str], dict[str, str]]:
    """`scrapy WORDS...`, with crawlproj on the path as if it were installed."""
    command = [sys.executable, "-m", "scrapy", *words]
    for name, value in (settings or {}).items():
        command += [
            "-s",
            f"{name}={json.dumps(value) if isinstance(value, dict | list) else value}",
        ]
    # Scrapy's cookies would ask the internet for a list of domains.
    ours = {"PYTHONPATH": str(ROOT), "https_proxy": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    alien = {*defaults.OURS, "SCRAPY_SETTINGS_MODULE"}
    env = {name: value for name, value in os.environ.items() if name not in alien} | ours
    return command, env


def scrapy(
    project: Path, *words: str, settings: Mapping[str, object] | None = None
) -> subprocess.CompletedProcess[str]:
    command, env = command_of(words, settings)
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, text=True, timeout=120
    )


def items_of(
    project: Path, spider: str, base: str, settings: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    out = project / "out.jsonl"
    done = scrapy(project, "crawl", spider, "-a", f"base={base}", "-O", str(out), settings=settings)
    assert done.returncode == 0, done.stderr
    assert " ERROR: " not in done.stderr and " CRITICAL: " not in done.stderr, done.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


@pytest.mark.proof
@pytest.mark.parametrize("spider", ["rules", "map", "login"])
def test_a_stock_spider_gives_the_same_items_as_before(
    spider: str, project: Path, shop: type[web.Shop], database_url: str
) -> None:
    before = items_of(project, spider, shop.base)
    stock = dict(shop.asked)
    shop.asked.clear()
    join(project)
    after = items_of(project, spider, shop.base, {"DATABASE_URL": database_url, **QUICK})
    assert before == after
    assert len(after) > 8
    assert {key for key in shop.asked if "robots.txt" not in key} == {
        key for key in stock if "robots.txt" not in key
    }
    assert max(number for key, number in shop.asked.items() if "robots.txt" not in key) == 1, (
        "every request exactly once"
    )
    assert shop.asked["GET /private/item/x"] == 0


def test_a_second_run_asks_only_for_what_is_due(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    join(project)
    settings = {"DATABASE_URL": database_url, "SOURCE_MIN": 0.1, **QUICK}
    for _ in range(2):
        items_of(project, "rules", shop.base, settings)
    twice = {key for key, number in shop.asked.items() if number > 1}
    assert twice == {"GET /start", "GET /"}, "the start URL, and where it leads"


def test_a_crawlspider_reads_the_demo_web(project: Path, database_url: str) -> None:
    join(project)
    with DemoServer(
        grid_profile(3, addresses=2, like=HostSpec("", articles=12)), clock=FrozenClock()
    ) as demo:
        spider = (
            (project / "shop" / "spiders" / "stock.py")
            .read_text()
            .replace('r"/item/"', 'r"/news/|/world"')
        )
        (project / "shop" / "spiders" / "stock.py").write_text(spider)
        settings = {"DATABASE_URL": database_url, "DNS_HOSTS": demo.dns_hosts, **QUICK}
        host = next(iter(demo.web.sites))
        out = project / "out.jsonl"
        words = [
            "-a",
            f"base={demo.url(host, '/').rstrip('/')}",
            "-a",
            "start=/",
            "-a",
            "domain=demo.test",
            "-O",
            str(out),
        ]
        done = scrapy(project, "crawl", "rules", *words, settings=settings)
        assert done.returncode == 0, done.stderr
        asked = [f"{record.host}{record.path}" for record in demo.log.records()]
    assert len(asked) > 5
    assert len(asked) == len(set(asked))
    states = {row.state for row in rows(database_url, "rules").values()}
    assert states == {"waiting"}


def test_what_a_project_says_itself_stays(project: Path) -> None:
    more = """
CONCURRENT_REQUESTS = 3
POLITENESS_DELAY = 7
ROBOT_NAME = "shopbot"
COOKIES_ENABLED = False
DOWNLOADER_MIDDLEWARES = {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 551, "middlewares.robots.RobotsMiddleware": 250}
DOWNLOAD_HANDLERS = {"data": "scrapy.core.downloader.handlers.datauri.DataURIDownloadHandler"}
ITEM_PIPELINES = {"shop.pipelines.PricePipeline": 300, "scrapy_redis.pipelines.RedisPipeline": 400}
"""
    join(project, more)
    code = """
import json
from scrapy.crawler import Crawler
from scrapy.utils.project import get_project_settings
from scrapy import Spider
from crawlproj.addon import CrawlprojAddon
settings = get_project_settings()
CrawlprojAddon.update_pre_crawler_settings(settings)
CrawlprojAddon().update_settings(settings)
names = ("CONCURRENT_REQUESTS", "POLITENESS_DELAY", "ROBOT_NAME", "COOKIES_ENABLED", "CONCURRENT_ITEMS", "SCHEDULER", "PANEL")
def parts(name):
    found = settings.get_component_priority_dict_with_base(name)
    return {key if isinstance(key, str) else f"{key.__module__}.{key.__name__}": found[key] for key in found}
print(json.dumps({name: settings[name] for name in names} | {
    "down": parts("DOWNLOADER_MIDDLEWARES"), "items": parts("ITEM_PIPELINES"), "handlers": settings.getdict("DOWNLOAD_HANDLERS"),
}))
"""
    env = os.environ | {
        "PYTHONPATH": f"{ROOT}:{project}",
        "SCRAPY_SETTINGS_MODULE": "shop.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["CONCURRENT_REQUESTS"], found["POLITENESS_DELAY"], found["ROBOT_NAME"]) == (
        3,
        7,
        "shopbot",
    )
    assert (found["COOKIES_ENABLED"], found["CONCURRENT_ITEMS"]) == (False, 1)
    assert (found["SCHEDULER"], found["PANEL"]) == (
        "crawlproj.scheduling.scheduler.CrawlScheduler",
        "off",
    )
    down = found["down"]
    assert down["scrapy.downloadermiddlewares.retry.RetryMiddleware"] == 551
    assert down["middlewares.robots.RobotsMiddleware"] == 250
    assert down["middlewares.politeness.PolitenessMiddleware"] == 950
    assert "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware" not in down
    assert {"offsite.OffsiteMiddleware", "cookies.CookiesMiddleware"} <= {
        ".".join(name.split(".")[-2:]) for name in down
    }
    assert found["handlers"]["data"].endswith(".DataURIDownloadHandler")
    assert found["handlers"]["http"] == "crawlproj.fetch.handler.GuardedHandler"
    assert found["items"] == {
        "shop.pipelines.PricePipeline": 300,
        "pipelines.dedup.DedupPipeline": 200,
        "pipelines.warc.WarcPipeline": 300,
        "pipelines.store.StorePipeline": 400,
        "pipelines.revisit.RevisitPipeline": 900,
        "pipelines.bus.BusPipeline": 950,
    }


def test_a_scheduler_that_a_project_has_set_itself_is_named(
    project: Path, shop: type[web.Shop]
) -> None:
    join(project, 'SCHEDULER = "scrapy_redis.scheduler.Scheduler"\n')
    done = scrapy(project, "crawl", "rules", "-a", f"base={shop.base}")
    assert "SCHEDULER = 'scrapy_redis.scheduler.Scheduler': take that line out" in done.stderr
    assert not shop.asked


def test_commands_come_with_a_second_line(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    join(project, 'COMMANDS_MODULE = "crawlproj.commands"\n')
    settings = {"DATABASE_URL": database_url, **QUICK}
    done = scrapy(project, "crawl", "map", "-a", f"base={shop.base}", settings=settings)
    assert done.returncode == 0, done.stderr
    status = json.loads(scrapy(project, "status", "--json", settings=settings).stdout)
    assert status["crawls"]["map"]["urls"]["fetched"] == web.ITEMS + 2
    pushed = scrapy(project, "push", shop.base + "/item/3", "--crawl", "map", settings=settings)
    assert (pushed.returncode, "Pushed 1 URL into crawl map" in pushed.stdout) == (0, True), (
        pushed.stderr
    )


def test_a_project_without_twisted_s_reactor_joins_too(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    join(project, 'TWISTED_REACTOR_ENABLED = False\nASYNCIO_EVENT_LOOP = "uvloop.Loop"\n')
    assert (
        len(items_of(project, "map", shop.base, {"DATABASE_URL": database_url, **QUICK}))
        == web.ITEMS
    )


@pytest.mark.proof
def test_a_spider_of_scrapy_redis_runs_with_its_scheduler_taken_out(
    project: Path,
    shop: type[web.Shop],
    redis_server: RedisServer,
    database_url: str,
    tmp_path: Path,
) -> None:
    """Its settings as scrapy-redis's manual has them, without SCHEDULER and DUPEFILTER_CLASS. It
    stays when it has nothing to do, and ends by its own MAX_IDLE_TIME_BEFORE_CLOSE.
    """
    pipelines = {"shop.pipelines.PricePipeline": 300, "scrapy_redis.pipelines.RedisPipeline": 400}
    join(project, f"REDIS_URL = {redis_server.url!r}\nITEM_PIPELINES = {pipelines}\n")
    client = redis_server.client
    urls = [f"{shop.base}/item/{n}" for n in range(6)]
    client.lpush("live:start_urls", *urls[:3])
    command, env = command_of(
        ["crawl", "live"], {"DATABASE_URL": database_url, "MAX_IDLE_TIME_BEFORE_CLOSE": 8, **QUICK}
    )
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, cwd=project, env=env, stderr=log) as process,
    ):
        try:
            deadline = time.monotonic() + 60
            while client.llen("live:items") < 3:
                assert process.poll() is None and time.monotonic() < deadline, (
                    tmp_path / "log"
                ).read_text()
                time.sleep(0.1)
            for url in urls[3:]:
                client.rpush("live:start_urls", json.dumps({"url": url, "meta": {"job": url[-1]}}))
            assert process.wait(60) == 0
        finally:
            process.kill()
    text = (tmp_path / "log").read_text()
    assert " ERROR: " not in text, text
    found = [json.loads(item) for item in client.lrange("live:items", 0, -1)]
    wanted = {url: None if url in urls[:3] else url[-1] for url in urls}
    assert {item["url"]: item["job"] for item in found} == wanted
    assert all(item["checked"] and item["stamp"] for item in found)
    assert len(found) == 6
    assert shop.asked == {"GET /robots.txt": 1, **{f"GET /item/{n}": 1 for n in range(6)}}
    assert client.keys() == [b"live:items"]
    assert "'bus/taken': 6" in text, (
        "none by the spider's own idle handler, which keeps them in memory only"
    )


@pytest.mark.proof
def test_a_crawlspider_of_scrapy_redis_follows_its_rules_from_what_is_pushed(
    project: Path, shop: type[web.Shop], redis_server: RedisServer, database_url: str
) -> None:
    where = redis_server.url.removeprefix("unix://")
    join(project, f"REDIS_PARAMS = {{'unix_socket_path': {where!r}}}\n")
    redis_server.client.lpush("rules:in", f"{shop.base}/list/1")
    settings = {"DATABASE_URL": database_url, "MAX_IDLE_TIME_BEFORE_CLOSE": 4, **QUICK}
    done = scrapy(project, "crawl", "liverules", settings=settings)
    assert done.returncode == 0, done.stderr
    found = [
        json.loads(item)["url"] for item in redis_server.client.lrange("liverules:items", 0, -1)
    ]
    assert sorted(found) == sorted(f"{shop.base}/item/{n}" for n in range(web.ITEMS))
    assert max(shop.asked.values()) == 1
