"""scrapy warc, as a user calls it: on files alone, and beside a crawl that is running."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Original
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.open_file import index_path
from crawlproj.archive.records import compute_digest
from crawlproj.reports.versions import last_two, parse_time, version_at
from tests.integration.test_robots import Site
from tests.integration.test_robots import site as site
from tests.support.archiving import PAGE, START, exchange, head, write
from tests.support.crawling import ROOT, Result, run_command, start_crawl

OTHER = PAGE.replace(b"dull boy", b"bright boy")
URL = exchange(0).url


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A page that is the same on the second day, and another on the third."""
    first = exchange(0)
    same = exchange(0, at=START + timedelta(days=1))
    other = exchange(0, body=OTHER, at=START + timedelta(days=2))
    write(
        tmp_path / "warc",
        [(first, None), (same, Original(first.url, first.at, compute_digest(PAGE))), (other, None)],
    )
    merge_indexes(tmp_path / "warc")
    yield tmp_path


def warc(folder: Path, *words: str, code: int = 0) -> Result:
    result = run_command(["warc", *words], folder)
    assert result.code == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def test_versions_get_and_diff_need_nothing_but_the_files(folder: Path) -> None:
    found = warc(folder, "versions", URL, "--json").json
    assert [version["unchanged"] for version in found] == [False, True, False]
    assert len(warc(folder, "versions", URL).stdout.splitlines()) == 3
    assert warc(folder, "get", URL).stdout.encode() == OTHER
    second = (START + timedelta(days=1, hours=1)).isoformat()
    assert warc(folder, "get", URL, "--at", second).stdout.encode() == PAGE
    assert warc(folder, "get", URL, "--headers").stdout.startswith("HTTP/1.1 200 OK")
    warc(folder, "get", URL, "-o", str(folder / "page.html"))
    assert (folder / "page.html").read_bytes() == OTHER
    lines = warc(folder, "diff", URL, "--text").stdout.splitlines()
    assert any(line.startswith("-All work") and "dull" in line for line in lines)
    assert any(line.startswith("+All work") and "bright" in line for line in lines)
    first = START.isoformat()
    assert "They are the same." in warc(folder, "diff", URL, first, second).stdout
    assert not (folder / "pg").exists(), "no database was made"


def test_diff_says_that_there_is_nothing_to_compare(tmp_path: Path) -> None:
    again = exchange(1, at=START + timedelta(days=1))
    write(tmp_path / "warc", [(exchange(0), None), (exchange(1), None), (again, None)])
    merge_indexes(tmp_path / "warc")
    assert warc(tmp_path, "diff", URL).stdout == "There is one version only.\n"
    assert warc(tmp_path, "diff", again.url).stdout == "All 2 versions are the same.\n"


def test_what_is_not_there_or_makes_no_sense_is_one_clear_line(folder: Path) -> None:
    assert (
        "is not in the archive" in warc(folder, "get", "http://example.org/nothing", code=1).stderr
    )
    assert "is no time" in warc(folder, "get", URL, "--at", "yesterday", code=2).stderr
    for odd in ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"):
        assert "is no time" in warc(folder, "get", URL, "--at", odd, code=2).stderr
    assert "is no file" in warc(folder, "check", "", code=3).stdout
    assert "usage" in warc(folder, "diff", URL, "20260301", code=2).stderr
    assert "usage" in warc(folder, "look", code=2).stderr
    assert "is no file" in warc(folder, "import", "missing.warc.gz", code=1).stderr


def test_who_has_closed_the_output_gets_nothing_and_no_traceback(folder: Path) -> None:
    words = [sys.executable, "-m", "scrapy", "warc", "get", URL, "-s", f"CRAWL_DIR={folder}"]
    done = subprocess.run(
        f"{shlex.join(words)} >&-",
        shell=True,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_check_names_what_is_wrong_and_repair_closes_what_was_left(folder: Path) -> None:
    assert "1 file, 0 problems" in warc(folder, "check").stdout
    (path,) = Archive(folder / "warc").closed_files()
    whole = path.read_bytes()
    (folder / "warc" / "left-1.warc.gz.open").write_bytes(whole[:-20])
    path.with_suffix("").with_suffix(".cdxj").unlink()
    assert "it has no index" in warc(folder, "check", code=3).stdout
    assert "bytes cut off" in warc(folder, "repair").stdout
    assert warc(folder, "check", "--json").json == {"files": 2, "open": [], "problems": []}
    index_path(path).write_bytes(b"no index\n")
    assert "its index is no CDXJ" in warc(folder, "check", code=3).stdout
    assert f"{path.name}: indexed" in warc(folder, "repair").stdout
    assert len(warc(folder, "versions", URL).stdout.splitlines()) == 6
    path.write_bytes(whole[:100] + b"\0" + whole[101:])
    assert path.name in warc(folder, "check", code=3).stdout


def test_files_of_others_are_imported(folder: Path, tmp_path: Path) -> None:
    elsewhere = exchange(0, url="http://elsewhere.example/", top=head())
    write(tmp_path / "foreign", [(elsewhere, None)])
    (path,) = Archive(tmp_path / "foreign").closed_files()
    assert "1 exchange added" in warc(folder, "import", str(path)).stdout
    assert "0 exchanges added, 1 there already" in warc(folder, "import", str(path)).stdout
    assert warc(folder, "get", "http://elsewhere.example/").stdout.encode() == PAGE
    assert "2 files, 0 problems" in warc(folder, "check").stdout


def test_pages_of_a_crawl_that_is_running_can_be_read(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a")
    site.pages["/a"] = 200, {}, b"<p>This page is in a file that is still written.</p>"
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_CONTINUOUS": True,
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
    }
    with start_crawl(["site", "-a", f"seeds={site.base}/"], settings, tmp_path) as crawl:
        for _ in range(60):
            result = run_command(
                ["warc", "get", f"{site.base}/a"], tmp_path, {"DATABASE_URL": database_url}
            )
            if result.code == 0:
                break
        assert b"still written" in result.stdout.encode(), result.stderr
        assert list((tmp_path / "warc").glob("*.open"))
        crawl.stop()
        assert crawl.wait().code == 130
    found = json.loads(
        run_command(["warc", "versions", f"{site.base}/a", "--json"], tmp_path).stdout
    )
    assert [version["status"] for version in found] == [200]


def test_times_are_read_as_people_write_them() -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    assert (
        parse_time("2026-03-01")
        == parse_time("20260301")
        == parse_time("2026-03-01T01:00:00+01:00")
        == day
    )
    assert parse_time("202603011230") == day + timedelta(hours=12, minutes=30)


def test_the_version_in_force_and_the_last_two_that_differ(folder: Path) -> None:
    entries = Archive(folder / "warc").versions(URL)
    assert version_at(entries, START - timedelta(days=1)) is entries[0]
    assert version_at(entries, START + timedelta(days=1, hours=1)) is entries[1]
    assert version_at(entries, None) is entries[2]
    assert last_two(entries) == (entries[1], entries[2])
    assert last_two(entries[:2]) is None
