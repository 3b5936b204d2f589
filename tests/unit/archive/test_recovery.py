from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file
from crawlproj.archive.gzip_members import (
    BrokenRecordError,
    GzipMember,
    compress_member,
    iter_members,
)
from crawlproj.archive.index_merge import write_file
from crawlproj.archive.open_file import OpenFile
from crawlproj.archive.recovery import repair_open_files, write_index
from crawlproj.archive.stored_record import StoredRecord, parse_record
from crawlproj.archive.writer import WarcWriter
from tests.support.archiving import accepted, exchange, write


def made(folder: Path, count: int = 3) -> Path:
    """A closed file of a few small records."""
    write(folder, [(exchange(n, b"<p>%d" % n), None) for n in range(count)])
    (path,) = folder.glob("*.warc.gz")
    return path


def ids(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [parse_record(found).id for found in iter_members(file)]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_cut_at_any_byte_keeps_all_its_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # a thousand times, on a slow disk
    source = made(tmp_path / "source", 1)
    data = source.read_bytes()
    with source.open("rb") as file:
        ends = [found.offset + found.length for found in iter_members(file)]
    for size in range(len(data) + 1):
        folder = tmp_path / "cut"
        folder.mkdir(exist_ok=True)
        (folder / (source.name + ".open")).write_bytes(data[:size])
        (done,) = repair_open_files(folder)
        whole = [end for end in ends if end <= size]
        assert (done.records, done.cut_bytes) == (len(whole), size - max(whole, default=0))
        left = folder / source.name
        assert left.exists() == bool(whole)
        if whole:
            assert left.read_bytes() == data[: whole[-1]]
        if size in (*ends, *(end + 40 for end in ends)) and whole:
            assert accepted(left) == len(whole)
            assert not list(check_file(left))
        for path in folder.iterdir():
            path.unlink()


def test_repairing_twice_does_nothing_more(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.rename(tmp_path / (path.name + ".open"))
    with (tmp_path / (path.name + ".open")).open("ab") as file:
        file.write(b"\x1f\x8b\x08half a member")
    assert len(repair_open_files(tmp_path)) == 1
    before = snapshot(tmp_path)
    assert repair_open_files(tmp_path) == []
    assert snapshot(tmp_path) == before


def test_repairing_goes_on_where_another_repair_was_killed(tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    data = path.read_bytes()
    name = path.name
    half = data[: len(data) - 10]
    for index_is_there in (False, True):
        folder = tmp_path / f"b{index_is_there}"
        folder.mkdir()
        (folder / (name + ".open")).write_bytes(half)
        if index_is_there:
            (folder / name.replace(".warc.gz", ".cdxj")).write_bytes(b"something old\n")
            (folder / name.replace(".warc.gz", ".cdxj.part")).write_bytes(b"half")
        repair_open_files(folder)
        assert not list(folder.glob("*.part"))
        assert not list(check_file(folder / name))


def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, "x", "w", {})
    writer.put(exchange())
    writer.flush().result(10)
    before = {name: data for name, data in snapshot(tmp_path).items() if name.endswith(".open")}
    assert before
    assert repair_open_files(tmp_path) == []
    assert snapshot(tmp_path) == before
    writer.put(exchange(1))
    writer.close()
    (path,) = tmp_path.glob("*.warc.gz")
    assert accepted(path) == 7


def test_an_empty_file_goes(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz.open").touch()
    (done,) = repair_open_files(tmp_path)
    assert done.file == ""
    assert not list(tmp_path.iterdir())


def test_nothing_to_repair_is_fine(tmp_path: Path) -> None:
    assert repair_open_files(tmp_path) == []
    assert repair_open_files(tmp_path / "missing") == []


@pytest.mark.parametrize(
    "kind", ["zeros", "noise", "a damaged member", "a member that is no record"]
)
def test_whole_records_behind_damage_are_saved(tmp_path: Path, kind: str) -> None:
    path = made(tmp_path)
    wanted = ids(path)
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        places = [(found.offset, found.length) for found in iter_members(file)]
    offset, length = places[4]
    if kind == "a member that is no record":
        data[offset : offset + length] = compress_member(b"WARC/1.1\r\nno record", 6)
    elif kind == "a damaged member":
        data[offset + 30] ^= 0xFF
    else:
        data[offset : offset + length] = bytes(length) if kind == "zeros" else os.urandom(length)
    path.rename(tmp_path / (path.name + ".open"))
    (tmp_path / (path.name + ".open")).write_bytes(data)
    (done,) = repair_open_files(tmp_path)
    assert ids(path) == wanted[:4]
    assert done.saved
    assert ids(tmp_path / done.saved) == [wanted[0], *wanted[5:]]
    assert accepted(tmp_path / done.saved) == len(wanted) - 4
    assert not list(check_file(path)) and not list(check_file(tmp_path / done.saved))
    assert repair_open_files(tmp_path) == []


def test_the_index_made_of_a_file_is_that_which_its_writer_made(tmp_path: Path) -> None:
    path = made(tmp_path, 20)
    beside = path.with_name(path.name.replace(".warc.gz", ".cdxj"))
    before = beside.read_bytes()
    beside.unlink()
    assert write_index(path) == 61
    assert beside.read_bytes() == before


def test_a_repaired_archive_can_be_read(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.rename(tmp_path / (path.name + ".open"))
    next(tmp_path.glob("*.cdxj")).unlink()
    repair_open_files(tmp_path)
    found = Archive(tmp_path).get("https://example.org/page/2")
    assert found is not None
    assert found.content == b"<p>2"


def test_locks_are_those_of_the_open_file(tmp_path: Path) -> None:
    file = OpenFile(tmp_path, "a.warc.gz")
    assert repair_open_files(tmp_path) == []
    file.close_unfinished()
    assert len(repair_open_files(tmp_path)) == 1


def test_a_repair_beside_a_writer_removes_nothing_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    done = threading.Event()

    def keep_repairing() -> None:
        while not done.is_set():
            assert repair_open_files(tmp_path) == []

    with ThreadPoolExecutor() as pool:
        repairing = pool.submit(keep_repairing)
        try:
            for number in range(300):
                write_file(tmp_path / "x.cdxj", [b"%d\n" % number] * 100)
                assert (tmp_path / "x.cdxj").read_bytes() == b"%d\n" % number * 100
        finally:
            done.set()
        repairing.result()


def test_records_are_parsed_to_the_byte() -> None:
    good = b"WARC/1.1\r\nWARC-Type: metadata\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
    assert parse_record(GzipMember(0, 0, good)) == StoredRecord(
        {"warc-type": "metadata", "content-length": "3"}, b"abc"
    )
    bad = [
        good[:-1],
        good + b"x",
        good.replace(b": 3", b": 4"),
        good.replace(b": 3", b": -3"),
        good.replace(b"WARC/", b"warc/"),
    ]
    for data in [*bad, good.replace(b"\r\n\r\nabc", b"\r\nabc"), b"", b"WARC/1.1\r\n"]:
        with pytest.raises(BrokenRecordError):
            parse_record(GzipMember(7, 0, data))
