"""The live bus with a real Redis: what is pushed is fetched once, what spiders yield comes out,
Redis may vanish at any time.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile
from tests.foreign import web
from tests.support.crawling import Crawl, run_crawl, start_crawl
from tests.support.redis_server import RedisServer
from tests.support.webs import asked, demo_settings, roots, rows

GONE = "does not answer, the crawl goes on without it"
BACK = "is back"


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer(
        grid_profile(4, addresses=2, like=HostSpec("", articles=12)), clock=FrozenClock()
    ) as server:
        yield server


@pytest.fixture
def shop() -> Iterator[type[web.Shop]]:
    with web.serving() as shop:
        yield shop


def live(demo: DemoServer, database_url: str, redis_url: str, **more: object) -> dict[str, object]:
    spiders = {"SPIDER_MODULES": "spiders,tests.spiders"}
    return demo_settings(demo, database_url, REDIS_URL=redis_url, **spiders, **more)


def wait_for(done: Callable[[], bool], crawl: Crawl, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert crawl.process.poll() is None, crawl.wait()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def log_of(crawl_dir: Path) -> str:
    return "".join(path.read_text() for path in (crawl_dir / "log").glob("*.log"))


def pages(demo: DemoServer, count: int) -> list[str]:
    """So many different URLs of pages that exist, spread over the hosts."""
    return [f"{roots(demo)[n % 4]}?push={n}" for n in range(count)]


def taken_aside(server: RedisServer) -> list[bytes]:
    return [name for name in server.client.scan_iter() if b":taken" in name]


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_urls_and_json_of_any_kind_of_key_are_fetched(
    kind: str,
    demo: DemoServer,
    shop: type[web.Shop],
    redis_server: RedisServer,
    database_url: str,
    tmp_path: Path,
) -> None:
    first, second, fourth, third = *pages(demo, 3), f"{shop.base}/hello"
    pushes: list[Any] = [
        first,
        json.dumps(
            {"url": second, "meta": {"word": "hello", "parent": "x", "depth": [], "ticket": 1}}
        ),
        "not a url \x1b[31m\n2026 forged",
        json.dumps({"url": first, "meta": {"proxy": "http://127.0.0.1:9/"}}),
        "[1]",
        '{"meta": {}}',
        first + "x" * 2000,
        json.dumps({"url": fourth, "meta": {"word": "\0"}}),
        json.dumps({"url": third, "method": "post", "a": "b"}),
    ]
    client = redis_server.client
    name = "modules:start_urls"
    if kind == "list":
        client.rpush(name, *pushes)
    elif kind == "set":
        client.sadd(name, *pushes)
    else:
        client.zadd(name, {push: n for n, push in enumerate(pushes)})
    result = run_crawl(["modules"], live(demo, database_url, redis_server.url), tmp_path)
    assert result.code == 0, result.stderr + result.log
    assert (result.stats["bus/taken"], result.stats["bus/bad"], result.stats["bus/items"]) == (
        9,
        5,
        4,
    )
    assert "may not set 'proxy'" in result.log
    assert "\x1b" not in result.log
    assert "\n2026 forged" not in result.log
    items = {item["url"]: item for item in map(json.loads, client.lrange("modules:items", 0, -1))}
    assert {url: (item["method"], item["body"], item["word"]) for url, item in items.items()} == {
        first: ("GET", "", None), second: ("GET", "", "hello"), third: ("POST", "a=b", None),
        fourth: ("GET", "", "\0"),
    }  # fmt: skip
    assert client.keys() == [b"modules:items"], "nothing is left behind"


def test_without_a_redis_nothing_of_it_is_imported(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    out = tmp_path / "items.jsonl"
    result = run_crawl(
        ["modules", "-a", f"url={roots(demo)[0]}", "-o", str(out)],
        live(demo, database_url, ""),
        tmp_path,
    )
    assert result.code == 0, result.stderr
    assert [json.loads(line)["modules"] for line in out.read_text().splitlines()] == [[]]


def test_items_stay_at_home_if_so_wished(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    settings = live(demo, database_url, redis_server.url, REDIS_ITEMS=False)
    result = run_crawl(["modules", "-a", f"url={roots(demo)[0]}"], settings, tmp_path)
    assert (result.code, redis_server.client.keys()) == (0, [])


def test_a_push_is_fetched_before_those_that_wait(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    """Of the hundreds that wait on the same host only those few come first that are under way, or
    just about to be.
    """
    host = roots(demo)[0]
    wait = [f"{roots(demo)[0]}?n={n}" for n in range(300)]
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join(wait))
    settings = live(
        demo,
        database_url,
        redis_server.url,
        POLITENESS_DELAY=0.25,
        FRONTIER_FLUSH=1,
        CRAWL_CONTINUOUS=True,
    )
    with start_crawl(["site", "-a", f"seeds_file={seeds}"], settings, tmp_path) as crawl:
        wait_for(lambda: len(demo.log.records()) > 4, crawl)
        before = len(demo.log.records())
        redis_server.client.rpush("site:start_urls", f"{host}?pushed")
        wait_for(lambda: asked(demo)[f"{host}?pushed"] > 0, crawl)
        after = [record.path for record in demo.log.records()[before:]].index("/?pushed")
        crawl.stop()
        crawl.wait()
    assert after <= 8, "two seconds' worth"
    assert rows(database_url)[f"{host}?pushed"].depth == 1, "no seed"


def test_a_url_that_is_known_is_fetched_again_by_a_push(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    url = roots(demo)[0]
    for _ in range(2):
        redis_server.client.rpush("site:start_urls", url)
        result = run_crawl(["site"], live(demo, database_url, redis_server.url), tmp_path)
        assert result.code == 0, result.stderr + result.log
    assert asked(demo)[url] == 2
    assert rows(database_url)[url].visits == 2


def test_a_push_hurries_what_it_leads_to_but_never_goes_in_circles(
    demo: DemoServer,
    shop: type[web.Shop],
    redis_server: RedisServer,
    database_url: str,
    tmp_path: Path,
) -> None:
    for _ in range(2):
        redis_server.client.rpush("modules:start_urls", f"{shop.base}/old", f"{shop.base}/round")
        result = run_crawl(["modules"], live(demo, database_url, redis_server.url), tmp_path)
        assert result.code == 0, result.stderr + result.log
    assert (shop.asked["GET /old"], shop.asked["GET /item/1"]) == (2, 2)
    assert max(shop.asked.values()) <= 4


@pytest.mark.proof
@pytest.mark.kills
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_thousand_pushes_over_a_restart_of_redis_are_fetched_once_each(
    number: signal.Signals,
    demo: DemoServer,
    redis_server: RedisServer,
    database_url: str,
    tmp_path: Path,
) -> None:
    urls = pages(demo, 1000)
    settings = live(demo, database_url, redis_server.url, CRAWL_CONTINUOUS=True, PANEL_INTERVAL=1)
    words = ["workers", "site", "-n", "2", "-a", f"seeds={roots(demo)[0]}"]
    with Crawl(words, tmp_path, settings) as crawl:
        wait_for(lambda: asked(demo)[roots(demo)[0]] > 0, crawl)
        redis_server.client.rpush("site:start_urls", *urls[:500])
        wait_for(lambda: redis_server.client.llen("site:start_urls") < 400, crawl)
        redis_server.stop(number)
        wait_for(lambda: log_of(tmp_path).count(GONE) == 2, crawl)
        redis_server.start()
        redis_server.client.rpush("site:start_urls", *urls[500:])
        wait_for(lambda: len(set(urls) & asked(demo).keys()) == 1000, crawl)
        wait_for(lambda: not taken_aside(redis_server), crawl)
        crawl.stop()
        crawl.wait()
    times = asked(demo)
    assert {url: times[url] for url in urls if times[url] != 1} == {}
    assert (log_of(tmp_path).count(GONE), log_of(tmp_path).count(BACK)) == (2, 2), (
        "once by each worker"
    )


@pytest.mark.proof
@pytest.mark.kills
def test_a_worker_that_is_killed_loses_no_push_that_it_had_taken(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    """Killed as soon as something is taken, again and again; the last one finds what the others
    left.
    """
    urls = pages(demo, 600)
    settings = live(
        demo,
        database_url,
        redis_server.url,
        FRONTIER_LEASE=2,
        DOWNLOAD_TIMEOUT=1,
        CRAWL_CONTINUOUS=True,
    )
    redis_server.client.rpush("site:start_urls", *urls)
    for left in (450, 250):
        with start_crawl(["site"], settings, tmp_path) as crawl:
            while redis_server.client.llen("site:start_urls") > left:
                assert crawl.process.poll() is None
            crawl.stop(signal.SIGKILL)
            crawl.wait()
    aside = redis_server.client.zrange("site:start_urls:taken", 0, -1)
    for token in aside:  # as if it were long ago
        redis_server.client.zadd("site:start_urls:taken", {token: 1})
    with start_crawl(["site"], settings, tmp_path) as crawl:
        wait_for(
            lambda: set(urls) <= {url for url, row in rows(database_url).items() if row.visits},
            crawl,
        )
        crawl.stop()
        crawl.wait()
    assert taken_aside(redis_server) == []
    again = {url: n for url, n in asked(demo).items() if n > 1 and url in urls}
    assert len(again) < 100, "only what a killed worker had fetched and not stored"


def test_a_crawl_goes_on_without_its_redis_and_says_so_once(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    server = RedisServer()
    settings = live(demo, database_url, server.url, CRAWL_CONTINUOUS=True)
    try:
        with start_crawl(["site", "-a", f"seeds={roots(demo)[0]}"], settings, tmp_path) as crawl:
            wait_for(lambda: len(demo.log.records()) > 10 and GONE in log_of(tmp_path), crawl)
            time.sleep(2.5)
            server.start()
            url = roots(demo)[1]
            server.client.rpush("site:start_urls", url)
            wait_for(lambda: asked(demo)[url] == 1, crawl)
            server.client.flushall()
            crawl.stop()
            result = crawl.wait()
    finally:
        server.__exit__()
    assert result.code == 130
    assert (result.log.count(GONE), result.log.count("answers now")) == (1, 1)
    assert BACK not in result.log, "it was never there before"
    assert result.stats["bus/taken"] == 1


def test_a_redis_that_hangs_holds_up_nothing(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    settings = live(demo, database_url, redis_server.url)
    redis_server.send(signal.SIGSTOP)
    try:
        result = run_crawl(["site", "-a", "seeds=" + ",".join(roots(demo))], settings, tmp_path)
    finally:
        redis_server.send(signal.SIGCONT)
    assert result.code == 0, result.stderr
    truth = demo.web.truth_at(demo.now(), seeds=roots(demo))
    assert result.stats["end/waiting"] >= len(truth.pages)
    assert result.log.count(GONE) == 1


def test_a_crawl_with_nothing_to_do_does_not_end_before_redis_has_answered(
    demo: DemoServer, redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    settings = live(demo, database_url, redis_server.url, REDIS_PARAMS={"socket_timeout": 60})
    redis_server.client.rpush("site:start_urls", roots(demo)[0])
    redis_server.send(signal.SIGSTOP)
    with start_crawl(["site"], settings, tmp_path) as crawl:
        wait_for(lambda: "are fetched first" in log_of(tmp_path), crawl)
        time.sleep(3)
        redis_server.send(signal.SIGCONT)
        result = crawl.wait()
    assert (result.code, result.log.count(GONE)) == (0, 0)
    assert asked(demo)[roots(demo)[0]] == 1


@pytest.mark.parametrize("locked", [True, False], ids=["wrong password", "wrong kind of key"])
def test_a_redis_that_refuses_is_named_without_its_password(
    locked: bool, demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    words = ("--requirepass", "right", "--save", "") if locked else ("--save", "")
    server = RedisServer(*words)
    server.client = type(server.client)(
        unix_socket_path=str(server.socket), password="right" if locked else None
    )
    with server:
        server.client.hset("site:start_urls", "a", "b")
        url = f"{server.url}?password=secretword" if locked else server.url
        result = run_crawl(
            ["site", "-a", f"seeds={roots(demo)[0]}"], live(demo, database_url, url), tmp_path
        )
    assert result.code == 0
    lines = [line for line in result.log.splitlines() if GONE in line]
    assert len(lines) == 1
    assert "secretword" not in lines[0]
    assert ("invalid" in lines[0] or "WRONGPASS" in lines[0]) if locked else "is a hash" in lines[0]


def test_a_bad_redis_url_is_refused_at_start(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    result = run_crawl(
        ["site", "-a", f"seeds={roots(demo)[0]}"],
        live(demo, database_url, "localhost:6379"),
        tmp_path,
    )
    assert (result.code, "REDIS_URL makes no sense" in result.stderr) == (
        2,
        True,
    ), result.stderr
