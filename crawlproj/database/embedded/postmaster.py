"""What can be seen of a Postgres server from outside: its postmaster.pid and its processes."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

SSL_REQUEST = struct.pack(
    "!ii", 8, 80877103
)  # the shortest question of the protocol; answered before any login


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A server as it describes itself in its data folder. The file outlives a kill -9: ask
    `answers`.
    """

    pid: int
    socket_dir: str
    ready: bool

    def is_responding(self) -> bool:
        """Ready, and it talks to us on its socket; works across containers too, unlike process
        numbers.
        """
        if not self.ready:
            return False
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(10)
            try:
                client.connect(f"{self.socket_dir}/.s.PGSQL.5432")
                # A dying server still accepts; only a living one has an answer.
                client.sendall(SSL_REQUEST)
                return client.recv(1) != b""
            except OSError:
                return False


def read_postmaster(data: Path) -> Postmaster | None:
    """None if there is no server, or the file is half-written or came along with a copy of another
    folder.
    """
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(lines) < 5 or not lines[0].isdigit() or Path(lines[1]) != data:
        return None
    return Postmaster(int(lines[0]), lines[4], ready=len(lines) > 7 and lines[7].strip() == "ready")


def cluster_processes(cluster_name: str) -> set[int]:
    """Living processes of the cluster, from the pg_ctl that starts it to its last orphaned backend.

    By command line and not by the number in postmaster.pid: that may be a zombie's, or a stranger's
    after a restart.
    """
    option = f"cluster_name={cluster_name}"
    title = f"postgres: {cluster_name}: "
    return {pid for pid, line in _command_lines() if option in line or line.startswith(title)}


def _command_lines() -> Iterator[tuple[int, str]]:
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
