from __future__ import annotations

import gzip
import zlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file, check_revisits, digest_matches
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.gzip_members import compress_member, iter_members
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.records import compute_digest
from crawlproj.archive.removal import (
    delete_old_files,
    predecessor_path,
    refresh_index,
    remove_records,
    successor_path,
    unfinished_rewrites,
)
from crawlproj.archive.stored_record import parse_record
from crawlproj.archive.writer import WarcWriter
from crawlproj.errors import ArchiveError
from crawlproj.http.encodings import decode_body
from tests.support.archiving import (
    PACKED,
    PAGE,
    START,
    accepted,
    exchange,
    head,
    raw_deflate,
    write,
)

NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'
PAGE_0 = "https://example.org/page/0"


def later(days: int, body: bytes, top: bytes | None = None, number: int = 0) -> Exchange:
    return exchange(number, body, top, at=START + timedelta(days=days))


def visited(folder: Path) -> Archive:
    """A page that was there, was the same, was not modified, and changed; and another with the
    content of its first version.
    """
    writer = WarcWriter(folder, "x", "w", {})
    first = writer.put(later(0, b"one"))
    writer.flush().result(10)
    assert first.record_location is not None
    original = first.record_location.original
    second = writer.put(later(1, b"one", head("X-Second: yes")), original)
    writer.put(later(2, b"", NOT_MODIFIED), original)
    writer.put(later(3, b"two"), original)
    writer.put(later(4, b"one", number=1), original)
    writer.flush().result(10)
    assert second.record_location is not None
    assert second.record_location.original == original
    writer.close()
    return Archive(folder)


def test_a_version_is_found_by_url_and_time(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    found = {
        days: archive.get(PAGE_0, START + timedelta(days=days, hours=1))
        for days in (-9, 0, 1, 2, 3, 99)
    }
    assert [capture and capture.content for capture in found.values()] == [
        b"one",
        b"one",
        b"one",
        b"one",
        b"two",
        b"two",
    ]
    last = archive.get(PAGE_0)
    assert last is not None
    assert last.content == b"two"
    assert archive.get("https://example.org/never") is None


def test_a_revisit_has_its_own_head_and_the_payload_of_its_original(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    second = archive.get(PAGE_0, START + timedelta(days=1))
    assert second is not None
    assert second.record.kind == "revisit"
    assert (second.status, second.header("x-second"), second.content) == (200, "yes", b"one")
    other = archive.get("https://example.org/page/1")
    assert other is not None
    assert (other.url, other.content) == ("https://example.org/page/1", b"one")


def test_not_modified_is_resolved_to_what_was_not_modified(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    (found,) = [
        record for _, record in archive.iter_records() if record.block.startswith(b"HTTP/1.1 304")
    ]
    capture = archive.resolve_record(found)
    assert (capture.status, capture.content, capture.at) == (200, b"one", START + timedelta(days=2))


def test_all_versions_can_be_iterated(tmp_path: Path) -> None:
    assert [capture.content for capture in visited(tmp_path).captures()] == [
        b"one",
        b"one",
        b"two",
        b"one",
    ]


def test_other_spellings_are_found_if_the_asked_one_is_not_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            (exchange(0, b"a", url="http://example.org/A"), None),
            (exchange(1, b"b", url="https://www.example.org/a"), None),
        ],
    )
    archive = Archive(tmp_path)
    assert [
        archive.read_capture(entry).content for entry in archive.versions("http://example.org/A")
    ] == [b"a"]
    assert [
        archive.read_capture(entry).content for entry in archive.versions("http://example.org/a")
    ] == [b"a", b"b"]


def test_a_revisit_whose_original_is_missing_says_so(tmp_path: Path) -> None:
    lost = Original("https://example.org/lost", START, compute_digest(b"one"))
    write(tmp_path, [(later(1, b"one"), lost)])
    archive = Archive(tmp_path)
    with pytest.raises(ArchiveError, match="/lost"):
        archive.get(PAGE_0)
    assert [problem.what for problem in check_revisits(archive)]
    assert list(archive.captures()) == []


def test_reading_where_nothing_is_says_so(tmp_path: Path) -> None:
    (place,) = write(tmp_path, [(exchange(), None)])
    archive = Archive(tmp_path)
    for file, offset in ((place.file, 10**9), (place.file, place.offset + 1), ("other.warc.gz", 0)):
        with pytest.raises(ArchiveError):
            archive.read(file, offset)
    with pytest.raises(
        ArchiveError, match=rf"{place.file} is damaged: cut .* at byte {place.offset}$"
    ):
        archive.read(place.file, place.offset, place.length - 1)
    with pytest.raises(ArchiveError, match=r"^other\.warc\.gz can't be read"):
        archive.read("other.warc.gz", 0)


def test_a_place_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (place,) = write(tmp_path / "a", [(exchange(), None)])
    (tmp_path / "b").mkdir()
    with pytest.raises(ArchiveError):
        Archive(tmp_path / "b").read(f"../a/{place.file}", place.offset)


@pytest.mark.parametrize("name", [*PACKED, "deflate without header"])
def test_packed_bodies_are_unpacked(tmp_path: Path, name: str) -> None:
    body, header = (raw_deflate(PAGE), "deflate") if " " in name else (PACKED[name](PAGE), name)
    write(tmp_path, [(exchange(0, body, head(f"content-encoding: {header.upper()}")), None)])
    found = Archive(tmp_path).get(PAGE_0)
    assert found is not None
    assert found.payload == body
    assert found.content == PAGE
    cut = decode_body(body[: len(body) * 2 // 3], header)
    assert PAGE.startswith(cut), "of a cut body comes what can be had"
    assert decode_body(body, header, 100) == PAGE[:100]


def test_layers_are_taken_off_from_the_last() -> None:
    assert decode_body(gzip.compress(zlib.compress(PAGE)), "deflate, gzip") == PAGE
    assert decode_body(gzip.compress(PAGE) + gzip.compress(PAGE), "gzip") == PAGE + PAGE
    assert decode_body(gzip.compress(PAGE) + b"trailing", "gzip") == PAGE


@given(st.binary(min_size=1, max_size=300), st.integers(1, 100), st.binary(max_size=20))
def test_what_is_behind_a_whole_body_does_not_matter(part: bytes, times: int, junk: bytes) -> None:
    assert decode_body(PACKED["br"](part * times) + junk, "br") == part * times
    assert decode_body(PACKED["br"](part * times) + junk * 500, "br", 50) == (part * times)[:50]


@given(
    st.binary(max_size=300),
    st.sampled_from(
        ["gzip", "deflate", "br", "zstd", "gzip, br", "wrong", "", "identity", "zstd, wrong, gzip"]
    ),
)
def test_nothing_that_claims_to_be_packed_breaks_reading(body: bytes, encoding: str) -> None:
    assert isinstance(decode_body(body, encoding), bytes)


def test_a_body_that_is_not_packed_after_all_stays_as_it_is() -> None:
    for name in ("gzip", "br", "zstd", "deflate"):
        assert decode_body(PAGE, name) == PAGE


def test_a_bomb_is_not_unpacked_further_than_allowed() -> None:
    for name, body in (
        ("gzip", gzip.compress(bytes(50_000_000), 9)),
        ("zstd", PACKED["zstd"](bytes(50_000_000))),
    ):
        assert len(decode_body(body, name, 1_000_000)) == 1_000_000


def broken(path: Path, change: bytes, into: bytes) -> list[str]:
    """What the check says when a record is changed but packed well."""
    with path.open("rb") as file:
        data = [found.data.replace(change, into, 1) for found in iter_members(file)]
    path.write_bytes(b"".join(compress_member(each, 6) for each in data))
    return [problem.what for problem in check_file(path)]


@pytest.mark.parametrize(
    ("change", "into", "what"),
    [
        (b"dull", b"DULL", "the block digest is wrong"),
        (b"dull", b"DULL", "the payload digest is wrong"),
        (b"WARC-Target-URI", b"WARC-Target-URL", "warc-target-uri is missing"),
        (b"WARC-Date: 2026", b"WARC-Date: ABCD", "warc-date is no date"),
        (b"WARC-Record-ID", b"WARC-Record-XX", "warc-record-id is missing"),
        (
            b"WARC-Type: warcinfo",
            b"WARC-Type: metadata",
            "the file does not start with a warcinfo record",
        ),
        (b"WARC/1.1", b"WARC/9.9", "no WARC record"),
        (b"Content-Length: ", b"Content-Length: 1", "Content-Length and record differ"),
    ],
)
def test_the_check_finds_what_is_wrong(
    tmp_path: Path, change: bytes, into: bytes, what: str
) -> None:
    write(tmp_path, [(exchange(), None)])
    (path,) = tmp_path.glob("*.warc.gz")
    assert not list(check_file(path))
    assert what in broken(path, change, into)


def test_the_check_finds_a_cut_file_and_a_wrong_index(tmp_path: Path) -> None:
    write(tmp_path, [(exchange(n), None) for n in range(3)])
    (path,) = tmp_path.glob("*.warc.gz")
    (beside,) = tmp_path.glob("*.cdxj")
    lines = beside.read_bytes().splitlines(keepends=True)
    beside.write_bytes(b"".join(lines[:2]))
    assert [problem.what for problem in check_file(path)] == ["not listed in the index"]
    beside.write_bytes(b"".join(reversed(lines)))
    assert [problem.what for problem in check_file(path)] == ["its index is not sorted"]
    beside.write_bytes(b"nonsense")
    assert [problem.what for problem in check_file(path)] == ["its index is no CDXJ"]
    beside.unlink()
    assert [problem.what for problem in check_file(path)] == ["it has no index"]
    path.write_bytes(path.read_bytes()[:-5])
    assert [problem.what for problem in check_file(path)] == ["cut inside a gzip member"]


def test_digests_in_all_spellings_are_read() -> None:
    spelled = [
        "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "md5:1B2M2Y8AsgTpgAmY7PhCfg==",
    ]
    assert [digest_matches(b"", each) for each in spelled] == [True] * 3
    assert [digest_matches(b"x", each) for each in spelled] == [False] * 3
    assert digest_matches(b"x", "")
    assert digest_matches(b"x", "unknown:abc")


def page_0(url: str, at: datetime) -> str:
    return PAGE_0 if url == PAGE_0 else ""


def test_a_forgotten_page_is_gone_and_the_rest_is_there(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    write(tmp_path, [(exchange(7, b"seven"), None)])
    merge_indexes(tmp_path)
    untouched = archive.closed_files()[0].name
    old = archive.closed_files()[1]
    done = list(remove_records(archive, page_0, {PAGE_0: "asked by its owner"}, START))
    assert [(each.old.name, each.removed) for each in done] == [(old.name, {PAGE_0: 12})]
    delete_old_files(done)
    refresh_index(tmp_path)
    assert done[0].new is not None
    assert archive.get(PAGE_0) is None
    assert not [path for path in tmp_path.iterdir() if b"page/0" in path.read_bytes()]
    kept = archive.get("https://example.org/page/1")
    assert kept is not None
    assert kept.record.kind == "response", (
        "it was a revisit of the page that is gone, and has its content now"
    )
    assert (kept.content, kept.at) == (b"one", START + timedelta(days=4))
    assert [path.name for path in archive.closed_files()] == [untouched, done[0].new.name]
    for path in archive.closed_files():
        assert accepted(path)
        assert not list(check_file(path))
    assert not list(check_revisits(archive))


def test_the_removal_is_on_record(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    name = "host example.org"
    delete_old_files(
        list(
            remove_records(
                archive, lambda url, at: name if "example.org" in url else "", {name: "law"}, START
            )
        )
    )
    (path,) = archive.closed_files()
    with path.open("rb") as file:
        info, note = map(parse_record, iter_members(file))
    assert (info.kind, note.kind) == ("warcinfo", "metadata")
    assert (
        b"removed: host example.org\r\nreason: law\r\nrecords: 15\r\nremovedRecord: <urn:uuid:"
        in note.block
    )
    assert b"page/" not in note.block


def test_the_new_places_are_told(tmp_path: Path) -> None:
    places = write(tmp_path, [(exchange(n, b"%d" % n), None) for n in range(6)])
    archive = Archive(tmp_path)
    (done,) = remove_records(
        archive, lambda url, at: "two" if url.endswith(("/1", "/4")) else "", {}, START
    )
    assert done.new is not None
    for number, place in enumerate(places):
        if number in (1, 4):
            assert place.offset not in done.moved
        else:
            offset, length = done.moved[place.offset]
            assert archive.read(done.new.name, offset, length).body == b"%d" % number
            assert archive.read(place.file, place.offset).body == b"%d" % number, (
                "the old file stays until it is dropped"
            )


def test_forgetting_can_be_done_again_after_a_kill(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    (killed,) = remove_records(archive, page_0, {}, START)
    (left,) = unfinished_rewrites(archive)
    assert (left.old, left.new, left.removed, left.moved) == (
        killed.old,
        killed.new,
        killed.removed,
        killed.moved,
    )
    assert left.lost.keys() == {(PAGE_0, START), (PAGE_0, START + timedelta(days=3))}
    delete_old_files([left])
    delete_old_files([left])
    assert archive.get(PAGE_0) is None
    assert len(archive.closed_files()) == 1
    assert not list(unfinished_rewrites(archive))
    assert not list(remove_records(archive, page_0, {}, START))


def test_old_versions_can_go_while_later_ones_stay(tmp_path: Path) -> None:
    archive = visited(tmp_path)
    delete_old_files(
        list(
            remove_records(
                archive,
                lambda url, at: "old" if at < START + timedelta(hours=1) else "",
                {"old": "retention"},
                START,
            )
        )
    )
    found = [
        (archive.read_capture(entry).record.kind, archive.read_capture(entry).content)
        for entry in archive.versions(PAGE_0)
    ]
    assert found == [("response", b"one"), ("response", b"two")], "the revisit has its content now"
    assert not list(check_revisits(archive))
    assert not [
        record for _, record in archive.iter_records() if record.block.startswith(b"HTTP/1.1 304")
    ]


def test_an_archive_that_is_not_there_is_empty(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "missing")
    assert archive.get(PAGE_0) is None
    assert not list(archive.captures())


def test_successors_are_numbered() -> None:
    assert successor_path(Path("a/x.warc.gz")) == Path("a/x-r1.warc.gz")
    assert successor_path(Path("a/x-r1.warc.gz")) == Path("a/x-r2.warc.gz")
    assert successor_path(Path("a/x-r9.warc.gz")) == Path("a/x-r10.warc.gz")
    assert predecessor_path(Path("a/x-r10.warc.gz")) == Path("a/x-r9.warc.gz")
    assert predecessor_path(Path("a/x-r1.warc.gz")) == Path("a/x.warc.gz")
    assert predecessor_path(Path("a/x.warc.gz")) is None
