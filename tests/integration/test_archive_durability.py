"""The archive's promise: whatever is killed or full, a URL that counts as done can be read back."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.demo import DemoServer
from tests.integration.test_archive_crawl import answers, readable, sound
from tests.integration.test_kills import HOSTS as BIG
from tests.integration.test_kills import (
    PAGES_PER_HOST,
    SETTINGS,
    chance,
    moments,
    nothing_is_lost,
    postgres,
    web,
)
from tests.support.crawling import Crawl, start_crawl
from tests.support.full import small_disk
from tests.support.kills import Kill, OwnPostgres, Scene
from tests.support.webs import asked, demo_settings, roots, rows

pytestmark = [pytest.mark.proof, pytest.mark.kills]

__all__ = ["postgres"]
HOSTS = 24


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    yield from web(HOSTS)


def done_is_archived(database_url: str, archive: Archive) -> None:
    """Pages by their places, everything else by its URL."""
    found = answers(archive)
    done = {url for url, row in rows(database_url).items() if row.visits and row.status}
    assert len(done) > HOSTS
    assert not {url for url in done if not found[url]}
    assert readable(database_url, archive) > HOSTS


def mended(folder: Path) -> list[int]:
    """Bytes that were cut off each file that a kill had left open, as workers say when they start;
    mostly 0.
    """
    texts = [path.read_text() for path in folder.glob("worker*/log/*.log")]
    found = [
        each
        for text in texts
        for each in re.findall(
            r"now closed: \S* \([0-9]+ records(?:, ([0-9]+) bytes cut off)?\)", text
        )
    ]
    return [int(each or 0) for each in found]


@pytest.mark.parametrize(
    ("how", "times", "hosts", "workers"), [("kill", 40, BIG, 3), ("term", 3, HOSTS, 2)]
)
def test_whatever_is_done_when_workers_end_can_be_read_back(
    how: str, times: int, hosts: int, workers: int, tmp_path: Path, postgres: OwnPostgres
) -> None:
    dice: random.Random = chance()
    plan = [Kill(pages, "worker", how) for pages in moments(times, hosts * PAGES_PER_HOST, dice)]
    with contextmanager(web)(hosts) as demo:
        with SharedFolder(
            demo, tmp_path, workers, {**SETTINGS, "WARC_MAX_SIZE": "200KB"}, postgres
        ) as scene:
            scene.play(plan, dice)
            evidence = scene.finish()
        assert len(evidence.done) == times
        nothing_is_lost(demo, evidence)
        archive = sound(tmp_path / "shared" / "warc")
        done_is_archived(postgres.direct, archive)
        cut = mended(tmp_path)
        rests = [path for path in archive.closed_files() if "-rest" in path.name]
        kept = f"{answers(archive).total()} exchanges in {len(archive.closed_files())} files"
        print(
            f"{how}: {len(evidence.records)} requests, {kept}; {len(cut)} left open; cut: "
            f"{sum(map(bool, cut))}"
        )
        assert len(cut) <= times and not rests, (
            "at most one file, and one record at its end, per kill"
        )
        if how == "term":
            assert answers(archive) == asked(demo)
            assert not cut
        else:
            assert len(cut) > times // 2, "most victims were in the middle of a file"


class SharedFolder(Scene):
    """All workers write to one folder of files, but have a database that is not in it. Victims are
    in the middle of a file.
    """

    def random_worker(self, dice: random.Random) -> int:
        self.wait_for(lambda: bool(self.writing()))
        return dice.choice(self.writing())

    def writing(self) -> list[int]:
        names = [path.name for path in (self.folder / "shared" / "warc").glob("*.open")]
        return [
            number
            for number, crawl in sorted(self.started.items())
            if any(f"_{crawl.process.pid}_" in name for name in names)
        ]

    def start(self, number: int, **more: object) -> None:
        folder = self.folder / f"worker{number}"
        folder.mkdir(exist_ok=True)
        (self.folder / "shared" / "warc").mkdir(parents=True, exist_ok=True)
        if not (folder / "warc").exists():
            (folder / "warc").symlink_to(self.folder / "shared" / "warc")
        super().start(number, **more)


@pytest.mark.parametrize("again", [True, False], ids=["room-again", "for-good"])
def test_a_full_disk_of_the_archive_stops_the_crawl_and_nothing_is_lost(
    again: bool, demo: DemoServer, database_url: str, tmp_path: Path
) -> None:
    settings = demo_settings(
        demo, database_url, **{**SETTINGS, "DATABASE_PATIENCE": 60 if again else 3}
    )
    with small_disk(tmp_path / "disk", "8m") as disk:
        (tmp_path / "crawl").mkdir()
        (tmp_path / "crawl" / "warc").symlink_to(disk.folder)
        with start_crawl(
            ["site", "-a", "seeds=" + ",".join(roots(demo))], settings, tmp_path / "crawl"
        ) as crawl:
            wait_for(crawl, lambda: len(demo.log.records()) > 60)
            disk.fill()
            wait_for(crawl, lambda: "because the archive is away" in log_of(tmp_path / "crawl"))
            time.sleep(1)
            stalled = len(demo.log.records())
            if again:
                time.sleep(1)
                assert len(demo.log.records()) - stalled <= 1, "nothing more is fetched"
                disk.clear()
            result = crawl.wait(120)
        disk.clear()
        text = log_of(tmp_path / "crawl")
        assert text.count("because the archive is away") == 1 and "No space left on device" in text
        if again:
            assert result.code == 0, result.stderr
            assert text.count("The archive answers again") == 1
            archive = sound(disk.folder)
            assert answers(archive) == asked(demo), "nothing was fetched twice, nothing was lost"
        else:
            assert (result.code, result.stats["finish_reason"]) == (1, "archive_lost")
            with start_crawl(
                ["site", "-a", "seeds=" + ",".join(roots(demo))], settings, tmp_path / "crawl"
            ) as crawl:
                assert crawl.wait(120).code == 0
            archive = sound(disk.folder)
        done_is_archived(database_url, archive)


def wait_for(crawl: Crawl, what) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline and crawl.process.poll() is None, crawl.wait(1)
        time.sleep(0.05)


def log_of(folder: Path) -> str:
    return (
        "\n".join(path.read_text() for path in (folder / "log").glob("*.log"))
        if (folder / "log").is_dir()
        else ""
    )
