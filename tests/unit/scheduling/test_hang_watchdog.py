from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlproj.scheduling.hang_watchdog import HangWatchdog, set_hung_pages_aside
from crawlproj.scheduling.reading_file import (
    MAX_NOTE,
    PageNote,
    ReadingFile,
    has_hung,
    make_note,
    take_left_files,
    trace_path,
)

A = make_note(1, 0, 200, "http://a.test/")
B = make_note(2, 0, 200, "http://b.test/")


@pytest.fixture
def watchdog(tmp_path: Path) -> Iterator[HangWatchdog]:
    made = HangWatchdog(tmp_path, tmp_path / "log", "w:1:m", crawl="site", timeout_s=60)
    yield made
    made.close()
    assert list(tmp_path.rglob("*")) == [tmp_path / "log"]


def noted(folder: Path) -> str:
    """What a worker that comes later would read in the file of the first one."""
    [path] = folder.glob("reading-*")
    copy = folder / "copy"
    copy.mkdir(exist_ok=True)
    (copy / path.name).write_bytes(path.read_bytes())
    [left] = take_left_files(copy, "site")
    copy.rmdir()
    return left.note.url if left.note else ""


def test_a_page_is_noted_while_it_is_read_and_not_while_it_waits(
    watchdog: HangWatchdog, tmp_path: Path
) -> None:
    seen: list[tuple[str, str]] = []

    def look(who: str) -> None:
        seen.append((who, noted(tmp_path)))

    async def inner() -> None:
        look("inner")

    async def read_a() -> str:
        look("a")
        await asyncio.sleep(0)
        look("a again")
        await watchdog.note_steps(inner(), B)
        look("a after inner")
        with pytest.raises(ValueError, match="late"):
            await fails_late()
        look("a after error")
        return "read"

    async def fails_late() -> None:
        await asyncio.sleep(0)
        raise ValueError("late")

    async def read_b() -> None:
        look("b")
        try:
            await asyncio.sleep(60)
        finally:
            look("b is cancelled")

    async def run() -> None:
        a = asyncio.ensure_future(as_task(watchdog.note_steps(read_a(), A)))
        b = asyncio.ensure_future(as_task(watchdog.note_steps(read_b(), B)))
        await asyncio.sleep(0)
        look("between")
        assert await a == "read"
        b.cancel()
        with pytest.raises(asyncio.CancelledError):
            await b
        look("end")

    async def as_task(steps: object) -> object:
        return await steps  # type: ignore[misc]

    asyncio.run(run())
    a, b = "http://a.test/", "http://b.test/"
    assert dict(seen) == {
        "a": a,
        "b": b,
        "between": "",
        "a again": a,
        "inner": b,
        "a after inner": a,
        "a after error": a,
        "b is cancelled": b,
        "end": "",
    }


def hung(
    folder: Path, worker: str, note: bytes, crawl: str = "site", trace: str = "Timeout"
) -> None:
    """What a dead worker leaves."""
    file = ReadingFile(folder, worker, crawl)
    if note:
        file.write_note(note)
    data = file.path.read_bytes()
    file.close()
    file.path.write_bytes(data)
    (folder / "log").mkdir(exist_ok=True)
    trace_path(folder / "log", worker).write_text(trace)


def test_only_pages_that_hung_are_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hung(tmp_path, "h:1:hung", make_note(7, 3, 200, "http://a.test/hung"))
    hung(tmp_path, "h:2:killed", make_note(8, 0, 200, "http://a.test/killed"), trace="")
    hung(tmp_path, "h:3:elsewhere", b"")
    hung(tmp_path, "h:4:robots", make_note(0, 0, 200, "http://a.test/robots.txt"))
    hung(tmp_path, "h:5:late", make_note(9, 0, 200, "http://a.test/late"))
    hung(tmp_path, "h:6:other", make_note(7, 0, 200, "http://a.test/other"), crawl="other")
    (tmp_path / "reading-h_7_new").write_bytes(b"")
    living = ReadingFile(tmp_path, "h:8:alive", "site")
    living.write_note(A)
    asked: list[PageNote] = []

    def set_aside(note: PageNote) -> bool:
        asked.append(note)
        return note.id != 9

    def run() -> int:
        return set_hung_pages_aside(tmp_path, tmp_path / "log", "site", set_aside=set_aside)

    assert (run(), run()) == (1, 0)
    assert asked == [
        PageNote(7, 3, 200, "http://a.test/hung"),
        PageNote(9, 0, 200, "http://a.test/late"),
    ]
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 4
    assert "Set aside (unread: too slow)" in texts[0] and texts[0].endswith("http://a.test/hung")
    assert "read no page" in texts[1]
    left = sorted(path.name for path in tmp_path.glob("reading-*"))
    assert left == ["reading-h_6_other", "reading-h_8_alive"]
    assert not trace_path(tmp_path / "log", "h:2:killed").exists()
    assert has_hung(tmp_path / "log", 1)
    assert not has_hung(tmp_path / "log", 2)
    living.close()


def test_an_error_of_the_database_leaves_the_file_for_the_next(tmp_path: Path) -> None:
    hung(tmp_path, "h:1:hung", A)

    def fails(note: PageNote) -> bool:
        raise RuntimeError("away")

    with pytest.raises(RuntimeError):
        set_hung_pages_aside(tmp_path, tmp_path / "log", "site", set_aside=fails)
    done = set_hung_pages_aside(tmp_path, tmp_path / "log", "site", set_aside=lambda note: True)
    assert done == 1


def test_a_url_of_any_length_and_letters_is_noted(tmp_path: Path) -> None:
    for url in ("http://a.test/" + "é" * MAX_NOTE, "http://a.test/\udcff\n\0 x"):
        hung(tmp_path, "h:1:hung", make_note(-5, 1, 200, url))
        [left] = take_left_files(tmp_path, "site")
        assert left.note is not None
        assert left.note.id == -5
        assert left.note.url.startswith("http://a.test/")


STOPPED = """
    import asyncio, sys
    from pathlib import Path
    from crawlproj.scheduling.hang_watchdog import HangWatchdog
    from crawlproj.scheduling.reading_file import make_note

    async def read():
        print("reads", flush=True)
        for _ in range(8):
            await asyncio.sleep(0.05)

    async def main():
        folder = Path(sys.argv[1])
        watchdog = HangWatchdog(folder, folder, "w", crawl="c", timeout_s=1)
        await watchdog.note_steps(read(), make_note(1, 0, 200, "x"))
        watchdog.close()
        print("done", flush=True)

    asyncio.run(main())
"""


def test_a_worker_that_is_stopped_with_ctrl_z_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "done\n"
        assert process.wait() == 0
