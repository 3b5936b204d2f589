"""Everything that a crawl leaves behind is for its user alone, but for what he asked for."""

from __future__ import annotations

import os
from pathlib import Path

from crawlproj.demo import DemoServer, FrozenClock
from tests.support.crawling import run_command, run_crawl
from tests.support.webs import demo_settings


def open_paths(folder: Path, others: int) -> list[str]:
    """What others have these rights to, among all that lies in a folder."""
    paths = [folder, *folder.rglob("*")]
    found = [path for path in paths if not path.is_symlink() and path.lstat().st_mode & others]
    return [str(path.relative_to(folder)) for path in found if not _is_postgres(path, folder)]


def _is_postgres(path: Path, folder: Path) -> bool:
    """Postgres looks after its own files, in a folder that is closed to all others."""
    return (folder / "pg") in path.parents


def test_a_crawl_leaves_nothing_that_others_can_read(tmp_path: Path) -> None:
    before = os.umask(0o022)
    folder = tmp_path / "crawl"
    items = tmp_path / "items.jsonl"
    try:
        with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
            settings = {**demo_settings(demo, ""), "CLOSESPIDER_PAGECOUNT": 3}
            words = ["site", "-a", f"seeds={demo.url('one', '/')}", "-o", str(items)]
            first = run_crawl(words, settings, folder)
            assert first.code == 0, first.stderr
            assert {"log", "pg", "pg.lock", "pg.turn", "warc"} <= {
                path.name for path in folder.iterdir()
            }
            assert open_paths(folder, 0o077) == []
            assert items.stat().st_mode & 0o777 == 0o644, "what was asked for is as usual"

            for path in [folder, *folder.glob("[!p]*"), *folder.glob("[!p]*/*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)  # as earlier versions made it
            for name in ("pg.lock", "pg.turn"):
                (folder / name).chmod(0o644)
            status = run_command(["status"], folder, settings)
            assert status.code == 0, status.stderr
            assert open_paths(folder, 0o077) == []
    finally:
        os.umask(before)
