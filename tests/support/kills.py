"""One harness for everything that can be killed: real workers on a real Postgres of their own,
against the demo web.

    with Scene(demo, tmp_path, workers=3, settings=...) as scene:
        scene.play([Kill(200, "worker", "kill"), Kill(500, "postgres", "kill")], random.Random(7))
        evidence = scene.finish()

Victims and what may be done to them: worker: kill, term, stall; postgres: kill, restart; wire: cut,
hang, deaf; redis: kill, restart, hang, flush.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.database.embedded.cluster import USER
from crawlproj.database.embedded.postmaster import read_postmaster
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.opening import open_database
from crawlproj.demo import AccessRecord, DemoServer
from tests.support.crawling import Crawl, start_crawl
from tests.support.redis_server import RedisServer
from tests.support.webs import Row, demo_settings, roots, rows
from tests.support.wire import Wire

# A kill is no power cut, so fsync may be off; but what was committed must be out of the server's
# memory.
OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "on",
    "max_connections": "100",
    "track_commit_timestamp": "on",
}
PATIENCE_S = 400
UNTIMED_S = 1.0
"""Taken for the longest time to a commit where the database does not note when a commit was."""
STORED = "select canonical from crawlproj.url where visit > 0"
COMMITTED = (
    "select canonical, extract(epoch from pg_xact_commit_timestamp(xmin))::float8 from "
    "crawlproj.url where visit > 0"
)


@dataclass(frozen=True, slots=True)
class Kill:
    """When so many requests were seen: who, how, and for how long (stall, cut, hang)."""

    pages: int
    victim: str
    how: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Done:
    """What was done: `began` and `ended` on this machine's monotonic clock; `agent` is the name
    that the worker showed the web, a new one with each start; `stored` are the URLs whose visit was
    in the database just after.
    """

    victim: str
    how: str
    began: float
    ended: float
    agent: str = ""
    stored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a crawl left behind. `codes` and `logs` of those workers that came to an end by
    themselves; `lags` are the seconds from the end of each page's last answer to the commit that
    stored it.
    """

    records: tuple[AccessRecord, ...]
    rows: Mapping[str, Row]
    codes: Mapping[int, int]
    logs: Mapping[int, str]
    stats: Mapping[int, Mapping[str, object]]
    done: Sequence[Done]
    lags: Mapping[str, float]

    def asked(self) -> dict[str, list[AccessRecord]]:
        """All requests for each URL, earliest first; robots.txt is no page."""
        found: dict[str, list[AccessRecord]] = {}
        for record in sorted(self.records, key=lambda record: record.started):
            if not record.path.startswith("/robots.txt"):
                found.setdefault(f"http://{record.host}{record.path}", []).append(record)
        return found

    def unstored(self, record: AccessRecord) -> Done | None:
        """What was done while it was under way or not stored yet: to its worker, or to the
        database.
        """
        url = f"http://{record.host}{record.path}"
        longest = max(self.lags.values(), default=UNTIMED_S)
        for done in self.done:
            if done.agent:
                if done.agent == record.user_agent and url not in done.stored:
                    return done
            elif record.started <= done.ended and record.ended >= done.began - longest:
                return done
        return None

    def failed(self) -> set[str]:
        """URLs that a worker gave up for a while, e.g. since no answer came in time; it says so in
        its log.
        """
        return {
            url
            for text in self.logs.values()
            for url in re.findall(r"INFO: Retry \(.*: (http\S+)$", text, re.M)
        }

    def repeated(self) -> dict[str, list[AccessRecord]]:
        return {url: seen for url, seen in self.asked().items() if len(seen) > 1}


class OwnPostgres:
    """A cluster that may be killed, behind a wire that may be cut."""

    def __init__(self, home: Path, options: Mapping[str, str] | None = None) -> None:
        self._embedded = EmbeddedPostgres(home, options={**OPTIONS, **(options or {})})
        self._home = home
        self._data = home.resolve() / "pg" / "data"
        self.direct = self._embedded.start()
        self.wire = Wire(f"{read(self._data).socket_dir}/.s.PGSQL.5432")
        self.url = f"postgresql://{USER}@127.0.0.1:{self.wire.port}/postgres"

    def kill(self) -> None:
        """The postmaster, and nothing else; its children notice."""
        os.kill(read(self._data).pid, signal.SIGKILL)

    def start(self) -> None:
        """Comes back when it lets us in: a server that recovers answers before."""
        self._embedded.start()
        database, user = open_database("", self._home)
        database.close()
        if user:
            user.leave_running()

    def restart(self, away_s: float = 0.0) -> None:
        self._embedded.stop()
        time.sleep(away_s)
        self._embedded.start()

    def close(self) -> None:
        self.wire.close()
        self._embedded.close()


def read(data: Path):  # type: ignore[no-untyped-def]
    server = read_postmaster(data)
    assert server is not None
    return server


@dataclass
class Scene:
    """Workers, their database and the web. As a context manager nothing outlives it."""

    demo: DemoServer
    folder: Path
    workers: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)
    postgres: OwnPostgres | None = None
    """None: the embedded server of worker 1's folder, which all workers share."""
    redis: RedisServer | None = None
    started: dict[int, Crawl] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def __enter__(self) -> Scene:
        self._stack = ExitStack()
        for number in range(1, self.workers + 1):
            self.start(number)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def database_url(self) -> str:
        return self.postgres.url if self.postgres else ""

    def start(self, number: int, **more: object) -> None:
        """Worker `number`, whose requests say who it is, and how often it was started."""
        self.names[number] = (
            f"worker{number}-{int(self.names.get(number, '-0').partition('-')[2]) + 1}"
        )
        bus = {"REDIS_URL": self.redis.url} if self.redis else {}
        settings = demo_settings(
            self.demo,
            self.database_url,
            **{**self.settings, **bus, "ROBOT_NAME": self.names[number], **more},
        )
        folder = self.folder / (f"worker{number}" if self.postgres else "shared")
        args = ["site", "-a", "seeds=" + ",".join(roots(self.demo))]
        if not self.postgres:
            settings["LOG_FILE"] = str(folder / f"worker{number}.log")
            folder.mkdir(exist_ok=True)
        self.started[number] = self._stack.enter_context(start_crawl(args, settings, folder))

    def seen(self) -> int:
        return len(self.demo.log.records())

    def wait_for(self, what: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not what():
            assert time.monotonic() < deadline, self.complaint("waited in vain")
            assert any(crawl.process.poll() is None for crawl in self.started.values()), (
                self.complaint("all workers have ended")
            )
            time.sleep(0.02)

    def complaint(self, what: str) -> str:
        ended = {
            number: crawl.wait(1)
            for number, crawl in self.started.items()
            if crawl.process.poll() is not None
        }
        return f"{what} after {self.seen()} requests; {self.done}; {ended}"

    def play(self, kills: Sequence[Kill], chance: random.Random) -> None:
        """One after the other; each victim comes back."""
        for kill in kills:
            self.wait_for(lambda kill=kill: self.seen() >= kill.pages)  # type: ignore[misc]
            VICTIMS[kill.victim, kill.how](self, kill, chance)

    def note(self, kill: Kill, began: float, number: int = 0) -> None:
        """`number`: of the worker that it was done to."""
        stored = frozenset(row[0] for row in self.ask(STORED)) if number else frozenset()
        self.done.append(
            Done(kill.victim, kill.how, began, time.monotonic(), self.names.get(number, ""), stored)
        )

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Of the database, past the wire."""
        with ExitStack() as stack:
            url = (
                self.postgres.direct
                if self.postgres
                else stack.enter_context(EmbeddedPostgres(self.folder / "shared")).start()
            )
            database = Database(url)
            stack.callback(database.close)
            return database.run_script(query)

    def finish(self, timeout_s: float = PATIENCE_S) -> Evidence:
        """Let all workers come to their end."""
        results = {number: crawl.wait(timeout_s) for number, crawl in self.started.items()}
        with ExitStack() as stack:
            url = (
                self.postgres.direct
                if self.postgres
                else stack.enter_context(EmbeddedPostgres(self.folder / "shared")).start()
            )
            found = rows(url)
        records = self.demo.log.records()
        ended = {f"http://{r.host}{r.path}": r.ended_at for r in records}
        committed = self.ask(COMMITTED) if self.postgres else []
        lags = {url: at - ended[url] for url, at in committed if url in ended}
        codes = {number: result.code for number, result in results.items()}
        logs = {number: result.log + result.stderr for number, result in results.items()}
        stats = {number: result.stats for number, result in results.items()}
        return Evidence(records, found, codes, logs, stats, tuple(self.done), lags)

    def agents(self, since: float) -> dict[str, set[str]]:
        """Which worker asked which hosts since then."""
        found: dict[str, set[str]] = {}
        for record in self.demo.log.records():
            if record.started >= since:
                found.setdefault(record.user_agent.partition("-")[0], set()).add(record.host)
        return found

    def random_worker(self, chance: random.Random) -> int:
        return chance.choice(sorted(self.started))


def kill_worker(scene: Scene, kill: Kill, chance: random.Random) -> None:
    number = scene.random_worker(chance)
    began = time.monotonic()
    scene.started[number].process.kill()
    scene.started[number].process.wait()
    scene.note(kill, began, number)
    scene.start(number)


def stop_worker(scene: Scene, kill: Kill, chance: random.Random) -> None:
    number = scene.random_worker(chance)
    began = time.monotonic()
    scene.started[number].stop()
    # 0: it was at its end already; 130: stopped.
    assert (result := scene.started[number].wait()).code in (0, 130, -signal.SIGTERM), result
    scene.note(kill, began, number)
    scene.start(number)


def stall_worker(scene: Scene, kill: Kill, chance: random.Random) -> None:
    number = scene.random_worker(chance)
    began = time.monotonic()
    scene.started[number].stop(signal.SIGSTOP)
    time.sleep(kill.seconds)
    scene.started[number].stop(signal.SIGCONT)
    scene.note(kill, began, number)


def kill_postgres(scene: Scene, kill: Kill, chance: random.Random) -> None:
    began = time.monotonic()
    if scene.postgres:
        scene.postgres.kill()
        time.sleep(kill.seconds)
        scene.postgres.start()
    else:
        os.kill(read(scene.folder.resolve() / "shared" / "pg" / "data").pid, signal.SIGKILL)
    scene.note(kill, began)


def restart_postgres(scene: Scene, kill: Kill, chance: random.Random) -> None:
    assert scene.postgres
    began = time.monotonic()
    scene.postgres.restart(kill.seconds)
    scene.note(kill, began)


def cut_wire(scene: Scene, kill: Kill, chance: random.Random) -> None:
    assert scene.postgres
    began = time.monotonic()
    wire = scene.postgres.wire
    {"cut": wire.cut, "hang": wire.hang, "deaf": wire.deafen}[kill.how]()
    time.sleep(kill.seconds)
    if kill.how == "deaf":
        wire.cut()
    scene.postgres.wire.mend()
    scene.note(kill, began)


def hit_redis(scene: Scene, kill: Kill, chance: random.Random) -> None:
    assert scene.redis
    began = time.monotonic()
    redis = scene.redis
    if kill.how == "flush":
        redis.client.flushall()
    elif kill.how == "hang":
        redis.send(signal.SIGSTOP)
        time.sleep(kill.seconds)
        redis.send(signal.SIGCONT)
    else:
        redis.stop(signal.SIGKILL if kill.how == "kill" else signal.SIGTERM)
        time.sleep(kill.seconds)
        redis.start()
    scene.done.append(Done(kill.victim, kill.how, began, time.monotonic(), "nobody"))


VICTIMS: Mapping[tuple[str, str], Callable[[Scene, Kill, random.Random], None]] = {
    ("worker", "kill"): kill_worker,
    ("worker", "term"): stop_worker,
    ("worker", "stall"): stall_worker,
    ("postgres", "kill"): kill_postgres,
    ("postgres", "restart"): restart_postgres,
    ("wire", "cut"): cut_wire,
    ("wire", "hang"): cut_wire,
    ("wire", "deaf"): cut_wire,
    **{("redis", how): hit_redis for how in ("kill", "restart", "hang", "flush")},
}
