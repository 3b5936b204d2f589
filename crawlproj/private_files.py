"""What is made below CRAWL_DIR is for its user alone: logs and pages of a crawl are nobody else's
business, and whoever can open a lock can hold it.

Folders are made with mode 0700 and files with 0600, whatever the umask. A folder that its user
opens to a group (chmod 750) stays so, and the group may read the files that are made in it; locks
are never shared. What root makes in a folder of somebody else belongs to that user.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDERS = frozenset({"log", "warc"})
FILES = frozenset({"pg.lock", "pg.turn", "pg.keep", "demo.json"})
DATABASE = "pg"
"""The folder of the embedded Postgres, which looks after its own rights."""
ALL = 0o777
OTHERS = 0o007
GROUP_READS = 0o040
PASSAGE = 0o011


def make_private_folder(folder: Path) -> None:
    """Make a folder for its user alone, unless it is there; those above it are made as usual."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    _give_to_owner_of_parent(folder, folder)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file of the crawl; one that is made is for its user, and for a group that may read its
    folder.
    """
    folder = Path(path).parent.stat()
    mode = 0o600
    if not folder.st_mode & OTHERS:
        mode |= folder.st_mode & GROUP_READS
    file = os.open(path, flags | os.O_CLOEXEC, mode)
    if flags & os.O_CREAT:
        _give_to_owner_of_parent(file, Path(path))
    return file


def open_lock(path: str | Path, flags: int) -> int:
    """Open a lock: nobody else may even read it, since that is enough to hold it. One that an
    earlier version made is closed to others now.
    """
    file = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _give_to_owner_of_parent(file, Path(path))
    info = os.fstat(file)
    if info.st_mode & 0o077 and os.geteuid() in (0, info.st_uid):
        os.fchmod(file, 0o600)
    return file


def _give_to_owner_of_parent(made: int | Path, path: Path) -> None:
    """What root makes in a folder of somebody else belongs to that user, who must be able to go on
    without root.
    """
    if os.geteuid() != 0:
        return
    owner = path.parent.stat()
    is_roots = os.stat(made).st_uid == 0  # noqa: PTH116 - it may be a number
    if owner.st_uid != 0 and is_roots:
        os.chown(made, owner.st_uid, owner.st_gid)


def make_crawl_dir(folder: Path) -> bool:
    """Make CRAWL_DIR for its user alone; one that an earlier version made, and left open to all,
    becomes private. Return True if there was something to see in it.

    Rights of a group are kept where others have none: somebody has given them. So is what is not
    ours: a folder with other things in it, and links to other places.
    """
    make_private_folder(folder)
    names = {path.name for path in folder.iterdir()}
    closed = False
    if all(_is_ours(name) for name in names):
        closed = _close_folder(folder, passage=_is_foreign(folder / DATABASE)) and bool(names)
    for name in sorted(names - {DATABASE}):
        if _is_ours(name):
            closed |= _close(folder / name)
    return closed


def allow_passage(folder: Path, uid: int) -> None:
    """Let another user, as whom our Postgres runs, pass through a folder of ours, not look into
    it.
    """
    info = folder.stat()
    if info.st_uid == os.geteuid() != uid:
        folder.chmod(stat.S_IMODE(info.st_mode) | PASSAGE)


def _is_ours(name: str) -> bool:
    return name in FOLDERS or name in FILES or name == DATABASE or name.startswith("reading-")


def _is_foreign(path: Path) -> bool:
    return path.exists() and path.stat().st_uid != os.geteuid()


def _close(path: Path) -> bool:
    info = path.lstat()
    if stat.S_ISDIR(info.st_mode):
        if not _close_folder(path):
            return False
        # Nobody else can change anything in it any more.
        for entry in list(path.iterdir()):
            _close(entry)
        return True
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or not info.st_mode & OTHERS:
        return False
    path.chmod(stat.S_IMODE(info.st_mode) & ~(ALL ^ 0o700))
    return True


def _close_folder(folder: Path, *, passage: bool = False) -> bool:
    """Take the rights of all others from a folder of ours; True if they had some. One that we may
    not write to is not of our making.
    """
    info = folder.stat()
    allowed = 0o700
    if passage:
        allowed |= PASSAGE
    is_open = info.st_mode & OTHERS & ~allowed
    is_made_by_us = info.st_uid == os.geteuid() and info.st_mode & 0o700 == 0o700
    if not is_made_by_us or info.st_mode & stat.S_ISVTX or not is_open:
        return False
    folder.chmod(stat.S_IMODE(info.st_mode) & ~(ALL ^ allowed))
    return True
