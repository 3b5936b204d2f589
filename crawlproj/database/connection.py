"""Postgres: one connection, named queries, transactions, notifications. The only importer of
psycopg2.

Whatever the driver raises comes out as DatabaseError (bad URLs as ConfigError), and no text holds a
password.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg2  # type: ignore[import-untyped]
from psycopg2 import extensions, sql

from crawlproj.database.prepared import PreparedStatements
from crawlproj.database.queries import Queries, Query
from crawlproj.errors import ConfigError, DatabaseError

MINIMUM_VERSION = 14
DEFAULTS = {
    "connect_timeout": 10,
    "client_encoding": "UTF8",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
# The server looks after dead peers too: else a worker that lost its network keeps its row locks for
# hours. Pages at random are mostly in memory: by Postgres's own guess, made for turning disks,
# hundreds of look-ups cost more than reading a whole table.
SESSION = """
set time zone 'UTC';
set search_path = crawlproj;
set client_min_messages = warning;
set plan_cache_mode = force_generic_plan;
set random_page_cost = 1.1;
set lock_timeout = '30s';
set idle_in_transaction_session_timeout = '5min';
set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3;
"""


def _bytes(value: str | None, cursor: Any) -> bytes | None:
    return None if value is None else bytes(psycopg2.BINARY(value, cursor))


BYTES = extensions.new_type((17,), "BYTES", _bytes)  # bytea, which the driver gives as memoryview
BYTES_ARRAY = extensions.new_array_type((1001,), "BYTES_ARRAY", BYTES)


class Transaction(Queries):
    """Queries that are committed together. Ends with its connection: nothing of it is repeated on
    another one.
    """

    def __init__(self, database: Database, connection: Any) -> None:
        self._database = database
        self._connection = connection

    def _statement(self, query: Query) -> str:
        with self._database._errors(query.name):
            return self._database._plans.statement_for(query, self._connection)

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        with self._database._errors(name), self._connection.cursor() as cursor:
            cursor.execute(text, args)
            return cursor.rowcount, cursor.fetchall() if cursor.description else []


class Database(Queries):
    """One connection, made at first use and again after a loss; threads take turns. Single queries
    commit at once.
    """

    def __init__(self, dsn: str, application_name: str = "crawlproj") -> None:
        self._arguments = DEFAULTS | {"application_name": application_name} | parse_dsn(dsn)
        self._connection: Any = None
        self._transaction: Transaction | None = None
        self._channels: dict[str, None] = {}
        self._lock = threading.RLock()
        self._asked_at: float | None = None
        self._plans = PreparedStatements()

    def new_connection(self) -> Database:
        """A connection of its own to the same place, for another thread that must not take turns
        with this one.
        """
        twin = Database("")
        twin._arguments = dict(self._arguments)
        return twin

    def __repr__(self) -> str:
        return f"<Database {self.location}>"

    @property
    def location(self) -> str:
        """Where it is, for messages."""
        host = self._arguments.get("host", "localhost")
        port = self._arguments.get("port", "5432")
        return f"{host}:{port}/{self._arguments.get('dbname', '')}"

    def connect(self) -> None:
        """Connect now unless connected, to learn early what is wrong."""
        with self._lock:
            if self._connection is None:
                with self._errors("connect"):
                    connection = psycopg2.connect(**self._arguments)
                    try:
                        self._greet(connection)
                    except BaseException:
                        connection.close()
                        raise
                self._connection = connection

    def close(self) -> None:
        """Hang up. The next use would connect again."""
        with self._lock:
            if self._connection is not None:
                with suppress(psycopg2.Error):
                    self._connection.close()
                self._connection = None

    @property
    def silent_s(self) -> float:
        """How long the server has not answered what it is asked now."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def hang_up(self) -> None:
        """Cut the connection under a thread that waits for an answer: it gets a DatabaseError. A
        network that swallows packets would let it wait for many minutes.
        """
        connection = self._connection
        with (
            suppress(OSError, psycopg2.Error, AttributeError),
            socket.socket(fileno=os.dup(connection.fileno())) as wire,
        ):
            wire.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All or nothing: committed at the end of the block, rolled back if it raises. Other
        threads wait.
        """
        with self._lock:
            self._refuse_inside()
            self.connect()
            connection = self._connection
            self._transaction = Transaction(self, connection)
            try:
                with self._errors("begin"):
                    connection.autocommit = False
                yield self._transaction
                with self._errors("commit"):
                    connection.commit()
            finally:
                self._transaction = None
                self._end(connection)

    def listen(self, channel: str) -> None:
        """Collect the notifications of a channel from now on, also after a reconnect."""
        with self._lock:
            self._channels[channel] = None
            self._on_channel("listen {}", channel)

    def notify(self, channel: str, payload: str = "") -> None:
        with self._lock:
            self._on_channel("notify {}, {}", channel, payload)

    def receive_notifications(self, timeout_s: float = 0) -> list[tuple[str, str]]:
        """Channels and payloads that have come, waiting up to `timeout_s` for the first. A
        DatabaseError means some may be lost.
        """
        with self._lock:
            self._refuse_inside()
            self.connect()
            connection = self._connection
            with self._errors("notifications"):
                poll = select.poll()  # select() fails beyond 1024 open files
                poll.register(connection.fileno(), select.POLLIN)
                wait_ms = timeout_s * 1000
                # The first look at a lost connection only reads the server's farewell; the next one
                # raises.
                while not connection.notifies and poll.poll(wait_ms):
                    connection.poll()
                    wait_ms = 0
            heard = [(notice.channel, notice.payload) for notice in connection.notifies]
            connection.notifies.clear()
            return heard

    def _execute(self, name: str, args: dict[str, Any]) -> tuple[int, list[tuple[Any, ...]]]:
        with self._lock:
            return super()._execute(name, args)

    def _statement(self, query: Query) -> str:
        self._refuse_inside()
        self.connect()
        return Transaction(self, self._connection)._statement(query)

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        with self._lock:
            self._refuse_inside()
            self.connect()
            return Transaction(self, self._connection)._send(name, text, args)

    def _refuse_inside(self) -> None:
        if self._transaction is not None:
            raise RuntimeError(
                "a transaction is open on this Database: use the transaction's own methods"
            )

    def _on_channel(self, command: str, channel: str, *payload: str) -> None:
        self._refuse_inside()
        self.connect()
        parts = [sql.Identifier(channel), *map(sql.Literal, payload)]
        with self._errors(command.split()[0]):
            text = sql.SQL(command).format(*parts).as_string(self._connection)
        self._send(command.split()[0], text, None)

    def _greet(self, connection: Any) -> None:
        """Refuse what we cannot work with, then set up the session."""
        self._plans.clear()
        connection.autocommit = True
        if connection.server_version < MINIMUM_VERSION * 10_000:
            version = f"{connection.server_version // 10_000}.{connection.server_version % 10_000}"
            raise DatabaseError(
                f"Postgres at {self.location} is version {version}: {MINIMUM_VERSION} or newer is "
                "needed"
            )
        encoding = connection.get_parameter_status("server_encoding")
        if encoding != "UTF8":
            raise DatabaseError(
                f"the database at {self.location} is encoded as {encoding}: UTF8 is needed"
            )
        extensions.register_type(BYTES, connection)
        extensions.register_type(BYTES_ARRAY, connection)
        with connection.cursor() as cursor:
            cursor.execute(SESSION)
            for channel in self._channels:
                cursor.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))

    def _end(self, connection: Any) -> None:
        """Back to committing at once. What cannot be rolled back was lost, and is rolled back by
        the server.
        """
        if connection is self._connection:
            try:
                connection.rollback()
                connection.autocommit = True
            except psycopg2.Error:
                self.close()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Driver errors as ours, without their chain: its texts may quote what was typed into the
        URL.
        """
        self._asked_at = time.monotonic()
        try:
            yield
        except psycopg2.Error as error:
            raise self._translated(what, error) from None
        finally:
            self._asked_at = None

    def _translated(self, what: str, error: psycopg2.Error) -> DatabaseError:
        state: str | None = error.pgcode
        text = " ".join((error.diag.message_primary or str(error)).split())
        password = str(self._arguments.get("password") or "")
        if password:
            text = text.replace(password, "***")
        if what == "connect":
            return DatabaseError(f"cannot reach Postgres at {self.location}: {text}", state)
        gone = (
            self._connection is None
            or self._connection.closed
            or isinstance(error, psycopg2.InterfaceError)
        )
        if gone or error.diag.severity_nonlocalized == "FATAL":
            self.close()
            return DatabaseError(
                f"lost the connection to Postgres at {self.location} during {what}: {text}", state
            )
        return DatabaseError(f"Postgres refused {what}: {text}", state)


def parse_dsn(dsn: str) -> dict[str, Any]:
    """The parts of a URL or of `key=value` pairs. ConfigError without quoting it: half of it may be
    the password.
    """
    try:
        parts: dict[str, Any] = extensions.parse_dsn(dsn)
    except psycopg2.Error:
        parts = {"port": "unreadable"}
    # An unescaped / or @ in a password moves the rest of it into port, host or database.
    numbers = str(parts.get("port", "")).replace(",", "")
    if (
        (numbers and not numbers.isdigit())
        or "@" in parts.get("host", "")[1:]
        or "@" in parts.get("dbname", "")
    ):
        raise ConfigError(
            "DATABASE_URL is not a Postgres URL like postgresql://user:password@host:5432/name"
            " (in a password write / as %2F, @ as %40, : as %3A, # as %23)"
        )
    return parts
