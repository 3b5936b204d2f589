"""The page that a worker reads just now, noted in a small mapped `CRAWL_DIR/reading-<worker>`.

A worker that hangs is ended by its watchdog (`hang_watchdog`), and can't say why any more: this
file does. Its process holds a lock on it; a file without a lock was left by one that is dead.
Whether that one hung is told by the trace that its watchdog has written; after a kill there is
none.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crawlproj.archive.locks import create_locked, lock_file
from crawlproj.scheduling.worker import file_name_of

LENGTH_BYTES = 4
NOTHING = bytes(LENGTH_BYTES)
MAX_NOTE = 4096
"""Bytes of a note; the end of a longer URL is left out."""
MAX_HEADER = 8192
JUST_NOW_S = 60.0
"""Numbers of processes are used again: an older trace is of another one."""


def trace_path(log_dir: Path, worker: str) -> Path:
    """Where the watchdog of a worker writes what hung."""
    return log_dir / f"hang-{file_name_of(worker)}.txt"


def has_hung(log_dir: Path, process: int) -> bool:
    """Whether a watchdog has just ended that process of this machine."""
    earliest = time.time() - JUST_NOW_S
    traces = [path.stat() for path in log_dir.glob(f"hang-*_{process}_*.txt")]
    return any(trace.st_size and trace.st_mtime > earliest for trace in traces)


@dataclass(frozen=True, slots=True)
class PageNote:
    """A page that is read. `id` 0: it is no URL of the frontier, such as a robots.txt."""

    id: int
    visit: int
    status: int
    url: str

    @classmethod
    def from_bytes(cls, data: bytes) -> PageNote | None:
        """The other way round than `make_note`."""
        id_, _, rest = data.decode("utf-8", "replace").partition(" ")
        visit, _, rest = rest.partition(" ")
        status, _, url = rest.partition(" ")
        try:
            return cls(int(id_), int(visit), int(status), url)
        except ValueError:
            return None


def make_note(id_: int, visit: int, status: int, url: str) -> bytes:
    """A PageNote as it is written, with its length, without making one: this is done for each
    page.
    """
    text = f"{id_} {visit} {status} {url}".encode("utf-8", "replace")[:MAX_NOTE]
    return len(text).to_bytes(LENGTH_BYTES, "big") + text


class ReadingFile:
    """A worker's own file: a line that says whose it is, then the length of a note, and the note.

    Its bytes are written when it is made, so that a full disk shows then: a page of a mapped file
    that the disk has no room for ends the process.
    """

    def __init__(self, folder: Path, worker: str, crawl: str) -> None:
        self.path = folder / f"reading-{file_name_of(worker)}"
        header = json.dumps({"worker": worker, "crawl": crawl}).encode()[:MAX_HEADER] + b"\n"
        self._file = create_locked(self.path)
        try:
            size = len(header) + LENGTH_BYTES + MAX_NOTE
            os.pwrite(self._file, header.ljust(size, b"\0"), 0)
            self._map: mmap.mmap | bytearray = mmap.mmap(self._file, size)
        except BaseException:
            self.path.unlink()
            os.close(self._file)
            raise
        self._start = len(header)

    def write_note(self, note: bytes) -> None:
        """Say what is read; `note` is made by `make_note`, or NOTHING."""
        start = self._start
        self._map[start : start + len(note)] = note

    def close(self) -> None:
        """Remove the file: this worker ends in an orderly way."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        size = len(self._map)
        assert isinstance(self._map, mmap.mmap)
        self._map.close()
        self._map = bytearray(size)  # what is still noted goes nowhere
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class LeftFile:
    """The file of a dead worker. `note`: what it read when it died; None: nothing."""

    path: Path
    worker: str
    crawl: str
    note: PageNote | None


def take_left_files(folder: Path, crawl: str) -> Iterator[LeftFile]:
    """The files that dead workers of a crawl have left, each for one taker.

    A file is removed when the next is asked for; an error in between leaves it for the next taker.
    """
    for path in sorted(folder.glob("reading-*")):
        file = lock_file(path)
        if file is None:
            continue
        try:
            left = _parse_file(path, os.read(file, MAX_HEADER + LENGTH_BYTES + MAX_NOTE + 1))
            if left is None or left.crawl == crawl:
                if left is not None:
                    yield left
                path.unlink()
        finally:
            os.close(file)


def _parse_file(path: Path, data: bytes) -> LeftFile | None:
    """None: its worker died while it made the file."""
    header, _, rest = data.partition(b"\n")
    try:
        owner = json.loads(header)
        worker = str(owner["worker"])
        crawl = str(owner["crawl"])
    except (ValueError, TypeError, KeyError):
        return None
    length = int.from_bytes(rest[:LENGTH_BYTES], "big")
    note = None
    if length:
        note = PageNote.from_bytes(rest[LENGTH_BYTES : LENGTH_BYTES + length])
    return LeftFile(path, worker, crawl, note)
