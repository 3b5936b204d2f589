"""One connection to Postgres: queries, transactions, losses, notifications."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from crawlproj.database import connection as db
from crawlproj.database import queries as module
from crawlproj.database.connection import Database
from crawlproj.database.queries import Query, load_queries, parse_queries
from crawlproj.database.watchdog import DatabaseWatchdog
from crawlproj.errors import ConfigError, CrawlprojError, DatabaseError
from tests.conftest import beside

EXTRA = parse_queries("""
-- name: make
create table thing (id int primary key, data jsonb, raw bytea)
-- name: put
insert into thing (id, data, raw) values (%(id)s, %(data)s, %(raw)s)
-- name: all
select id, data, raw from thing order by id
-- name: one
select id from thing where id = %(id)s
-- name: arrays
select unnest(%(ids)s::int[]), unnest(%(documents)s::jsonb[])
-- name: raws
select array_agg(raw order by id) from thing
-- name: moment
select timestamptz '2024-01-02 03:04:05+02'
-- name: whoami
select pg_backend_pid()
-- name: kill
select pg_terminate_backend(%(pid)s)
-- name: show
select current_setting(%(name)s)
""")


@pytest.fixture(autouse=True)
def extra_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    queries: dict[str, Query] = {**load_queries(), **EXTRA}
    monkeypatch.setattr(module, "load_queries", lambda: queries)


def kill_backend(victim: Database, url: str) -> None:
    """Hang up on a Database from the server's side, and wait until its process is gone."""
    pid = victim.fetch_value("whoami")
    other = Database(url)
    other.fetch_value("kill", pid=pid)
    while other.run_script(f"select 1 from pg_stat_activity where pid = {pid}"):
        pass
    other.close()


def test_queries_give_counts_rows_one_row_and_one_value(
    any_server: str, database: Database
) -> None:
    database.run("make")
    assert database.run("put", id=1, data={"a": [1, None]}, raw=b"\x00\xff") == 1
    assert database.fetch_rows("all") == [(1, {"a": [1, None]}, b"\x00\xff")]
    assert database.fetch_row("one", id=1) == (1,)
    assert database.fetch_row("one", id=2) is None
    assert database.fetch_value("one", id=1) == 1
    assert database.fetch_value("one", id=2) is None
    assert database.fetch_value("raws") == [b"\x00\xff"]
    assert database.fetch_rows("arrays", ids=[1, 2], documents=[{"a": 1}, {}]) == [
        (1, {"a": 1}),
        (2, {}),
    ]
    assert database.fetch_rows("arrays", ids=[], documents=[]) == []


def prepared(database: Database) -> dict[str, int]:
    """Statements that the connection knows, and how often each was answered by its one plan."""
    return dict(database.run_script("select name, generic_plans::int from pg_prepared_statements"))


def test_what_is_asked_again_is_prepared_and_planned_once(
    any_server: str, database: Database
) -> None:
    database.run("make")
    for number in range(5):
        assert database.run("put", id=number, data={"n": number}, raw=bytes([number])) == 1
        with database.transaction() as tx:
            assert tx.fetch_value("one", id=number) == number
    assert prepared(database) == {"put": 4, "one": 4}
    assert database.fetch_rows("all") == [
        (number, {"n": number}, bytes([number])) for number in range(5)
    ]


def test_what_was_prepared_in_a_transaction_that_failed_is_still_known(database: Database) -> None:
    database.run("make")
    with pytest.raises(ZeroDivisionError), database.transaction() as tx:
        assert [tx.fetch_value("one", id=number) for number in range(3)] == [None] * 3
        raise ZeroDivisionError
    assert database.fetch_value("one", id=1) is None
    assert prepared(database) == {"one": 3}


def test_after_a_loss_statements_are_prepared_anew(database: Database, database_url: str) -> None:
    database.run("make")
    for number in range(3):
        database.run("put", id=number, data=None, raw=None)
    kill_backend(database, database_url)
    with pytest.raises(DatabaseError, match="lost the connection"):
        database.run("put", id=9, data=None, raw=None)
    for number in range(3, 6):
        database.run("put", id=number, data=None, raw=None)
    assert [row[0] for row in database.fetch_rows("all")] == [0, 1, 2, 3, 4, 5]
    assert prepared(database) == {"put": 2}


def test_every_query_of_ours_can_be_prepared(any_server: str, database: Database) -> None:
    """Types of arguments must be plain from the text."""
    ours = [
        query for name, query in load_queries().items() if query.is_preparable and name not in EXTRA
    ]
    for query in ours:
        database.run_script(query.prepare_sql)
    assert set(prepared(database)) == {query.name for query in ours}


def test_plans_are_made_anew_on_demand(database: Database) -> None:
    for _ in range(3):
        database.fetch_value("show", name="TimeZone")
    database.run("discard")
    assert database.fetch_value("show", name="TimeZone") == "UTC"


def test_the_session_is_set_up(any_server: str, database: Database) -> None:
    assert database.fetch_value("show", name="TimeZone") == "UTC"
    assert database.fetch_value("show", name="search_path") == "crawlproj"
    assert database.fetch_value("show", name="application_name") == "crawlproj"
    assert database.fetch_value("show", name="lock_timeout") == "30s"
    assert database.fetch_value("moment") == datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC)


def test_a_wrong_argument_is_named(database: Database) -> None:
    with pytest.raises(TypeError, match="query one wants id, not idd"):
        database.run("one", idd=1)


def test_a_transaction_is_all_or_nothing(any_server: str, database: Database) -> None:
    database.run("make")
    with database.transaction() as tx:
        tx.run("put", id=1, data=None, raw=None)
        assert tx.fetch_value("one", id=1) == 1
    with pytest.raises(ZeroDivisionError), database.transaction() as tx:
        tx.run("put", id=2, data=None, raw=None)
        raise ZeroDivisionError
    assert [row[0] for row in database.fetch_rows("all")] == [1]


def test_after_a_refused_statement_the_database_is_used_on(database: Database) -> None:
    database.run("make")
    database.run("put", id=1, data=None, raw=None)
    with (
        pytest.raises(DatabaseError, match="refused put: duplicate key") as caught,
        database.transaction() as tx,
    ):
        tx.run("put", id=2, data=None, raw=None)
        tx.run("put", id=1, data=None, raw=None)
    assert caught.value.sqlstate == "23505"
    assert [row[0] for row in database.fetch_rows("all")] == [1]


def test_inside_a_transaction_only_the_transaction_is_used(database: Database) -> None:
    with database.transaction():
        with pytest.raises(RuntimeError, match="transaction is open"):
            database.fetch_value("whoami")
        with pytest.raises(RuntimeError, match="transaction is open"), database.transaction():
            pass
    assert database.fetch_value("whoami")


def test_threads_take_turns(database: Database) -> None:
    database.run("make")

    def work(start: int) -> None:
        for number in range(start, start + 20):
            with database.transaction() as tx:
                tx.run("put", id=number, data=None, raw=None)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(database.fetch_rows("all")) == 60


def test_a_lost_connection_is_reported_and_made_anew(
    any_server: str, database: Database, database_url: str
) -> None:
    kill_backend(database, database_url)
    with pytest.raises(DatabaseError, match=r"lost the connection to Postgres at .* during whoami"):
        database.fetch_value("whoami")
    assert database.fetch_value("whoami")


def test_a_connection_lost_within_a_transaction_undoes_it(
    database: Database, database_url: str
) -> None:
    database.run("make")
    other = Database(database_url)
    with pytest.raises(DatabaseError, match="lost the connection"), database.transaction() as tx:
        tx.run("put", id=1, data=None, raw=None)
        other.fetch_value("kill", pid=tx.fetch_value("whoami"))
        for _ in range(
            2
        ):  # the second one must not go to a new connection, outside of the transaction
            with pytest.raises(DatabaseError, match="lost the connection"):
                tx.run("put", id=2, data=None, raw=None)
    other.close()
    assert database.fetch_rows("all") == []


def test_a_connection_lost_before_the_commit_raises(database: Database, database_url: str) -> None:
    database.run("make")
    with pytest.raises(DatabaseError, match="lost the connection"), database.transaction() as tx:
        tx.run("put", id=1, data=None, raw=None)
        other = Database(database_url)
        other.fetch_value("kill", pid=tx.fetch_value("whoami"))
        other.close()
    assert database.fetch_rows("all") == []


def test_an_unreachable_server_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = taken.getsockname()[1]
        with pytest.raises(
            DatabaseError, match=f"cannot reach Postgres at 127.0.0.1:{port}/news: .*refused"
        ):
            Database(f"postgresql://me:geheim@127.0.0.1:{port}/news").connect()


def test_a_database_that_does_not_exist_is_named(server: str) -> None:
    with pytest.raises(DatabaseError, match='database "nowhere" does not exist'):
        Database(beside(server, "nowhere")).connect()


def test_an_old_server_is_refused_with_both_versions(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "MINIMUM_VERSION", 99)
    database = Database(server)
    for _ in range(2):  # the second try must not find a half-open connection
        with pytest.raises(DatabaseError, match=r"is version \d\d\.\d+: 99 or newer is needed"):
            database.fetch_value("whoami")


def test_a_database_in_another_encoding_is_refused(server: str) -> None:
    admin = Database(server)
    admin.run_script("create database latin encoding 'LATIN1' template template0")
    try:
        with pytest.raises(DatabaseError, match="encoded as LATIN1: UTF8 is needed"):
            Database(beside(server, "latin")).connect()
    finally:
        admin.run_script("drop database latin with (force)")
        admin.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:geheim@127.0.0.1:1/news",
        "postgresql://127.0.0.1:1/news?user=me&password=geheim",
        "host=127.0.0.1 port=1 password=geheim user=me",
        "postgresql://me:geheim/geheim@127.0.0.1/news",
        "postgresql://me:a@geheim@127.0.0.1:1/news",
        "postgresql://me:geheim%zz@127.0.0.1/news",
        "geheim",
        "host=127.0.0.1 port=1 password='geheim",
        "postgresql://127.0.0.1:1/news?geheim=1",
    ],
)
def test_a_password_never_shows(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    program = (
        "from crawlproj.database.connection import Database\nd = "
        f"Database({url!r})\nprint(d)\nd.connect()"
    )
    with pytest.raises(CrawlprojError) as caught:
        database = Database(url)
        assert "geheim" not in repr(database)
        database.connect()
    assert "geheim" not in str(caught.value) + repr(caught.value) + caplog.text
    assert "geheim" not in str(
        caught.value.__context__ if not caught.value.__suppress_context__ else ""
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=here()
    )
    assert done.returncode == 1
    assert "geheim" not in (done.stdout + done.stderr).replace(repr(url), "")


def here() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_an_unescaped_password_is_explained() -> None:
    with pytest.raises(ConfigError, match="write / as %2F"):
        Database("postgresql://me:a/b@127.0.0.1/news")


def test_notifications_arrive(any_server: str, database: Database, database_url: str) -> None:
    database.listen("push")
    assert database.receive_notifications() == []
    other = Database(database_url)
    other.notify("push", "it's")
    other.notify("elsewhere", "no")
    other.notify("push")
    got: list[tuple[str, str]] = []
    while len(got) < 2:
        got += database.receive_notifications(timeout_s=10)
    assert got == [("push", "it's"), ("push", "")]
    assert database.receive_notifications() == []
    other.close()


def test_notifications_that_came_with_a_query_are_kept(
    database: Database, database_url: str
) -> None:
    database.listen("push")
    other = Database(database_url)
    other.notify("push", "a")
    other.close()
    database.fetch_value("whoami")
    assert database.receive_notifications(timeout_s=10) == [("push", "a")]


def test_after_a_loss_channels_are_listened_to_again(database: Database, database_url: str) -> None:
    database.listen("push")
    kill_backend(database, database_url)
    with pytest.raises(DatabaseError, match="lost the connection"):
        while True:  # the server says farewell a moment before it hangs up
            database.receive_notifications(timeout_s=10)
    assert database.receive_notifications() == []
    database.notify("push", "b")
    assert database.receive_notifications(timeout_s=10) == [("push", "b")]


def test_a_closed_database_connects_again_at_its_next_use(database: Database) -> None:
    assert database.fetch_value("whoami")
    database.close()
    database.close()
    assert database.fetch_value("whoami")


def test_a_silent_server_is_hung_up_on_and_the_next_use_connects_again(database: Database) -> None:
    errors: list[DatabaseError] = []

    def wait() -> None:
        try:
            database.run_script("select pg_sleep(120)")
        except DatabaseError as error:
            errors.append(error)

    database.hang_up()  # nothing is connected yet
    waiting = threading.Thread(target=wait)
    watch = DatabaseWatchdog(database, 0.6)
    waiting.start()
    waiting.join(60)
    watch.stop()
    assert len(errors) == 1 and "lost the connection" in str(errors[0])
    assert database.silent_s == 0.0
    assert database.run_script("select 1") == [(1,)]
