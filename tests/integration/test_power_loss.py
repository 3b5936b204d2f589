"""A loss of power: all workers are gone at once, with whatever they had not synced. The database
has all that was committed.
"""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file
from crawlproj.archive.recovery import repair_indexes, repair_open_files
from crawlproj.demo import DemoServer
from crawlproj.demo.model import DemoRequest
from tests.integration.test_archive_crawl import PLACES, VERSIONS, answers, readable, sound
from tests.integration.test_archive_durability import SharedFolder, wait_for
from tests.integration.test_forget import ask
from tests.integration.test_kills import PAGES_PER_HOST, chance, postgres, web
from tests.support.crawling import start_crawl
from tests.support.kills import OwnPostgres
from tests.support.power import BREAK, Disk, Loss, untimely
from tests.support.webs import demo_settings, in_state, roots, rows

pytestmark = [pytest.mark.proof, pytest.mark.kills]

__all__ = ["postgres"]
HOSTS = 16
LOSSES = int(os.environ.get("POWER_LOSSES") or 5)
SETTINGS: dict[str, object] = {
    "WARC_MAX_SIZE": "60KB",
    "POWER_SYNC_S": 0.1,
    "POLITENESS_DELAY": 0.1,
    "POLITENESS_SERVER_DELAY": 0,
    "FRONTIER_LEASE": "8s",
    "POLITENESS_HOSTS_PER_SERVER": 5,
    "DOWNLOAD_TIMEOUT": 5,
    "CRAWL_PATIENCE": 20,
    "FRONTIER_RETRIES": 20,
    "REVISIT_INTERVAL": "1h",
    "LOG_REQUESTS": False,
    "PANEL_INTERVAL": 60,
}


class Mains(SharedFolder):
    """Workers on one socket."""

    disk: Disk

    def lose_power(self, dice: random.Random, with_database: bool) -> list[Loss]:
        """In the middle of something: some of what was written is not on disk yet."""
        self.wait_for(lambda: self.disk.unsynced() > 0)
        for crawl in self.started.values():
            crawl.process.kill()
        for crawl in self.started.values():
            crawl.process.wait()
        if with_database and self.postgres:
            self.postgres.kill()
        losses = self.disk.fail(dice)
        if with_database and self.postgres:
            self.postgres.start()
        for number in sorted(self.started):
            self.start(number)
        return losses


def unreadable(database_url: str, archive: Archive) -> set[str]:
    """What counts as done and is not in the archive: pages by their places, everything else by its
    URL.
    """
    found = answers(archive)
    there = places(archive)
    missing = {
        url
        for url, row in rows(database_url).items()
        if row.visits and row.status and not found[url]
    }
    for row in [*ask(database_url, PLACES), *ask(database_url, VERSIONS)]:
        url = str(row[0])
        file = row[2]
        offset = row[3]
        length = row[4]
        record_id = row[6]
        if file is None or (str(file), offset, length, f"<urn:uuid:{record_id}>") not in there:
            missing.add(url)
    return missing


def places(archive: Archive) -> set[tuple[str, int, int, str]]:
    return {
        (path.name, record.offset, record.length, record.id)
        for path, record in archive.iter_records()
    }


def as_sent(demo: DemoServer, archive: Archive, database_url: str) -> int:
    """Every page that counts as done is in the archive with the very bytes that the web has for it;
    how many there are.
    """
    done = [url for url, row in rows(database_url).items() if row.visits and row.status == 200]
    for url in done:
        parts = urlsplit(url)
        wanted = DemoRequest(
            parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else "")
        )
        found = archive.get(url)
        assert found is not None, url
        assert found.content == demo.web.response_to(wanted, demo.now()).body, url
    return len(done)


def test_what_is_done_survives_many_losses_of_power(tmp_path: Path, postgres: OwnPostgres) -> None:
    dice = chance()
    losses = list[Loss]()
    folder = tmp_path / "shared" / "warc"
    folder.mkdir(parents=True)
    disk = Disk(folder, tmp_path / "disk")
    disk.settle()
    with contextmanager(web)(HOSTS) as demo:
        with Mains(demo, tmp_path, 2, {**SETTINGS, **disk.settings}, postgres) as scene:
            scene.disk = disk
            for number in range(LOSSES):
                seen = (number + 1) * HOSTS * PAGES_PER_HOST // (LOSSES + 2)
                scene.wait_for(lambda seen=seen: scene.seen() >= seen)  # type: ignore[misc]
                losses += scene.lose_power(dice, with_database=number % 3 == 2)
            evidence = scene.finish()
        archive = sound(folder)
        assert set(evidence.codes.values()) == {0}, evidence.logs
        assert in_state(evidence.rows, "waiting") == set(
            demo.web.truth_at(demo.now(), seeds=roots(demo)).pages
        )
        assert not unreadable(postgres.direct, archive)
        assert (
            readable(postgres.direct, archive) > HOSTS
            and readable(postgres.direct, archive, VERSIONS) > HOSTS
        )
        assert as_sent(demo, archive, postgres.direct) > HOSTS * PAGES_PER_HOST // 2
    assert not untimely(disk.notes(), folder)
    told = [(loss.how, loss.touched) for loss in losses if loss.name.endswith(".open")]
    print(f"{answers(archive).total()} exchanges in {len(archive.closed_files())} files; {told}")
    assert {name for loss in losses for name in loss.untouched} <= {
        record.id for _, record in archive.iter_records()
    }
    assert len(told) >= LOSSES and sum(touched for _, touched in told) > 0, (
        "some of what was written was lost"
    )


@pytest.mark.parametrize("broken", sorted(BREAK))
def test_only_what_is_synced_before_the_commit_survives_the_worst(
    broken: str, database_url: str, tmp_path: Path
) -> None:
    """The disk keeps nothing that was not synced. If the order of things is wrong, this shows it:
    it is broken on purpose.
    """
    folder = tmp_path / "crawl" / "warc"
    disk = Disk(folder, tmp_path / "disk")
    with contextmanager(web)(HOSTS) as demo:
        settings = demo_settings(
            demo, database_url, **{**SETTINGS, **disk.settings, "POWER_BROKEN": broken}
        )
        with start_crawl(
            ["site", "-a", "seeds=" + ",".join(roots(demo))], settings, tmp_path / "crawl"
        ) as crawl:
            wait_for(crawl, lambda: sum(len(note.get("commit", ())) for note in disk.notes()) > 60)
            wait_for(
                crawl, lambda: bool(disk.unsynced()) and disk.notes()[-1].get("committed", 0) > 0
            )
            crawl.process.kill()
            crawl.process.wait()
    wrong = untimely(disk.notes(), folder)
    disk.fail(random.Random(1), worst=True)
    repair_open_files(folder)
    repair_indexes(folder)
    archive = Archive(folder)
    assert broken or not [
        str(problem) for path in archive.closed_files() for problem in check_file(path)
    ]
    assert bool(wrong) is bool(broken), wrong
    assert bool(unreadable(database_url, archive)) is bool(broken)
    assert rows(database_url) and (broken or answers(archive).total() > 40)
