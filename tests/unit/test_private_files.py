"""What is made below CRAWL_DIR is for its user alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlproj.archive.fsync import make_folder
from crawlproj.archive.locks import create_locked, try_rewrite_lock
from crawlproj.private_files import make_crawl_dir, open_lock, open_private

NEW = os.O_WRONLY | os.O_CREAT


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The umask under which everybody may read what is made."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.lstat().st_mode & 0o7777


def test_new_folders_and_files_are_their_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "crawl"
    assert not make_crawl_dir(folder)
    assert mode_of(folder) == 0o700
    assert mode_of(folder.parent) == 0o755, "what is above it is not ours"
    make_folder(folder / "warc")
    os.close(create_locked(folder / "warc" / "a.warc.gz"))
    with try_rewrite_lock(folder / "warc"):
        pass
    os.close(open_private(folder / "one", NEW))
    os.close(open_lock(folder / "pg.turn", os.O_RDONLY))
    made = [path for path in folder.rglob("*") if path.is_file()]
    assert mode_of(folder / "warc") == 0o700
    assert {path.name: mode_of(path) for path in made} == {
        "a.warc.gz": 0o600, "rewrite.lock": 0o600, "one": 0o600, "pg.turn": 0o600,
    }  # fmt: skip


def earlier_version(folder: Path) -> None:
    """A CRAWL_DIR as versions before left it."""
    (folder / "log").mkdir(parents=True)
    (folder / "warc").mkdir()
    for name in ("pg.lock", "pg.turn", "log/site.log", "warc/a.warc.gz"):
        (folder / name).write_text("")


def test_folder_of_an_earlier_version_becomes_private_once(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    earlier_version(folder)
    assert make_crawl_dir(folder)
    paths = [folder, *folder.rglob("*")]
    assert not [path for path in paths if mode_of(path) & 0o077]
    assert not make_crawl_dir(folder)


def test_rights_that_a_user_gave_to_a_group_stay_and_hold_for_new_files(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    earlier_version(folder)
    make_crawl_dir(folder)
    folder.chmod(0o750)
    (folder / "warc").chmod(0o2750)
    assert not make_crawl_dir(folder)
    assert (mode_of(folder), mode_of(folder / "warc")) == (0o750, 0o2750)
    os.close(create_locked(folder / "warc" / "b.warc.gz"))
    os.close(open_private(folder / "log" / "new.log", NEW))
    assert mode_of(folder / "warc" / "b.warc.gz") == 0o640
    assert mode_of(folder / "log" / "new.log") == 0o600
    with try_rewrite_lock(folder / "warc"):
        pass
    assert mode_of(folder / "warc" / "rewrite.lock") == 0o600, "who can read a lock can hold it"


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """A CRAWL_DIR that is also somebody's home, and a link to another disk."""
    folder = tmp_path / "home"
    earlier_version(folder)
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    (folder / "log" / "site.log").unlink()
    (folder / "log").rmdir()
    (folder / "log").symlink_to(elsewhere)
    (folder / "public_html").mkdir()
    folder.chmod(0o755)
    assert make_crawl_dir(folder), "its archive was open"
    assert mode_of(folder) == mode_of(folder / "public_html") == mode_of(elsewhere) == 0o755
    assert mode_of(folder / "warc") == 0o700
    assert mode_of(folder / "pg.turn") == 0o600


def test_a_lock_of_an_earlier_version_is_closed_to_others_when_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "pg.turn"
    path.write_text("")
    path.chmod(0o644)
    os.close(open_lock(path, os.O_RDONLY))
    assert mode_of(path) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for others")
def test_what_root_makes_in_a_users_folder_is_that_users(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    os.chown(folder, 12_345, 12_346)
    os.close(open_lock(folder / "pg.turn", os.O_RDONLY))
    os.close(open_private(folder / "new", NEW))
    make_folder(folder / "warc")
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in folder.iterdir()}
    assert owners == {(12_345, 12_346)}
