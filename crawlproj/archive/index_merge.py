"""Merging of indexes: each WARC file has one (`NAME.cdxj`), a folder has a common one.

Lines are sorted in little memory: sorted runs go to unnamed files and are merged at the end.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from heapq import merge
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from crawlproj.archive.fsync import sync_folder
from crawlproj.archive.locks import create_locked
from crawlproj.private_files import open_lock

RUN_BYTES = 4 << 20
MAX_RUNS = 64
"""How many files are merged, and open, at a time."""
PART = ".part"
INDEX = "index.cdxj"
COVER = "index.json"
"""Which indexes of files the common index covers, and in which state."""
LOCK = "index.lock"


class LineSorter:
    """Sorts lines (with their line ends) without duplicates, in little memory."""

    def __init__(self, folder: Path, run_bytes: int = RUN_BYTES) -> None:
        self._folder = folder
        self._run_bytes = run_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._runs: list[IO[bytes]] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size >= self._run_bytes:
            with suppress(OSError):  # the disk is full: lines stay in memory until it isn't
                self._spill()

    def _spill(self) -> None:
        run = _write_run(self._folder, sorted(self._lines))
        self._lines = []
        self._size = 0
        self._runs.append(run)
        if len(self._runs) >= MAX_RUNS:
            merged = _write_run(self._folder, merge(*map(_rewind, self._runs)))
            for old in self._runs:
                old.close()
            self._runs = [merged]

    def sorted_lines(self) -> Iterator[bytes]:
        return unique_lines(merge(*map(_rewind, self._runs), sorted(self._lines)))

    def close(self) -> None:
        for run in self._runs:
            run.close()
        self._runs = []
        self._lines = []
        self._size = 0


def _write_run(folder: Path, lines: Iterable[bytes]) -> IO[bytes]:
    """An unnamed file with these sorted lines."""
    run = TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the sorter
    try:
        run.writelines(lines)
        run.flush()
    except OSError:
        run.close()
        raise
    return run


def _rewind(run: IO[bytes]) -> IO[bytes]:
    run.seek(0)
    return run


def unique_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Sorted lines without duplicates."""
    last = b""
    for line in lines:
        if line != last:
            yield line
        last = line


def write_file(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file as a whole or not at all: first under another name, locked, then renamed.

    What a kill leaves of it is removed by a repair.
    """
    part = path.with_name(path.name + PART)
    try:
        with os.fdopen(create_locked(part), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)  # while it is locked
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def file_indexes(folder: Path) -> list[Path]:
    """The indexes of the single WARC files."""
    return sorted(path for path in folder.glob("*.cdxj") if path.name != INDEX)


def merge_indexes(folder: Path) -> Path:
    """Write the common index of all WARC files in a folder, in constant memory.

    Workers that do it at once wait for each other. Another file says which indexes it covers and in
    which state: for a WARC file that is new or was changed, its own index is read instead.
    """
    with open(folder / LOCK, "ab", opener=open_lock) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cover = _states(folder)
        with ExitStack() as stack:
            runs: list[IO[bytes]] = []
            names = iter(sorted(cover))
            while batch := list(islice(names, MAX_RUNS)):
                with ExitStack() as group:
                    files = [
                        group.enter_context(file)
                        for name in batch
                        for file in _opened(folder / name)
                    ]
                    runs.append(stack.enter_context(_write_run(folder, merge(*files))))
            write_file(folder / INDEX, unique_lines(merge(*map(_rewind, runs))))
        known = {"index": state_of(folder / INDEX), "parts": cover}
        write_file(folder / COVER, [json.dumps(known).encode()])
        sync_folder(folder)
    return folder / INDEX


def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, or none if it was removed meanwhile: then it does not count as covered, either."""
    with suppress(FileNotFoundError):
        yield path.open("rb")


def state_of(path: Path) -> list[int]:
    """By what a file is recognized as unchanged."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _states(folder: Path) -> dict[str, list[int]]:
    found = {}
    for path in file_indexes(folder):
        with suppress(FileNotFoundError):
            found[path.name] = state_of(path)
    return found


def covered_indexes(folder: Path) -> tuple[bool, set[str]]:
    """Whether the common index is valid, and the names of the file indexes that it replaces."""
    try:
        known = json.loads((folder / COVER).read_bytes())
        if state_of(folder / INDEX) != known["index"]:
            return False, set()
    except (OSError, ValueError, KeyError, TypeError):
        return False, set()
    now = _states(folder)
    return True, {name for name, state in known["parts"].items() if now.get(name) == state}
