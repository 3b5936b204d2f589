"""Postgres for tests: one throw-away cluster of each kind per run, a new database for each test.

`database` is a migrated Database on the embedded server; a test that also asks for `any_server`
runs on Debian's too.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate
from tests.support.redis_server import RedisServer

# Test data need not survive a power cut.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "100",
}
TEMPLATE = "migrated"
numbers = itertools.count(1)


def debian_bin_dir() -> Path:
    """The newest Postgres that the system has. Without one: skipped, but in CI a failure, or nobody
    would notice.
    """
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if found:
        return max(found, key=lambda path: int(path.parent.name))
    reason = "no system Postgres in /usr/lib/postgresql/*/bin (apt install postgresql)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def beside(dsn: str, name: str) -> str:
    """The URL of another database on the same server."""
    return dsn.replace("postgresql:///postgres?", f"postgresql:///{name}?")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Start a kind of server at its first use, with a migrated template database; all are stopped
    at the end.
    """
    dsns: dict[str, str] = {}
    with ExitStack() as stack:

        def start(kind: str) -> str:
            if kind not in dsns:
                bin_dir = debian_bin_dir() if kind == "debian" else None
                server = EmbeddedPostgres(tmp_path_factory.mktemp(kind), bin_dir, FAST)
                dsns[kind] = server.start()
                stack.callback(server.close)
                admin = Database(dsns[kind])
                template = Database(beside(dsns[kind], TEMPLATE))
                admin.run_script(f"create database {TEMPLATE}")
                migrate(template)
                template.close()
                admin.close()
            return dsns[kind]

        yield start


@pytest.fixture(params=["embedded", "debian"])
def any_server(request: pytest.FixtureRequest) -> str:
    """Ask for it to run a test on both kinds of server."""
    kind: str = request.param
    return kind


@pytest.fixture
def server(request: pytest.FixtureRequest, servers: Callable[[str], str]) -> str:
    """URL of a running server: embedded, or as `any_server` or an indirect parameter says."""
    default = (
        request.getfixturevalue("any_server")
        if "any_server" in request.fixturenames
        else "embedded"
    )
    return servers(getattr(request, "param", default))


@pytest.fixture
def new_database(server: str) -> Iterator[Callable[[str], str]]:
    """Make databases from a template ("template0" is an empty one) and return their URLs; dropped
    after the test.
    """
    admin = Database(server)
    names: list[str] = []

    def make(template: str = TEMPLATE) -> str:
        names.append(f"test_{os.getpid()}_{next(numbers)}")
        admin.run_script(f"create database {names[-1]} template {template}")
        return beside(server, names[-1])

    yield make
    for name in names:
        admin.run_script(f"drop database {name} with (force)")
    admin.close()


@pytest.fixture
def database_url(new_database: Callable[[str], str]) -> str:
    """URL of a new, migrated, empty database."""
    return new_database(TEMPLATE)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A new, migrated, empty database."""
    db = Database(database_url)
    yield db
    db.close()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A new, empty Redis."""
    with RedisServer() as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that kill processes at chosen moments (marker `kills`) get a second try: on a machine
    that is busy with other things the moment may be missed. The report says how often that was
    needed (`rerun`): more than now and then is a fault of ours.
    """
    for item in items:
        if item.get_closest_marker("kills"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why a second try was needed."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"first try of {report.nodeid}")
        terminalreporter.line(report.longreprtext[-4_000:])
