"""One Postgres data folder and the server on it: made, started, looked at, stopped.

It knows nothing of who else uses it: `server` holds the locks and calls one method at a time.
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
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from crawlproj.database.embedded.account import Account
from crawlproj.database.embedded.postmaster import Postmaster, cluster_processes, read_postmaster
from crawlproj.errors import EmbeddedError

USER = "crawlproj"
SOCKET_DIR_BYTES = 107 - len("/.s.PGSQL.5432")
"""Longest folder for a socket: the kernel's sun_path minus the socket's own name."""
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
"""A comma would split libpq's list of hosts; quotes would need escaping."""
LOG_BYTES = 10_000_000
"""A longer server.log is renamed at the next start, over the one before."""

CONF: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": "50",
    # Taken from the system only as the data grows. The indexes of a million URLs fit in; each miss
    # costs more than the look-up itself.
    "shared_buffers": "256MB",
    "min_wal_size": "80MB",
    "max_wal_size": "512MB",
    "jit": "off",
    # Parallel queries need /dev/shm, which is tiny in containers; our hot queries are short anyway.
    "max_parallel_workers_per_gather": "0",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def socket_dsn(socket_dir: str) -> str:
    """A URL for psycopg2 and psql. The port is part of the socket's name; it overrides a PGPORT."""
    return f"postgresql:///postgres?host={quote(socket_dir, safe='')}&port=5432&user={USER}"


class Cluster:
    """The server on `home`/data. `options` are settings on top of CONF, such as fsync in tests.

    To look at it and to stop it, `home` is enough.
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
        """Make the data folder unless it is there.

        It is built aside and renamed: a killed initdb leaves no half database.
        """
        if (self.data / "PG_VERSION").exists():
            return
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedError(f"{self.data} is not empty and holds no database: move it away")
        self._kill_orphans()
        for leftover in self.home.glob("init-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        # A new name each time: the initdb of a killed process may still be busy in the old one.
        fresh = Path(tempfile.mkdtemp(prefix="init-", dir=self.home))
        self._account.chown_folder(fresh)
        self._run(
            "initdb", "-D", fresh.name, "-U", USER, "-E", "UTF8", "--locale=C", "-A", "trust", "-k"
        )
        # Everybody who reaches the socket is let in: it lies in a folder that only we can enter.
        (fresh / "pg_hba.conf").write_text("local all all trust\n")
        with (fresh / "postgresql.conf").open("a") as conf:
            conf.write("include_if_exists = 'crawlproj.conf'\n")
        fresh.rename(self.data)

    def start(self, wait_s: float) -> Postmaster:
        """Start the server and return when it responds, whatever state the last one was left in."""
        launches = 0
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            server = self.running_server()
            if server:
                return server
            # Servers that are starting, stopping or orphaned are waited for.
            if not self._processes():
                if launches == 2:
                    raise EmbeddedError(f"Postgres did not start: {self._last_error()}")
                launches += 1
                self._launch()
            time.sleep(0.02)
        raise EmbeddedError(
            f"Postgres in {self.home} did not get ready in {wait_s:.0f} s, see {self.log}"
        )

    def running_server(self) -> Postmaster | None:
        """The server, if it says that it is ready and responds on its socket."""
        server = read_postmaster(self.data)
        if server and server.is_responding():
            return server
        return None

    def stop(self) -> None:
        """Fast shutdown; if that hangs, an immediate one, from which the next start recovers."""
        for number, wait_s in ((signal.SIGINT, 60), (signal.SIGQUIT, 20)):
            server = read_postmaster(self.data)
            processes = self._processes()
            if server and server.pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, number)
            elif not processes and server and server.is_responding():
                raise EmbeddedError(
                    f"the Postgres of {self.home} runs in another container: stop it there"
                )
            if self._wait_for_end(wait_s):
                if server and Path(server.socket_dir) != self.home:
                    with contextlib.suppress(OSError):
                        Path(server.socket_dir).rmdir()
                return
        raise EmbeddedError(f"Postgres in {self.home} does not stop, see {self.log}")

    def _processes(self) -> set[int]:
        return cluster_processes(self._name)

    def _wait_for_end(self, wait_s: float) -> bool:
        """Wait until no process of it is left; False if that takes longer."""
        deadline = time.monotonic() + wait_s
        while self._processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _launch(self) -> None:
        """Have pg_ctl start a server in the background; the caller watches what becomes of it."""
        socket_dir = self._socket_dir()
        # The process that these files name is a zombie, or a stranger with a reused number:
        # Postgres would refuse to start because of them.
        for stale in (self.data / "postmaster.pid", socket_dir / ".s.PGSQL.5432.lock"):
            stale.unlink(missing_ok=True)
        settings = {**CONF, "unix_socket_directories": str(socket_dir), **self._options}
        text = "".join(f"{key} = '{value}'\n" for key, value in settings.items())
        draft = self.data / "crawlproj.conf.new"
        draft.write_text(text)
        draft.replace(self.data / "crawlproj.conf")
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self._log_start = 0
        if self.log.exists():
            self._log_start = self.log.stat().st_size
        options = f"-c cluster_name={self._name}"
        self._run("pg_ctl", "start", "-W", "-s", "-D", "data", "-l", self.log.name, "-o", options)

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of Postgres's programs in `home`; EmbeddedError if it fails.

        Paths in `arguments` are relative: pg_ctl and initdb pass them through a shell, where odd
        ones break.
        """
        done = self._account.run(
            [str(self._bin_dir / program), *arguments], self.home, timeout_s=300
        )
        if done.returncode:
            lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
            errors = [line for line in lines if "error:" in line or "FATAL" in line]
            raise EmbeddedError(f"{program} failed in {self.home}: {(errors or lines)[-1]}")

    def _last_error(self) -> str:
        """The last fatal line of the log since the start, or where the log is."""
        if self.log.exists():
            text = self.log.read_bytes()[self._log_start :]
            for line in reversed(text.decode(errors="replace").splitlines()):
                if "FATAL" in line or "PANIC" in line:
                    return line
        return f"see {self.log}"

    def _kill_orphans(self) -> None:
        """End a server of this cluster whose data folder was deleted."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)

    def _socket_dir(self) -> Path:
        """The socket's folder: `home`, or a private one below /tmp if that path is unfit."""
        short = f"crawlproj-{os.geteuid()}-{self._name[-12:]}"
        for folder in (self.home, Path(tempfile.gettempdir(), short), Path("/tmp", short)):
            if PLAIN_PATH.fullmatch(str(folder)) and len(os.fsencode(folder)) <= SOCKET_DIR_BYTES:
                if folder != self.home:
                    self._make_private(folder)
                return folder
        raise EmbeddedError(
            f"no folder for a socket: {tempfile.gettempdir()} is too deep, set TMPDIR"
        )

    def _make_private(self, folder: Path) -> None:
        """Make a folder where anyone could have made one: EmbeddedError unless it is ours alone."""
        if not folder.exists():
            folder.mkdir(mode=0o700)
            self._account.chown_folder(folder)
        info = folder.lstat()
        ours = {os.geteuid(), self._account.uid}
        if not stat.S_ISDIR(info.st_mode) or info.st_uid not in ours or info.st_mode & 0o077:
            raise EmbeddedError(
                f"{folder} is not a private folder of ours: remove it, or set TMPDIR"
            )
