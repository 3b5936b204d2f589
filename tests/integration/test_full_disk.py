"""The archive's own disk is full: commands end with one clear line, nothing is lost, and they can
be run again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file
from crawlproj.archive.foreign.importer import import_files
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.writer import WarcWriter, WriterOptions
from crawlproj.database.connection import Database
from crawlproj.errors import ArchiveError
from crawlproj.frontier.opening import open_frontier
from crawlproj.upkeep.imported_history import import_history
from tests.integration.test_archive_crawl import VERSIONS, answers, readable, sound
from tests.integration.test_forget import scrapy
from tests.integration.test_power_loss import unreadable
from tests.support.archiving import PAGE, exchange, write
from tests.support.crawling import Result, run_crawl
from tests.support.full import SmallDisk, small_disk
from tests.support.steps import config_of, long_ago

URL = exchange(3).url
NEW = "http://elsewhere.example/"
FULL = "No space left on device"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "4m") as found:
        (tmp_path / "crawl").mkdir()
        (tmp_path / "crawl" / "warc").symlink_to(found.folder)
        yield found


@pytest.fixture
def folder(disk: SmallDisk, database_url: str, tmp_path: Path) -> Path:
    """A crawl whose archive is on the small disk: two versions of each page, the older ones in
    files of their own.
    """
    found = [
        (
            exchange(
                number,
                PAGE + b"%d %d" % (number, age),
                at=long_ago(age) + timedelta(seconds=number),
            ),
            None,
        )
        for age in (900, 1)
        for number in range(10)
    ]
    for name, some in (("old", found[:10]), ("new", found[10:])):
        write(tmp_path / name, some)
        taken = import_files(
            Archive(tmp_path / name).closed_files(),
            disk.folder,
            print,
            WriterOptions(max_bytes=4_000),
        )
        config = config_of(tmp_path / "crawl", database_url)
        db = Database(database_url)
        import_history(
            db,
            open_frontier(db, config, "site", make=True),
            config,
            Archive(disk.folder),
            taken.keys,
        )
        db.close()
    return tmp_path / "crawl"


def refused(result: Result) -> None:
    """In one line; a writer may have said the same in its log."""
    *before, last = result.stderr.splitlines()
    assert last.startswith("crawlproj: The archive can't be ") and FULL in last, result.stderr
    assert len(before) <= 1 and all(line in last for line in before), result.stderr


def as_before(folder: Path, database_url: str, versions: int) -> Archive:
    """All that was there is there; only the common index may be old."""
    archive = sound(folder / "warc")
    assert not unreadable(database_url, archive)
    assert readable(database_url, archive, VERSIONS) == versions
    return archive


@pytest.mark.proof
def test_forget_does_what_was_left_when_there_is_room_again(
    disk: SmallDisk, folder: Path, database_url: str
) -> None:
    before = answers(Archive(disk.folder))
    disk.fill()
    refused(scrapy(folder, database_url, "forget", URL, code=1))
    assert answers(sound(disk.folder)) == before
    assert "not ended" in scrapy(folder, database_url, "forget", "--list").stdout
    disk.clear()
    scrapy(folder, database_url, "forget", URL)
    archive = sound(disk.folder)
    assert answers(archive) == {url: number for url, number in before.items() if url != URL}
    assert readable(database_url, archive, VERSIONS) == 18
    assert "not ended" not in scrapy(folder, database_url, "forget", "--list").stdout


@pytest.mark.proof
def test_clean_frees_what_needs_no_room_even_on_a_full_disk(
    disk: SmallDisk, folder: Path, database_url: str
) -> None:
    disk.fill()
    files = len(Archive(disk.folder).closed_files())
    done = scrapy(folder, database_url, "db", "clean", "--older", "365d", "--json").json
    assert (done["files_dropped"], done["files_rewritten"]) == (files // 2, 0)
    archive = as_before(folder, database_url, 10)
    assert set(answers(archive).values()) == {1}


@pytest.mark.proof
def test_clean_that_needs_room_can_be_done_again(
    disk: SmallDisk, folder: Path, database_url: str
) -> None:
    """A file of which a big part stays: dropping others does not make room enough."""
    noise = random.Random(2).randbytes
    going = [(exchange(0, noise(60_000), at=long_ago(700), url=NEW), None)]
    write(
        disk.folder,
        [*going, (exchange(1, noise(200_000), at=long_ago(700), url=f"{NEW}stays"), None)],
    )
    write(disk.folder, [(exchange(0, at=long_ago(2), url=NEW), None)])
    disk.fill()
    refused(scrapy(folder, database_url, "db", "clean", "--older", "365d", code=1))
    assert len(Archive(disk.folder).versions(NEW)) == 2
    as_before(folder, database_url, 10)
    disk.clear()
    done = scrapy(folder, database_url, "db", "clean", "--older", "365d", "--json").json
    assert (done["files_rewritten"], done["records"]) == (1, 3)
    archive = as_before(folder, database_url, 10)
    assert (len(archive.versions(NEW)), len(archive.versions(f"{NEW}stays"))) == (1, 1)
    assert (
        "nothing to clean" in scrapy(folder, database_url, "db", "clean", "--older", "365d").stdout
    )


@pytest.mark.proof
def test_import_and_repair_can_be_done_again(
    disk: SmallDisk, folder: Path, database_url: str, tmp_path: Path
) -> None:
    write(tmp_path / "foreign", [(exchange(n, PAGE, url=f"{NEW}{n}"), None) for n in range(5)])
    files = [str(path) for path in Archive(tmp_path / "foreign").closed_files()]
    disk.fill()
    refused(scrapy(folder, database_url, "warc", "import", *files, code=1))
    disk.clear()
    as_before(folder, database_url, 20)
    assert "5 exchanges added" in scrapy(folder, database_url, "warc", "import", *files).stdout
    path = Archive(disk.folder).closed_files()[-1]
    left = path.rename(path.with_name(path.name + ".open"))
    disk.fill()
    refused(scrapy(folder, database_url, "warc", "repair", code=1))
    assert left.exists(), "as it was"
    disk.clear()
    scrapy(folder, database_url, "warc", "repair")
    assert (
        "0 exchanges added, 5 there already"
        in scrapy(folder, database_url, "warc", "import", *files).stdout
    )
    as_before(folder, database_url, 25)


def test_an_import_that_was_stopped_in_the_middle_adds_nothing_twice(
    disk: SmallDisk, folder: Path, database_url: str
) -> None:
    """The file that it had begun stays open, and is closed by the next one."""
    foreign = folder.parent / "more"
    write(foreign, [(exchange(n, PAGE, url=f"{NEW}{n}"), None) for n in range(5)])
    files = Archive(foreign).closed_files()
    import_files(files, disk.folder, print)
    path = Archive(disk.folder).closed_files()[-1]
    path.rename(path.with_name(path.name + ".open"))
    said = scrapy(folder, database_url, "warc", "import", *map(str, files)).stdout
    assert "0 exchanges added, 5 there already" in said and "5 URLs not known before" in said


def test_closing_and_merging_wait_for_room(disk: SmallDisk) -> None:
    """The file is too big and has to be closed, its index has no room; and the common index as it
    was still counts.
    """
    writer = WarcWriter(disk.folder, "x", "w", {}, WriterOptions(max_bytes=200_000))
    receipts = [writer.put(exchange(n)) for n in range(20)]
    writer.flush().result(10)
    disk.fill()
    with pytest.raises(ArchiveError, match=FULL):
        writer.rotate_file().result(10)
    with pytest.raises(ArchiveError, match=FULL):
        writer.rotate_file().result(10)
    assert len(list(disk.folder.glob("*.open"))) == 1 and not list(disk.folder.glob("*.part"))
    disk.clear()
    writer.rotate_file().result(10)
    merge_indexes(disk.folder)
    receipts += [writer.put(exchange(n)) for n in range(20, 40)]
    writer.close()
    disk.fill()
    with pytest.raises(OSError, match=FULL):
        merge_indexes(disk.folder)
    archive = Archive(disk.folder)
    assert [len(archive.versions(exchange(n).url)) for n in range(40)] == [1] * 40
    disk.clear()
    merge_indexes(disk.folder)
    assert (
        len(list(archive.iter_entries()))
        == len({receipt.record_location for receipt in receipts})
        == 40
    )
    assert not [str(problem) for path in archive.closed_files() for problem in check_file(path)]


def test_a_crawl_whose_archive_has_no_folder_does_not_start(
    database_url: str, tmp_path: Path
) -> None:
    """Such as a link to a disk that is not there."""
    (tmp_path / "warc").symlink_to(tmp_path / "not mounted" / "warc")
    result = run_crawl(
        ["site", "-a", "seeds=http://127.0.0.1:9/"], {"DATABASE_URL": database_url}, tmp_path
    )
    said = [
        line
        for line in (result.stderr + result.log).splitlines()
        if "The archive can't be used: Not a directory" in line
    ]
    assert result.code == 1 and said, result.stderr
    assert "Traceback" not in result.stderr
