"""The commands, as processes, on a small crawl of the demo web; and what a crawl shows while it
runs and at its end.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]
import pytest
from scrapy.settings import Settings

from crawlproj.cli.command import is_host
from crawlproj.config import read_config
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import running_dsn
from crawlproj.demo import DemoServer, FrozenClock
from crawlproj.formatting import format_bytes
from crawlproj.reports.host_figures import ORDERS, host_figures
from settings import base
from tests.integration.test_robots import Site
from tests.integration.test_robots import site as site
from tests.support.crawling import ROOT, Result, run_command, run_crawl, start_crawl
from tests.support.webs import demo_settings


@dataclass(frozen=True, slots=True)
class World:
    """A demo web and the settings to crawl it."""

    demo: DemoServer
    settings: dict[str, object]
    crawl_dir: Path

    def run(self, *words: str, **settings: object) -> Result:
        return run_command(words, self.crawl_dir, {**self.settings, **settings})

    def crawl(self, *words: str, **settings: object) -> Result:
        seeds = ",".join(self.demo.url(name) for name in self.demo.web.sites)
        return run_crawl(
            ["site", "-a", f"seeds={seeds}", *words], {**self.settings, **settings}, self.crawl_dir
        )


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[World]:
    with DemoServer("tiny", clock=FrozenClock()) as demo:
        settings = {
            "DATABASE_URL": database_url,
            "DNS_HOSTS": demo.dns_hosts,
            "CRAWL_PATIENCE": 2,
            "FRONTIER_FLUSH": 0.2,
        }
        yield World(demo, settings, tmp_path)


def wait_for(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def first_host(by_host: dict[str, dict[str, Any]], order: str) -> str:
    """The host that comes first: the largest number, the soonest time or the first name."""

    def key(name: str) -> tuple[bool, Any, str]:
        value = (by_host[name] | by_host[name]["urls"] | {"name": 0})[order]
        if isinstance(value, int | float):
            value = -value
        return value is None, value, name

    return min(by_host, key=key)


def test_before_the_first_crawl_all_commands_say_so(tmp_path: Path) -> None:
    empty = run_command(["status", "--json"], tmp_path)
    assert (empty.code, empty.json) == (0, {"crawls": {}})
    words = run_command(["status"], tmp_path)
    assert (words.code, words.stdout.startswith("nothing was crawled yet")) == (0, True)
    assert run_command(["seeds", "list", "--json"], tmp_path).json == {"seeds": []}
    plan = run_command(["plan"], tmp_path)
    assert (plan.code, plan.stderr.startswith("crawlproj: nothing was crawled yet")) == (1, True)
    assert not (tmp_path / "pg").exists()


def test_status_explain_and_plan_agree_with_the_web(world: World) -> None:
    assert world.crawl().code == 0
    truth = world.demo.web.truth_at(
        world.demo.now(), seeds=[world.demo.url(name) for name in world.demo.web.sites]
    )
    site = world.run("status", "--json").json["crawls"]["site"]
    assert (
        site["urls"]["waiting"] == site["urls"]["documents"] == site["versions"] == len(truth.pages)
    )
    assert site["urls"]["moved"] == len(truth.redirects)
    assert site["urls"]["forbidden"] == len(truth.forbidden)
    assert site["urls"]["gone"] == len(truth.errors)
    assert (site["hosts"], site["leased_servers"], site["due_now"]) == (2, 0, 0)
    assert site["next_due"] is not None
    size = site["warc_bytes"]
    assert size == sum(file.stat().st_size for file in world.crawl_dir.rglob("*.warc.gz")) > 1000
    assert f"; archive of {format_bytes(size)}." in world.run("status").stdout

    by_host = world.run("status", "--hosts", "--json").json["crawls"]["site"]["by_host"]
    assert set(by_host) == {f"{name}.demo.test" for name in world.demo.web.sites}
    for name, number in site["urls"].items():
        assert sum(host["urls"][name] for host in by_host.values()) == number, name
    assert sum(host["pages"] for host in by_host.values()) == len(truth.pages)
    pages = [host["pages"] for host in by_host.values()]
    assert pages == sorted(pages, reverse=True), "the default order"
    one = by_host["one.demo.test"]
    assert one["bytes"] > 1000 and one["response_ms"] >= 0 and one["delay_s"] == 0
    assert (one["due_now"], one["failures"], one["leased"]) == (0, 0, False)
    assert min(host["next_due"] for host in by_host.values()) == site["next_due"]
    with closing(Database(str(world.settings["DATABASE_URL"]))) as database:
        settings = Settings({"GUARD_ALLOW_PRIVATE": True})
        settings.setmodule(base)
        config = read_config(settings, "site")
        now = database.fetch_value("now")
        for order in ORDERS:
            (first,) = host_figures(database, config, "site", now, order=order, limit=1)
            assert first == first_host(by_host, order), order
    shown = world.run("status", "--hosts", "--sort", "name", "--limit", "1").stdout
    assert "site: 1 of 2 hosts by name\n" in shown and "one.demo.test" in shown

    seed = world.demo.url("one")
    facts = world.run("explain", seed, "--json").json
    assert (facts["state"], facts["status"], facts["visits"], facts["depth"]) == (
        "waiting",
        200,
        1,
        0,
    )
    assert (facts["robots"], facts["parent"]) == ("allowed", None)
    assert (facts["interval_s"], facts["found"], facts["source"]) == (15 * 60, "seed", True)
    assert facts["host"]["delay_source"] == "POLITENESS_DELAY"
    with_another = world.run("explain", seed, "--json", "-s", "POLITENESS_DELAY=7").json
    assert with_another["host"]["delay_s"] == 0, "what the crawl kept, not what explain was given"
    assert "waits for its next visit" in world.run("explain", seed).stdout

    plan = world.run("plan", "-n", "5", "--json").json
    assert [entry["lane"] for entry in plan] == ["revisit"] * 5
    assert [entry["at"] for entry in plan] == sorted(entry["at"] for entry in plan)
    assert plan[0]["at"] >= site["next_due"]


def test_explain_knows_why_each_url_is_where_it_is(world: World) -> None:
    assert world.crawl().code == 0
    truth = world.demo.web.truth_at(
        world.demo.now(), seeds=[world.demo.url(name) for name in world.demo.web.sites]
    )
    forbidden = world.run("explain", sorted(truth.forbidden)[0], "--json").json
    assert (forbidden["state"], forbidden["why"], forbidden["robots"]) == (
        "forbidden",
        "robots",
        "forbidden",
    )
    gone = world.run("explain", sorted(truth.errors)[0], "--json").json
    assert (gone["state"], gone["why"]) == ("gone", "status 404")
    moved = world.run("explain", sorted(truth.redirects)[0], "--json").json
    assert moved["state"] == "moved"
    assert moved["moved_to"]
    unknown = world.run("explain", world.demo.url("one", "/nowhere"))
    assert unknown.code == 1
    assert "does not know it" in unknown.stdout
    assert "robots.txt allows it" in unknown.stdout
    host = world.run("explain", "one.demo.test", "--json").json
    assert (host["known"], host["robots"][0]["status"]) == (True, 200)


def test_explain_says_why_a_host_waits_and_until_when(world: World) -> None:
    assert world.run("seeds", "add", world.demo.url("one")).code == 0
    database = Database(str(world.settings["DATABASE_URL"]))
    host = (
        "update crawlproj.host set next_allowed = now() + interval '{}', reason = '{}', "
        "failures = 3 where name like 'one.%'"
    )
    with closing(database):
        database.run_script(
            "insert into crawlproj.server (address, next_allowed, reason) values ('127.0.0.9', "
            "null, '')"
        )
        database.run_script(
            "update crawlproj.host set server = (select id from crawlproj.server where address = "
            "'127.0.0.9')"
        )
        database.run_script(host.format("1 hour", "retry-after"))
        assert "asked for it with Retry-After" in world.run("explain", "one.demo.test").stdout
        database.run_script(host.format("1 hour", "back-off"))
        assert (
            "it has failed, 3 failures in a row"
            in world.run("explain", world.demo.url("one")).stdout
        )
        database.run_script(
            "update crawlproj.server set next_allowed = now() + interval '2 hours', reason = "
            "'general pause'"
        )
        facts = world.run("explain", "one.demo.test", "--json").json["host"]
        assert facts["reason"] == "general pause"
        (until,) = database.run_script(
            "select next_allowed from crawlproj.server where address = '127.0.0.9'"
        )[0]
        assert datetime.fromisoformat(facts["next_allowed"]) == until
        database.run_script(host.format("-1 hour", "delay"))
        database.run_script("update crawlproj.server set next_allowed = null")
        assert "may be asked now" in world.run("explain", "one.demo.test").stdout


def test_feeds_of_a_feed_reader_become_seeds(world: World, tmp_path: Path) -> None:
    path = tmp_path / "mine.opml"
    feed, site = world.demo.url("one", "/feed.xml"), world.demo.url("two", "/news/")
    path.write_text(f'<opml><outline xmlUrl="{feed}" htmlUrl="{site}"/></opml>')
    assert world.run("seeds", "add", str(path), world.demo.url("two")).code == 0
    seeds = world.run("seeds", "list", "--json").json["seeds"]
    assert set(seeds) == {feed, site, world.demo.url("two")}, "the site is in the scope, too"
    assert world.run("seeds", "add", str(tmp_path / "none.opml")).code != 0


def test_plan_follows_the_lanes_and_the_host_clocks(world: World) -> None:
    seeds = [world.demo.url("one"), world.demo.url("two")]
    assert world.run("seeds", "add", *seeds).code == 0
    assert world.run("push", world.demo.url("two", "/first.html")).code == 0
    plan = world.run("plan", "-n", "10", "--json", POLITENESS_DELAY=7).json
    assert [(entry["host"][:3], entry["lane"]) for entry in plan] == [
        ("two", "urgent"),
        ("one", "new"),
        ("two", "new"),
    ]
    first = plan[0]
    last = plan[2]
    seconds = Database(str(world.settings["DATABASE_URL"]))
    with closing(seconds):
        gap = seconds.run_script(
            f"select extract(epoch from '{last['at']}'::timestamptz - "
            f"'{first['at']}'::timestamptz)::float8"
        )
    assert gap == [(7.0,)]
    assert world.run("status", "--json").json["crawls"]["site"]["urls"]["new"] == 3


def test_stored_seeds_are_crawled_without_naming_them_again(world: World) -> None:
    seed = world.demo.url("two")
    assert world.run("seeds", "add", seed).code == 0
    assert world.run("seeds", "list", "--json").json == {"seeds": [seed]}
    result = run_crawl(["site"], world.settings, world.crawl_dir)
    assert result.code == 0, result.stderr
    assert result.stats["pages/first"] > 1


def test_a_pushed_url_is_fetched_ahead_of_the_rest_of_a_running_crawl(world: World) -> None:
    """The host has many pages and a long pause between two: only the lane can explain that it comes
    early.
    """
    pushed = world.demo.url("one", "/pushed.html")
    seeds = world.crawl_dir / "seeds.txt"
    seeds.write_text("\n".join(f"{world.demo.url('one')}?n={n}" for n in range(300)))
    settings = {**world.settings, "POLITENESS_DELAY": 0.5}
    with start_crawl(["site", "-a", f"seeds_file={seeds}"], settings, world.crawl_dir) as crawl:
        wait_for(lambda: len(world.demo.log.records()) >= 4, "the first pages")
        push = world.run("push", pushed)
        assert push.code == 0
        assert "the running crawl fetches them first" in push.stdout
        before = len(world.demo.log.records())
        wait_for(
            lambda: any(record.path == "/pushed.html" for record in world.demo.log.records()),
            "the pushed page",
        )
        paths = [record.path for record in world.demo.log.records()]
        crawl.stop()
        assert crawl.wait().code == 130
    left = world.run("status", "--json").json["crawls"]["site"]["urls"]["new"]
    assert left > 0, "the crawl was over anyway"
    assert paths.index("/pushed.html") - before <= 3


def test_an_interrupted_crawl_says_that_its_state_is_safe_and_goes_on_the_next_time(
    world: World,
) -> None:
    settings = {**world.settings, "POLITENESS_DELAY": 0.4}
    with start_crawl(
        ["site", "-a", f"seeds={world.demo.url('one')}"], settings, world.crawl_dir
    ) as crawl:
        wait_for(lambda: len(world.demo.log.records()) >= 4, "the first pages")
        crawl.stop(signal.SIGINT)
        result = crawl.wait()
    assert result.code == 130
    assert result.stats["finish_reason"] == "shutdown"
    assert "what it knows is safe" in result.stdout
    assert "Traceback" not in result.stderr
    seen = len(world.demo.log.records())
    assert run_crawl(["site"], world.settings, world.crawl_dir).code == 0
    paths = [record.path for record in world.demo.log.records()[seen:]]
    assert paths
    assert len(paths) == len(set(paths))


def test_a_second_signal_stops_at_once_and_leaves_no_database_behind(
    site: Site, tmp_path: Path
) -> None:
    end = threading.Event()
    log = tmp_path / "log" / "site.log"
    site.pages["/"] = lambda _: end.wait()  # no answer before
    with start_crawl(
        ["site", "-a", f"seeds={site.base}/"], {"CRAWL_SHUTDOWN": 60}, tmp_path
    ) as crawl:
        wait_for(lambda: site.paths()["/"] > 0, "the request")
        crawl.stop(signal.SIGINT)
        wait_for(lambda: "shutting down gracefully" in log.read_text(), "the first stop")
        crawl.stop(signal.SIGINT)
        result = crawl.wait()
    end.set()
    assert result.code == 130
    assert (
        result.stderr
        == "crawlproj: stopped at once: what was not stored yet is fetched again by the next run\n"
    )
    assert running_dsn(tmp_path) is None


def test_the_summary_counts_what_became_of_the_pages_and_names_places_and_commands(
    world: World,
) -> None:
    result = world.crawl(PANEL_INTERVAL="0.2s", POLITENESS_DELAY=0.1)
    assert result.code == 0
    out = result.stdout
    truth = world.demo.web.truth_at(
        world.demo.now(), seeds=[world.demo.url(name) for name in world.demo.web.sites]
    )
    assert f"{len(truth.pages)} new" in out
    assert "nothing more was due" in out
    assert "status 404" in out
    assert str(world.crawl_dir / "log" / "site.log") in out
    assert "scrapy status" in out or "-m scrapy status" in out
    assert f"scrapy explain {world.demo.url('one')} --crawl site" in out, (
        "other crawls may know it too"
    )
    assert sum(" in hand" in line for line in out.splitlines()) >= 2, "a line now and then"
    assert "\x1b" not in out
    assert "Spider closed (finished)" in result.log
    assert result.stderr == ""
    again = world.crawl()
    assert again.code == 0
    assert "Nothing was due" in again.stdout


def test_a_terminal_gets_a_live_panel_and_the_log_stays_in_its_file(world: World) -> None:
    settings = {
        **world.settings,
        "CRAWL_DIR": str(world.crawl_dir),
        "GUARD_ALLOW_PRIVATE": "1",
        "POLITENESS_DELAY": "0.2",
    }
    words = [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "site",
        "-a",
        f"seeds={world.demo.url('one')}",
    ]
    for name, value in settings.items():
        words += ["-s", f"{name}={json.dumps(value) if isinstance(value, dict) else value}"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    child = subprocess.Popen(
        words,
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    text = shown.decode()
    assert child.wait(30) == 0
    assert text.count("crawlproj  site  0:0") > 2
    assert "\x1b[6F\x1b[2K" in text, "drawn over the last one"
    assert "in hand" in text
    assert "Crawl site ended" in text
    assert "INFO" not in text


def test_panel_off_leaves_the_log_on_the_error_output_as_scrapyd_needs_it(world: World) -> None:
    result = world.crawl(PANEL="off")
    assert result.code == 0
    assert result.stdout == ""
    assert "Spider closed (finished)" in result.stderr
    assert result.log == ""


@pytest.mark.parametrize(
    "command", ["crawl", "demo", "status", "explain", "plan", "push", "seeds", "db"]
)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    result = run_command([command, "--help"], tmp_path, {})
    assert result.code == 0
    assert f"scrapy {command}" in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["status", "--jsn"], "unknown option --jsn"),
        (["status", "--hosts", "--sort", "size"], "--sort size: one of name, pages"),
        (["status", "--hosts", "--limit", "0"], "--limit 0: a whole number"),
        (["status", "--sort", "pages"], "--sort and --limit go with --hosts"),
        (["status", "word"], "usage: scrapy status"),
        (["explain"], "usage: scrapy explain"),
        (["explain", "http://"], "not a web address: 'http://'"),
        (["plan", "-n", "0"], "-n 0 makes no sense"),
        (["push"], "usage: scrapy push"),
        (["push", "http://127.0.0.1/", "ftp://x/"], "not a web address: 'ftp://x/'"),
        (["push", "notaurl"], "not a web address: 'notaurl' (write https://example.org/page"),
        (["seeds", "add", "nonsense", "you@x.org"], "address: 'nonsense'; 'you@x.org' (write http"),
        (["seeds"], "usage: scrapy seeds"),
        (["seeds", "drop"], "usage: scrapy seeds"),
        (["db", "drop"], "usage: scrapy db"),
        (["demo", "word"], "usage: scrapy demo"),
    ],
)
def test_bad_usage_of_a_command_is_one_clear_line(
    tmp_path: Path, words: list[str], says: str
) -> None:
    result = run_command(words, tmp_path)
    assert result.code == 2
    assert len(result.stderr.splitlines()) == 1
    assert says in result.stderr


def test_a_crawl_that_does_not_exist_is_named_with_those_that_do(world: World) -> None:
    world.run("seeds", "add", world.demo.url("one"), "--crawl", "news")
    result = world.run("plan", "--crawl", "nws")
    assert (result.code, "there is no crawl 'nws'; there are: news" in result.stderr) == (2, True)
    world.run("seeds", "add", world.demo.url("two"), "--crawl", "blogs")
    result = world.run("plan")
    assert (result.code, "there are several crawls (blogs, news)" in result.stderr) == (2, True)
    assert world.run("explain", world.demo.url("two"), "--json").json["crawl"] == "blogs"


def test_the_advice_after_seeds_add_names_a_spider_that_exists(world: World) -> None:
    site = world.run("seeds", "add", world.demo.url("one"), "http://intranet/", "--crawl", "site")
    assert "2 seeds for crawl site, 2 not known before. Start with: " in site.stdout
    assert "scrapy crawl site -s CRAWL_DIR=" in site.stdout
    other = world.run("seeds", "add", world.demo.url("one"), "--crawl", "my news")
    assert "scrapy crawl site -s CRAWL_NAME='my news' -s CRAWL_DIR=" in other.stdout


def run_into_a_closed_pipe(words: list[str], *settings: str) -> tuple[int, str]:
    """The exit code and the error output of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    options = [word for setting in settings for word in ("-s", setting)]
    command = [sys.executable, "-m", "scrapy", *words, *options]
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120
        )
    finally:
        os.close(writing)
    return done.returncode, done.stderr


def test_exit_codes_survive_a_closed_pipe(tmp_path: Path) -> None:
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        crawl = run_into_a_closed_pipe(
            ["crawl", "site", "-a", f"seeds=http://127.0.0.1:{port}/"],
            f"CRAWL_DIR={tmp_path}", "GUARD_ALLOW_PRIVATE=1", "CRAWL_PATIENCE=0",
            "FRONTIER_RETRIES=0", "PANEL=lines", "PANEL_INTERVAL=0.1",
        )  # fmt: skip
    assert crawl == (3, "crawlproj: nothing could be fetched\n")
    log = next((tmp_path / "log").glob("requests-*.jsonl"))
    log.write_text("not JSON\n" * 3000)
    code, errors = run_into_a_closed_pipe(["politeness", "audit", str(log), "--json"])
    assert (code, "Traceback" in errors, "BrokenPipe" in errors) == (2, False, False)
    fine = run_into_a_closed_pipe(["status"], f"CRAWL_DIR={tmp_path}")
    assert fine == (0, "")


def test_our_own_database_starts_for_psql_and_runs_until_it_is_told_to_stop(
    tmp_path: Path,
) -> None:
    first = run_command(["db", "url"], tmp_path)
    assert first.code == 0
    url = first.stdout.strip()
    with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
        seed = demo.url("one", "/")
        settings = {**demo_settings(demo, ""), "CLOSESPIDER_PAGECOUNT": 1}
        with closing(psycopg2.connect(url)) as psql, psql.cursor() as cursor:
            cursor.execute("create table mine as select 7 as seven")
            psql.commit()
            for words in (
                ["db", "migrate"], ["crawl", "site", "-a", f"seeds={seed}"],
                ["status"], ["explain", seed], ["plan"],
            ):  # fmt: skip
                result = run_command(words, tmp_path, settings)
                assert result.code == 0, (words, result.stderr)
            cursor.execute("select seven from mine")
            assert cursor.fetchall() == [(7,)], "the connection is the one from before"
    assert running_dsn(tmp_path) == url
    assert run_command(["db", "migrate"], tmp_path).code == 0
    assert running_dsn(tmp_path) == url, "also without any connection it runs on"
    assert run_command(["db", "stop"], tmp_path).stdout == "Stopped.\n"
    assert run_command(["db", "stop"], tmp_path).stdout == "It does not run.\n"
    assert run_command(["db", "migrate"], tmp_path).code == 0
    assert running_dsn(tmp_path) is None, "the last user of it stops it"


def test_db_stop_says_who_uses_the_database(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from crawlproj.database.embedded.server import EmbeddedPostgres; e = "
        "EmbeddedPostgres(pathlib.Path(sys.argv[1]));"
        "e.start(); print('up', flush=True); sys.stdin.read(); e.close()"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with user:
        assert user.stdout is not None
        assert user.stdout.readline() == "up\n"
        refused = run_command(["db", "stop"], tmp_path)
        assert refused.code == 1
        assert f"process {user.pid}" in refused.stderr or not Path("/proc/locks").exists()
        assert running_dsn(tmp_path) is not None
        assert run_command(["db", "stop", "--force"], tmp_path).stdout == "Stopped.\n"
        user.communicate()


@pytest.mark.proof
def test_the_demo_web_goes_on_at_the_second_run_and_its_changes_are_seen(tmp_path: Path) -> None:
    quick = {
        "CLOSESPIDER_PAGECOUNT": 600,
        "REVISIT_INTERVAL": "2s",
        "REVISIT_MIN": "1s",
        "POLITENESS_DELAY": 0.1,
    }
    first = run_command(["demo"], tmp_path, quick)
    assert first.code == 0, first.stderr
    kept = json.loads((tmp_path / "demo.json").read_text())
    assert first.stats["pages/first"] > 100
    kinds = ("exact", "text", "near", "paragraph")
    assert all(first.stats[f"duplicates/{kind}"] > 0 for kind in kinds), "of its mirror host"
    said, _, next_steps = first.stdout.partition("Try next:")
    assert re.search(r"\d+ copies", said) and "scrapy duplicates --crawl demo" in next_steps
    found = re.search(r"^  Articles +(\d+)  \d+ new", first.stdout, re.M)
    assert found and int(found[1]) > 20
    assert "export --what articles -o articles.jsonl --crawl demo" in next_steps
    second = run_command(["demo"], tmp_path, quick)
    assert second.code == 0, second.stderr
    assert json.loads((tmp_path / "demo.json").read_text()) == kept
    assert second.stats["pages/not_modified"] > 50
    assert second.stats["pages/changed"] > 0
    truth = re.search(r"In truth ([\d.]+) % of (\d+) copies\nare up to date", second.stdout)
    estimate = re.search(r"Fresh +([\d.]+) % of the copies are up to date", second.stdout)
    assert truth and estimate and int(truth[2]) > 100
    assert abs(float(truth[1]) - float(estimate[1])) < 30
    assert re.search(r"Revisits +\d+  \d+ found a change, \d+ wasted", second.stdout)
    assert re.search(r"Sources +\d+  where new pages are found: .* front pages", second.stdout)
    with closing(socket.socket()) as free:
        assert free.connect_ex(("127.0.0.1", kept["port"])) != 0, (
            "the demo web ended with the command"
        )


def test_a_bare_name_is_a_host_and_everything_else_a_url() -> None:
    assert is_host("example.org")
    assert not is_host("example.org/")
    assert not is_host("example.org:80")
    assert not is_host("http://example.org")
