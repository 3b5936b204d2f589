"""scrapy db clean --strict: nothing that is older stays, and the crawl goes on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Original
from crawlproj.archive.records import compute_digest
from tests.integration.test_archive_crawl import answers, readable, sound
from tests.integration.test_clean import DAY, URL
from tests.integration.test_forget import ask, scrapy
from tests.integration.test_robots import Site, crawl, pass_a_day, site, states
from tests.support.archiving import PAGE, exchange, write

pytestmark = pytest.mark.proof

__all__ = ["site"]


def test_strictly_nothing_older_stays_and_pages_are_captured_anew(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """The last capture of each page goes, though servers would say that it has not changed; so the
    next visit reads it in full.
    """
    site.links("/a", "/etag", *(f"/{number}" for number in range(9)))
    site.pages["/etag"] = 200, {"ETag": '"x"'}, b"<p>not modified</p>"
    assert crawl(site, database_url, tmp_path).code == 0
    pass_a_day(database_url)
    time.sleep(1.1)
    assert crawl(site, database_url, tmp_path).code == 0
    before = states(site, database_url)
    words = ["db", "clean", "--older", "0s", "--strict", "--json"]
    shown = scrapy(tmp_path, database_url, *words, "-n").json
    assert answers(Archive(tmp_path / "warc"))[f"{site.base}/etag"] > 0
    done = scrapy(tmp_path, database_url, *words).json
    assert done["records"] == shown["records"] > 20 and done["waiting"] == 0
    assert not Archive(tmp_path / "warc").closed_files()
    assert ask(database_url, "select count(*) from crawlproj.page_version") == [(0,)]
    assert states(site, database_url) == before
    pass_a_day(database_url)
    assert crawl(site, database_url, tmp_path).code == 0
    archive = sound(tmp_path / "warc")
    assert readable(database_url, archive) == len(before)
    for path in ("/a", "/etag"):
        found = archive.get(f"{site.base}{path}")
        assert found is not None and (found.record.kind, found.content) == (
            "response",
            site.pages[path][2],
        )  # type: ignore[index]


def test_a_file_is_dropped_when_nothing_but_notes_of_removals_is_left(
    database_url: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    write(
        tmp_path / "warc",
        [(exchange(number, at=now - number * 100 * DAY), None) for number in range(1, 4)],
    )
    for days, files in ((250, 1), (150, 1), (50, 0)):
        assert len(Archive(tmp_path / "warc").closed_files()) == 1
        scrapy(tmp_path, database_url, "db", "clean", "--older", f"{days}d", "--strict")
        assert len(Archive(tmp_path / "warc").closed_files()) == files
    assert "nothing to clean" in scrapy(tmp_path, database_url, "db", "clean").stdout


def test_strictly_a_file_is_rewritten_for_one_record_and_what_repeats_it_becomes_whole(
    database_url: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    first = exchange(0, at=now - 900 * DAY)
    young = [(exchange(number, at=now - DAY), None) for number in range(1, 40)]
    write(tmp_path / "warc", [(first, None), *young])
    write(
        tmp_path / "warc",
        [(exchange(0, at=now - DAY), Original(first.url, first.at, compute_digest(PAGE)))],
    )
    assert (
        scrapy(tmp_path, database_url, "db", "clean", "--older", "365d", "--json").json["waiting"]
        == 3
    )
    done = scrapy(
        tmp_path, database_url, "db", "clean", "--older", "365d", "--strict", "--json"
    ).json
    assert (done["records"], done["waiting"]) == (3, 0)
    found = sound(tmp_path / "warc").get(URL)
    assert found is not None and (found.record.kind, found.content) == ("response", PAGE)
    assert (
        "choose one"
        in scrapy(
            tmp_path,
            database_url,
            "db",
            "clean",
            "--older",
            "1d",
            "--strict",
            "--keep",
            "last",
            code=2,
        ).stderr
    )
