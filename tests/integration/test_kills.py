"""Kill anything at any moment: nothing is lost, little is fetched twice, no rule of politeness is
broken.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from crawlproj.database.connection import Database
from crawlproj.database.migrations import migrate
from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile
from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import Batch, CrawlSpec, NewUrl, Outcome, State, Want
from crawlproj.frontier.postgres import PostgresFrontier
from tests.support.crawling import Crawl
from tests.support.full import SmallDisk, small_disk
from tests.support.judge import Law, violations
from tests.support.kills import UNTIMED_S, Evidence, Kill, OwnPostgres, Scene
from tests.support.redis_server import RedisServer
from tests.support.webs import in_state, roots

pytestmark = [pytest.mark.proof, pytest.mark.kills]

DELAY_S = 0.8
SERVER_DELAY_S = 0.05
FLUSH_S = 0.2
# The law leaves room for what a busy machine adds between two processes: a server that is taken
# over wrongly is asked at once.
LAW = Law(
    delay_s=DELAY_S - 0.1,
    server_delay_s=0.0,
    hosts_per_server=5,
    pause_after=0,
    pause_s=0.0,
    slowdown=0.0,
    max_delay_s=0.2,
)
NOTED_LATE_S = 0.3
"""The demo web shares the machine with all that are killed, and may note the end of an answer later
than it was read.
"""
SETTINGS: dict[str, object] = {
    "POLITENESS_DELAY": DELAY_S,
    "POLITENESS_SERVER_DELAY": SERVER_DELAY_S,
    "POLITENESS_HOSTS_PER_SERVER": 5,
    "POLITENESS_MAX_DELAY": 1,
    "FRONTIER_LEASE": "8s",
    "DOWNLOAD_TIMEOUT": 5,
    "FRONTIER_FLUSH": FLUSH_S,
    "CRAWL_PATIENCE": 20,
    "FRONTIER_RETRY_DELAY": 1,
    "FRONTIER_RETRIES": 20,
    "REVISIT_INTERVAL": "1h",
    "LOG_REQUESTS": False,
    "PANEL_INTERVAL": 60,
}
HOSTS = 118
PAGES_PER_HOST = 17


def web(hosts: int) -> Iterator[DemoServer]:
    profile = grid_profile(
        hosts, addresses=24, like=HostSpec("", articles=12, latency_s=(0.0, 0.05))
    )
    with DemoServer(profile, clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as server:
        yield server


@pytest.fixture
def big() -> Iterator[DemoServer]:
    yield from web(HOSTS)


@pytest.fixture
def small() -> Iterator[DemoServer]:
    yield from web(40)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[OwnPostgres]:
    server = OwnPostgres(tmp_path / "database")
    yield server
    server.close()


def chance() -> random.Random:
    """Other moments in each run; the seed is printed, and KILLS_SEED brings a run's
    moments back.
    """
    seed = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"KILLS_SEED={seed}")
    return random.Random(seed)


def moments(number: int, pages: int, dice: random.Random) -> list[int]:
    return sorted(dice.randrange(pages // 40, pages - pages // 20) for _ in range(number))


def nothing_is_lost(demo: DemoServer, evidence: Evidence) -> None:
    truth = demo.web.truth_at(demo.now(), seeds=roots(demo))
    assert in_state(evidence.rows, "waiting") == set(truth.pages)
    assert set(truth.pages) <= set(evidence.asked())
    assert set(evidence.codes.values()) == {0}, evidence.logs
    assert (
        violations(
            (replace(r, ended=max(r.started, r.ended - NOTED_LATE_S)) for r in evidence.records),
            LAW,
        )
        == []
    )


def every_end_is_in_the_log(folder: Path, evidence: Evidence) -> None:
    """What counted as done just after a kill, or at the end, has its line; and a log that has no
    end is one of a worker that was killed.
    """
    files = list(folder.rglob("requests-*.jsonl"))
    logged = set()
    ended = 0
    for file in files:
        for text in file.read_text().splitlines():
            line = json.loads(text)
            logged.add(line.get("url"))
            ended += "end" in line and "url" not in line
    done = {url for url, row in evidence.rows.items() if row.visits}
    done.update(*(kill.stored for kill in evidence.done))
    assert done <= logged
    killed = sum(kill.how == "kill" for kill in evidence.done)
    assert len(evidence.codes) <= ended <= len(files) <= ended + killed


def repeats_are_explained(evidence: Evidence) -> None:
    """Whatever was fetched again had been under way, or not yet stored, at a kill; and nothing
    waited longer to be stored than other pages of this run. A page that failed is tried again,
    which is no loss.
    """
    repeated = {
        url: seen for url, seen in evidence.repeated().items() if url not in evidence.failed()
    }
    again = [
        (url, record, evidence.unstored(record))
        for url, seen in repeated.items()
        for record in seen[:-1]
    ]
    assert [(url, record) for url, record, why in again if why is None] == []
    lags = evidence.lags.values() or [UNTIMED_S]
    longest = max(lags)
    waited = [why.began - record.ended for _, record, why in again if why]
    print(
        f"{len(evidence.records)} requests, {len(evidence.done)} kills, {len(again)} pages fetched "
        "again, of which"
        f" {sum(s < FLUSH_S for s in waited)} within FRONTIER_FLUSH of a kill;"
        + (
            f" commits after {median(lags):.2f} s, at most {longest:.2f} s"
            if evidence.lags
            else " commits not timed"
        )
    )
    assert max(waited, default=0.0) <= longest + FLUSH_S


@pytest.mark.parametrize("kills", [40])
def test_workers_killed_at_random_moments_lose_nothing(
    kills: int, big: DemoServer, postgres: OwnPostgres, tmp_path: Path
) -> None:
    dice = chance()
    plan = [Kill(pages, "worker", "kill") for pages in moments(kills, HOSTS * PAGES_PER_HOST, dice)]
    with Scene(big, tmp_path, 3, {**SETTINGS, "LOG_REQUESTS": True}, postgres) as scene:
        scene.play(plan, dice)
        evidence = scene.finish()
    assert len(evidence.done) == kills
    every_end_is_in_the_log(tmp_path, evidence)
    nothing_is_lost(big, evidence)
    repeats_are_explained(evidence)


def test_stopped_workers_fetch_nothing_twice(
    small: DemoServer, postgres: OwnPostgres, tmp_path: Path
) -> None:
    dice = chance()
    plan = [Kill(pages, "worker", "term") for pages in moments(6, 40 * PAGES_PER_HOST, dice)]
    with Scene(small, tmp_path, 3, SETTINGS, postgres) as scene:
        scene.play(plan, dice)
        evidence = scene.finish()
    nothing_is_lost(small, evidence)
    assert evidence.repeated().keys() <= evidence.failed()


@pytest.mark.parametrize(
    ("victim", "how", "seconds", "times"),
    [
        ("postgres", "kill", 0.0, 5),
        ("postgres", "restart", 3.0, 3),
        ("wire", "cut", 20.0, 1),
        ("wire", "hang", 20.0, 1),
        ("wire", "deaf", 1.0, 3),
    ],
)
def test_a_database_that_is_away_for_a_while_loses_nothing(
    victim: str,
    how: str,
    seconds: float,
    times: int,
    small: DemoServer,
    postgres: OwnPostgres,
    tmp_path: Path,
) -> None:
    dice = chance()
    plan = [
        Kill(pages, victim, how, seconds) for pages in moments(times, 40 * PAGES_PER_HOST, dice)
    ]
    with Scene(small, tmp_path, 2, SETTINGS, postgres) as scene:
        scene.play(plan, dice)
        evidence = scene.finish()
    nothing_is_lost(small, evidence)
    repeats_are_explained(evidence)


def test_redis_and_workers_killed_in_turn_lose_no_page_and_no_push(
    small: DemoServer, postgres: OwnPostgres, redis_server: RedisServer, tmp_path: Path
) -> None:
    """Pages that no link leads to are pushed, some after each blow; the flush comes when nothing is
    there that it could lose.
    """
    dice = chance()
    pages = 40 * PAGES_PER_HOST
    blows = [
        ("redis", "kill", 1.0),
        ("worker", "kill", 0.0),
        ("redis", "hang", 3.0),
        ("worker", "kill", 0.0),
        ("redis", "restart", 0.0),
    ]
    plan = [Kill(5, "redis", "flush")]
    plan += [
        Kill(at, *blow) for at, blow in zip(moments(len(blows), pages, dice), blows, strict=True)
    ]
    pushes = [f"{root}?push={number}" for number, root in enumerate(roots(small))]
    with Scene(small, tmp_path, 2, SETTINGS, postgres, redis_server) as scene:
        for number, kill in enumerate(plan):
            scene.play([kill], dice)
            redis_server.client.rpush("site:start_urls", *pushes[number :: len(plan)])
        evidence = scene.finish()
    assert [done.how for done in evidence.done] == [kill.how for kill in plan]
    assert in_state(evidence.rows, "waiting") >= set(pushes)
    nothing_is_lost(
        small,
        replace(
            evidence, rows={url: row for url, row in evidence.rows.items() if url not in pushes}
        ),
    )
    repeats_are_explained(evidence)


def test_the_embedded_database_is_started_again_when_it_is_killed(
    small: DemoServer, tmp_path: Path
) -> None:
    dice = chance()
    plan = [Kill(pages, "postgres", "kill") for pages in moments(3, 40 * PAGES_PER_HOST, dice)]
    with Scene(small, tmp_path, 2, SETTINGS) as scene:
        scene.play(plan, dice)
        evidence = scene.finish()
    nothing_is_lost(small, evidence)
    repeats_are_explained(evidence)
    assert not (tmp_path / "shared" / "pg" / "data" / "postmaster.pid").exists()


def test_ends_of_a_worker_that_was_paused_too_long_are_ignored_and_counted(
    postgres: OwnPostgres, tmp_path: Path
) -> None:
    slow = grid_profile(16, addresses=8, like=HostSpec("", articles=12, latency_s=(0.3, 0.6)))
    with DemoServer(slow, clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as demo:
        with Scene(demo, tmp_path, 2, {**SETTINGS, "POLITENESS_SLOWDOWN": 0}, postgres) as scene:
            scene.wait_for(lambda: scene.seen() > 100 and len(scene.agents(0.0)) == 2)
            asked = Counter(record.user_agent.partition("-")[0] for record in demo.log.records())
            victim, other = sorted(asked, key=asked.__getitem__, reverse=True)
            number = int(victim[-1])
            paused_at = time.monotonic()
            its = scene.agents(paused_at - 2)[victim]
            scene.started[number].stop(signal.SIGSTOP)
            scene.wait_for(lambda: its <= scene.agents(paused_at + 1).get(other, set()))
            scene.started[number].stop(signal.SIGCONT)
            evidence = scene.finish()
        nothing_is_lost(demo, evidence)
    late, lost = (
        evidence.stats[number].get(f"frontier/{name}") or 0 for name in ("late", "lost_leases")
    )
    print(f"{late} late ends, {lost} lost leases")
    assert late and lost
    repeated = [seen for url, seen in evidence.repeated().items() if url not in evidence.failed()]
    assert all(
        r.user_agent == f"{victim}-1" and r.started <= paused_at
        for seen in repeated
        for r in seen[:-1]
    )


def test_a_second_worker_gets_its_part_and_when_it_is_killed_its_part_moves_back(
    small: DemoServer, postgres: OwnPostgres, tmp_path: Path
) -> None:
    twenty = grid_profile(20, addresses=20, like=HostSpec("", articles=30, keep=36))
    with DemoServer(twenty, clock=FrozenClock(1_790_000_000.0), t0=1_789_999_000.0) as demo:
        with Scene(demo, tmp_path, 1, SETTINGS, postgres) as scene:
            scene.wait_for(lambda: len(scene.agents(0.0).get("worker1", ())) == 20)
            scene.start(2)
            scene.wait_for(lambda: len(scene.agents(0.0).get("worker2", ())) >= 9)
            since = time.monotonic()
            scene.wait_for(lambda: sum(map(len, scene.agents(since).values())) >= 20)
            parts = scene.agents(since)
            assert 9 <= len(parts["worker2"]) <= 11 and not parts["worker1"] & parts["worker2"], (
                parts
            )
            killed_at = time.monotonic()
            scene.started[2].process.kill()
            scene.started[2].process.wait()
            scene.note(Kill(0, "worker", "kill"), killed_at, 2)
            del scene.started[2]
            scene.wait_for(lambda: len(scene.agents(killed_at).get("worker1", ())) == 20)
            evidence = scene.finish()
        nothing_is_lost(demo, evidence)
    assert "Died on this machine" in evidence.logs[1]
    repeats_are_explained(evidence)


@pytest.mark.parametrize("how", ["cut", "hang"])
def test_a_database_that_is_lost_for_good_ends_the_crawl_with_a_clear_line(
    how: str, small: DemoServer, postgres: OwnPostgres, tmp_path: Path
) -> None:
    with Scene(small, tmp_path, 1, {**SETTINGS, "DATABASE_PATIENCE": "8s"}, postgres) as scene:
        scene.wait_for(lambda: scene.seen() > 100)
        lost_at = time.monotonic()
        (postgres.wire.cut if how == "cut" else postgres.wire.hang)()
        result = scene.started[1].wait()
    assert result.code == 1
    assert "no use of the database for 8 s (DATABASE_PATIENCE)" in result.log + result.stderr
    assert result.log.count("Nothing is handed out, because the database is away") == 1
    assert result.stats["finish_reason"] == "database_lost"
    # Leases of 8 s, of which the last 5 s are for what is under way.
    assert all(record.started < lost_at + 8 - 5 + 0.5 for record in small.log.records())
    postgres.wire.mend()
    with Scene(small, tmp_path, 1, SETTINGS, postgres) as scene:
        evidence = scene.finish()
    nothing_is_lost(small, evidence)


@pytest.mark.parametrize("again", [True, False], ids=["room again", "no room"])
def test_a_full_disk_stops_the_crawl_and_nothing_is_marked_done_that_is_not(
    again: bool, small: DemoServer, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        place = stack.enter_context(small_disk(tmp_path / "disk"))
        postgres = OwnPostgres(tmp_path / "disk", {"min_wal_size": "32MB", "max_wal_size": "32MB"})
        stack.callback(postgres.close)
        stack.callback(place.clear)
        evidence = crawl_until_full(place, again, Scene(small, tmp_path, 2, SETTINGS, postgres))
    nothing_is_lost(small, evidence)
    done = {url for url, row in evidence.rows.items() if row.visits}
    assert done <= set(evidence.asked())


def crawl_until_full(place: SmallDisk, again: bool, stage: Scene) -> Evidence:
    """To the end, after there is room again: for the same workers, or for the next."""
    assert stage.postgres
    stage.settings = {**SETTINGS, "DATABASE_PATIENCE": "60s" if again else "5s"}
    with stage as scene:
        scene.wait_for(lambda: scene.seen() > 150)
        place.fill()
        scene.wait_for(
            lambda: all("the database is away" in log(crawl) for crawl in scene.started.values())
        )
        # What was handed out before may still be seen a moment later.
        time.sleep(1)
        silent = scene.seen()
        time.sleep(3)
        assert scene.seen() == silent, "it went on handing out"
        if not again:
            results = [crawl.wait() for crawl in scene.started.values()]
            assert {result.code for result in results} == {1}
            assert all("no use of the database for 5 s" in result.log for result in results)
        assert [log(crawl).count("Nothing is handed out") for crawl in scene.started.values()] == [
            1,
            1,
        ]
        place.clear()
        scene.postgres.start()
        for number in () if again else tuple(scene.started):
            scene.start(number, DATABASE_PATIENCE="60s")
        return scene.finish()


def log(crawl: Crawl) -> str:
    return "".join(
        path.read_text(errors="replace") for path in (crawl.crawl_dir / "log").glob("*.log")
    )


def test_a_commit_whose_answer_was_lost_is_done_again_without_harm(postgres: OwnPostgres) -> None:
    database = Database(postgres.url)
    migrate(database)
    frontier = PostgresFrontier(database, CrawlSpec("site"))
    frontier.open()
    frontier.add([NewUrl(1, "http://a.test/", "a.test")])
    frontier.put_addresses({"a.test": "192.0.2.1"})
    (lease,) = frontier.lease("w", 1)
    (ticket,) = frontier.due_tickets([Want("a.test", lease.server, lease.epoch, 1)])
    end = Outcome(
        1, ticket.visit, ticket.server, ticket.epoch, State.WAITING, frontier.now(), received=7
    )
    batch = Batch([end], [NewUrl(2, "http://a.test/2", "a.test", parent=1)])
    lost: list[DatabaseError] = []

    def commit() -> None:
        try:
            frontier.commit(batch, "w")
        except DatabaseError as error:
            lost.append(error)

    direct = Database(postgres.direct)
    # The server commits when we let it, and its last answer is the one that gets lost.
    body = "begin perform pg_advisory_xact_lock(1); return null; end"
    direct.run_script(f"create function deafen() returns trigger language plpgsql as '{body}'")
    direct.run_script(
        "create constraint trigger t after insert on crawlproj.url initially deferred for each row "
        "execute function deafen()"
    )
    direct.run_script("select pg_advisory_lock(1)")
    waiting = threading.Thread(target=commit)
    waiting.start()
    while not direct.run_script(
        "select 1 from pg_locks where locktype = 'advisory' and not granted"
    ):
        time.sleep(0.01)
    postgres.wire.deafen()
    direct.run_script("select pg_advisory_unlock(1)")
    while not direct.run_script("select 1 from crawlproj.url where visit = 1"):
        time.sleep(0.01)
    postgres.wire.cut()
    waiting.join(60)
    postgres.wire.mend()
    assert len(lost) == 1
    again = frontier.commit(batch, "w")
    assert (again.done, again.late, again.added) == (frozenset(), 1, 0)
    assert frontier.get_urls([1])[1].visit == 1 and frontier.count_urls()["known"] == 2
    assert direct.run_script("select pages, bytes from crawlproj.crawl") == [(0, 7)]
    for one in (database, direct):
        one.close()
