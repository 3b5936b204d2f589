"""Locks on files and folders of the archive.

A process that writes a file holds a lock on it, so that no other takes it for one that a killed
process left. Between the creation of a file and its locking another process may lock and remove
it, so a lock counts only if the name still leads to the file.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crawlproj.archive.fsync import make_folder
from crawlproj.errors import ArchiveError
from crawlproj.private_files import open_lock, open_private

PAUSE_S = 0.002
REWRITE = "rewrite.lock"


def lock_file(path: Path, flags: int = os.O_RDWR) -> int | None:
    """The file, locked; None if another process has it, or if it is gone or was renamed."""
    try:
        file = open_private(path, flags)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def create_locked(path: Path) -> int:
    """An empty file of that name, locked; waits while another process has it."""
    while (file := lock_file(path, os.O_RDWR | os.O_CREAT)) is None:
        time.sleep(PAUSE_S)
    os.ftruncate(file, 0)
    return file


@contextmanager
def try_rewrite_lock(folder: Path) -> Iterator[bool]:
    """The same as rewrite_lock without waiting: the value says whether we have the lock."""
    make_folder(folder)
    with open(folder / REWRITE, "ab", opener=open_lock) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def rewrite_lock(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """The lock for taking records out of closed files of a folder, or adding files of others.

    `on_wait` is called if another process has it, before we wait. An OSError inside, as from a full
    disk, becomes an ArchiveError.
    """
    try:
        make_folder(folder)
        with open(folder / REWRITE, "ab", opener=open_lock) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except BrokenPipeError:  # of our output, not of the archive
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise ArchiveError(
            f"The archive can't be used: {why} ({folder}); nothing is lost, do it again when it can"
        ) from error
