"""A connection to Postgres: named queries, transactions, notifications.

The only importer of psycopg2. Whatever the driver raises comes out as DatabaseError (bad URLs as
ConfigError), and no text holds a password.
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
# tcp_keepalives: the server looks after dead peers too, else a worker that lost its network keeps
# its row locks for hours. random_page_cost: most pages are in memory; Postgres's default is made
# for spinning disks and would rather read a whole table than look up hundreds of rows.
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


def _read_bytea(value: str | None, cursor: Any) -> bytes | None:
    """The driver gives bytea as memoryview."""
    if value is None:
        return None
    return bytes(psycopg2.BINARY(value, cursor))


BYTES = extensions.new_type((17,), "BYTES", _read_bytea)
BYTES_ARRAY = extensions.new_array_type((1001,), "BYTES_ARRAY", BYTES)


class Transaction(Queries):
    """Queries that are committed together.

    It ends with its connection: nothing of it is repeated on another one.
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
            rows = cursor.fetchall() if cursor.description else []
            return cursor.rowcount, rows


class Database(Queries):
    """One connection, made at first use and again after a loss; threads take turns.

    Single queries commit at once.
    """

    def __init__(self, dsn: str, application_name: str = "crawlproj") -> None:
        self._arguments = DEFAULTS | {"application_name": application_name} | parse_dsn(dsn)
        self._connection: Any = None
        self._transaction: Transaction | None = None
        self._channels: dict[str, None] = {}
        self._lock = threading.RLock()
        self._sent_at: float | None = None
        self._plans = PreparedStatements()

    def new_connection(self) -> Database:
        """Another Database on the same server, for a thread that must not wait for this one."""
        other = Database("")
        other._arguments = dict(self._arguments)
        return other

    def __repr__(self) -> str:
        return f"<Database {self.location}>"

    @property
    def location(self) -> str:
        """Host, port and name of the database, for messages."""
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
                        self._set_up_session(connection)
                    except BaseException:
                        connection.close()
                        raise
                self._connection = connection

    def close(self) -> None:
        """Close the connection. The next use would connect again."""
        with self._lock:
            if self._connection is not None:
                with suppress(psycopg2.Error):
                    self._connection.close()
                self._connection = None

    @property
    def silent_s(self) -> float:
        """How long the statement that runs now has been without a reply."""
        sent_at = self._sent_at
        if sent_at is None:
            return 0.0
        return time.monotonic() - sent_at

    def hang_up(self) -> None:
        """Cut the connection under a thread that waits for a reply: it gets a DatabaseError.

        A network that swallows packets would let it wait for many minutes.
        """
        connection = self._connection
        with (
            suppress(OSError, psycopg2.Error, AttributeError),
            socket.socket(fileno=os.dup(connection.fileno())) as tcp_socket,
        ):
            tcp_socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All or nothing: committed at the end of the block, rolled back if it raises.

        Other threads wait.
        """
        with self._lock:
            self._refuse_in_transaction()
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
                self._end_transaction(connection)

    def listen(self, channel: str) -> None:
        """Collect the notifications of a channel from now on, also after a reconnect."""
        with self._lock:
            self._channels[channel] = None
            self._run_on_channel("listen {}", channel)

    def notify(self, channel: str, payload: str = "") -> None:
        """Send a notification to all who listen on a channel."""
        with self._lock:
            self._run_on_channel("notify {}, {}", channel, payload)

    def receive_notifications(self, timeout_s: float = 0) -> list[tuple[str, str]]:
        """Channels and payloads that have come, waiting up to `timeout_s` for the first.

        A DatabaseError means that some may be lost.
        """
        with self._lock:
            self._refuse_in_transaction()
            self.connect()
            connection = self._connection
            with self._errors("notifications"):
                poll = select.poll()  # select() fails beyond 1024 open files
                poll.register(connection.fileno(), select.POLLIN)
                wait_ms = timeout_s * 1000
                # On a lost connection the first poll only reads the server's last words; the next
                # one raises.
                while not connection.notifies and poll.poll(wait_ms):
                    connection.poll()
                    wait_ms = 0
            received = [(notice.channel, notice.payload) for notice in connection.notifies]
            connection.notifies.clear()
            return received

    def _execute(self, name: str, args: dict[str, Any]) -> tuple[int, list[tuple[Any, ...]]]:
        with self._lock:
            return super()._execute(name, args)

    def _statement(self, query: Query) -> str:
        self._refuse_in_transaction()
        self.connect()
        return Transaction(self, self._connection)._statement(query)

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        with self._lock:
            self._refuse_in_transaction()
            self.connect()
            return Transaction(self, self._connection)._send(name, text, args)

    def _refuse_in_transaction(self) -> None:
        if self._transaction is not None:
            raise RuntimeError(
                "a transaction is open on this Database: use the transaction's own methods"
            )

    def _run_on_channel(self, command: str, channel: str, *payload: str) -> None:
        self._refuse_in_transaction()
        self.connect()
        parts = [sql.Identifier(channel), *map(sql.Literal, payload)]
        with self._errors(command.split()[0]):
            text = sql.SQL(command).format(*parts).as_string(self._connection)
        self._send(command.split()[0], text, None)

    def _set_up_session(self, connection: Any) -> None:
        """Refuse a server that we cannot work with, then set up the session."""
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

    def _end_transaction(self, connection: Any) -> None:
        """Back to committing at once.

        If there is nothing left to roll back on, the connection is lost, and the server rolls back.
        """
        if connection is self._connection:
            try:
                connection.rollback()
                connection.autocommit = True
            except psycopg2.Error:
                self.close()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn the driver's errors into ours, and note since when it has been busy.

        Without their chain: its texts may quote what was typed into the URL.
        """
        self._sent_at = time.monotonic()
        try:
            yield
        except psycopg2.Error as error:
            raise self._translated(what, error) from None
        finally:
            self._sent_at = None

    def _translated(self, what: str, error: psycopg2.Error) -> DatabaseError:
        state: str | None = error.pgcode
        text = " ".join((error.diag.message_primary or str(error)).split())
        password = str(self._arguments.get("password") or "")
        if password:
            text = text.replace(password, "***")
        if what == "connect":
            return DatabaseError(f"cannot reach Postgres at {self.location}: {text}", state)
        lost = (
            self._connection is None
            or self._connection.closed
            or isinstance(error, psycopg2.InterfaceError)
        )
        if lost or error.diag.severity_nonlocalized == "FATAL":
            self.close()
            return DatabaseError(
                f"lost the connection to Postgres at {self.location} during {what}: {text}", state
            )
        return DatabaseError(f"Postgres refused {what}: {text}", state)


def parse_dsn(dsn: str) -> dict[str, Any]:
    """The parts of a URL or of `key=value` pairs; ConfigError if it is neither.

    The error does not quote it: half of it may be the password.
    """
    try:
        parts: dict[str, Any] = extensions.parse_dsn(dsn)
    except psycopg2.Error:
        parts = {"port": "unreadable"}
    # An unescaped / or @ in a password moves the rest of it into port, host or database.
    port = str(parts.get("port", "")).replace(",", "")
    bad_port = port != "" and not port.isdigit()
    if bad_port or "@" in parts.get("host", "")[1:] or "@" in parts.get("dbname", ""):
        raise ConfigError(
            "DATABASE_URL is not a Postgres URL like postgresql://user:password@host:5432/name"
            " (in a password write / as %2F, @ as %40, : as %3A, # as %23)"
        )
    return parts
