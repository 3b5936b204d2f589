"""scrapy db clean: what is too old goes, what the frontier needs stays, and nobody is left with a
place that leads nowhere.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Original
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.records import compute_digest
from crawlproj.archive.removal import rewrite_file
from crawlproj.archive.writer import WriterOptions
from tests.integration.test_archive_crawl import VERSIONS, answers, readable, sound
from tests.integration.test_forget import all_is_well, ask, scrapy, wait_for
from tests.integration.test_robots import Site, crawl, pass_a_day, states
from tests.integration.test_robots import site as site
from tests.support.archiving import PAGE, exchange, write
from tests.support.crawling import start_crawl

pytestmark = pytest.mark.proof

DAY = timedelta(days=1)
URL = exchange(0).url


def history(folder: Path, *ages: int, each_in_a_file: bool = True) -> Archive:
    """A page that was captured so many days ago; always the same but for the first, which has a
    revisit after it.
    """
    now = datetime.now(UTC)
    found = []
    for number, age in enumerate(sorted(ages, reverse=True)):
        found.append((exchange(0, PAGE + b"%d" % number, at=now - age * DAY), None))
    shape = WriterOptions(max_bytes=1) if each_in_a_file else WriterOptions()
    write(folder / "warc", found, shape)
    merge_indexes(folder / "warc")
    return Archive(folder / "warc")


def ages(archive: Archive) -> list[int]:
    now = datetime.now(UTC)
    return [(now - entry.at).days for entry in archive.versions(URL)]


def test_old_captures_go_with_their_files_and_the_last_stays(
    database_url: str, tmp_path: Path
) -> None:
    archive = history(tmp_path, 900, 800, 700, 30, 1)
    assert len(archive.closed_files()) == 5
    shown = scrapy(tmp_path, database_url, "db", "clean", "-n", "--older", "365d", "--json").json
    assert (
        shown["dry_run"],
        shown["records"],
        shown["files_dropped"],
        shown["files_rewritten"],
    ) == (True, 9, 3, 0)
    assert ages(archive) == [900, 800, 700, 30, 1]
    done = scrapy(tmp_path, database_url, "db", "clean", "--older", "365d", "--json").json
    assert done == {**shown, "dry_run": False}
    assert ages(archive) == [30, 1]
    assert len(sound(tmp_path / "warc").closed_files()) == 2
    assert (
        "nothing to clean"
        in scrapy(tmp_path, database_url, "db", "clean", "--older", "365d").stdout
    )
    assert (
        "0 files rewritten, 1 dropped"
        in scrapy(tmp_path, database_url, "db", "clean", "--older", "0s").stdout
    )
    assert ages(archive) == [1]


def test_the_first_of_each_year_may_stay(database_url: str, tmp_path: Path) -> None:
    archive = history(tmp_path, 3000, 2999, 2998, 10)
    scrapy(
        tmp_path,
        database_url,
        "db",
        "clean",
        "--older",
        "365d",
        "--keep",
        "first,last",
        "--per",
        "year",
    )
    assert ages(archive)[0] == 3000 and ages(archive)[-1] == 10
    assert "usage" in scrapy(tmp_path, database_url, "db", "tidy", code=2).stderr
    assert (
        "--older" in scrapy(tmp_path, database_url, "db", "clean", "--keep", "last", code=2).stderr
    )
    assert (
        "RETENTION_PER"
        in scrapy(tmp_path, database_url, "db", "clean", "--per", "moon", code=2).stderr
    )


def test_a_file_is_rewritten_only_if_that_is_worth_it(database_url: str, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    others = [(exchange(number, at=now - 800 * DAY), None) for number in range(1, 40)]
    again = [(exchange(0, PAGE + b"x", at=now - DAY), None)]
    write(tmp_path / "warc", [(exchange(0, at=now - 900 * DAY), None), *others])
    write(tmp_path / "warc", again)
    done = scrapy(tmp_path, database_url, "db", "clean", "--older", "365d", "--json").json
    assert (done["records"], done["waiting"], done["files_rewritten"]) == (0, 3, 0)
    assert ages(Archive(tmp_path / "warc")) == [900, 1]
    write(
        tmp_path / "warc",
        [(exchange(number, PAGE + b"x", at=now - DAY), None) for number in range(1, 40, 2)],
    )
    done = scrapy(tmp_path, database_url, "db", "clean", "--older", "365d", "--json").json
    assert (done["records"], done["waiting"], done["files_rewritten"]) == (63, 0, 1)
    assert ages(sound(tmp_path / "warc")) == [1]


def test_a_revisit_becomes_whole_when_its_original_goes(database_url: str, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    first = exchange(0, at=now - 900 * DAY)
    write(tmp_path / "warc", [(first, None)])
    write(
        tmp_path / "warc",
        [(exchange(0, at=now - DAY), Original(first.url, first.at, compute_digest(PAGE)))],
    )
    scrapy(tmp_path, database_url, "db", "clean", "--older", "365d")
    archive = sound(tmp_path / "warc")
    found = archive.get(URL)
    assert found is not None
    assert (ages(archive), found.record.kind, found.content) == ([1], "response", PAGE)


def visited_often(site: Site, database_url: str, folder: Path) -> None:
    """Five visits: one page changes each time, one never, one is not modified; one link is dead."""
    site.links("/a", "/same", "/etag", "/dead")
    site.pages["/etag"] = 200, {"ETag": '"x"'}, b"<p>not modified</p>"
    site.pages["/dead"] = 418, {}, b"no"
    for number in range(5):
        told = [b"<p>This is paragraph %d of a page that grows</p>" % n for n in range(number + 1)]
        site.pages["/a"] = 200, {}, b"".join(told)
        assert crawl(site, database_url, folder).code == 0
        pass_a_day(database_url)
        time.sleep(1.1)  # captures are told apart by seconds


def test_versions_go_with_their_records_and_the_crawl_goes_on(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    visited_often(site, database_url, tmp_path)
    url = f"{site.base}/a"
    count = (
        "select count(*) from crawlproj.page_version v join crawlproj.url u on u.id = v.url "
        "where u.canonical = '{}'"
    )
    assert ask(database_url, count.format(url)) == [(5,)]
    before = states(site, database_url)
    queue = ask(
        database_url,
        "select id, lane, rank, next_visit, etag, body_digest from crawlproj.url order by id",
    )
    done = scrapy(tmp_path, database_url, "db", "clean", "--older", "0s", "--json").json
    assert done["versions"] == 4 and done["records"] > 20
    assert ask(database_url, count.format(url)) == [(1,)]
    archive = all_is_well(tmp_path, database_url)
    assert answers(archive)[url] == 1
    assert states(site, database_url) == before
    assert (
        ask(
            database_url,
            "select id, lane, rank, next_visit, etag, body_digest from crawlproj.url order by id",
        )
        == queue
    )
    kept = answers(archive)
    assert kept[f"{site.base}/etag"] < 5
    assert crawl(site, database_url, tmp_path).code == 0
    archive = all_is_well(tmp_path, database_url)
    assert answers(archive)[f"{site.base}/etag"] == kept[f"{site.base}/etag"] + 1
    assert readable(database_url, archive, VERSIONS) == 4


def test_dead_urls_logs_and_versions_without_records_go_by_age(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a", "/dead")
    site.pages["/dead"] = 418, {}, b"no"
    assert crawl(site, database_url, tmp_path, WARC_ENABLED=False).code == 0
    site.pages["/a"] = 200, {}, b"<p>changed into something else</p>"
    pass_a_day(database_url)
    assert crawl(site, database_url, tmp_path, WARC_ENABLED=False).code == 0
    logs = list((tmp_path / "log").iterdir())
    for path in logs[:-1]:
        os.utime(path, (1, 1))
    words = ["db", "clean", "--dead", "0s", "--logs", "30d", "--older", "0s", "--json"]
    shown = scrapy(tmp_path, database_url, *words, "-n").json
    assert (shown["urls"], shown["versions"], shown["logs"]) == (1, 1, len(logs) - 1)
    assert scrapy(tmp_path, database_url, *words).json == {**shown, "dry_run": False}
    assert "/dead" not in states(site, database_url) and "/a" in states(site, database_url)
    assert ask(
        database_url, "select sum(number) from crawlproj.url_count where state = 'dead'"
    ) == [(0,)]
    assert list((tmp_path / "log").iterdir()) == logs[-1:]
    words = ["db", "clean", "--json"]
    assert not any(
        value
        for name, value in scrapy(tmp_path, database_url, *words).json.items()
        if name != "dry_run"
    )


def test_what_crashed_runs_left_is_put_in_order(database_url: str, tmp_path: Path) -> None:
    archive = history(tmp_path, 3, 2, 1, each_in_a_file=False)
    (path,) = archive.closed_files()
    (tmp_path / "warc" / "half.warc.gz.part").write_bytes(b"x")
    (tmp_path / "warc" / "orphan.cdxj").write_bytes(b"")
    rewrite_file(
        archive,
        path,
        lambda url, at: "old" if (datetime.now(UTC) - at).days == 3 else "",
        {},
        {"old": "x"},
        datetime.now(UTC),
    )
    (tmp_path / "warc" / "left.warc.gz.open").write_bytes(path.read_bytes()[:-7])
    done = scrapy(tmp_path, database_url, "db", "clean", "--json").json
    assert done["leftovers"] == 2
    assert not path.exists()
    names = {found.name for found in (tmp_path / "warc").iterdir()}
    assert "left.warc.gz" in names and not [
        name for name in names if name.endswith((".part", ".open"))
    ]
    assert "orphan.cdxj" not in names
    assert scrapy(tmp_path, database_url, "warc", "check").code == 0


def test_a_crawl_may_run_meanwhile(site: Site, database_url: str, tmp_path: Path) -> None:
    """Its files are cleaned too, down to the last capture; no place is lost, whatever is stored at
    that moment.
    """
    site.links(*(f"/{number}" for number in range(20)))
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_CONTINUOUS": True,
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
        "REVISIT_MIN": 1,
        "REVISIT_INTERVAL": 1,
        "REVISIT_MAX": 1,
        "POLITENESS_DELAY": 0.01,
        "POLITENESS_PAUSE_AFTER": 0,
    }
    with start_crawl(["site", "-a", f"seeds={site.base}/"], settings, tmp_path) as running:
        for _ in range(3):
            seen = site.paths()
            for number in range(20):
                site.pages[f"/{number}"] = (
                    200,
                    {},
                    b"<p>page %d after %d</p>" % (number, seen.total()),
                )
            # Each page four times more: some of it is surely old by then, and enough of a file that
            # it is worth rewriting.
            wait_for(
                running,
                lambda seen=seen: min((site.paths() - seen)[f"/{each}"] for each in range(20)) > 3,
            )  # type: ignore[misc]
            assert (
                scrapy(tmp_path, database_url, "db", "clean", "--older", "1s", "--json").json[
                    "records"
                ]
                > 0
            )
        running.stop()
        assert running.wait().code == 130
    all_is_well(tmp_path, database_url)
