"""Answers to forms, and to anything else that is no GET, are told from the page wherever records
are listed, read or removed.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.check import check_file
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.foreign.importer import import_files
from crawlproj.archive.open_file import index_path
from crawlproj.archive.post_keys import add_post_query, parse_post_query, query_for
from crawlproj.archive.records import compute_digest
from crawlproj.archive.recovery import write_index
from crawlproj.archive.removal import delete_old_files, refresh_index, remove_records, survey_files
from crawlproj.archive.surt import surt_key
from crawlproj.upkeep.retention import REMOVAL_NAME, Retention, select_expired
from tests.support.archiving import PAGE, REQUEST, START, accepted, exchange, head, write

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
PARTS = "multipart/form-data; boundary=x"
URL = exchange(0).url
DAY = timedelta(days=1)


def sent(
    method: str,
    body: bytes = b"",
    kind: str = FORM,
    answer: bytes = b"<p>found</p>",
    number: int = 0,
    **more: object,
) -> Exchange:
    top = REQUEST.replace(b"GET", method.encode(), 1).replace(
        b"\r\n\r\n", b"\r\nContent-Type: " + kind.encode() + b"\r\n\r\n"
    )
    return exchange(number, answer, request=top, request_body=body, **more)


@pytest.mark.parametrize(
    ("method", "kind", "body", "key"),
    [
        ("POST", FORM, b"q=Caf%C3%A9+au&page=2", "__wb_method=post&page=2&q=caf%c3%a9%20au"),
        ("PUT", FORM + "; charset=utf-8", b"a=b", "__wb_method=put&a=b"),
        ("POST", FORM, b"\xff=1", "__wb_method=post&__wb_post_data=" + b64encode(b"\xff=1").decode().lower()),
        ("POST", FORM, b"", "__wb_method=post"),
        (
            "POST", JSON, b'{"a": "b c", "c": {"a": 2.0, "d": [true, null, 1.5]}, "": 1, "e": []}',
            "__wb_method=post&a=b+c&a.2_=2&d=true&d.2_=null&d.3_=1.5",
        ),
        ("POST", JSON, b"no JSON", "__wb_method=post"),
        ("POST", JSON, b'{"a": 1e999}', "__wb_method=post"),
        ("POST", "text/plain;charset=UTF-8", b'{"a": 1}', "__wb_method=post&a=1"),
        ("POST", "text/plain", b"hi", "__wb_method=post&__wb_post_data=agk="),
        ("POST", "", b"hi", "__wb_method=post&__wb_post_data=agk="),
        (
            "POST", PARTS,
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\none two\r\n'
            b'--x\r\nContent-Disposition: form-data; name="f"; '
            b'filename="g"\r\n\r\n\xff\x00\r\n--x--\r\n',
            "__wb_method=post&a=one+two&f=%ff%00",
        ),
        ("POST", PARTS, b"--x--\r\n", "__wb_method=post"),
        ("POST", "multipart/form-data", b"hi", "__wb_method=post&__wb_post_data=agk="),
        ("HEAD", "", b"", "__wb_method=head"),
        ("DELETE", FORM, b"a=b", "__wb_method=delete"),
    ],
)  # fmt: skip
def test_keys_are_those_of_pywb(method: str, kind: str, body: bytes, key: str) -> None:
    """As pywb 2.10 makes them; it makes an error of a number that is too big."""
    assert (
        surt_key(add_post_query("http://a.org/x", query_for(method, kind, body)))
        == f"org,a)/x?{key}"
    )


def test_a_query_is_kept_and_a_get_is_as_it_was() -> None:
    assert (
        add_post_query("http://a.org/?b=c", query_for("HEAD", "", b""))
        == "http://a.org/?b=c&__wb_method=HEAD"
    )
    assert add_post_query(URL, query_for("GET", FORM, b"a=b")) == URL


@given(
    st.sampled_from(["POST", "PUT", "PATCH"]),
    st.sampled_from([FORM, JSON, PARTS, "multipart/mixed", "text/plain", "", "é"]),
    st.binary(),
)
def test_no_content_is_too_odd(method: str, kind: str, body: bytes) -> None:
    query = query_for(method, kind, body)
    assert query.startswith(f"__wb_method={method}") and " " not in surt_key(
        add_post_query(URL, query)
    )
    found = IndexEntry("k", "20260101000000", URL, "text/html", 200, "", 1, 0, "f").with_post_query(
        query
    )
    assert IndexEntry.from_line(found.to_line()) == found


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\r\n",
        b"get /a HTTP/1.1\r\n\r\n",
        b" GET /a\r\n\r\n",
        b"\xff\xfe /",
        b"nonsense",
        b"<p> a page </p>",
    ],
)
def test_what_is_no_request_asks_for_the_page(head: bytes) -> None:
    assert parse_post_query(head, b"a=b") == ""


@pytest.mark.parametrize(
    "kind", ["multipart/x; a*0*", "multipart/x; boundary*=''", "multipart/\x00; boundary=x"]
)
@pytest.mark.parametrize(
    "field", [b"name*0*=''", b"filename*=utf-8''%ff; name", b"name=\xff", b'name="a', b"(", b""]
)
def test_odd_parts_are_no_trouble(kind: str, field: bytes) -> None:
    body = (
        b"--x\r\nContent-Disposition: form-data; "
        + field
        + b"\r\nContent-Transfer-Encoding: base64\r\n\r\na=\xff\r\n--x--"
    )
    assert query_for("POST", kind, body).startswith("__wb_method=POST")


def test_nested_json_without_end_is_no_trouble() -> None:
    assert query_for("POST", JSON, b"[" * 100_000 + b"]" * 100_000) == "__wb_method=POST"


def both(folder: Path) -> Archive:
    """A page, forms sent to its URL before and after, a HEAD, and a method that has no request
    record.
    """
    forms = [
        sent("POST", b"q=%d" % n, answer=b"<p>%d</p>" % n, at=START + n * DAY) for n in (-1, 1, 2)
    ]
    odd = [
        sent("HEAD", answer=b"", at=START + 3 * DAY),
        sent("PURGE", answer=b"purged", at=START + 4 * DAY),
    ]
    long = sent("POST", b"z" * 99_999, answer=b"long", at=START + 5 * DAY)
    long.request = long.request.replace(b"\r\n", b"\r\nX-Long: " + b"y" * 40_000 + b"\r\n", 1)
    write(folder, [(each, None) for each in (*forms, exchange(0), *odd, long)])
    return Archive(folder)


def test_a_page_is_not_the_answer_to_a_form(tmp_path: Path) -> None:
    archive = both(tmp_path)
    assert [archive.read_capture(entry).content for entry in archive.versions(URL)] == [PAGE]
    found = archive.get(URL, START + 9 * DAY)
    assert found is not None and found.content == PAGE
    (entry,) = archive.versions(URL, query_for("POST", FORM, b"q=1"))
    assert archive.read_capture(entry).content == b"<p>1</p>" and entry.url == URL
    assert len(archive.versions(URL, query_for("HEAD", "", b""))) == 1
    assert len(archive.versions(URL, query_for("PURGE", "", b""))) == 1


def test_an_index_made_anew_is_the_same(tmp_path: Path) -> None:
    """By pairing answers with the requests behind them."""
    both(tmp_path)
    (path,) = tmp_path.glob("*.warc.gz")
    before = index_path(path).read_bytes()
    index_path(path).unlink()
    write_index(path)
    assert index_path(path).read_bytes() == before and before.count(b"__wb_method") == 6
    assert accepted(path) and not list(check_file(path))


def test_the_answer_to_a_form_is_stored_whole(tmp_path: Path) -> None:
    """Who reads a revisit looks its page up by URL and time."""
    form = sent("POST", b"q=1", answer=PAGE, at=START + DAY)
    receipts = write(
        tmp_path, [(exchange(0), None), (form, Original(URL, START, compute_digest(PAGE)))]
    )
    assert [place.kind for place in receipts] == ["response", "response"]


def test_forms_are_cleaned_by_themselves(tmp_path: Path) -> None:
    """Also if they were sent in the second in which the page was read."""
    near = timedelta(microseconds=9)
    kept = [
        sent("POST", b"q=1", answer=b"1", at=START + near),
        exchange(0, b"new", at=START + 2 * DAY),
    ]
    gone = [exchange(0), sent("POST", b"q=2", answer=b"2", at=START + DAY)]
    kept.append(sent("POST", b"q=2", answer=b"two", at=START + 3 * DAY))
    write(tmp_path, [(each, None) for each in (*kept, *gone)])
    archive = Archive(tmp_path)
    chosen = select_expired(
        archive.iter_entries(), Retention(DAY), START + 9 * DAY, lambda urls: {}
    )
    survey_files(archive.closed_files(), chosen.removed_by, on_record=chosen.note_record)
    limited = chosen.limited_to_files([path.name for path in archive.closed_files()])
    for each in kept:
        assert not limited.removed_by(each.url, each.at), each
    for each in gone:
        assert limited.removed_by(each.url, each.at) == REMOVAL_NAME, each


def test_forms_keep_their_keys_when_something_else_goes(tmp_path: Path) -> None:
    write(tmp_path, [(exchange(1), None), (exchange(0), None), (sent("POST", b"q=1"), None)])
    archive = Archive(tmp_path)
    rewritten = list(
        remove_records(
            archive, lambda url, at: "it" if url.endswith("/1") else "", {"it": "why"}, START
        )
    )
    delete_old_files(rewritten)
    refresh_index(tmp_path)
    archive = Archive(tmp_path)
    assert (
        len(archive.versions(URL)) == 1
        and len(archive.versions(URL, query_for("POST", FORM, b"q=1"))) == 1
    )


def test_forms_of_others_are_taken_once_and_are_no_pages(tmp_path: Path) -> None:
    """Two with the same answer in the same second are two; doing it again adds nothing."""
    write(tmp_path / "there", [(sent("POST", b"q=%d" % n, at=START), None) for n in (1, 2)])
    files = list((tmp_path / "there").glob("*.warc.gz"))
    taken = import_files(files, tmp_path / "here", lambda problem: None)
    assert (taken.new, taken.known, taken.keys) == (2, 0, set())
    again = import_files(files, tmp_path / "here", lambda problem: None)
    assert (again.new, again.known) == (0, 2)
    archive = Archive(tmp_path / "here")
    assert not archive.versions(URL)
    assert [len(archive.versions(URL, query_for("POST", FORM, b"q=%d" % n))) for n in (1, 2)] == [
        1,
        1,
    ]


def revisit(url: str, request: bytes, target: Exchange, target_id: str) -> bytes:
    """A revisit as other tools write it, and its request."""
    top = head()
    at = "2026-03-09T00:00:00Z"
    fields = (
        "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: "
        f"<urn:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8>\r\nWARC-Date: {at}\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Payload-Digest: {compute_digest(target.body)}\r\nWARC-Refers-To: "
        f"{target_id}\r\n"
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(top)}\r\n\r\n"
    )
    beside = (
        "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: "
        f"<urn:uuid:6ba7b811-9dad-41d1-80b4-00c04fd430c8>\r\nWARC-Date: {at}\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Concurrent-To: "
        "<urn:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8>\r\n"
        f"Content-Type: application/http;msgtype=request\r\nContent-Length: {len(request)}\r\n\r\n"
    )
    return fields.encode() + top + b"\r\n\r\n" + beside.encode() + request + b"\r\n\r\n"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_revisit_of_the_answer_to_a_form_becomes_whole(tmp_path: Path, method: str) -> None:
    """Whether it answers a form itself, or is a page with the same content."""
    form = sent("POST", b"q=1")
    (place,) = write(tmp_path / "there", [(form, None)])
    (source,) = (tmp_path / "there").glob("*.warc.gz")
    (tmp_path / "other.warc").write_bytes(
        revisit(
            URL,
            (sent(method).request + b"q=2") if method == "POST" else REQUEST,
            form,
            place.record_id,
        )
    )
    taken = import_files([source, tmp_path / "other.warc"], tmp_path / "here", lambda problem: None)
    assert (taken.new, taken.left_out) == (2, 0)
    archive = Archive(tmp_path / "here")
    (entry,) = archive.versions(URL, query_for(method, FORM, b"q=2"))
    assert archive.read_capture(entry).content == form.body and entry.mime == "text/html"
