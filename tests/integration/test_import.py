"""scrapy warc import with a database: pages from elsewhere are known, with their times and
versions, and visited when due.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.records import compute_digest
from tests.integration.test_archive_crawl import VERSIONS, readable
from tests.integration.test_forget import ask, scrapy, wait_for
from tests.integration.test_robots import Site, crawl, pass_a_day, states
from tests.integration.test_robots import site as site
from tests.support.archiving import PAGE, REQUEST, exchange, head, write
from tests.support.crawling import start_crawl
from tests.unit.archive.test_foreign_scanner import DATA, record

OTHER = PAGE.replace(b"dull boy", b"bright boy")
BIGGER = PAGE.replace(b"<p>", b"<p> <!-- other bytes, same text -->")
DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=5)
A, GONE, MOVED, PICTURE = (
    f"http://elsewhere.example/{name}" for name in ("a", "gone", "moved", "picture.png")
)
ROWS = """
    select u.canonical, u.state::text, u.status, u.visit, u.changes, u.last_visit, u.next_visit is not null, u.depth,
        (select count(*) from crawlproj.page_version v where v.url = u.id), u.etag, u.body_digest
    from crawlproj.url u order by u.canonical"""


def at(days: int, url: str, body: bytes = PAGE, top: bytes | None = None) -> Exchange:
    return exchange(
        0, body, head('ETag: "x"') if top is None else top, url=url, at=NOW - days * DAY
    )


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A page in six captures with two versions, and others; the later part is in the file that
    comes first.
    """
    folder = tmp_path / "foreign"
    first = at(90, A)
    same = Original(A, first.at, compute_digest(PAGE))
    later = [(at(50, A, OTHER), None), (at(40, A, BIGGER), None), (at(39, A, BIGGER), None)]
    others = [
        (at(30, GONE, b"gone", head(status="404 Not Found")), None),
        (at(30, MOVED, b"", head("Location: /a", status="301 Moved")), None),
        (at(30, PICTURE, b"\x89PNG\r\n\x1a\n\x00\x00", head(kind="image/png")), None),
        (
            at(
                30, "http://elsewhere.example/robots.txt", b"User-agent: *", head(kind="text/plain")
            ),
            None,
        ),
    ]
    write(folder, [*later, *others])
    write(folder, [(first, None), (at(80, A), same), (at(70, A, BIGGER), None)])
    return folder


def imported(folder: Path, foreign: Path, database_url: str, *words: str, code: int = 0) -> str:
    files = [str(path) for path in Archive(foreign).closed_files()]
    return scrapy(folder, database_url, "warc", "import", *files, *words, code=code).stdout


def test_pages_and_versions_are_known_with_their_times(
    foreign: Path, database_url: str, tmp_path: Path
) -> None:
    said = imported(tmp_path, foreign, database_url)
    assert "10 exchanges added" in said
    assert "Crawl site: 4 URLs not known before, 0 updated, 4 versions added" in said
    rows = {row[0]: row[1:] for row in ask(database_url, ROWS)}
    assert set(rows) == {A, GONE, MOVED, PICTURE}, "robots.txt is no page"
    assert rows[A] == ("waiting", 200, 6, 2, NOW - 39 * DAY, True, 1, 3, None, None)
    assert rows[GONE][:2] == ("gone", 404)
    assert rows[MOVED][:2] == ("moved", 301) and rows[MOVED][5], (
        "it is asked again, so that the spider can follow it"
    )
    assert rows[PICTURE][:2] == ("waiting", 200) and not rows[PICTURE][5], (
        "pictures are not revisited"
    )
    archive = Archive(tmp_path / "warc")
    places = ask(
        database_url,
        "select u.canonical, p.warc_file, p.warc_offset from crawlproj.page p join crawlproj.url u "
        "on u.id = p.url",
    )
    assert {
        (url, archive.read(str(file), int(str(offset))).url) for url, file, offset in places
    } == {(A, A), (PICTURE, PICTURE)}
    assert readable(database_url, archive, VERSIONS) == 4
    assert "It is due" in scrapy(tmp_path, database_url, "explain", A).stdout
    assert len(scrapy(tmp_path, database_url, "warc", "versions", A).stdout.splitlines()) == 6


def test_doing_it_again_adds_nothing(foreign: Path, database_url: str, tmp_path: Path) -> None:
    assert "Crawl" not in imported(tmp_path, foreign, database_url, "--no-database")
    assert ask(database_url, "select count(*) from crawlproj.url") == [(0,)]
    assert "4 URLs not known before, 0 updated, 4 versions added" in imported(
        tmp_path, foreign, database_url
    )
    before = (
        ask(database_url, "select * from crawlproj.url order by id"),
        ask(database_url, "select * from crawlproj.page_version"),
    )
    said = imported(tmp_path, foreign, database_url)
    assert "0 exchanges added, 10 there already" in said
    assert "0 URLs not known before, 0 updated, 0 versions added" in said
    assert before == (
        ask(database_url, "select * from crawlproj.url order by id"),
        ask(database_url, "select * from crawlproj.page_version"),
    )


def test_without_a_database_the_archive_takes_them(foreign: Path, tmp_path: Path) -> None:
    assert "10 exchanges added" in imported(
        tmp_path, foreign, "postgresql://127.0.0.1:1/none", code=3
    )
    assert "0 exchanges added" in imported(
        tmp_path, foreign, "postgresql://127.0.0.1:1/none", "--no-database"
    )


def test_a_crawl_goes_on_from_what_was_imported(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """An imported page is read in full when it is due; the same text is no new version, and its
    links are found.
    """
    site.links("/a", "/b")
    body = site.pages["/"][2]  # type: ignore[index]
    url = f"{site.base}/"
    write(tmp_path / "foreign", [(at(90, url, body, head('ETag: "x"')), None)])
    imported(tmp_path, tmp_path / "foreign", database_url)
    assert crawl(site, database_url, tmp_path).code == 0
    asked = dict(site.asked)
    assert {"/", "/a", "/b"} <= asked.keys() and "if-none-match" not in asked["/"]
    assert ask(
        database_url, f"select visit, changes from crawlproj.url where canonical = '{url}'"
    ) == [(2, 0)]
    versions = (
        "select v.at from crawlproj.page_version v join crawlproj.url u on u.id = v.url "
        f"where u.canonical = '{url}'"
    )
    assert ask(database_url, versions) == [(NOW - 90 * DAY,)]
    assert [entry.mime for entry in Archive(tmp_path / "warc").versions(url)] == [
        "text/html",
        "warc/revisit",
    ]


def test_what_the_crawl_knows_better_stays(site: Site, database_url: str, tmp_path: Path) -> None:
    """Its own files, and older captures of others, only add to the history."""
    site.links("/a")
    assert crawl(site, database_url, tmp_path).code == 0
    before = (
        ask(database_url, "select * from crawlproj.url order by id"),
        ask(database_url, "select * from crawlproj.page order by url"),
    )
    url = f"{site.base}/a"
    write(tmp_path / "foreign", [(at(90, url), None)])
    own = [str(path) for path in Archive(tmp_path / "warc").closed_files()]
    said = scrapy(
        tmp_path,
        database_url,
        "warc",
        "import",
        *own,
        *map(str, Archive(tmp_path / "foreign").closed_files()),
    ).stdout
    assert "0 URLs not known before, 0 updated, 1 version added" in said
    assert before == (
        ask(database_url, "select * from crawlproj.url order by id"),
        ask(database_url, "select * from crawlproj.page order by url"),
    )
    pass_a_day(database_url)
    assert crawl(site, database_url, tmp_path).code == 0
    assert states(site, database_url)["/a"][0] == "waiting"


def test_what_was_forgotten_does_not_come_back_by_an_import(
    foreign: Path, database_url: str, tmp_path: Path
) -> None:
    scrapy(tmp_path, database_url, "forget", A)
    assert "4 exchanges added, 0 there already, 0 left out, 6 not taken" in imported(
        tmp_path, foreign, database_url
    )
    assert Archive(tmp_path / "warc").get(A) is None
    assert {row[0] for row in ask(database_url, ROWS)} == {GONE, MOVED, PICTURE}
    scrapy(tmp_path, database_url, "push", A)
    assert ask(database_url, f"select why from crawlproj.url where canonical = '{A}'") == [
        ("forgotten",)
    ]


def test_files_of_wget_become_pages_and_versions(database_url: str, tmp_path: Path) -> None:
    """Beside one that nobody can read, and one that is cut."""
    bad = tmp_path / "bad.warc.gz"
    cut = tmp_path / "cut.warc"
    bad.write_bytes(b"what is this")
    whole = record(7) + record(8)
    cut.write_bytes(whole[:-20])
    files = [str(path) for path in (bad, DATA / "wget-again.warc.gz", cut, DATA / "wget.warc.gz")]
    result = scrapy(tmp_path, database_url, "warc", "import", *files, code=3)
    assert "6 exchanges added, 0 there already, 0 left out" in result.stdout
    assert "Crawl site: 4 URLs not known before, 0 updated, 4 versions added" in result.stdout
    assert "2 records passed over as no pages: 2 resource of metadata:" in result.stdout
    told = [line for line in result.stderr.splitlines() if line.startswith("crawlproj: ")]
    assert len(told) == 2 and "bad.warc.gz: byte 0: holds no whole record" in told[-1], told
    assert any("cut.warc: byte" in line and "the record is cut" in line for line in told)
    rows = {row[0]: row for row in ask(database_url, ROWS)}
    chunked = rows["http://127.0.0.1:44793/chunked"]
    assert (chunked[3], chunked[8]) == (2, 1), "seen twice, and the same"
    got = scrapy(tmp_path, database_url, "warc", "get", "http://127.0.0.1:44793/br").stdout
    assert got.startswith("<title>Br</title>")
    assert "0 problems" in scrapy(tmp_path, database_url, "warc", "check").stdout
    again = scrapy(tmp_path, database_url, "warc", "import", *files, code=3).stdout
    assert "0 exchanges added, 6 there already" in again and "0 updated, 0 versions added" in again


def test_the_answer_to_a_form_is_no_version_of_the_page(database_url: str, tmp_path: Path) -> None:
    posted = replace(
        at(10, A, OTHER), request=REQUEST.replace(b"GET", b"POST"), request_body=b"a=b"
    )
    only = replace(
        at(10, GONE, OTHER), request=REQUEST.replace(b"GET", b"POST"), request_body=b"a=b"
    )
    write(tmp_path / "foreign", [(at(20, A), None), (posted, None), (only, None)])
    said = imported(tmp_path, tmp_path / "foreign", database_url)
    assert (
        "3 exchanges added" in said and "1 URL not known before, 0 updated, 1 version added" in said
    )
    assert [row[:4] for row in ask(database_url, ROWS)] == [(A, "waiting", 200, 1)]


def test_files_are_imported_while_a_crawl_runs(
    site: Site, foreign: Path, database_url: str, tmp_path: Path
) -> None:
    site.links("/a")
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_CONTINUOUS": True,
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
    }
    with start_crawl(["site", "-a", f"seeds={site.base}/"], settings, tmp_path) as crawl:
        for _ in range(60):
            if scrapy(tmp_path, database_url, "status", code=0).stdout and list(
                (tmp_path / "warc").glob("*.open")
            ):
                break
        (left,) = (tmp_path / "warc").glob("*.open")
        assert "10 exchanges added" in imported(tmp_path, foreign, database_url)
        assert left.exists(), "a file that is written stays open"
        wait_for(crawl, lambda: site.paths()["/a"] > 0)
        crawl.stop()
        assert crawl.wait().code == 130
    assert "0 problems" in scrapy(tmp_path, database_url, "warc", "check").stdout
    assert len(Archive(tmp_path / "warc").versions(A)) == 6
    assert states(site, database_url)["/a"][0] == "waiting"
