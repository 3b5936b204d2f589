from __future__ import annotations

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from crawlproj.archive import Archive
from crawlproj.archive.check import Problem, check_file
from crawlproj.archive.exchange import Truncated
from crawlproj.archive.foreign.reader import ForeignExchange, read_foreign
from crawlproj.archive.gzip_members import iter_members
from crawlproj.errors import ArchiveError
from crawlproj.http.encodings import zstd
from tests.support.archiving import PAGE, REQUEST, all_kinds, exchange, head, write

CHUNKS = b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: x\r\n\r\n"


def read(path: Path) -> tuple[list[ForeignExchange], list[Problem]]:
    problems: list[Problem] = []
    return list(read_foreign(path, problems.append)), problems


def made(version: str, packed: bool, count: int = 3) -> bytes:
    """A file of warcio's."""
    out = BytesIO()
    writer = WARCWriter(out, gzip=packed, warc_version=version)
    writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "another"}))
    for number in range(count):
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.0")
        url = f"http://example.com/{number}"
        answer = writer.create_warc_record(
            url, "response", payload=BytesIO(PAGE + b"%d" % number), http_headers=headers
        )
        asked = StatusAndHeaders("GET / HTTP/1.0", [("Host", "example.com")], is_http_request=True)
        writer.write_request_response_pair(
            writer.create_warc_record(url, "request", http_headers=asked), answer
        )
    return out.getvalue()


def record(block: bytes, *fields: str, kind: str = "response", version: str = "1.0") -> bytes:
    lines = [
        f"WARC/{version}",
        f"WARC-Type: {kind}",
        "WARC-Target-URI: http://example.com/",
        "WARC-Date: 2020-01-02T03:04:05Z",
    ]
    lines += [
        "WARC-Record-ID: <urn:uuid:1>",
        "Content-Type: application/http;msgtype=response",
        *fields,
    ]
    lines.append(f"Content-Length: {len(block)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("shape", ["packed", "plain", "one gzip over all"])
def test_files_of_other_tools_are_read(tmp_path: Path, version: str, shape: str) -> None:
    data = made(version, shape == "packed")
    path = tmp_path / "x.warc.gz"
    path.write_bytes(gzip.compress(data) if shape == "one gzip over all" else data)
    found, problems = read(path)
    assert not problems
    assert [each.exchange.url for each in found] == [f"http://example.com/{n}" for n in range(3)]
    assert [each.exchange.body for each in found] == [PAGE + b"%d" % n for n in range(3)]
    assert {each.exchange.head for each in found} == {
        b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"
    }
    assert {each.exchange.request for each in found} == {
        b"GET / HTTP/1.0\r\nHost: example.com\r\n\r\n"
    }


def test_what_is_read_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(made("1.0", True))
    found, _ = read(path)
    places = write(tmp_path / "ours", [(each.exchange, None) for each in found])
    assert [place.digest for place in places] == [each.digest for each in found]
    assert not [
        problem
        for path in Archive(tmp_path / "ours").closed_files()
        for problem in check_file(path)
    ]


def test_our_own_files_are_read_as_well(tmp_path: Path) -> None:
    write(tmp_path, all_kinds())
    found, problems = read(next(tmp_path.glob("*.warc.gz")))
    assert not problems
    assert len(found) == len(all_kinds())
    assert found[0].exchange.request == REQUEST
    assert [each.exchange.body for each in found][:3] == [PAGE, b"", b""]
    assert found[4].exchange.truncated is Truncated.LENGTH


def test_arc_files_are_read(tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old"
    line = b"http://example.com/ 93.184.216.34 20080430204825 text/html %d\n" % len(block)
    about = b"1 0 Old\nURL IP-address Archive-date Content-type Archive-length\n"
    path = tmp_path / "x.arc"
    path.write_bytes(
        b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n" % len(about)
        + about
        + b"\n"
        + line
        + block
        + b"\n"
    )
    (found,), problems = read(path)
    assert not problems
    assert (found.exchange.url, found.exchange.body, found.exchange.at.year) == (
        "http://example.com/",
        b"<p>old",
        2008,
    )


@pytest.mark.parametrize(
    ("block", "body"),
    [
        (head("Transfer-Encoding: chunked") + CHUNKS, b"hello, world"),
        (head("Transfer-Encoding: chunked") + b"joined, and not said", b"joined, and not said"),
        (head("Transfer-Encoding: chunked") + CHUNKS[:12], b"hello"),
        (b"HTTP/1.1 200 OK\nServer: old\n\nbody", b"body"),
        (b"<p>no head</p>", b"<p>no head</p>"),
        (b"", b""),
    ],
)
def test_odd_blocks_are_read(tmp_path: Path, block: bytes, body: bytes) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(record(block))
    (found,), problems = read(path)
    assert not problems
    assert found.exchange.body == body


def test_odd_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(
        record(head() + b"x", "WARC-Truncated: boredom").replace(
            b"http://example.com/", b"<http://example.com/a b>"
        )
        + b"\r\n\r\n"
        + record(
            head(),
            "WARC-Refers-To-Target-URI: http://h/x",
            "WARC-Refers-To-Date: x",
            kind="revisit",
        )
        + record(b"www IN A 1.2.3.4").replace(b"http://example.com/", b"dns:example.com")
    )
    found, problems = read(path)
    assert not problems
    assert found[1].refers_to is None
    assert found[0].exchange.url == "http://example.com/a%20b"
    assert found[0].exchange.truncated is Truncated.UNSPECIFIED


def test_a_revisit_says_of_what(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    fields = (
        "WARC-Refers-To-Target-URI: http://example.com/x",
        "WARC-Refers-To-Date: 2019-01-01T00:00:00Z",
        "WARC-Payload-Digest: sha1:X",
    )
    path.write_bytes(record(head(), *fields, kind="revisit"))
    (found,), _ = read(path)
    assert found.refers_to is not None
    assert (found.kind, found.refers_to.url, found.refers_to.digest) == (
        "revisit",
        "http://example.com/x",
        "sha1:X",
    )


def test_a_file_cut_anywhere_gives_its_whole_records_and_a_word_about_the_rest(
    tmp_path: Path,
) -> None:
    data = made("1.0", True, 2)
    path = tmp_path / "x.warc.gz"
    path.write_bytes(data)
    with path.open("rb") as file:
        ends = [found.offset + found.length for found in iter_members(file)]
    answers = [ends[1], ends[3]]
    for size in range(1, len(data) + 1):
        path.write_bytes(data[:size])
        try:
            found, problems = read(path)
        except ArchiveError:
            assert size < ends[0]
            continue
        whole = sum(end <= size for end in answers)
        assert whole <= len(found) <= whole + 1
        assert bool(problems) == (size not in ends)
        assert all(
            each.exchange.body.startswith(PAGE) and len(each.exchange.body) == len(PAGE) + 1
            for each in found
        )


def damaged(data: bytes) -> bytes:
    with BytesIO(data) as file:
        places = [(found.offset, found.length) for found in iter_members(file)]
    offset, length = places[3]
    return data[:offset] + bytes(length) + data[offset + length :]


def cut_tail(data: bytes) -> bytes:
    return data[:-30]


@pytest.mark.parametrize(("change", "urls"), [(damaged, {0, 2, 3}), (cut_tail, {0, 1, 2, 3})])
def test_after_damage_it_goes_on(
    tmp_path: Path, change: Callable[[bytes], bytes], urls: set[int]
) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(change(made("1.0", True, 4)))
    found, problems = read(path)
    assert {each.exchange.url for each in found} >= {f"http://example.com/{n}" for n in urls}
    assert problems


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense\nand more\n", b"\x1f\x8b\x08 no gzip", gzip.compress(b"no records", mtime=0)],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"x\.warc\.gz"):
        read(path)


def test_a_record_that_is_too_big_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, [(exchange(0, bytes(5_000)), None), (exchange(1), None)])
    problems: list[Problem] = []
    found = list(read_foreign(next(tmp_path.glob("*.warc.gz")), problems.append, max_block=3_000))
    assert [each.exchange.url for each in found] == ["https://example.org/page/1"]
    assert [problem.what for problem in problems] == ["more than 3000 bytes in one record"]


def test_fastwarc_reads_what_warcio_wrote_as_we_do(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(made("1.1", True))
    found, _ = read(path)
    with path.open("rb") as file:
        theirs = [
            record.headers["WARC-Target-URI"]
            for record in FastIterator(file)
            if record.headers["WARC-Type"] == "response"
        ]
    assert [each.exchange.url for each in found] == theirs


GOOD = record(b"HTTP/1.1 200 OK\r\n\r\nfine")
ODD_DATES = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "yesterday",
]


@pytest.mark.parametrize("date", ODD_DATES)
def test_a_date_that_makes_no_sense_costs_one_record(tmp_path: Path, date: str) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(GOOD.replace(b"2020-01-02T03:04:05Z", date.encode()) + GOOD)
    found, problems = read(path)
    assert [each.exchange.body for each in found] == [b"fine"]
    assert [problem.what for problem in problems] == ["a record without a date"]


def test_a_revisit_of_a_time_that_makes_no_sense_says_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    refers = (
        "WARC-Refers-To-Target-URI: http://example.com/",
        f"WARC-Refers-To-Date: {ODD_DATES[0]}",
    )
    path.write_bytes(record(b"", *refers, kind="revisit"))
    found, problems = read(path)
    assert [each.refers_to for each in found] == [None] and not problems


ODD_FILES = {
    "another version": record(b"x", version="2.0"),
    "zstd": zstd.compress(GOOD),
    "nothing in it": gzip.compress(b""),
    "a header without end": gzip.compress(b"WARC/1.0\r\n" + bytes(5_000_000)),
    "a mark before it": b"\xef\xbb\xbf" + GOOD,
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_what_nobody_can_read_is_refused_in_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(ODD_FILES[name])
    with pytest.raises(ArchiveError, match="holds no whole record"):
        read(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("length", ["-5", "abc", "0", str(10**18)])
def test_a_length_that_lies_is_told_and_nothing_else_is_said(
    length: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(
        GOOD + GOOD.replace(b"Content-Length: 23", b"Content-Length: " + length.encode())
    )
    found, problems = read(path)
    assert found[0].exchange.body == b"fine"
    assert problems
    assert capfd.readouterr() == ("", "")


def test_a_bomb_is_unpacked_no_further_than_allowed_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(gzip.compress(b"WARC/1.0\r\n\r\n" + bytes(20_000_000)) + gzip.compress(GOOD))
    problems: list[Problem] = []
    found = list(read_foreign(path, problems.append, max_block=1_000))
    assert [each.exchange.body for each in found] == [b"fine"]
    assert problems[0].what.startswith("more than ")
