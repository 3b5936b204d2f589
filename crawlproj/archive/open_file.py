"""The WARC file that is being written: `NAME.warc.gz.open`, locked. When it is closed it loses
`.open` and gets an index.
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
    """A name as other crawlers have it: prefix, time, serial number, worker. It sorts by time."""
    stamp = f"{now.astimezone(UTC):%Y%m%d%H%M%S%f}"[:17]
    return f"{plain_name(prefix)}-{stamp}-{serial:05}-{plain_name(worker)}{SUFFIX}"


def plain_name(text: str) -> str:
    """A text as it is written in the name of a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip(".-") or "crawl"


def prefix_of(name: str) -> str:
    """The prefix in the name of a file; empty if the name is not one of ours."""
    found = _NAME(name)
    if found is None:
        return ""
    return found[1]


def sizes_by_prefix(folder: Path) -> Counter[str]:
    """The bytes of all WARC files, open ones included, by the prefixes of their names."""
    sizes = Counter[str]()
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            prefix = prefix_of(entry.name)
            if prefix:
                with suppress(FileNotFoundError):
                    sizes[prefix] += entry.stat().st_size
    return sizes


def index_path(warc: Path) -> Path:
    """The path of the index of a WARC file, open or closed."""
    name = warc.name.removesuffix(OPEN).removesuffix(".gz").removesuffix(".warc")
    return warc.with_name(name + ".cdxj")


class OpenFile:
    """An open WARC file and its index. A write succeeds as a whole or raises OSError and leaves
    nothing; `synced` says how many bytes are surely on disk.
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
        """A failed write has left a part that could not be removed at once."""
        self.size = 0
        self.synced = 0
        self._index = LineSorter(folder)
        try:
            sync_folder(folder)
        except OSError:
            self.discard()
            raise

    def write(self, data: bytes) -> int:
        """Append the data and return its offset."""
        offset = self.size
        view = memoryview(data)
        self._remove_torn_write()
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
        """Add a line to the file's index."""
        self._index.add(line)

    def sync(self) -> None:
        if self.synced < self.size:
            _sync(self._file)
            self.synced = self.size

    def truncate_to(self, size: int) -> None:
        """Remove everything after the first `size` bytes."""
        os.ftruncate(self._file, size)
        os.lseek(self._file, size, os.SEEK_SET)
        self.size = size
        self._torn = False
        self.synced = min(self.synced, size)

    def _remove_torn_write(self) -> None:
        if self._torn:
            self.truncate_to(self.size)

    def close(self) -> None:
        """Sync and index the file and give it its final name; may be called again if it failed."""
        self._remove_torn_write()
        self.sync()
        write_file(index_path(self.path), self._index.sorted_lines())
        self.path.replace(self._folder / self.name)
        self.path = self._folder / self.name  # if the next step fails, all is done again
        sync_folder(self._folder)
        self.close_unfinished()

    def close_unfinished(self) -> None:
        """Close the file as it is, to be repaired like that of a killed process."""
        self._index.close()
        file = self._file
        self._file = -1
        if file >= 0:
            os.close(file)

    def discard(self) -> None:
        """Delete the file, in which nothing was written."""
        self.path.unlink(missing_ok=True)
        self.close_unfinished()
