from __future__ import annotations

import base64
import re
from base64 import b64encode
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from crawlproj.archive.check import check_file, record_faults
from crawlproj.archive.exchange import Exchange, Original, PageMetadata, Truncated
from crawlproj.archive.gzip_members import GzipMember, compress_member, read_member
from crawlproj.archive.records import (
    IDENTICAL,
    NOT_MODIFIED,
    Record,
    build_records,
    build_warcinfo,
    compute_digest,
)
from crawlproj.archive.stored_record import StoredRecord, parse_record
from crawlproj.http import heads
from tests.support.archiving import (
    BAD_HEADS,
    PAGE,
    REQUEST,
    START,
    accepted,
    all_kinds,
    exchange,
    head,
    write,
)


def stored(record: Record) -> StoredRecord:
    return parse_record(GzipMember(0, len(record.data), record.data))


def kinds(exchange: Exchange, original: Original | None = None) -> dict[str, StoredRecord]:
    return {
        record.kind: stored(record) for record in build_records(exchange, original, "<urn:uuid:1>")
    }


def original(of: Exchange) -> Original:
    found = build_records(of, None, "")[0].original
    assert found is not None
    return found


def test_an_exchange_becomes_answer_request_and_metadata() -> None:
    found = kinds(all_kinds()[0][0])
    assert list(found) == ["response", "request", "metadata"]
    answer, request, metadata = found.values()
    assert answer.block == head() + PAGE
    assert request.block == REQUEST
    assert (
        request.fields["warc-concurrent-to"]
        == metadata.fields["warc-concurrent-to"]
        == metadata.fields["warc-refers-to"]
        == answer.id
    )
    assert answer.fields["warc-ip-address"] == "192.0.2.7"
    assert answer.fields["warc-warcinfo-id"] == "<urn:uuid:1>"
    assert answer.at == START
    assert metadata.block.decode().splitlines() == [
        "fetchTimeMs: 250", "title: A page with breaks", "outlink: https://example.org/%C3%BC%20b "
                                                         "L a/@href",
        "outlink: https://example.org/x.png E img/@src", "outlink: x:y X odd",
    ]  # fmt: skip


def test_a_request_with_a_body_has_it_in_its_record() -> None:
    found = kinds(exchange(request=REQUEST.replace(b"GET", b"POST"), request_body=b"a=b"))[
        "request"
    ]
    assert found.block.endswith(b"\r\n\r\na=b")
    assert found.digest.startswith("sha1:")


def test_warcinfo_says_what_the_file_is() -> None:
    found = stored(build_warcinfo("x.warc.gz", START, {"robots": "obeyed", "broken": "a\r\nb: c"}))
    assert found.fields["warc-filename"] == "x.warc.gz"
    assert b"format: WARC File Format 1.1\r\n" in found.block
    assert b"robots: obeyed\r\nbroken: a b: c\r\n" in found.block


def test_the_same_payload_becomes_a_revisit_of_the_original() -> None:
    first = exchange(0)
    found = kinds(exchange(1), original(first))["revisit"]
    assert found.fields["warc-profile"] == IDENTICAL
    assert found.block == head()
    assert found.refers_to is not None
    assert (found.refers_to.url, found.refers_to.at) == (first.url, first.at)
    assert found.digest == original(first).digest


def test_a_revisit_of_a_revisit_points_at_the_first_response() -> None:
    first = build_records(exchange(0), None, "")[0]
    second = build_records(exchange(1), first.original, "")[0]
    third = build_records(exchange(2), second.original, "")[0]
    assert (first.kind, second.kind, third.kind) == ("response", "revisit", "revisit")
    assert stored(third).fields["warc-refers-to"] == first.id
    assert stored(third).fields["warc-refers-to-target-uri"] == "https://example.org/page/0"
    assert stored(third).fields["warc-refers-to-date"] == "2026-03-04T05:06:07.089012Z"


def test_another_payload_is_stored_whole_whatever_the_caller_believed() -> None:
    assert "response" in kinds(exchange(1, PAGE + b"!"), original(exchange(0)))
    assert "response" in kinds(exchange(1, truncated=Truncated.TIME), original(exchange(0)))
    assert "response" in kinds(exchange(1, b""), original(exchange(0, b"")))


def test_not_modified_is_a_revisit_of_its_own_profile() -> None:
    found = build_records(
        exchange(1, b"", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'),
        original(exchange(0)),
        "",
    )[0]
    assert stored(found).fields["warc-profile"] == NOT_MODIFIED
    assert stored(found).digest == original(exchange(0)).digest
    assert not found.indexed, "replay would show the 304"


def test_half_a_head_that_says_not_modified_is_no_revisit() -> None:
    half = exchange(1, b"", b"HTTP/1.1 304 Not Modified\r\nETa", truncated=Truncated.DISCONNECT)
    found = kinds(half, original(exchange(0)))["response"]
    assert found.fields["warc-truncated"] == "disconnect"
    assert found.digest == compute_digest(b"")
    assert not build_records(half, original(exchange(0)), "")[0].indexed


@pytest.mark.parametrize(
    "header",
    [b"Cookie: " + b"c" * 40_000, b"\r\n".join(b"X-%d: %s" % (n, b"v" * 100) for n in range(600))],
)
def test_a_long_request_does_not_end_the_reading_of_others(header: bytes, tmp_path: Path) -> None:
    long = exchange(0, request=REQUEST[:-2] + header + b"\r\n\r\n", request_body=b"a=b")
    write(tmp_path, [(long, None), (exchange(1), None)])
    (path,) = tmp_path.glob("*.warc.gz")
    assert accepted(path) == 7
    with path.open("rb") as file:
        assert (
            len(list(FastIterator(file, record_types=WarcRecordType.any_type, verify_digests=True)))
            == 7
        )
    found = kinds(long)
    assert found["request"].block.startswith(REQUEST[:-2]) and found["request"].block.endswith(
        b"\r\n\r\na=b"
    )
    assert b"X-Crawler-Omitted: " in found["request"].block
    kept = re.search(rb"requestHeadBase64: (\S+)", found["metadata"].block)
    assert kept is not None and base64.b64decode(kept[1]) == long.request


def test_a_request_line_that_is_too_long_has_no_record_but_is_kept() -> None:
    long = exchange(0, request=REQUEST.replace(b"/a?b=c", b"/" + b"a" * 40_000))
    assert list(kinds(long)) == ["response", "metadata"]
    assert b64encode(long.request) in kinds(long)["metadata"].block


def test_a_cut_body_is_marked() -> None:
    for why in Truncated:
        assert kinds(exchange(0, truncated=why))["response"].fields["warc-truncated"] == why.value


def test_joined_chunks_are_not_announced_as_chunks() -> None:
    found = kinds(exchange(top=head("Transfer-Encoding: chunked")))["response"]
    assert heads.get_header(found.head, "Transfer-Encoding") == ""
    assert heads.get_header(found.head, "X-Crawler-Transfer-Encoding") == "chunked"
    assert found.body == PAGE


def test_what_is_not_http_becomes_a_resource() -> None:
    found = kinds(exchange(0, b"<p>x</p>", b"", request=b"", elapsed_s=None))
    assert list(found) == ["resource"]
    assert found["resource"].body == b"<p>x</p>"


@pytest.mark.parametrize("name", BAD_HEADS)
def test_odd_heads_are_kept_and_readable(name: str, tmp_path: Path) -> None:
    write(tmp_path, [(exchange(0, top=BAD_HEADS[name]), None)])
    (path,) = tmp_path.glob("*.warc.gz")
    assert accepted(path) == 4
    assert not list(check_file(path))
    found = kinds(exchange(0, top=BAD_HEADS[name]))
    assert found["response"].body == PAGE
    assert heads.parse_status(found["response"].head) == 200
    if found["response"].head != BAD_HEADS[name] and b"ENCODING: chunked" not in BAD_HEADS[name]:
        kept = re.search(rb"httpHeadBase64: (\S+)", found["metadata"].block)
        assert kept is not None
        assert base64.b64decode(kept[1]) == BAD_HEADS[name]


def test_other_libraries_accept_all_kinds(tmp_path: Path) -> None:
    places = write(tmp_path, all_kinds())
    (path,) = tmp_path.glob("*.warc.gz")
    assert accepted(path) > 2 * len(places)
    assert not list(check_file(path))


@given(
    st.binary(max_size=200)
    | st.from_regex(rb"HTTP/1\.1 200 OK\n([ -~\t\r\n\x80-\xff]*\n)*", fullmatch=True),
    st.binary(max_size=50),
)
def test_whatever_a_server_sends_other_libraries_find_the_same_payload(
    top: bytes, body: bytes
) -> None:
    data = build_records(exchange(0, body, top, request=b""), None, "")[0].data
    theirs = next(iter(ArchiveIterator(BytesIO(data), check_digests="raise")))
    assert theirs.raw_stream.read() == (body if theirs.rec_type == "response" else top + body)
    assert all(
        record.verify_block_digest() for record in FastIterator(BytesIO(data), parse_http=False)
    )
    assert all(
        record.verify_payload_digest()
        for record in FastIterator(BytesIO(data), record_types=WarcRecordType.response)
    )
    assert not record_faults(
        stored(build_records(exchange(0, body, top), None, "")[0]), first=False
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_breaks_a_record(url: str, title: str) -> None:
    made = exchange(0, url=f"http://h/{url}", metadata=PageMetadata(title, ((url, title),)))
    for record in build_records(made, None, ""):
        theirs = next(iter(ArchiveIterator(BytesIO(record.data), check_digests="raise")))
        theirs.raw_stream.read()
        assert theirs.rec_headers.get_header("WARC-Target-URI").isascii()
        assert not record_faults(stored(record), first=False)


@given(st.binary(max_size=5_000), st.integers(1, 9))
def test_members_come_out_as_they_went_in(data: bytes, level: int) -> None:
    packed = compress_member(data, level)
    assert read_member(BytesIO(packed + b"more"), 0) == GzipMember(0, len(packed), data)


def test_dates_keep_their_microseconds() -> None:
    for shift in (
        timedelta(0),
        timedelta(microseconds=1),
        timedelta(seconds=1) - timedelta(microseconds=START.microsecond),
    ):
        assert kinds(exchange(at=START + shift))["response"].at == START + shift
