"""Folders whose names survive a loss of power."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from crawlproj.private_files import make_private_folder


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk, so that they survive a loss of power."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_folder(folder: Path) -> None:
    """Make a folder and all above it; NotADirectoryError if the name is already something else."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        make_private_folder(folder)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    sync_folder(folder.parent)
