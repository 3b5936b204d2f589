"""The WARC file that is being written: `NAME.warc.gz.open`, locked, with an index of its own when
it is closed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from crawlproj.archive.fsync import make_folder, sync_folder
from crawlproj.archive.index_merge import LineSorter, write_file
from crawlproj.archive.locks import lock_file

SUFFIX = ".warc.gz"
OPEN = ".open"
_NAME = re.compile(r"(.+)-\d{17}-\d{5,}-.+\.warc\.gz(?:\.open)?").fullmatch
_sync = getattr(os, "fdatasync", os.fsync)


def file_name(prefix: str, worker: str, serial: int, now: datetime) -> str:
    """Like those of other crawlers: what, when, the how manieth, by whom. It sorts by time."""
    stamp = f"{now.astimezone(UTC):%Y%m%d%H%M%S%f}"[:17]
    return f"{plain_name(prefix)}-{stamp}-{serial:05}-{plain_name(worker)}{SUFFIX}"


def plain_name(text: str) -> str:
    """As it is written in the name of a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip(".-") or "crawl"


def prefix_of(name: str) -> str:
    """What a file was named after; empty if the name is not one of ours."""
    found = _NAME(name)
    return found[1] if found else ""


def sizes_by_prefix(folder: Path) -> Counter[str]:
    """Bytes of all WARC files, open ones too, by what they are named after."""
    found = Counter[str]()
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if prefix := prefix_of(entry.name):
                with suppress(FileNotFoundError):
                    found[prefix] += entry.stat().st_size
    return found


def index_path(warc: Path) -> Path:
    """Of a WARC file, open or closed."""
    return warc.with_name(
        warc.name.removesuffix(OPEN).removesuffix(".gz").removesuffix(".warc") + ".cdxj"
    )


class OpenFile:
    """Writes are whole or not at all. `synced` is how much of it is surely on disk. OSError if the
    disk does not take it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        make_folder(folder)
        self.name = name
        self.path = folder / (name + OPEN)
        self._folder = folder
        if (folder / name).exists():
            raise FileExistsError(name)
        file = lock_file(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if file is None:
            raise FileExistsError(name)
        self._file = file
        self._torn = False
        self.size = self.synced = 0
        self._index = LineSorter(folder)
        try:
            sync_folder(folder)
        except OSError:
            self.discard()
            raise

    def write(self, data: bytes) -> int:
        """Returns the offset of what was written."""
        offset = self.size
        view = memoryview(data)
        self._mend()
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self._torn = True
            self.truncate_to(offset)
            raise
        self.size = offset + len(data)
        return offset

    def add_index_line(self, line: bytes) -> None:
        """Add a line to the index."""
        self._index.add(line)

    def sync(self) -> None:
        if self.synced < self.size:
            _sync(self._file)
            self.synced = self.size

    def truncate_to(self, size: int) -> None:
        """Take back what was written after that."""
        os.ftruncate(self._file, size)
        os.lseek(self._file, size, os.SEEK_SET)
        self.size = size
        self._torn = False
        self.synced = min(self.synced, size)

    def _mend(self) -> None:
        """A part of a write that could not be taken back at the time."""
        if self._torn:
            self.truncate_to(self.size)

    def close(self) -> None:
        """On disk, indexed, under its final name. May be called again if it failed."""
        self._mend()
        self.sync()
        write_file(index_path(self.path), self._index.sorted_lines())
        self.path.replace(self._folder / self.name)
        self.path = self._folder / self.name  # should the next step fail, and all be done again
        sync_folder(self._folder)
        self.close_unfinished()

    def close_unfinished(self) -> None:
        """As it is, to be repaired like one of a process that was killed."""
        self._index.close()
        file = self._file
        self._file = -1
        if file >= 0:
            os.close(file)

    def discard(self) -> None:
        """One in which nothing is."""
        self.path.unlink(missing_ok=True)
        self.close_unfinished()
