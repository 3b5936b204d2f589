"""What revisits of other tools mean, and what else an import must not get wrong: doubles, bad files
beside good ones, types.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import Problem
from crawlproj.archive.foreign.importer import ImportCounts, import_files
from crawlproj.archive.foreign.revisits import normalize_digest
from crawlproj.archive.open_file import OPEN
from crawlproj.archive.records import compute_digest
from crawlproj.archive.writer import DEFAULT_OPTIONS
from crawlproj.errors import ArchiveError
from tests.support.archiving import head
from tests.unit.archive.test_foreign_importer import sound
from tests.unit.archive.test_foreign_scanner import DATA, record

URL = "http://example.com/1"
FIRST, SECOND, THIRD = (f"2020-01-0{day}T00:00:00Z" for day in (1, 2, 3))


def dated(data: bytes, date: str, number: int) -> bytes:
    return data.replace(b"2020-01-02T03:04:05Z", date.encode()).replace(
        b"<urn:uuid:1>", b"<urn:uuid:%d>" % number
    )


def page(body: bytes, date: str, number: int, *fields: str, top: bytes | None = None) -> bytes:
    return dated(record(1, body, *fields, top=top), date, number)


def revisit(date: str, *fields: str, top: bytes | None = None) -> bytes:
    """It has a head and no body."""
    top = head() if top is None else top
    profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
    data = record(1, b"x", profile, *fields, top=top, kind="revisit", length=str(len(top)))
    return dated(data.removesuffix(b"x\r\n\r\n") + b"\r\n\r\n", date, 9)


def taken(folder: Path, *files: bytes) -> tuple[ImportCounts, list[str]]:
    paths = [folder / f"{number}.warc" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    problems: list[Problem] = []
    return import_files(paths, folder / "here", problems.append), [
        f"{problem.file} {problem.what}" for problem in problems
    ]


def last_payload(folder: Path) -> tuple[str, bytes]:
    found = sound(folder / "here").get(URL)
    assert found is not None
    return found.record.kind, found.payload


SHA1 = hashlib.sha1(b"one").hexdigest()
SAID = {
    "an id": ("WARC-Refers-To: <urn:uuid:5>",),
    "an id, and a digest of something else": (
        "WARC-Refers-To: <urn:uuid:5>",
        "WARC-Payload-Digest: unknown:abc",
    ),
    "a digest": (f"WARC-Payload-Digest: {compute_digest(b'one')}",),
    "a digest in hex": (f"WARC-Payload-Digest: sha1:{SHA1}",),
    "a digest of another kind": (
        f"WARC-Payload-Digest: sha256:{hashlib.sha256(b'one').hexdigest()}",
    ),
    "URL and date": (
        f"WARC-Refers-To-Target-URI: {URL}",
        f"WARC-Refers-To-Date: {FIRST}",
        f"WARC-Payload-Digest: {compute_digest(b'one')}",
    ),
    "URL in brackets": (f"WARC-Refers-To-Target-URI: <{URL}>", f"WARC-Refers-To-Date: {FIRST}"),
    "a digest, and a time that is a little off": (
        f"WARC-Refers-To-Target-URI: {URL}",
        "WARC-Refers-To-Date: 2020-01-01T00:00:01Z",
        f"WARC-Payload-Digest: {compute_digest(b'one')}",
    ),
    "a digest, and the time of another payload": (
        f"WARC-Refers-To-Target-URI: {URL}",
        f"WARC-Refers-To-Date: {SECOND}",
        f"WARC-Payload-Digest: {compute_digest(b'one')}",
    ),
    "a digest, and a page that is not here": (
        "WARC-Refers-To-Target-URI: http://example.com/other",
        f"WARC-Refers-To-Date: {FIRST}",
        f"WARC-Payload-Digest: {compute_digest(b'one')}",
    ),
}


@pytest.mark.parametrize("order", ["before", "behind", "in another file"])
@pytest.mark.parametrize("said", SAID)
def test_a_revisit_gets_the_payload_that_it_means(said: str, order: str, tmp_path: Path) -> None:
    """The last page before it is another one."""
    pages = page(
        b"one", FIRST, 5, "WARC-Payload-Digest: unknown:abc" if "else" in said else "X: y"
    ) + page(b"two", SECOND, 6)
    again = revisit(THIRD, *SAID[said])
    files = {
        "before": [again + pages],
        "behind": [pages + again],
        "in another file": [again, pages],
    }[order]
    assert taken(tmp_path, *files) == (ImportCounts(new=3), [])
    assert last_payload(tmp_path) == ("revisit", b"one")
    assert taken(tmp_path, *files) == (ImportCounts(known=3), [])


LIES = {
    "a digest of nothing here": (f"WARC-Payload-Digest: {compute_digest(b'three')}",),
    "an id that nobody has": ("WARC-Refers-To: <urn:uuid:77>",),
    "nothing": (),
    "a page with another payload": (
        f"WARC-Refers-To-Target-URI: {URL}",
        f"WARC-Refers-To-Date: {FIRST}",
        f"WARC-Payload-Digest: {compute_digest(b'three')}",
    ),
    "a time when there was nothing": (
        f"WARC-Refers-To-Target-URI: {URL}",
        "WARC-Refers-To-Date: 2019-01-01T00:00:00Z",
    ),
}


@pytest.mark.parametrize("said", LIES)
def test_a_revisit_of_what_is_not_here_gets_no_other_payload(said: str, tmp_path: Path) -> None:
    result, problems = taken(
        tmp_path, page(b"one", FIRST, 5) + page(b"two", SECOND, 6) + revisit(THIRD, *LIES[said])
    )
    assert result == ImportCounts(new=2, left_out=1)
    assert len(problems) == 1 and "not here" in problems[0]
    assert last_payload(tmp_path) == ("response", b"two")


@pytest.mark.parametrize("turned", [False, True])
def test_a_revisit_of_a_revisit_gets_the_payload_of_both(turned: bool, tmp_path: Path) -> None:
    said = f"WARC-Payload-Digest: {compute_digest(b'one')}"
    chain = [
        page(b"one", FIRST, 5),
        revisit(SECOND, said, f"WARC-Refers-To-Target-URI: {URL}", f"WARC-Refers-To-Date: {FIRST}"),
        revisit(THIRD, said, f"WARC-Refers-To-Target-URI: {URL}", f"WARC-Refers-To-Date: {SECOND}"),
    ]
    assert taken(tmp_path, b"".join(chain[::-1] if turned else chain)) == (ImportCounts(new=3), [])
    assert last_payload(tmp_path) == ("revisit", b"one")


def test_a_digest_alone_is_looked_for_on_other_pages_of_the_files(tmp_path: Path) -> None:
    other = page(b"one", FIRST, 5, f"WARC-Payload-Digest: {compute_digest(b'one')}").replace(
        b"/1\r\n", b"/other\r\n"
    )
    again = revisit(THIRD, f"WARC-Payload-Digest: {compute_digest(b'one')}")
    assert taken(tmp_path, again, other) == (ImportCounts(new=2), [])
    assert last_payload(tmp_path) == ("revisit", b"one")


def test_not_modified_means_the_last_page_before_it(tmp_path: Path) -> None:
    unchanged = head(status="304 Not Modified")
    again = revisit(THIRD, f"WARC-Payload-Digest: {compute_digest(b'')}", top=unchanged)
    assert taken(tmp_path, again + page(b"one", FIRST, 5) + page(b"two", SECOND, 6)) == (
        ImportCounts(new=3),
        [],
    )
    (record_304,) = (
        each for _, each in sound(tmp_path / "here").iter_records() if each.kind == "revisit"
    )
    assert record_304.refers_to is not None and record_304.refers_to.at.isoformat().startswith(
        SECOND[:10]
    )
    assert taken(tmp_path, again) == (ImportCounts(known=1), [])


def test_a_revisit_of_chunks_that_were_imported_before_is_found(tmp_path: Path) -> None:
    """Their digest is of the chunks, which are joined here."""
    body = b"3\r\none\r\n0\r\n\r\n"
    said = f"WARC-Payload-Digest: {compute_digest(body)}"
    assert (
        taken(tmp_path, page(body, FIRST, 5, said, top=head("Transfer-Encoding: chunked")))[0].new
        == 1
    )
    refers = f"WARC-Refers-To-Target-URI: {URL}", f"WARC-Refers-To-Date: {FIRST}"
    assert taken(
        tmp_path, revisit(SECOND, said, *refers, top=head("Transfer-Encoding: chunked"))
    ) == (ImportCounts(new=1), [])
    assert last_payload(tmp_path) == ("revisit", b"one")


@pytest.mark.parametrize("turned", [False, True])
def test_files_of_wget_that_leave_out_what_they_had(turned: bool, tmp_path: Path) -> None:
    files = [DATA / "wget.warc.gz", DATA / "wget-again.warc.gz"]
    problems: list[Problem] = []
    assert import_files(
        files[::-1] if turned else files, tmp_path, problems.append
    ) == ImportCounts(new=5)
    assert not problems
    here = sound(tmp_path)
    for path, start in (
        ("chunked", b"<title>Chunks</title><p>one two"),
        ("plain.txt", b"123\nabc"),
    ):
        versions = here.versions(f"http://127.0.0.1:44793/{path}")
        assert [entry.mime == "warc/revisit" for entry in versions] == [False, True]
        assert all(here.read_capture(entry).payload.startswith(start) for entry in versions)


def test_a_file_that_leaves_out_what_it_had_does_not_work_alone(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert import_files([DATA / "wget-again.warc.gz"], tmp_path, problems.append) == ImportCounts(
        new=1, left_out=2
    )
    assert len(problems) == 2
    sound(tmp_path)


def test_the_same_record_twice_in_a_run_is_taken_once(tmp_path: Path) -> None:
    data = page(b"one", FIRST, 5)
    assert taken(tmp_path, data + data, data) == (ImportCounts(new=1, known=2), [])
    assert len(sound(tmp_path / "here").versions(URL)) == 1


def test_a_bad_file_costs_no_good_one(tmp_path: Path) -> None:
    result, problems = taken(
        tmp_path, b"what is this", page(b"one", FIRST, 5), b"", page(b"two", SECOND, 6)
    )
    assert result == ImportCounts(new=2)
    assert [text.partition(" ")[0] for text in problems if "holds no whole record" in text] == [
        "0.warc",
        "2.warc",
    ]
    assert (tmp_path / "here" / "index.cdxj").read_bytes().count(b"\n") == 2
    with pytest.raises(ArchiveError, match=r"0\.warc holds no whole record"):
        taken(tmp_path, b"what is this", b"")


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ArchiveError, match="is no file"):
            import_files([path], tmp_path / "here", lambda problem: None)


def test_what_a_kill_left_of_an_import_is_not_taken_twice(tmp_path: Path) -> None:
    data = page(b"one", FIRST, 5)
    taken(tmp_path, data)
    (path,) = Archive(tmp_path / "here").closed_files()
    path.rename(path.with_name(path.name + OPEN))
    for index in (tmp_path / "here").glob("*.cdxj"):
        index.unlink()
    assert taken(tmp_path, data) == (ImportCounts(known=1), [])


def test_another_kind_of_digest_makes_no_doubles(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(page(b"one", FIRST, 5))
    for algorithm, wanted in (
        ("sha256", ImportCounts(new=1)),
        ("sha256", ImportCounts(known=1)),
        ("sha1", ImportCounts(known=1)),
    ):
        assert (
            import_files(
                [path],
                tmp_path / "here",
                lambda problem: None,
                replace(DEFAULT_OPTIONS, algorithm=algorithm),
            )
            == wanted
        )


def test_a_page_without_a_head_keeps_its_type(tmp_path: Path) -> None:
    kept = record(1, b"<p>saved", top=b"\r\n", kind="resource").replace(
        b"application/http;msgtype=response", b"text/html; charset=utf-8"
    )
    assert taken(tmp_path, kept)[0].new == 1
    here = sound(tmp_path / "here")
    (entry,) = here.versions(URL)
    assert entry.mime == "text/html"
    assert here.read_capture(entry).header("Content-Type") == "text/html; charset=utf-8"
    assert here.read_capture(entry).content == b"\r\n<p>saved"


def test_digests_are_known_in_every_spelling() -> None:
    usual = compute_digest(b"one")
    assert {
        normalize_digest(text)
        for text in (usual, usual.lower(), f"sha1:{SHA1}", f"SHA-1:{SHA1.upper()}")
    } == {usual}
    assert {
        normalize_digest(text) for text in ("", "sha1:", "sha1:xyz", "unknown:abc", "sha1")
    } == {""}
