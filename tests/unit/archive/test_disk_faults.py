"""What a disk may do to the archive: lose power between two renames, refuse, be no folder
at all.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive, fsync, index_merge, open_file
from crawlproj.archive.check import check_file
from crawlproj.archive.fsync import make_folder
from crawlproj.archive.gzip_members import compress_member, iter_members
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.locks import rewrite_lock, try_rewrite_lock
from crawlproj.archive.open_file import OpenFile, index_path
from crawlproj.archive.records import build_warcinfo
from crawlproj.archive.recovery import repair_indexes, repair_open_files
from crawlproj.archive.writer import WarcWriter, WriterOptions
from crawlproj.errors import ArchiveError
from tests.support.archiving import PAGE, START, exchange, write

URLS = [exchange(number).url for number in range(5)]


def five_files(folder: Path) -> list[Path]:
    write(folder, [(exchange(number), None) for number in range(5)], WriterOptions(max_bytes=1))
    return Archive(folder).closed_files()


def all_there(folder: Path) -> None:
    archive = Archive(folder)
    assert [len(archive.versions(url)) for url in URLS] == [1] * 5
    assert not [str(problem) for path in archive.closed_files() for problem in check_file(path)]


@pytest.mark.parametrize(
    "left",
    [None, b"", b'org,example)/page/0 20260304050607 {"url": "https'],
    ids=["no", "an empty", "half an"],
)
def test_a_closed_file_with_no_whole_index_is_indexed(tmp_path: Path, left: bytes | None) -> None:
    path = five_files(tmp_path)[2]
    merge_indexes(tmp_path)
    index_path(path).unlink()
    if left is not None:
        index_path(path).write_bytes(left)
    assert [done.file for done in repair_indexes(tmp_path)] == [path.name]
    all_there(tmp_path)
    assert repair_indexes(tmp_path) == []


DAMAGE = {
    "noise": os.urandom(999).replace(b"\n", b"") + b"\n", "no number": b'org,example)/page/2 '
                                                                       b'20260304050607 {"offset": '
                                                                       b'"x"}\n',
    "no object": b"org,example)/page/2 20260304050607 7\n", "no order": b"b\na\n",
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_is_told_and_made_anew_by_a_thorough_look(
    tmp_path: Path, name: str
) -> None:
    path = five_files(tmp_path)[2]
    index_path(path).write_bytes(DAMAGE[name])
    merge_indexes(tmp_path)
    with pytest.raises(ArchiveError, match="damaged"):
        list(Archive(tmp_path).iter_entries())
    if name.startswith(("no number", "no object")):
        with pytest.raises(ArchiveError, match=r"damaged.*index\.cdxj"):
            Archive(tmp_path).versions("http://example.org/page/2")
    assert [done.file for done in repair_indexes(tmp_path, thorough=True)] == [path.name]
    merge_indexes(tmp_path)
    all_there(tmp_path)
    assert repair_indexes(tmp_path, thorough=True) == []


def test_a_file_without_pages_has_an_empty_index_and_that_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(compress_member(build_warcinfo(path.name, START, {}).data))
    assert [done.file for done in repair_indexes(tmp_path)] == [path.name]
    assert index_path(path).read_bytes() == b"" and repair_indexes(tmp_path) == []


def test_an_index_without_a_file_goes_but_not_that_of_one_that_is_being_closed(
    tmp_path: Path,
) -> None:
    gone, open_, *_ = five_files(tmp_path)
    merge_indexes(tmp_path)
    gone.unlink()
    open_.rename(open_.with_name(open_.name + ".open"))
    assert [done.file for done in repair_indexes(tmp_path)] == [index_path(gone).name]
    assert index_path(open_).exists() and not index_path(gone).exists()
    assert Archive(tmp_path).versions(URLS[0]) == []


def test_who_mends_indexes_and_who_rewrites_do_not_meet(tmp_path: Path) -> None:
    with rewrite_lock(tmp_path, lambda: None), try_rewrite_lock(tmp_path) as alone:
        assert not alone
    with try_rewrite_lock(tmp_path) as alone:
        assert alone


def test_a_page_that_is_a_warc_file_is_not_taken_for_records_of_ours(tmp_path: Path) -> None:
    """Its record is damaged, and the file in it is not packed again: its records are whole ones."""
    forged = exchange(0, url="https://bank.example/", body=b"forged")
    write(tmp_path / "evil", [(forged, None)])
    evil = next((tmp_path / "evil").glob("*.warc.gz")).read_bytes()
    noise = random.Random(1).randbytes(500_000)
    write(tmp_path / "ours", [(exchange(0, noise + evil + noise[::-1]), None), (exchange(1), None)])
    (path,) = Archive(tmp_path / "ours").closed_files()
    with path.open("rb") as file:
        first = [found.offset for found in iter_members(file)][1]
    data = path.read_bytes()
    assert evil in data, "stored as it is"
    path.write_bytes(data[: first + 20] + bytes(20) + data[first + 40 :])
    path.rename(path.with_name(path.name + ".open"))
    (done,) = repair_open_files(tmp_path / "ours")
    assert done.saved
    found = {record.url for _, record in Archive(tmp_path / "ours").iter_records() if record.url}
    assert found == set(URLS[:2]), "the request of the damaged page, and the other page"
    assert Archive(tmp_path / "ours").get("https://bank.example/") is None


@pytest.mark.parametrize("kind", ["a file", "a link that leads nowhere"])
def test_a_folder_that_is_none_is_told_at_once(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "warc"
    folder.touch() if kind == "a file" else folder.symlink_to(tmp_path / "not mounted" / "warc")
    writer = WarcWriter(folder, "x", "w", {})
    receipt = writer.put(exchange())
    with pytest.raises(ArchiveError, match="Not a directory"):
        writer.flush().result(10)
    folder.unlink()
    writer.flush().result(10)
    assert receipt.record_location is not None
    writer.close()


def test_new_folders_are_synced_in_those_above_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(fsync, "sync_folder", synced.append)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a"]


def failing(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> Callable[[], None]:
    """The next calls of it fail with EIO, until what is returned is called."""
    true = getattr(module, name)

    def fail(*args: object, **more: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module, name, fail)
    return lambda: monkeypatch.setattr(module, name, true)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_whose_name_can_not_be_synced_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_files()
    again = failing(monkeypatch, open_file, "sync_folder")
    for number in range(20):
        with pytest.raises(OSError):
            OpenFile(tmp_path, f"{number}.warc.gz")
    assert not list(tmp_path.iterdir()) and open_files() == before
    again()
    OpenFile(tmp_path, "1.warc.gz").close_unfinished()
    assert [path.name for path in tmp_path.iterdir()] == ["1.warc.gz.open"]


def test_closing_can_be_done_again_whatever_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    writer.put(exchange(0))
    writer.flush().result(10)
    for module, name in ((open_file, "sync_folder"), (open_file, "write_file")):
        again = failing(monkeypatch, module, name)
        with pytest.raises(ArchiveError, match="error"):
            writer.rotate_file().result(10)
        again()
    writer.rotate_file().result(10)
    writer.close()
    (path,) = Archive(tmp_path).closed_files()
    assert not list(check_file(path)) and not list(tmp_path.glob("*.open"))


def test_what_can_not_be_taken_back_is_taken_back_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a record was written, and not even the half can be cut off: the next record must not
    come behind it.
    """
    file = OpenFile(tmp_path, "a.warc.gz")
    assert file.write(b"one") == 0
    true = os.write
    monkeypatch.setattr(
        open_file.os, "write", lambda to, data: true(to if len(data) == 12 else -1, data[:2])
    )
    back = failing(monkeypatch, open_file.os, "ftruncate")
    with pytest.raises(OSError):
        file.write(b"two and more")
    assert file.path.read_bytes() == b"onetw"
    monkeypatch.setattr(open_file.os, "write", true)
    with pytest.raises(OSError):
        file.write(b"three")
    back()
    assert file.write(b"four") == 3
    assert file.path.read_bytes() == b"onefour"
    file.close_unfinished()


def test_an_index_may_go_while_all_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [index_path(path) for path in five_files(tmp_path)[:2]]
    true = index_merge.file_indexes

    def parts(folder: Path) -> list[Path]:
        found = true(folder)
        gone[0].unlink(missing_ok=True)
        return found

    monkeypatch.setattr(index_merge, "file_indexes", parts)
    merge_indexes(tmp_path)
    gone[0] = gone[1]
    assert len(Archive(tmp_path).versions(URLS[4])) == 1


def test_a_clock_that_is_set_back_harms_no_file(tmp_path: Path) -> None:
    """Names repeat their times, captures come out of order: all of it is found."""
    hours = iter([5, 3, 4, 3, 1])
    for number in range(5):
        now = START + timedelta(hours=next(hours))
        writer = WarcWriter(tmp_path, "x", "w", {}, now=lambda now=now: now)  # type: ignore[misc]
        writer.put(exchange(0, PAGE + b"%d" % number, at=now + timedelta(seconds=number)))
        writer.close()
    merge_indexes(tmp_path)
    archive = Archive(tmp_path)
    assert len(archive.closed_files()) == 5
    assert [archive.read_capture(entry).content[-1:] for entry in archive.versions(URLS[0])] == [
        b"4",
        b"1",
        b"3",
        b"2",
        b"0",
    ]
    assert not [str(problem) for path in archive.closed_files() for problem in check_file(path)]


def test_hundreds_of_small_files_are_mended_merged_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    write(tmp_path, [(exchange(number), None) for number in range(300)], WriterOptions(max_bytes=1))
    paths = Archive(tmp_path).closed_files()
    assert len(paths) == 300
    for path in paths[::3]:
        index_path(path).unlink()
    for path in paths[1::3]:
        path.rename(path.with_name(path.name + ".open"))
    assert (len(repair_open_files(tmp_path)), len(repair_indexes(tmp_path))) == (100, 100)
    merge_indexes(tmp_path)
    assert len(list(Archive(tmp_path).iter_entries())) == 300
    assert not [str(problem) for path in paths for problem in check_file(path)]
