"""What can be seen of a Postgres server from outside: its postmaster.pid and its processes."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
"""The shortest message of the protocol that gets a reply before any login."""
PID_LINE = 0
DATA_DIR_LINE = 1
START_TIME_LINE = 2
SOCKET_DIR_LINE = 4
STATUS_LINE = 7
"""Lines of postmaster.pid."""


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A server as it describes itself in its data folder.

    The file outlives a kill -9: only `is_responding` says whether the server lives.
    """

    pid: int
    socket_dir: str
    ready: bool
    started: str = ""

    @property
    def identity(self) -> str:
        """What tells this start of a server from any other, of this folder or not."""
        return f"{self.pid} {self.started}"

    def is_responding(self) -> bool:
        """Is it ready, and does it reply on its socket?

        That also works across containers, unlike process numbers.
        """
        if not self.ready:
            return False
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(10)
            try:
                client.connect(f"{self.socket_dir}/.s.PGSQL.5432")
                # A dying server still accepts; only a living one replies.
                client.sendall(SSL_REQUEST)
                return client.recv(1) != b""
            except OSError:
                return False


def read_postmaster(data: Path) -> Postmaster | None:
    """The server that the data folder names; None if it names none.

    Also None if postmaster.pid is half-written, or came along with a copy of another folder.
    """
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(lines) <= SOCKET_DIR_LINE:
        return None
    pid = lines[PID_LINE]
    if not pid.isdigit() or Path(lines[DATA_DIR_LINE]) != data:
        return None
    ready = len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"
    return Postmaster(
        int(pid), lines[SOCKET_DIR_LINE], ready=ready, started=lines[START_TIME_LINE].strip()
    )


def cluster_processes(cluster_name: str) -> set[int]:
    """Ids of the cluster's processes, from the pg_ctl that starts it to its last orphaned backend.

    They are found by command line, since the id in postmaster.pid may be a zombie's, or a
    stranger's after a restart of the machine.
    """
    option = f"cluster_name={cluster_name}"
    title = f"postgres: {cluster_name}: "
    return {pid for pid, line in _command_lines() if option in line or line.startswith(title)}


def _command_lines() -> Iterator[tuple[int, str]]:
    """Id and command line of each process: from /proc, or where there is none from ps."""
    if Path("/proc/self/cmdline").exists():
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):  # it has just ended
                    yield int(folder.name), (folder / "cmdline").read_text(errors="replace")
        return
    listing = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
    )
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.strip()
