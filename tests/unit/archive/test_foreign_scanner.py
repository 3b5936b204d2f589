"""Odd and broken files of other tools: what is whole is found, what is not is told, and nothing is
taken for what it is not.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from crawlproj.archive.check import Problem
from crawlproj.archive.exchange import Truncated
from crawlproj.archive.foreign.reader import ForeignExchange, check_foreign, read_foreign
from crawlproj.archive.foreign.streams import ByteWindow, GzipStream
from crawlproj.archive.gzip_members import PIECE
from crawlproj.archive.records import compute_digest
from crawlproj.errors import ArchiveError
from crawlproj.http.encodings import zstd
from tests.support.archiving import head

DATA = Path(__file__).parents[2] / "data"


def record(
    number: int,
    body: bytes = b"",
    *fields: str,
    top: bytes | None = None,
    kind: str = "response",
    length: str = "",
) -> bytes:
    """One of WARC/1.0, without digests."""
    block = (head() if top is None else top) + (body or b"page %d" % number)
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: http://example.com/{number}",
        f"WARC-Record-ID: <urn:uuid:{number}>",
    ]
    lines += [
        "WARC-Date: 2020-01-02T03:04:05Z",
        "Content-Type: application/http;msgtype=response",
        *fields,
    ]
    lines.append(f"Content-Length: {length or len(block)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def digested(number: int, body: bytes = b"", length: str = "") -> bytes:
    return record(
        number,
        body,
        f"WARC-Block-Digest: {compute_digest(head() + (body or b'page %d' % number))}",
        length=length,
    )


def read(
    path: Path, data: bytes, max_block: int = 1 << 20
) -> tuple[list[ForeignExchange], list[str]]:
    path.write_bytes(data)
    problems: list[Problem] = []
    return list(read_foreign(path, problems.append, max_block)), [
        problem.what for problem in problems
    ]


def numbers(found: list[ForeignExchange]) -> list[int]:
    for each in found:
        assert each.exchange.body == b"page %s" % each.exchange.url.rpartition("/")[2].encode()
    return [int(each.exchange.url.rpartition("/")[2]) for each in found]


def plain(records: list[bytes]) -> bytes:
    return b"".join(records)


def packed(records: list[bytes]) -> bytes:
    return b"".join(gzip.compress(each, mtime=0) for each in records)


def one_gzip(records: list[bytes]) -> bytes:
    return gzip.compress(plain(records), mtime=0)


def in_pieces(records: list[bytes]) -> bytes:
    """Members that have nothing to do with records."""
    data = plain(records)
    return b"".join(gzip.compress(data[at : at + 97], mtime=0) for at in range(0, len(data), 97))


SHAPES = {"plain": plain, "packed": packed, "one gzip": one_gzip, "in pieces": in_pieces}
LENGTHS = [
    "0",
    "20",
    "77",
    "300",
    "900",
    "5000",
    "-5",
    "abc",
    "",
    "1e3",
    "99999999",
    str(10**17),
    str(10**30),
    "\u0663",
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", LENGTHS, ids=ascii)
def test_after_a_wrong_length_it_goes_on(shape: str, length: str, tmp_path: Path) -> None:
    wrong = record(1, length=length or "x").replace(b"Content-Length: x\r\n", b"")
    found, problems = read(
        tmp_path / "x.warc", SHAPES[shape]([record(0), wrong, record(2), record(3)])
    )
    assert numbers(found) == [0, 2, 3]
    assert len(problems) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", LENGTHS, ids=ascii)
def test_a_digest_says_where_a_record_ends(shape: str, length: str, tmp_path: Path) -> None:
    wrong = digested(1, length=length or "x").replace(b"Content-Length: x\r\n", b"")
    found, problems = read(tmp_path / "x.warc", SHAPES[shape]([digested(0), wrong, digested(2)]))
    assert numbers(found) == [0, 1, 2]
    assert problems == ["its length is wrong; by its digest it is whole"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_record_that_differs_from_its_digest_is_left_out(shape: str, tmp_path: Path) -> None:
    wrong = digested(1).replace(b"page 1", b"page 7")
    found, problems = read(tmp_path / "x.warc", SHAPES[shape]([digested(0), wrong, digested(2)]))
    assert numbers(found) == [0, 2]
    assert problems == ["its digests do not fit: the record is damaged"]


@pytest.mark.parametrize("shape", ["plain", "packed", "one gzip"])
def test_a_file_cut_anywhere_gives_what_is_whole(shape: str, tmp_path: Path) -> None:
    data = SHAPES[shape]([record(0), record(1), record(2)])
    ends = [len(packed([record(number) for number in range(count)])) for count in (1, 2)]
    for size in range(1, len(data), 7):
        try:
            found, problems = read(tmp_path / "x.warc", data[:size])
        except ArchiveError:
            continue
        wanted = numbers(found)
        assert wanted == list(range(len(wanted)))
        assert problems or shape == "plain" or size in ends
        if size > len(data) * 3 // 4 and shape != "one gzip":
            assert wanted[:2] == [0, 1]


def test_a_member_with_a_wrong_checksum_costs_its_record(tmp_path: Path) -> None:
    """All of it comes before the checksum is read: that is at the start of another piece of the
    file.
    """
    before = packed([record(0)])
    noise = random.Random(1).randbytes(PIECE)
    tries = (
        gzip.compress(record(1, noise[:size]), mtime=0) for size in range(PIECE - 2_000, PIECE)
    )
    good = next(data for data in tries if len(before) + len(data) - 8 == PIECE)
    wrong = good[:-1] + bytes([good[-1] ^ 1])
    found, problems = read(tmp_path / "x.warc.gz", before + wrong + packed([record(2)]))
    assert "".join(each.exchange.url[-1] for each in found) == "02"
    assert problems == ["damaged gzip member (incorrect length check)"]


def test_a_warc_file_in_a_record_is_not_unpacked(tmp_path: Path) -> None:
    inner = plain([record(8), record(9)])
    data = record(0) + record(1, inner) + record(2)
    found, problems = read(tmp_path / "x.warc", data)
    assert [each.exchange.url[-1] for each in found] == ["0", "1", "2"]
    assert found[1].exchange.body == inner and not problems


def lines_only(data: bytes) -> bytes:
    """The header has line feeds only, the block is as it was."""
    top, _, block = data.partition(b"\r\n\r\n")
    return top.replace(b"\r\n", b"\n") + b"\n\n" + block


ODD: dict[str, Callable[[bytes], bytes]] = {
    "names in lower case": lambda r: r.replace(b"WARC-Target-URI", b"warc-target-uri").replace(
        b"Content-L", b"content-l"
    ),
    "names in upper case": lambda r: r.replace(b"WARC-Type", b"WARC-TYPE").replace(
        b"Content-Length", b"CONTENT-LENGTH"
    ),
    "line feeds only": lines_only,
    "no blank lines behind it": lambda r: r[:-4],
    "one line end behind it": lambda r: r[:-2],
    "many blank lines behind it": lambda r: r + b"\r\n" * 5_000,
    "lines that go on": lambda r: r.replace(
        b"WARC-Target-URI: ", b"X: a\r\n b\r\nWARC-Target-URI:\r\n\t "
    ),
    "no space after the colon": lambda r: r.replace(b"Target-URI: ", b"Target-URI:").replace(
        b"Length: ", b"Length:"
    ),
    "angle brackets": lambda r: r.replace(
        b"URI: http://example.com/1", b"URI: <http://example.com/1>"
    ),
    "an old version": lambda r: r.replace(b"WARC/1.0", b"WARC/0.18"),
    "a line without a colon": lambda r: r.replace(b"WARC-Date:", b"nonsense\r\nWARC-Date:"),
    "a field twice": lambda r: r.replace(b"WARC-Type:", b"WARC-Type: response\r\nWARC-Type:"),
    "not UTF-8": lambda r: r.replace(b"WARC-Date:", b"X-Name: \xff\xfe\r\nWARC-Date:"),
    "a long header": lambda r: r.replace(
        b"WARC-Date:", b"X-Long: " + b"x" * 500_000 + b"\r\nWARC-Date:"
    ),
}


@pytest.mark.parametrize("shape", ["plain", "packed"])
@pytest.mark.parametrize("name", ODD)
def test_odd_headers_are_read(name: str, shape: str, tmp_path: Path) -> None:
    found, problems = read(
        tmp_path / "x.warc", SHAPES[shape]([record(0), ODD[name](record(1)), record(2)])
    )
    assert numbers(found) == [0, 1, 2]
    assert not problems


BAD: dict[str, Callable[[bytes], bytes]] = {
    "NULs": lambda r: r.replace(b"WARC-Date:", b"\0\0\0\0\0\0\0\0\0\0"),
    "two lengths": lambda r: r.replace(b"Content-Length:", b"Content-Length: 5\r\nContent-Length:"),
    "two URLs": lambda r: r.replace(
        b"WARC-Date:", b"WARC-Target-URI: http://example.com/other\r\nWARC-Date:"
    ),
    "no end of its header": lambda r: r.partition(b"\r\n\r\n")[0] + b"\r\n",
    "something else": lambda r: b"<html>\n\n<p>" + b"x" * 100_000,
    "no date": lambda r: r.replace(b"WARC-Date:", b"X-Date:"),
    "segments": lambda r: r.replace(b"WARC-Date:", b"WARC-Segment-Number: 1\r\nWARC-Date:"),
}


@pytest.mark.parametrize("shape", ["plain", "packed"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_costs_no_other(name: str, shape: str, tmp_path: Path) -> None:
    found, problems = read(
        tmp_path / "x.warc",
        SHAPES[shape]([digested(0), BAD[name](record(1)), record(2), record(3)]),
    )
    assert set(numbers(found)) >= {0, 3} and 1 not in numbers(found)
    assert problems


DATES = {
    "2020-01-02T03:04:05.678901Z": "2020-01-02T03:04:05.678901",
    "2020-01-02T03:04:05.123456789Z": "2020-01-02T03:04:05.123456",
    "2020-01-02T05:04:05+02:00": "2020-01-02T03:04:05",
    "2020-01-02T03:04:05": "2020-01-02T03:04:05",
    "2020-01-02": "2020-01-02T00:00:00",
    "2020": "2020-01-01T00:00:00",
    "2020-01-02T03:04Z": "2020-01-02T03:04:00",
    "20200102030405": "2020-01-02T03:04:05",
    "Thu, 02 Jan 2020 03:04:05 GMT": None,
    "1577934245": None,
}


@pytest.mark.parametrize("text", DATES)
def test_dates_are_read_right_or_not_at_all(text: str, tmp_path: Path) -> None:
    found, problems = read(
        tmp_path / "x.warc", record(0) + record(1).replace(b"2020-01-02T03:04:05Z", text.encode())
    )
    wanted = DATES[text]
    assert [each.exchange.at.isoformat() for each in found[1:]] == (
        [f"{wanted}+00:00"] if wanted else []
    )
    assert problems == ([] if wanted else ["a record without a date"])


TAILS = {
    "zeros": bytes(10_000), "garbage": b"garbage" * 1_000, "blank lines": b"\r\n" * 3_000,
    "half a member": gzip.compress(record(9))[:60],
    "half a mark": b"\x1f\x8b", "an empty member": gzip.compress(b""),
}  # fmt: skip


@pytest.mark.parametrize("shape", ["plain", "packed", "one gzip"])
@pytest.mark.parametrize("name", TAILS)
def test_what_is_behind_the_last_record_costs_none(name: str, shape: str, tmp_path: Path) -> None:
    found, problems = read(
        tmp_path / "x.warc", SHAPES[shape]([digested(0), digested(1)]) + TAILS[name]
    )
    assert numbers(found) == [0, 1]
    silent = name == ("blank lines" if shape == "plain" else "an empty member")
    assert len(problems) == (0 if silent else 1)


@pytest.mark.parametrize("shape", ["plain", "packed"])
@pytest.mark.parametrize("name", ["zeros", "garbage"])
def test_a_damaged_start_costs_no_record_behind_it(name: str, shape: str, tmp_path: Path) -> None:
    first, *others = (SHAPES[shape]([digested(number)]) for number in range(4))
    start = TAILS[name][: len(first) - 4] + first[-4:]
    found, problems = read(tmp_path / "x.warc", start + b"".join(others))
    assert numbers(found) == [1, 2, 3] and len(problems) == 1


def test_a_file_that_is_not_packed_is_not_taken_for_what_it_holds(tmp_path: Path) -> None:
    inner = gzip.compress(record(7))
    found, problems = read(
        tmp_path / "x.warc", b"garbage" + digested(0) + digested(1) + record(2, inner) + digested(3)
    )
    assert [each.exchange.url[-1] for each in found] == ["1", "2", "3"] and len(problems) == 1


def test_members_with_names_and_extra_fields_are_read(tmp_path: Path) -> None:
    """Old files of the Internet Archive have the lengths there."""
    raw = gzip.compress(record(1), mtime=0)
    flags = bytes([4 | 8 | 16])
    extra = (
        raw[:3]
        + flags
        + raw[4:10]
        + b"\x0c\x00sl\x08\x00"
        + bytes(8)
        + b"x.warc\0"
        + b"a comment\0"
        + raw[10:]
    )
    found, problems = read(
        tmp_path / "x.warc.gz", packed([record(0)]) + extra + packed([record(2)])
    )
    assert numbers(found) == [0, 1, 2] and not problems


def arc(number: int, kind: str = "text/html", url: str = "", length: int | None = None) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npage %d" % number
    said = len(block) if length is None else length
    return (
        f"{url or f'http://example.com/{number}'} 192.0.2.1 20080430204825 {kind} {said}\n".encode()
        + block
        + b"\n"
    )


ABOUT = b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n"
ARC = b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n" % len(ABOUT) + ABOUT


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [None, 3, 60, 5_000])
def test_arc_files_are_read_and_gone_on_with(
    shape: str, length: int | None, tmp_path: Path
) -> None:
    data = SHAPES[shape]([ARC, arc(0), arc(1, length=length), arc(2, "text/html; charset=utf-8")])
    found, problems = read(tmp_path / "x.arc.gz", data)
    assert numbers(found) == ([0, 1, 2] if length is None else [0, 2])
    assert len(problems) == (length is not None)
    assert {each.exchange.at.isoformat() for each in found} == {"2008-04-30T20:48:25+00:00"}
    assert {each.exchange.address for each in found} == {"192.0.2.1"}


def test_lines_of_arc_version_2_and_odd_ones(tmp_path: Path) -> None:
    longer = arc(1).replace(b" text/html ", b" text/html 200 - - 0 x.arc ")
    dns = b"dns:example.com 192.0.2.1 20080430204825 text/dns 4\nabcd\n"
    plain_page = b"http://example.com/old 192.0.2.1 20080430204825 text/html 7\n<p>old!\n"
    found, problems = read(
        tmp_path / "x.arc", ARC + longer + dns + arc(2, url="http://example.com/a b/2") + plain_page
    )
    assert not problems
    urls = ["http://example.com/1", "http://example.com/a%20b/2", "http://example.com/old"]
    assert [each.exchange.url for each in found] == urls
    assert (found[2].exchange.head, found[2].exchange.body, found[2].exchange.content_type) == (
        b"",
        b"<p>old!",
        "text/html",
    )


CHUNKED = head("Transfer-Encoding: chunked")
BODIES = {
    "chunks": (CHUNKED, b"5\r\nhello\r\n0\r\n\r\n", b"hello", False),
    "chunks with line feeds": (CHUNKED, b"5\nhello\n0\n\n", b"hello", False),
    "cut in the first chunk": (CHUNKED, b"50\r\nhello", b"hello", True),
    "no last chunk": (CHUNKED, b"5\r\nhello\r\n", b"hello", True),
    "joined already, starts with a number": (CHUNKED, b"123\nabc", b"123\nabc", False),
    "joined already, looks like a chunk": (CHUNKED, b"3\nabcdef", b"3\nabcdef", False),
    "several codings": (
        head("Transfer-Encoding: gzip, Chunked"),
        b"5\r\nhello\r\n0\r\n\r\n",
        b"hello",
        False,
    ),
    "go on first": (b"HTTP/1.1 100 Continue\r\n\r\n" + head(), b"hello", b"hello", False),
    "another version": (
        b"HTTP/2 200\r\nContent-Type: text/html\r\n\r\n",
        b"hello",
        b"hello",
        False,
    ),
    "odd bytes": (b"HTTP/1.1 200 \xff\xfe\r\nX\x00Y: \x80\r\n\r\n", b"hello", b"hello", False),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_come_as_they_were_sent(name: str, tmp_path: Path) -> None:
    top, body, wanted, cut = BODIES[name]
    (found,), problems = read(tmp_path / "x.warc", record(1, body, top=top))
    assert found.exchange.body == wanted and not problems
    assert found.exchange.truncated == (Truncated.UNSPECIFIED if cut else None)


@pytest.mark.parametrize("said", ["as it is", "joined", "unpacked", "in hex"])
def test_digests_of_what_other_tools_take_for_the_payload_fit(said: str, tmp_path: Path) -> None:
    text = b"<p>a page" * 20
    small = brotli.compress(text)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(small), small)
    what = {"as it is": body, "joined": small, "unpacked": text, "in hex": body}[said]
    value = compute_digest(what) if said != "in hex" else "sha1:" + hashlib.sha1(what).hexdigest()
    top = head("Transfer-Encoding: chunked", "Content-Encoding: br")
    (found,), problems = read(
        tmp_path / "x.warc", record(1, body, f"WARC-Payload-Digest: {value}", top=top)
    )
    assert found.exchange.body == small and not problems


OTHERS = {
    "zstd": zstd.compress(b"x"),
    "zstd with a dictionary": b"\x5d\x2a\x4d\x18" + bytes(8),
    "lz4": b"\x04\x22\x4d\x18" + bytes(8),
    "bzip2": b"BZh9" + bytes(8),
    "xz": b"\xfd7zXZ\0" + bytes(8),
    "zip": b"PK\x03\x04" + bytes(8),
    "empty": b"",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_packed_in_another_way_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        ArchiveError, match=rf"x\.warc holds no whole record: it is .*{name.split()[0]}"
    ):
        read(tmp_path / "x.warc", OTHERS[name])


def test_what_is_no_page_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    passed = list[str]()
    asked = record(1, top=b"HEAD /1 HTTP/1.1\r\n\r\n", kind="request")
    path.write_bytes(
        record(0, kind="conversion")
        + record(0, kind="resource").replace(b"http://example.com/", b"urn:x:")
        + record(1)
        + asked
        + record(
            2, top=head("Content-Length: 99"), length=str(len(head("Content-Length: 99")))
        ).replace(b"page 2", b"")
        + record(3)
    )
    found = list(read_foreign(path, lambda problem: None, on_skipped=passed.append))
    assert numbers(found) == [3]
    assert passed == [
        "conversion",
        "resource of urn:",
        "answer to HEAD",
        "answer without its body, as to HEAD",
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", ["200", "100000", "3000000", str(10**17)])
def test_many_wrong_lengths_cost_what_the_file_costs(
    shape: str, length: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in bytes that are read from the source, not in seconds."""
    data = SHAPES[shape](
        [record(0), *(record(n, b"x" * 600, length=length) for n in range(400)), record(1)]
    )
    taken = 0
    whole = ByteWindow.get

    def counted(window: ByteWindow, at: int, size: int) -> bytes:
        nonlocal taken
        out = whole(window, at, size)
        taken += len(out)
        return out

    monkeypatch.setattr(ByteWindow, "get", counted)
    found, problems = read(tmp_path / "x.warc", data)
    assert numbers(found) == [0, 1] and len(problems) == 400
    assert taken < 400 * 150_000


def test_a_record_bigger_than_allowed_is_neither_held_nor_searched_for_records(
    tmp_path: Path,
) -> None:
    inner = record(8) * 300
    for shape in SHAPES.values():
        found, problems = read(
            tmp_path / "x.warc", shape([record(0), record(1, inner), record(2)]), max_block=10_000
        )
        assert numbers(found) == [0, 2]
        assert problems == ["more than 10000 bytes in one record"]


def test_what_was_unpacked_can_be_read_again_from_anywhere() -> None:
    data = os.urandom(300_000)
    packed_data = b"".join(
        gzip.compress(data[at : at + 40_000]) for at in range(0, len(data), 40_000)
    )
    window = ByteWindow(GzipStream(BytesIO(packed_data), lambda offset, why: None))
    for at in (250_000, 10, 299_990, 0, 79_999, 80_000, 400_000, 5):
        assert window.get(at, 1_000) == data[at : at + 1_000]


def test_files_of_wget_are_read_as_warcio_reads_them(tmp_path: Path) -> None:
    for name in ("wget.warc.gz", "wget-again.warc.gz"):
        with (DATA / name).open("rb") as file:
            theirs = [
                (each.rec_headers["WARC-Target-URI"], each.content_stream().read())
                for each in ArchiveIterator(file) if each.rec_type == "response"
            ]  # fmt: skip
        problems: list[Problem] = []
        found = [
            each for each in read_foreign(DATA / name, problems.append) if each.kind == "response"
        ]
        assert [
            (each.exchange.url, each.exchange.body)
            for each in found
            if b"br" not in each.exchange.head
        ] == [each for each in theirs if not each[0].endswith("/br")]
        assert all(each.exchange.request.startswith(b"GET ") for each in found) and found
        assert not problems and not list(check_foreign(DATA / name))


def test_check_names_what_is_wrong_in_files_of_others(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(
        record(0) + record(1, length="9") + record(2).replace(b"WARC-Record-ID", b"X-Id")
    )
    assert [problem.what for problem in check_foreign(path)] == [
        "the record does not end where it says",
        "warc-record-id is missing",
    ]
    os.mkfifo(tmp_path / "pipe")
    assert [problem.what for problem in check_foreign(tmp_path / "pipe")] == ["is no file"]
    assert "can't be read" in next(check_foreign(tmp_path / "missing")).what
