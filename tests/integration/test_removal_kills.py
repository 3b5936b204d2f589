"""scrapy db clean and scrapy forget, killed at any step, with and without a loss of power: the next
run makes it good.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.foreign.importer import import_files
from crawlproj.archive.records import compute_digest
from crawlproj.archive.recovery import orphan_indexes
from crawlproj.archive.writer import WriterOptions
from crawlproj.database.connection import Database
from crawlproj.frontier.opening import open_frontier
from crawlproj.upkeep import takedown
from crawlproj.upkeep.imported_history import import_history
from crawlproj.upkeep.warc_rewrite import WarcRewriter
from tests.integration.test_archive_crawl import VERSIONS, answers, readable, sound
from tests.integration.test_archive_durability import wait_for
from tests.integration.test_forget import all_is_well, ask, scrapy
from tests.integration.test_power_loss import unreadable
from tests.integration.test_robots import Site
from tests.integration.test_robots import site as site
from tests.support.archiving import PAGE, exchange, write
from tests.support.crawling import Crawl, start_crawl
from tests.support.power import Disk
from tests.support.steps import Steps, config_of, long_ago
from tests.support.webs import rows

pytestmark = [pytest.mark.proof, pytest.mark.kills]

PAGES = 12
STEPS = int(os.environ.get("REMOVAL_STEPS") or 16)
Visit = tuple[Exchange, Original | None]
VERSION_ROWS = (
    "select u.canonical, v.at from crawlproj.page_version v join crawlproj.url u on "
    "u.id = v.url order by 1, 2"
)
RULES = (
    "select what, ended is not null, urls, versions, records from crawlproj.forgotten order by 1"
)


def history() -> list[Visit]:
    """Each page was another one long ago, was found unchanged some weeks later, changed, and has
    not changed since.
    """
    found: list[Visit] = []
    for age in (900, 800, 30, 1):
        for number in range(PAGES):
            at = long_ago(age) + timedelta(seconds=number)
            body = PAGE + b"%d %d" % (number, age > 365)
            whole = exchange(number, body, at=at)
            same = age in (800, 1)
            first = (
                next(each for each, _ in found if each.url == whole.url and each.body == body)
                if same
                else whole
            )
            found.append(
                (whole, Original(first.url, first.at, compute_digest(body)) if same else None)
            )
    return found


@pytest.fixture
def filled(new_database: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """The name of a database that knows an archive of some files in `tmp_path`/first; nobody is
    connected to it.
    """
    write(tmp_path / "foreign", history())
    dsn = new_database("migrated")
    folder = tmp_path / "first"
    config = config_of(folder, dsn)
    db = Database(dsn)
    taken = import_files(
        Archive(tmp_path / "foreign").closed_files(),
        folder / "warc",
        print,
        WriterOptions(max_bytes=4_000),
    )
    import_history(
        db,
        open_frontier(db, config, "site", make=True),
        config,
        Archive(folder / "warc"),
        taken.keys,
    )
    db.close()
    assert len(Archive(folder / "warc").closed_files()) > 6
    yield dsn.partition("///")[2].partition("?")[0]


def result(folder: Path, dsn: str) -> object:
    """What is there afterwards; all of it is sound."""
    archive = sound(folder / "warc")
    assert not unreadable(dsn, archive) - {
        url for url, row in rows(dsn).items() if row.why == "forgotten"
    }
    assert readable(dsn, archive, VERSIONS) >= PAGES - 1
    assert not orphan_indexes(folder / "warc") and not list((folder / "warc").glob("*.part"))
    captures = sorted(
        (capture.url, capture.at, sha256(capture.content).hexdigest())
        for capture in archive.captures()
    )
    listed = sorted((entry.url, entry.timestamp) for entry in archive.iter_entries())
    return captures, listed, ask(dsn, VERSION_ROWS), ask(dsn, RULES)


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
        before = len(Archive(folder / "warc").closed_files())
        made = steps.run(what, folder, dsn, 0)
        assert made > 50
        wanted = result(folder, dsn)
        assert steps.run(what, folder, dsn, 0) > 0 and (
            what != "clean" or result(folder, dsn) == wanted
        ), "once is enough"
        print(
            f"{what}: {before} files before, {len(Archive(folder / 'warc').closed_files())} after, {made} "
            "steps"
        )
        for number, step in enumerate(sorted(dice.sample(range(1, made + 1), min(STEPS, made)))):
            folder, dsn = copied(f"killed{step}")
            disk = Disk(folder / "warc", tmp_path / f"disk{step}")
            disk.settle()
            assert steps.run(what, folder, dsn, step, tmp_path / f"disk{step}") == -1
            if number % 3:
                disk.fail(dice, worst=number % 3 == 1)
            assert steps.run(what, folder, dsn, 0) > 0
            assert result(folder, dsn) == wanted, (step, number % 3)


def test_removals_are_killed_beside_a_crawl_that_runs(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """Each is killed in the middle of its work, clean and forget in turn. In the end all is as if
    none had been.
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
        "POLITENESS_DELAY": 0.05,
        "WARC_MAX_SIZE": "40KB",
        "POLITENESS_PAUSE_AFTER": 0,
    }
    killed = 0
    with start_crawl(["site", "-a", f"seeds={site.base}/"], settings, tmp_path) as running:
        for turn in range(4):
            seen = site.paths()
            for number in range(20):
                site.pages[f"/{number}"] = (
                    200,
                    {},
                    b"<p>page %d after %d</p>" % (number, seen.total()),
                )
            # The last page is never forgotten. All of them four times more: some of it is surely
            # old by then.
            wait_for(running, lambda seen=seen: (site.paths() - seen)["/19"] > 3)  # type: ignore[misc]
            words = (
                ["forget", f"{site.base}/{turn}"] if turn % 2 else ["db", "clean", "--older", "1s"]
            )
            killed += killed_at_work(words, tmp_path, settings)
        assert killed > 1
        scrapy(tmp_path, database_url, "db", "clean", "--older", "1s")
        running.stop()
        assert running.wait().code == 130
    found = answers(all_is_well(tmp_path, database_url))
    assert (
        not [path for path in ("/1", "/3") if found[site.base + path]] and found[f"{site.base}/2"]
    )
    assert ask(database_url, "select count(*), count(ended) from crawlproj.forgotten") == [(2, 2)]
    assert not orphan_indexes(tmp_path / "warc")


def test_a_file_that_is_begun_while_workers_are_called_is_searched_too(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worker does that has not heard of the rule yet."""
    url = exchange(3).url
    true = WarcRewriter._call

    def call(work: WarcRewriter) -> None:
        if not Archive(tmp_path / "warc").closed_files():
            write(tmp_path / "warc", [(exchange(number), None) for number in range(5)])
        true(work)

    monkeypatch.setattr(WarcRewriter, "_call", call)
    takedown.store_rules(database, [url], "a test", True)
    takedown.carry_out(database, config_of(tmp_path, database_url), print)
    assert set(answers(sound(tmp_path / "warc"))) == {
        exchange(number).url for number in (0, 1, 2, 4)
    }


def killed_at_work(words: list[str], folder: Path, settings: dict[str, object]) -> bool:
    """When the first successor of a file appears, or the first file goes."""
    before = {
        path.name
        for path in (folder / "warc").glob("*.warc.gz*")
        if not path.name.endswith(".open")
    }
    with Crawl(words, folder, {"DATABASE_URL": settings["DATABASE_URL"]}) as command:
        while command.process.poll() is None:
            now = {path.name for path in (folder / "warc").glob("*.warc.gz*")}
            if before - now or any("-r" in name for name in now - before):
                command.process.kill()
                return command.process.wait() != 0
            time.sleep(0.02)
    return False
