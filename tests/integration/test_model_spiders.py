"""The spiders of three sites of the demo web, each built in another way: every article is found, and
its fields are those that the web was made from.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import time
import urllib.request
from operator import itemgetter
from pathlib import Path

import pytest

from crawlproj.demo import FrozenClock
from tests.support.crawling import Crawl, run_crawl
from tests.support.redis_server import RedisServer
from tests.support.webs import serve_models


@pytest.mark.parametrize("name", ["lantern", "ridgeway", "echo"])
def test_a_spider_of_twenty_lines_takes_every_article_of_its_site(
    name: str, database_url: str, tmp_path: Path
) -> None:
    out = tmp_path / "articles.jsonl"
    with serve_models(clock=FrozenClock()) as demo:
        settings = {
            "DATABASE_URL": database_url,
            "DNS_HOSTS": demo.dns_hosts,
            "FRONTIER_FLUSH": 0.2,
            "CRAWL_PATIENCE": 0,
        }
        result = run_crawl([name, "-o", str(out)], settings, tmp_path)
        asked = {record.host.partition(":")[0] for record in demo.log.records()}
        site = demo.web.sites[name]
        count = site.articles.published_count(demo.web.world.age_at(demo.now()))
    assert result.code == 0, result.stderr + result.log
    assert asked == {f"{name}.demo.test"}
    items = {item["url"]: item for item in map(json.loads, out.read_text().splitlines())}
    known = [site.articles.get(number) for number in range(count)]
    assert items.keys() == {site.article_url(article.number) for article in known}
    for article in known:
        item = items[site.article_url(article.number)]
        published = site.world.datetime_at(article.published)
        assert item["title"] == article.title
        assert item["authors"] == [article.author]
        assert item["date"][:10] == published.date().isoformat()
        if name != "ridgeway":
            assert item["date"] == published.isoformat(timespec="seconds")
            assert item["section"].lower() == article.section
        assert item["text"].splitlines() == list(
            site.articles.version_paragraphs(article.number, 0)
        )
    assert f"{len(known)} new" in result.stdout.partition("  Articles")[2].partition("\n")[0]
    assert result.stats["articles/sent"] == len(known)
    assert "articles/alarms" not in result.stats


SITES = """\
sites:
  - name: The Echo
    domains: [echo.demo.test]
    seeds: ["http://echo.demo.test:{port}/"]
    rules:
      - article: {{regex: "^/(city|stage)/.+[.]html$"}}
    fields: {{title: ".hd .big::text", authors: ".by b::text"}}
  - domains: [lantern.demo.test]
    seeds: ["http://lantern.demo.test:{port}/"]
"""


def test_articles_of_a_file_of_sites_have_its_fields_and_go_to_feeds_and_redis(
    redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    out = tmp_path / "articles.jsonl"
    with serve_models(clock=FrozenClock()) as demo:
        settings = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_server.url,
            "DNS_HOSTS": demo.dns_hosts,
            "FRONTIER_FLUSH": 0.2,
            "CRAWL_PATIENCE": 0,
        }
        file = tmp_path / "sites.yaml"
        file.write_text(SITES.format(port=demo.port))
        result = run_crawl(["news", "-a", f"sites={file}", "-o", str(out)], settings, tmp_path)
        age = demo.web.world.age_at(demo.now())
        sites = {name: demo.web.sites[name] for name in ("echo", "lantern")}
        expected = {
            site.article_url(number): (name, site.articles.get(number))
            for name, site in sites.items()
            for number in range(site.articles.published_count(age))
        }
    assert result.code == 0, result.stderr + result.log
    items = [json.loads(line) for line in out.read_text().splitlines()]
    assert {item["url"] for item in items} == expected.keys()
    assert len(items) == len(expected)
    for item in items:
        name, article = expected[item["url"]]
        assert item["site"] == {"echo": "The Echo"}.get(name, "lantern.demo.test")
        assert item["title"] == article.title, "of the echo only its selector finds that"
        assert item["authors"] == [article.author]
    pushed = [json.loads(item) for item in redis_server.client.lrange("news:items", 0, -1)]
    assert sorted(pushed, key=itemgetter("url")) == sorted(items, key=itemgetter("url"))


def test_the_demo_web_is_served_until_a_signal_and_nothing_is_crawled(tmp_path: Path) -> None:
    with Crawl(["demo", "--serve"], tmp_path) as served:
        file = tmp_path / "demo.json"
        deadline = time.monotonic() + 30
        while not file.exists():
            assert time.monotonic() < deadline and served.process.poll() is None
            time.sleep(0.1)
        assert served.process.stdout
        lines = []
        while not lines or "export" not in lines[-1]:
            lines.append(served.process.stdout.readline())
        port = json.loads(file.read_text())["port"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/", headers={"Host": f"echo.demo.test:{port}"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert b"Quillham Echo" in answer.read()
        served.stop(signal.SIGTERM)
        result = served.wait()
    assert result.code == 0
    assert f"  http://echo.demo.test:{port}/\n" in lines
    assert re.search(r"^  export DNS_HOSTS=.*demo\.test.* GUARD_ALLOW_PRIVATE=1 ", lines[-1])
    assert not (tmp_path / "pg").exists(), "no database was needed"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
