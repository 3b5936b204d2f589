"""Disks that can be filled: a small one in memory (needs the right to mount), or a limit on the size of a server's files."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlproj.postmaster import read_postmaster


class SmallDisk:
    """`fill` takes all that is left, `clear` gives it back."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def clear(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: str = "160m") -> Iterator[SmallDisk]:
    """Skips with the reason where nothing may be mounted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class SmallFiles:
    """No process of a server can write beyond 64 KB of any file, which Postgres takes for a full disk: since it can't write its log
    either, it goes down. Works without any right."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def fill(self) -> None:
        self._limit(65_536)

    def clear(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        server = read_postmaster(self._data)
        for number in {server.pid, *children(server.pid)} if server else ():
            try:
                _, hard = resource.prlimit(number, resource.RLIMIT_FSIZE)
                resource.prlimit(number, resource.RLIMIT_FSIZE, (size, hard))
            except ProcessLookupError:
                continue


def children(pid: int) -> set[int]:
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(folder.name))
        except OSError:
            continue
    return found - {os.getpid()}
