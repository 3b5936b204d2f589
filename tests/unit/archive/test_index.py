from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import IndexEntry, find_entries, lines_from
from crawlproj.archive.index_merge import INDEX, LineSorter, merge_indexes
from crawlproj.archive.surt import surt_key
from tests.support.archiving import all_kinds, exchange, write

KEYS = {
    "http://www.example.com/": "com,example)/",
    "http://example.com": "com,example)/",
    "HTTPS://WWW2.Example.COM:443/A/B/?b=2&a=1&": "com,example)/a/b?&a=1&b=2",
    "http://example.com:8080/x/": "com,example:8080)/x",
    "http://user:pw@example.com/": "com,example)/",
    "http://example.com/a//b/../c/./d": "com,example)/a/c/d",
    "http://example.com/%7Euser/%41": "com,example)/~user/a",
    "http://example.com/a%20b?q=x%20y&Z": "com,example)/a%20b?q=x%20y&z",
    "http://1.2.3.4/x": "4,3,2,1)/x",
    "http://example.com/?": "com,example)/",
    "http://example.com/a?b=&b": "com,example)/a?b&b=",
    "http://h/a;jsessionid=0123456789abcdef0123456789abcdef?x=1": "h)/a;jsessionid=0123456789abcdef0123456789abcdef?x=1",
    "http://example.com/?PHPSESSID=0123456789abcdef0123456789abcdef&x=1": "com,example)/?x=1",
    "http://example.com/ü/ß?q=ü": "com,example)/%c3%bc/%c3%9f?q=%c3%bc",
    "http://bücher.example/": "example,xn--bcher-kva)/",
    "http://example.com./": "com,example)/",
    "http://www.com/": "com)/",
    "http://example.com/(S(0123456789abcdef01234567))/x.aspx": "com,example)/x.aspx",
    "http://example.com/x?sid=0123456789abcdef0123456789abcdef": "com,example)/x",
    "http://example.com/x#frag": "com,example)/x",
    "http://example.com?x=1": "com,example)/?x=1",
    "http://example.com/..//a": "com,example)/../a",
    "http://example.com/%2e%2e/x": "com,example)/../x",
    "http://example.com/x?a=%26b": "com,example)/x?a=&b",
    "http://www.www.example.com/": "com,example,www)/",
    "http://example.com/a+b": "com,example)/a+b",
    "http://example.com/%25252541": "com,example)/a",
    "http://[::1]/x": "::1)/x",
    "http://example.com:80/": "com,example)/",
    "http://a_b.example.com/": "com,example,a_b)/",
    "http://example.com/%ff%fe": "com,example)/%ff%fe",
    "http://example.com/?CFID=1&CFTOKEN=2&x=3": "com,example)/?x=3",
    "http://example.com/a/b/": "com,example)/a/b",
    "http://example.com/?a=1&a": "com,example)/?a&a=1",
    "http://xn--bcher-kva.example/": "example,xn--bcher-kva)/",
    "http://example.com/?b&a&&c": "com,example)/?&a&b&c",
    "http://example.com/x?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&y=1": "com,example)/x?y=1",
    "http://example.com/ x": "com,example)/%20x",
    "http://example.com/a?b=c/d/": "com,example)/a?b=c/d/",
    "http://www.example.com:8080/": "com,example:8080)/",
}
"""Keys that the Internet Archive's own library gives."""


@pytest.mark.parametrize("url", KEYS)
def test_keys_are_those_of_other_tools(url: str) -> None:
    assert surt_key(url) == KEYS[url]


@given(st.text(max_size=40))
@example("[\x80")
def test_every_url_has_a_key_without_spaces(text: str) -> None:
    for url in (text, f"http://{text}", f"https://h/{text}"):
        assert surt_key(url)
        assert surt_key(url).isascii()
        assert not set(surt_key(url)) & set(" \n\r\t\0")


def entry(number: int, **more: object) -> IndexEntry:
    values: dict[str, object] = {
        "key": f"org,example)/{number}",
        "timestamp": "20260101000000",
        "url": f"http://example.org/{number}",
        "mime": "text/html",
        "status": 200,
        "digest": "sha1:X",
        "length": 10,
        "offset": number,
        "file": "a.warc.gz",
        **more,
    }
    return IndexEntry(**values)  # type: ignore[arg-type]


def test_a_line_is_as_pywb_writes_it() -> None:
    line = entry(1).to_line().decode()
    key, timestamp, rest = line.split(" ", 2)
    assert (key, timestamp) == ("org,example)/1", "20260101000000")
    assert list(json.loads(rest)) == [
        "url",
        "mime",
        "status",
        "digest",
        "length",
        "offset",
        "filename",
    ]
    assert {type(value) for value in json.loads(rest).values()} == {str}
    assert line.endswith("}\n")
    assert b'"status"' not in entry(1, status=0).to_line(), "what isn't known is left out"


@given(st.integers(0, 599), st.integers(0, 10**12), st.integers(0, 10**12), st.text(max_size=20))
def test_a_line_comes_back_as_it_went(status: int, length: int, offset: int, text: str) -> None:
    made = entry(
        1,
        status=status,
        length=length,
        offset=offset,
        mime=text.encode("utf-8", "replace").decode(),
    )
    assert IndexEntry.from_line(made.to_line()) == made
    assert made.to_line().count(b"\n") == 1


@settings(max_examples=60)
@given(st.lists(st.integers(0, 400), max_size=300), st.integers(0, 400), st.integers(0, 3000))
def test_halving_finds_what_reading_finds(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], wanted: int, long: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "halving.cdxj"
    lines = sorted(
        {
            entry(n, mime="x" * (long if n % 7 == 0 else 0), offset=at).to_line()
            for at, n in enumerate(numbers)
        }
    )
    path.write_bytes(b"".join(lines))
    assert sorted(found.offset for found in find_entries(path, f"http://example.org/{wanted}")) == [
        at for at, number in enumerate(numbers) if number == wanted
    ]
    key = f"org,example)/{wanted}".encode()
    with path.open("rb") as file:
        assert list(lines_from(file, key)) == [line.rstrip(b"\n") for line in lines if line >= key]


def test_a_missing_index_has_no_entries(tmp_path: Path) -> None:
    assert not list(find_entries(tmp_path / "x.cdxj", "http://example.org/"))
    (tmp_path / "x.cdxj").touch()
    assert not list(find_entries(tmp_path / "x.cdxj", "http://example.org/"))


@given(
    st.lists(st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"") + b"\n")),
    st.integers(1, 60),
)
def test_sorting_in_runs_is_sorting(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], run_bytes: int
) -> None:
    sorter = LineSorter(tmp_path_factory.getbasetemp(), run_bytes)
    for line in lines:
        sorter.add(line)
    assert list(sorter.sorted_lines()) == sorted(set(lines))
    assert list(sorter.sorted_lines()) == sorted(set(lines)), (
        "it can be asked again, if a disk was full"
    )
    sorter.close()


def test_many_runs_are_merged_on_the_way(tmp_path: Path) -> None:
    sorter = LineSorter(tmp_path, 1)
    for number in range(500):
        sorter.add(b"%03d\n" % (number * 7 % 500))
    assert len(sorter._runs) < 70
    assert list(sorter.sorted_lines()) == [b"%03d\n" % number for number in range(500)]
    sorter.close()


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    for number in range(3):
        write(
            tmp_path,
            [
                (exchange(page, b"%d %d" % (number, page), at=exchange(number).at), None)
                for page in range(5)
            ],
        )
    yield Archive(tmp_path)


def contents(archive: Archive, url: str) -> list[bytes]:
    return [archive.read_capture(entry).content for entry in archive.versions(url)]


def test_indexes_are_merged_into_one(archive: Archive) -> None:
    before = contents(archive, "https://example.org/page/3")
    lines = merge_indexes(archive.folder).read_bytes().splitlines()
    assert len(lines) == 15
    assert lines == sorted(lines)
    assert contents(archive, "https://example.org/page/3") == before == [b"0 3", b"1 3", b"2 3"]


def test_files_that_came_after_the_merge_are_found_too(archive: Archive) -> None:
    merge_indexes(archive.folder)
    write(archive.folder, [(exchange(3, b"new", at=exchange(9).at), None)])
    assert contents(archive, "https://example.org/page/3") == [b"0 3", b"1 3", b"2 3", b"new"]
    merge_indexes(archive.folder)
    assert contents(archive, "https://example.org/page/3") == [b"0 3", b"1 3", b"2 3", b"new"]


def test_a_merged_index_does_not_speak_for_files_that_are_gone_or_changed(archive: Archive) -> None:
    merge_indexes(archive.folder)
    first = archive.closed_files()[0]
    first.unlink()
    first.with_name(first.name.replace(".warc.gz", ".cdxj")).unlink()
    assert contents(archive, "https://example.org/page/3") == [b"1 3", b"2 3"]


def test_a_merged_index_that_was_changed_by_hand_is_not_believed(archive: Archive) -> None:
    merge_indexes(archive.folder)
    (archive.folder / INDEX).write_bytes(b"")
    assert contents(archive, "https://example.org/page/3") == [b"0 3", b"1 3", b"2 3"]


def test_more_files_than_can_be_open_are_merged(tmp_path: Path) -> None:
    for number in range(150):
        (tmp_path / f"{number}.cdxj").write_bytes(entry(number).to_line())
    assert merge_indexes(tmp_path).read_bytes() == b"".join(
        sorted(entry(number).to_line() for number in range(150))
    )


def test_the_index_lists_what_replay_can_show(tmp_path: Path) -> None:
    not_modified = exchange(90, b"", b"HTTP/1.1 304 Not Modified\r\n\r\n")
    write(tmp_path, [*all_kinds(), (not_modified, None)])
    (path,) = tmp_path.glob("*.cdxj")
    entries = [IndexEntry.from_line(line) for line in path.read_bytes().splitlines()]
    assert len(entries) == len(all_kinds())
    assert {entry.status for entry in entries} == {0, 200, 301, 404}
    assert {entry.mime for entry in entries} == {
        "text/html",
        "audio/mpeg",
        "application/octet-stream",
        "",
    }
