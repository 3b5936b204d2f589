"""One Postgres data folder and the server on it: made, started, looked at, stopped.

Knows nothing of who else uses it: `embedded` holds the locks and calls one method at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from crawlproj.database.embedded.account import Account
from crawlproj.database.embedded.postmaster import Postmaster, cluster_processes, read_postmaster
from crawlproj.errors import EmbeddedError

USER = "crawlproj"
SOCKET_DIR_BYTES = 107 - len(
    "/.s.PGSQL.5432"
)  # sun_path of the kernel, minus the socket's own name
PLAIN = re.compile(
    r"[A-Za-z0-9_./-]+"
)  # a comma would split libpq's host list; quotes would need escaping
LOG_BYTES = 10_000_000

CONF: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": "50",
    # Touched only as the data grows. Indexes of a million URLs fit in; each miss costs more than
    # the look-up itself.
    "shared_buffers": "256MB",
    "min_wal_size": "80MB",
    "max_wal_size": "512MB",
    "jit": "off",
    # Parallel queries need /dev/shm, which containers keep tiny; our hot queries are short anyway.
    "max_parallel_workers_per_gather": "0",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def socket_dsn(socket_dir: str) -> str:
    """A URL for psycopg2 and psql; the port names the socket and shields from a PGPORT
    around us.
    """
    return f"postgresql:///postgres?host={quote(socket_dir, safe='')}&port=5432&user={USER}"


class Cluster:
    """The server of `home`/data. `options` are settings on top of CONF, such as fsync in tests.

    To look and to stop, `home` is enough.
    """

    def __init__(
        self,
        home: Path,
        bin_dir: Path = Path(),
        account: Account = Account("yourself"),  # noqa: B008 - frozen
        options: Mapping[str, str] = CONF,
    ) -> None:
        self.home = home
        self.data = home / "data"
        self.log = home / "server.log"
        self._bin_dir = bin_dir
        self._account = account
        self._options = options
        self._name = "crawlproj_" + hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        self._log_start = 0

    def create_data_dir(self) -> None:
        """Make the data folder unless it is there. Built aside and renamed: a killed initdb leaves
        no half database.
        """
        if (self.data / "PG_VERSION").exists():
            return
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedError(f"{self.data} is not empty and holds no database: move it away")
        self._quit_deleted()
        for leftover in self.home.glob("init-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        # A new name each time: the initdb of a killed process may still be busy in the old one.
        fresh = Path(tempfile.mkdtemp(prefix="init-", dir=self.home))
        self._account.chown_folder(fresh)
        self._run(
            "initdb", "-D", fresh.name, "-U", USER, "-E", "UTF8", "--locale=C", "-A", "trust", "-k"
        )
        (fresh / "pg_hba.conf").write_text(
            "local all all trust\n"
        )  # over the socket, in a folder only we can enter
        with (fresh / "postgresql.conf").open("a") as conf:
            conf.write("include_if_exists = 'crawlproj.conf'\n")
        fresh.rename(self.data)

    def start(self, wait_s: float) -> Postmaster:
        """Come back with a server that answers, whatever state the last one was left in."""
        launches = 0
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if server := self.running_server():
                return server
            if not self._alive():  # starting, stopping and orphaned servers are waited for
                if launches == 2:
                    raise EmbeddedError(f"Postgres did not start: {self._last_words()}")
                launches += 1
                self._launch()
            time.sleep(0.02)
        raise EmbeddedError(
            f"Postgres in {self.home} did not get ready in {wait_s:.0f} s, see {self.log}"
        )

    def running_server(self) -> Postmaster | None:
        """The server, if it says ready and its socket accepts us."""
        server = read_postmaster(self.data)
        return server if server and server.is_responding() else None

    def stop(self) -> None:
        """Fast shutdown; if that hangs, an immediate one, from which the next start recovers."""
        for number, wait_s in ((signal.SIGINT, 60), (signal.SIGQUIT, 20)):
            server = read_postmaster(self.data)
            alive = self._alive()
            if server and server.pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, number)
            elif not alive and server and server.is_responding():
                raise EmbeddedError(
                    f"the Postgres of {self.home} runs in another container: stop it there"
                )
            if _wait(lambda: not self._alive(), wait_s):
                if server and Path(server.socket_dir) != self.home:
                    with contextlib.suppress(OSError):
                        Path(server.socket_dir).rmdir()
                return
        raise EmbeddedError(f"Postgres in {self.home} does not stop, see {self.log}")

    def _alive(self) -> set[int]:
        return cluster_processes(self._name)

    def _launch(self) -> None:
        """Ask pg_ctl for a server in the background; the caller watches what becomes of it."""
        socket_dir = self._socket_dir()
        # The process they name is a zombie, or a stranger with a reused number: Postgres would
        # refuse to start on them.
        for stale in (self.data / "postmaster.pid", socket_dir / ".s.PGSQL.5432.lock"):
            stale.unlink(missing_ok=True)
        settings = {**CONF, "unix_socket_directories": str(socket_dir), **self._options}
        text = "".join(f"{key} = '{value}'\n" for key, value in settings.items())
        draft = self.data / "crawlproj.conf.new"
        draft.write_text(text)
        draft.replace(self.data / "crawlproj.conf")
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        options = f"-c cluster_name={self._name}"
        self._run("pg_ctl", "start", "-W", "-s", "-D", "data", "-l", self.log.name, "-o", options)

    def _run(self, program: str, *arguments: str) -> None:
        """Names are relative to `home`: pg_ctl and initdb pass them through a shell, where odd ones
        break.
        """
        done = self._account.run(
            [str(self._bin_dir / program), *arguments], self.home, timeout_s=300
        )
        if done.returncode:
            lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
            errors = [line for line in lines if "error:" in line or "FATAL" in line]
            raise EmbeddedError(f"{program} failed in {self.home}: {(errors or lines)[-1]}")

    def _last_words(self) -> str:
        text = self.log.read_bytes()[self._log_start :] if self.log.exists() else b""
        lines = text.decode(errors="replace").splitlines()
        return next(
            (line for line in reversed(lines) if "FATAL" in line or "PANIC" in line),
            f"see {self.log}",
        )

    def _quit_deleted(self) -> None:
        """Whoever runs under our name without a data folder serves a deleted one."""
        for pid in self._alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)

    def _socket_dir(self) -> Path:
        """`home` itself, or if its path does not suit a socket, a private folder for temporary
        files.
        """
        short = f"crawlproj-{os.geteuid()}-{self._name[-12:]}"
        for place in (self.home, Path(tempfile.gettempdir(), short), Path("/tmp", short)):
            if PLAIN.fullmatch(str(place)) and len(os.fsencode(place)) <= SOCKET_DIR_BYTES:
                if place != self.home:
                    self._make_private(place)
                return place
        raise EmbeddedError(
            f"no folder for a socket: {tempfile.gettempdir()} is too deep, set TMPDIR"
        )

    def _make_private(self, place: Path) -> None:
        """Anyone can write to the folder for temporary files: trust only a real folder that is ours
        alone.
        """
        if not place.exists():
            place.mkdir(mode=0o700)
            self._account.chown_folder(place)
        info = place.lstat()
        ours = {os.geteuid(), self._account.uid}
        if not stat.S_ISDIR(info.st_mode) or info.st_uid not in ours or info.st_mode & 0o077:
            raise EmbeddedError(
                f"{place} is not a private folder of ours: remove it, or set TMPDIR"
            )


def _wait(done: Callable[[], bool], wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
