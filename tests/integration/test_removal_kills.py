"""scrapy db clean and scrapy forget, killed at any step, with and without a loss of power: the next run makes it good."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.intake import take
from crawlproj.archive.records import digest
from crawlproj.archive.recovery import orphans
from crawlproj.archive.writer import Shape
from crawlproj.console import frontier_of
from crawlproj.db import Database
from crawlproj.enrolment import enrol
from tests.archiving import PAGE, exchange, write
from tests.integration.test_archive_crawl import VERSIONS, readable, sound
from tests.integration.test_forget import ask
from tests.integration.test_power_loss import unreadable
from tests.power import Disk
from tests.steps import Steps, config_of, long_ago
from tests.webs import rows

PAGES, STEPS = 12, int(os.environ.get("REMOVAL_STEPS") or 16)
Visit = tuple[Exchange, Original | None]
VERSION_ROWS = "select u.canonical, v.at from crawlproj.page_version v join crawlproj.url u on u.id = v.url order by 1, 2"
RULES = "select what, ended is not null, urls, versions, records from crawlproj.forgotten order by 1"


def history() -> list[Visit]:
    """Each page was another one long ago, was found unchanged some weeks later, changed, and has not changed since."""
    found: list[Visit] = []
    for age in (900, 800, 30, 1):
        for number in range(PAGES):
            at = long_ago(age) + timedelta(seconds=number)
            body = PAGE + b"%d %d" % (number, age > 365)
            whole = exchange(number, body, at=at)
            same = age in (800, 1)
            first = next(each for each, _ in found if each.url == whole.url and each.body == body) if same else whole
            found.append((whole, Original(first.url, first.at, digest(body)) if same else None))
    return found


@pytest.fixture
def filled(new_database: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """The name of a database that knows an archive of some files in `tmp_path`/first; nobody is connected to it."""
    write(tmp_path / "foreign", history())
    dsn, folder = new_database("migrated"), tmp_path / "first"
    config, db = config_of(folder, dsn), Database(dsn)
    taken = take(Archive(tmp_path / "foreign").files(), folder / "warc", print, Shape(max_bytes=4_000))
    enrol(db, frontier_of(db, config, "site", make=True), config, Archive(folder / "warc"), taken.keys)
    db.close()
    assert len(Archive(folder / "warc").files()) > 6
    yield dsn.partition("///")[2].partition("?")[0]


def result(folder: Path, dsn: str) -> object:
    """What is there afterwards; all of it is sound."""
    archive = sound(folder / "warc")
    assert not unreadable(dsn, archive) - {url for url, row in rows(dsn).items() if row.why == "forgotten"}
    assert readable(dsn, archive, VERSIONS) >= PAGES - 1
    assert not orphans(folder / "warc") and not list((folder / "warc").glob("*.part"))
    captures = sorted((capture.url, capture.at, sha256(capture.content).hexdigest()) for capture in archive.captures())
    listed = sorted((entry.url, entry.timestamp) for entry in archive.entries())
    return captures, listed, ask(dsn, VERSION_ROWS), ask(dsn, RULES)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["clean", exchange(3).url], ids=["clean", "forget"])
def test_a_kill_at_any_step_is_made_good(
    what: str, filled: str, new_database: Callable[[str], str], tmp_path: Path
) -> None:  # fmt: skip
    dice = random.Random(7)
    with Steps() as steps:

        def copied(name: str) -> tuple[Path, str]:
            shutil.copytree(tmp_path / "first", tmp_path / name)
            return tmp_path / name, new_database(filled)

        folder, dsn = copied("whole")
        before = len(Archive(folder / "warc").files())
        made = steps.run(what, folder, dsn, 0)
        assert made > 50
        wanted = result(folder, dsn)
        assert steps.run(what, folder, dsn, 0) > 0 and (what != "clean" or result(folder, dsn) == wanted), "once is enough"
        print(f"{what}: {before} files before, {len(Archive(folder / 'warc').files())} after, {made} steps")
        for number, step in enumerate(sorted(dice.sample(range(1, made + 1), min(STEPS, made)))):
            folder, dsn = copied(f"killed{step}")
            disk = Disk(folder / "warc", tmp_path / f"disk{step}")
            disk.settle()
            assert steps.run(what, folder, dsn, step, tmp_path / f"disk{step}") == -1
            if number % 3:
                disk.fail(dice, worst=number % 3 == 1)
            assert steps.run(what, folder, dsn, 0) > 0
            assert result(folder, dsn) == wanted, (step, number % 3)
