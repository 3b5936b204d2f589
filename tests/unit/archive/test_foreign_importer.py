"""Files of other tools taken into the archive: all their versions are readable there, once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import Problem, check_file, check_revisits
from crawlproj.archive.exchange import Original
from crawlproj.archive.foreign.importer import ImportCounts, import_files
from crawlproj.archive.records import compute_digest
from crawlproj.errors import ArchiveError
from tests.support.archiving import PAGE, START, accepted, all_kinds, exchange, head, write
from tests.unit.archive.test_foreign_reader import made


def sound(folder: Path) -> Archive:
    archive = Archive(folder)
    for path in archive.closed_files():
        assert accepted(path)
        assert not list(check_file(path))
    assert not list(check_revisits(archive))
    return archive


def test_all_kinds_of_exchanges_come_over_with_their_content(tmp_path: Path) -> None:
    write(tmp_path / "there", all_kinds())
    there = Archive(tmp_path / "there")
    problems = list[Problem]()
    taken = import_files(there.closed_files(), tmp_path / "here", problems.append)
    assert not problems and taken == ImportCounts(new=len(all_kinds()))
    here = sound(tmp_path / "here")
    before, after = (
        {(c.url, c.at, c.payload) for c in archive.captures()} for archive in (there, here)
    )
    assert before == after and len(after) > 5


def test_doing_it_again_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "there", all_kinds())
    files = Archive(tmp_path / "there").closed_files()
    first = import_files(files, tmp_path / "here", lambda problem: None)
    names = Archive(tmp_path / "here").closed_files()
    second = import_files(files, tmp_path / "here", lambda problem: None)
    assert second == ImportCounts(known=first.new)
    assert Archive(tmp_path / "here").closed_files() == names


def test_revisits_find_what_they_point_at_in_a_later_file(tmp_path: Path) -> None:
    first = exchange(0)
    original = Original(first.url, first.at, compute_digest(PAGE))
    again = exchange(0, at=START + timedelta(days=1))
    unchanged = exchange(
        0, body=b"", top=head(status="304 Not Modified"), at=START + timedelta(days=2)
    )
    write(tmp_path / "b", [(first, None)])
    write(tmp_path / "a", [(again, original), (unchanged, original)])
    files = [*Archive(tmp_path / "a").closed_files(), *Archive(tmp_path / "b").closed_files()]
    assert import_files(files, tmp_path / "here", lambda problem: None) == ImportCounts(new=3)
    here = sound(tmp_path / "here")
    assert [entry.mime for entry in here.versions(first.url)] == ["text/html", "warc/revisit"]
    assert [record.kind for _, record in here.iter_records() if record.kind == "revisit"] == [
        "revisit"
    ] * 2
    page = here.get(first.url)
    assert page is not None and page.payload == PAGE and page.at == again.at


def test_a_revisit_of_something_that_is_not_here_is_left_out_and_told(tmp_path: Path) -> None:
    again = exchange(0, at=START + timedelta(days=1))
    write(
        tmp_path / "a",
        [
            (again, Original(again.url, START, compute_digest(PAGE))),
            (exchange(1, PAGE + b"!"), None),
        ],
    )
    problems: list[Problem] = []
    taken = import_files(Archive(tmp_path / "a").closed_files(), tmp_path / "here", problems.append)
    assert taken == ImportCounts(new=1, left_out=1)
    assert len(problems) == 1 and "not here" in problems[0].what
    sound(tmp_path / "here")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("packed", [True, False])
def test_files_of_warcio_come_over(version: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("x.warc.gz" if packed else "x.warc")
    path.write_bytes(made(version, packed, 3))
    assert import_files([path], tmp_path / "here", lambda problem: None).new == 3
    assert len(list(sound(tmp_path / "here").captures())) == 3


def test_a_file_that_is_not_there_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").write_bytes(b"what is this")
    for name in ("x.warc.gz", "missing.warc.gz"):
        with pytest.raises(ArchiveError, match=name):
            import_files([tmp_path / name], tmp_path / "here", lambda problem: None)


def test_a_file_without_pages_adds_nothing_and_makes_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    fields = (
        b"WARC-Date: 2020-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:uuid:1>\r\nContent-Type: "
        b"application/http;msgtype=request\r\n"
    )
    block = b"GET / HTTP/1.1\r\n\r\n"
    path.write_bytes(
        b"WARC/1.0\r\nWARC-Type: request\r\nWARC-Target-URI: http://e.x/\r\n%sContent-Length: "
        b"%d\r\n\r\n%s\r\n\r\n" % (fields, len(block), block)
    )
    assert import_files([path], tmp_path / "warc", lambda problem: None).new == 0
    assert not (tmp_path / "warc").exists()
