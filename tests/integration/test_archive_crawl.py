"""Crawls of the demo web and what is in the archive afterwards, read by us and by others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from gzip import compress
from hashlib import sha256
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file, check_revisits
from crawlproj.database.connection import Database
from crawlproj.demo import DemoServer, FrozenClock
from tests.integration.test_robots import Site
from tests.integration.test_robots import crawl as crawl_site
from tests.support.archiving import accepted
from tests.support.crawling import run_crawl
from tests.support.webs import asked, crawl_demo, demo_settings, make_due

T0 = 1_790_000_000.0
SETTINGS = {"FRONTIER_DEPTH": 6, "REVISIT_INTERVAL": "1h"}
SHORT = {"FRONTIER_DEPTH": 2, "REVISIT_INTERVAL": "1h"}
PLACES = (
    "select u.canonical, u.body_digest, p.warc_file, p.warc_offset, p.warc_length, p.warc_digest, "
    "p.warc_record, p.noarchive"
    " from crawlproj.page p join crawlproj.url u on u.id = p.url"
)
VERSIONS = (
    "select u.canonical, v.body_digest, v.warc_file, v.warc_offset, v.warc_length, v.warc_digest, "
    "v.warc_record, p.noarchive"
    " from crawlproj.page_version v join crawlproj.url u on u.id = v.url join crawlproj.page p on "
    "p.url = v.url"
)


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer("demo", clock=FrozenClock(T0 + 100), t0=T0) as server:
        yield server


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    for server in (site.server, site.second):
        server.shutdown()
        server.server_close()


def sound(folder: Path) -> Archive:
    """Other libraries and we ourselves find nothing wrong in any file, and nothing is left open."""
    archive = Archive(folder)
    assert archive.closed_files()
    assert not list(folder.glob("*.open"))
    for path in archive.closed_files():
        assert accepted(path) > 0
        assert not [str(problem) for problem in check_file(path)]
    assert not [str(problem) for problem in check_revisits(archive)]
    return archive


def answers(archive: Archive) -> Counter[str]:
    """Exchanges per URL."""
    return Counter(
        record.url
        for _, record in archive.iter_records()
        if record.kind in ("response", "revisit", "resource")
    )


def readable(database_url: str, archive: Archive, query: str = PLACES) -> int:
    """Each stored place leads to the body that the database means; returns how many there are."""
    database = Database(database_url)
    rows = database.run_script(query)
    database.close()
    for url, body_digest, file, offset, length, digest, record_id, noarchive in rows:
        if noarchive:
            assert file is None, url
            continue
        record = archive.read(file, offset, length)
        assert (record.url, record.digest, record.id) == (url, digest, f"<urn:uuid:{record_id}>")
        assert sha256(archive.resolve_record(record).content).digest()[:16] == bytes(body_digest), (
            url
        )
    return len(rows)


def test_every_exchange_is_in_the_archive_and_every_page_is_readable(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    result = crawl_demo(demo, database_url, tmp_path, **SETTINGS)
    assert result.code == 0, result.stderr
    archive = sound(tmp_path / "warc")
    found = answers(archive)
    assert found == asked(demo)
    assert any(url.endswith("/robots.txt") for url in found)
    assert result.stats["warc/exchanges"] == found.total()
    assert readable(database_url, archive) > 50
    assert readable(database_url, archive, VERSIONS) > 50
    statuses = Counter(capture.status for capture in archive.captures())
    assert {200, 301, 404} <= statuses.keys()
    assert (tmp_path / "warc" / "index.cdxj").exists()


@pytest.mark.proof
def test_the_second_visit_is_a_revisit_that_leads_to_the_first(
    demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    assert crawl_demo(demo, database_url, tmp_path, **SHORT).code == 0
    for _ in range(2):  # the second of them must not point at the first
        make_due(database_url)
        assert crawl_demo(demo, database_url, tmp_path, **SHORT).code == 0
    archive = sound(tmp_path / "warc")
    revisits = [record for _, record in archive.iter_records() if record.kind == "revisit"]
    profiles = Counter(record.fields["warc-profile"].rpartition("/")[2] for record in revisits)
    assert profiles.keys() == {"server-not-modified", "identical-payload-digest"}
    for revisit in revisits:
        original = archive.find_original(revisit)
        assert original.kind == "response"
        assert original.id == revisit.fields["warc-refers-to"]
        assert original.fields["warc-date"] == revisit.fields["warc-refers-to-date"]
        assert original.url == revisit.url
    assert readable(database_url, archive) > 10


TRUNCATED = {
    "stall": "time",
    "reset-body": "disconnect",
    "short": "disconnect",
    "chunk-cut": "disconnect",
    "huge": "length",
    "endless": "length",
    "chunk-bad": "unspecified",
    "headers-huge": "unspecified",
    "long": None,
    "header-bad": None,
    "bomb": None,
    "gzip-bad": None,
    "gzip-cut": None,
    "encoding-unknown": None,
    "ok": None,
}


def test_what_came_before_a_failure_is_kept_and_says_why_it_ends(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer("faults") as demo:
        urls = {
            name: demo.url(f"{name}.fault", f"/{name}")
            for name in [*TRUNCATED, "timeout", "reset", "garbage"]
        }
        dropped = [demo.url("ok.fault", f"/ok?end={how}") for how in ("drop", "pipeline")]
        settings = demo_settings(
            demo,
            database_url,
            SPIDER_MODULES="tests.spiders",
            FRONTIER_RETRY_DELAY="1h",
            CRAWL_PATIENCE=0,
            DOWNLOAD_TIMEOUT=2,
            FRONTIER_LEASE="60s",
            DOWNLOAD_MAXSIZE=1_000_000,
        )
        result = run_crawl(
            ["ends", "-a", "urls=" + ",".join([*urls.values(), *dropped])], settings, tmp_path
        )
    assert result.code == 0, result.stderr
    archive = sound(tmp_path / "warc")
    records = {
        record.url: record
        for _, record in archive.iter_records()
        if record.kind in ("response", "resource")
    }
    found = {
        name: records[url].fields.get("warc-truncated")
        for name, url in urls.items()
        if name in TRUNCATED
    }
    assert found == TRUNCATED
    assert all(url in records for url in dropped), (
        "what a pipeline does not want was fetched all the same"
    )
    assert urls["timeout"] not in records and urls["reset"] not in records, "nothing came"
    assert records[urls["garbage"]].kind == "resource"
    assert len(records[urls["short"]].body) == 1000


def test_pages_that_say_noarchive_are_not_archived_even_when_they_have_not_changed(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/header", "/element", "/open")
    site.pages["/header"] = 200, {"X-Robots-Tag": "noarchive"}, b"<p>header</p>"
    site.pages["/element"] = 200, {}, b"<meta name=robots content=noarchive><p>element</p>"
    site.pages["/open"] = 200, {}, b"<p>open</p>"
    results = [crawl_site(site, database_url, tmp_path)]
    make_due(database_url)
    results.append(crawl_site(site, database_url, tmp_path))
    assert [result.stats["warc/noarchive"] for result in results] == [2, 2]
    found = answers(sound(tmp_path / "warc"))
    assert found[site.base + "/open"] == 2
    assert not found[site.base + "/header"] and not found[site.base + "/element"]
    make_due(database_url)
    assert crawl_site(site, database_url, tmp_path, WARC_OBEY_NOARCHIVE=False).code == 0
    assert answers(sound(tmp_path / "warc"))[site.base + "/element"] == 1


def test_errors_redirects_and_failures_that_say_noarchive_are_not_archived(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    tag = {"X-Robots-Tag": "crawlproj: noarchive"}
    element = b"<meta name=robots content=noarchive>"
    secret = {
        "/missing": (404, tag, b"<p>header</p>"),
        "/failing": (500, {}, element),
        "/moved": (302, {**tag, "Location": "/open"}, b""),
        "/cut": (200, {**tag, "Content-Length": "5000", "Connection": "close"}, b"<p>half"),
        "/cut-packed": (
            200,
            {"Content-Length": "5000", "Connection": "close", "Content-Encoding": "gzip"},
            compress(element),
        ),
        "/broken": (
            200,
            {**tag, "Content-Encoding": "gzip"},
            compress(b"<p>x</p>")[:10] + b"\xff" * 20,
        ),
        "/big": (
            200,
            {"Content-Length": "unknown", "Connection": "close"},
            element + b"x" * 300_000,
        ),
    }
    site.links(*secret, "/open", "/other", "/half")
    site.pages |= secret
    site.pages["/other"] = (
        404,
        {"X-Robots-Tag": "otherbot: noarchive"},
        b"<p>what noarchive means</p>",
    )
    site.pages["/half"] = 200, {"Content-Length": "5000", "Connection": "close"}, b"<p>half"
    settings = {
        "DOWNLOAD_MAXSIZE": 200_000,
        "FRONTIER_RETRY_DELAY": "1h",
        "POLITENESS_MAX_DELAY": 0,
    }
    result = crawl_site(site, database_url, tmp_path, **settings)
    found = answers(sound(tmp_path / "warc"))
    assert {path for path in site.paths() if not found[site.base + path]} == set(secret)
    assert result.stats["warc/noarchive"] == len(secret)
    assert (
        found[site.base + "/open"] == found[site.base + "/other"] == found[site.base + "/half"] == 1
    )


def test_nothing_is_archived_if_it_is_switched_off(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a")
    site.pages["/a"] = 200, {}, b"<p>a</p>"
    assert crawl_site(site, database_url, tmp_path, WARC_ENABLED=False).code == 0
    assert not (tmp_path / "warc").exists()
    make_due(database_url)
    assert crawl_site(site, database_url, tmp_path).code == 0
    make_due(database_url)
    assert crawl_site(site, database_url, tmp_path).code == 0
    archive = sound(tmp_path / "warc")
    kinds = [
        record.kind
        for _, record in archive.iter_records()
        if record.url == site.base + "/a" and record.head and record.kind != "request"
    ]
    assert kinds == ["response", "revisit"], (
        "a page that was read before the archive began is stored whole once"
    )
    assert readable(database_url, archive) == 2
