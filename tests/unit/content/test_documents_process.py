"""The process that reads documents: it is watched, replaced, and may do nothing but read and
answer.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from crawlproj.content.documents import reader_process
from crawlproj.content.documents.budget import DocumentBudget
from crawlproj.content.documents.reader_process import DocumentReader
from crawlproj.content.documents.reply import DocumentReadError
from tests.support import documents as make

ROOT = Path(__file__).resolve().parents[3]
PAGE = "http://example.org/"
TERMS = DocumentBudget(timeout_s=60, memory=512_000_000, max_bytes=10_000_000)
SHORT = DocumentBudget(timeout_s=1, memory=512_000_000, max_bytes=10_000_000)
START = (
    "import os, sys, struct; write = lambda text: os.write(1, struct.pack('<Q', len(text)) + "
    "text); write(b'{}'); "
)
"""How a stand-in for the process begins: it says that it is ready."""


def with_desk(
    do: Callable[[DocumentReader], Awaitable[None]],
    terms: DocumentBudget = TERMS,
    per_process: int = 200,
) -> DocumentReader:
    """Run it on the kind of loop that crawls run on."""

    async def run() -> DocumentReader:
        desk = DocumentReader(terms, per_process)
        try:
            await do(desk)
        finally:
            await desk.close()
        return desk

    return uvloop.run(run())


async def reason(desk: DocumentReader, body: bytes, server: int = 0) -> str:
    try:
        await desk.read(body, PAGE, server)
    except DocumentReadError as error:
        return str(error)
    return "read"


def pid(desk: DocumentReader) -> int:
    assert desk._process is not None
    return desk._process.pid


def is_gone(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    assert what()


def test_all_kinds_are_read_by_one_process() -> None:
    async def do(desk: DocumentReader) -> None:
        for name, body in make.GOOD.items():
            assert (await desk.read(body, PAGE)).text, name

    assert with_desk(do).processes_started == 1


def test_the_loop_goes_on_meanwhile() -> None:
    async def do(desk: DocumentReader) -> None:
        reading = asyncio.create_task(desk.read(make.long_pdf(1500), PAGE))
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        assert len((await reading).blocks) == 1500 and turns > 50

    with_desk(do)


def test_a_process_is_replaced_after_some_documents() -> None:
    async def do(desk: DocumentReader) -> None:
        for _ in range(5):
            assert await reason(desk, make.GOOD["rtf"]) == "read"

    assert with_desk(do, per_process=2).processes_started == 3


def test_a_process_that_hangs_is_killed_and_the_next_document_is_read() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, make.GOOD["rtf"]) == "read"
        os.kill(first := pid(desk), signal.SIGSTOP)
        assert await reason(desk, make.GOOD["rtf"]) == "timeout"
        wait_for(lambda: is_gone(first))
        assert await reason(desk, make.GOOD["rtf"]) == "read"

    assert with_desk(do, SHORT).processes_started == 2


def test_a_process_that_is_killed_while_it_reads_is_replaced() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, make.GOOD["rtf"]) == "read"
        os.kill(pid(desk), signal.SIGSTOP)
        reading = asyncio.create_task(reason(desk, make.GOOD["rtf"]))
        await asyncio.sleep(0.1)
        os.kill(pid(desk), signal.SIGKILL)
        assert await reading == "crashed"
        assert await reason(desk, make.GOOD["rtf"]) == "read"

    with_desk(do)


def test_a_process_that_died_between_two_documents_is_replaced() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, make.GOOD["rtf"]) == "read"
        os.kill(number := pid(desk), signal.SIGKILL)
        wait_for(lambda: is_gone(number))
        await asyncio.sleep(0.1)
        assert await reason(desk, make.GOOD["rtf"]) in ("read", "crashed")
        assert await reason(desk, make.GOOD["rtf"]) == "read"

    with_desk(do)


def test_a_document_that_needs_too_much_memory_is_given_up() -> None:
    bomb = make.word(f"<w:p><w:r><w:t>{'ab ' * 50_000_000}</w:t></w:r></w:p>")

    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, bomb) in ("memory", "crashed")
        assert await reason(desk, make.GOOD["docx"]) == "read"

    assert len(bomb) < 1_000_000
    with_desk(do, DocumentBudget(timeout_s=60, memory=200_000_000, max_bytes=10_000_000))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("os._exit(3)", "crashed"),
        ("write(os.urandom(1000)); sys.stdin.read()", "garbage"),
        ("write(b'[' * 1_000_000); sys.stdin.read()", "garbage"),
        ("[os.write(1, bytes([255]) * 65536) for _ in iter(int, 1)]", "garbage"),
        ("sys.stdin.read()", "timeout"),
    ],
)
def test_whatever_the_process_does_the_document_ends(
    code: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a bad document had taken it over."""
    monkeypatch.setattr(reader_process, "_CODE", START + code)

    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, b"{\\rtf1 x}") == expected
        assert desk._process is None

    with_desk(do, SHORT)


def test_a_process_that_does_not_start_ends_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "_CODE", "raise SystemExit(1)")

    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, b"{\\rtf1 x}") == "crashed"

    with_desk(do)


def test_a_server_that_keeps_hanging_the_reader_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_process, "_CODE", START + "os._exit(3)")

    async def do(desk: DocumentReader) -> None:
        assert [await reason(desk, b"{\\rtf1 x}", 7) for _ in range(5)] == ["crashed"] * 3 + [
            "given_up"
        ] * 2
        assert await reason(desk, b"{\\rtf1 x}", 8) == "crashed"

    with_desk(do)


def test_a_server_is_not_blamed_for_a_process_that_others_may_have_spoilt() -> None:
    async def do(desk: DocumentReader) -> None:
        for _ in range(4):
            assert await reason(desk, make.GOOD["rtf"], 7) == "read"
            os.kill(pid(desk), signal.SIGSTOP)
            reading = asyncio.create_task(reason(desk, make.GOOD["rtf"], 8))
            await asyncio.sleep(0.1)
            os.kill(pid(desk), signal.SIGKILL)
            assert await reading == "crashed"
        assert await reason(desk, make.GOOD["rtf"], 8) == "read"

    with_desk(do)


def test_a_document_that_is_too_big_starts_nothing() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, b"{\\rtf1" + bytes(10_000_000)) == "too_big"

    assert with_desk(do).processes_started == 0


def test_a_stop_ends_what_is_read_and_what_waits() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, make.GOOD["rtf"]) == "read"
        os.kill(number := pid(desk), signal.SIGSTOP)
        readings = [asyncio.create_task(reason(desk, make.GOOD["rtf"])) for _ in range(3)]
        await asyncio.sleep(0.1)
        desk.stop()
        assert await asyncio.gather(*readings) == ["shutdown"] * 3
        wait_for(lambda: is_gone(number))

    with_desk(do)


def test_the_process_has_no_environment_and_a_low_priority() -> None:
    async def do(desk: DocumentReader) -> None:
        assert await reason(desk, make.GOOD["rtf"]) == "read"
        environ = Path(f"/proc/{pid(desk)}/environ").read_text()
        assert {name.partition("=")[0] for name in environ.split("\0") if name} <= {
            "LD_LIBRARY_PATH"
        }
        assert os.getpriority(os.PRIO_PROCESS, pid(desk)) >= min(
            19, os.getpriority(os.PRIO_PROCESS, 0) + 10
        )

    with_desk(do)


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_no_files_no_network_no_processes() -> None:
    code = """
import os, socket
from crawlproj.content.documents import sandbox
sandbox.limit_resources(500_000_000, 100)
locked = sandbox.restrict_syscalls()
def tried(name, call):
    try:
        call()
        os.write(1, f"{name} ".encode())
    except OSError:
        pass
tried("open", lambda: os.open("/etc/passwd", os.O_RDONLY))
tried("create", lambda: os.open("/tmp/documents-must-not-write", os.O_CREAT | os.O_WRONLY))
tried("socket", socket.socket)
tried("fork", lambda: os.fork() or os._exit(0))
tried("exec", lambda: os.execv("/bin/true", ["true"]))
tried("kill", lambda: os.kill(os.getppid(), 0))
os.write(1, b"locked" if locked else b"open")
"""
    if not Path("/proc/sys/kernel/seccomp").exists() or platform.machine() not in (
        "x86_64",
        "aarch64",
    ):
        pytest.skip("no filter for calls on this machine")
    assert run_python(code) == "locked"


def test_a_crawl_without_documents_loads_nothing_of_it() -> None:
    code = """
import sys
import crawlproj.scheduling.scheduler, middlewares.pages, pipelines.store, pipelines.revisit
print(sorted(name for name in sys.modules if name.startswith(("crawlproj.content.documents.", "pypdfium2", "olefile"))))
"""
    assert (
        run_python(code).strip()
        == "['crawlproj.content.documents.budget', 'crawlproj.content.documents.formats']"
    )


def test_the_process_loads_nothing_of_scrapy_or_the_database() -> None:
    code = """
import sys
from crawlproj.content.documents import reader_main
reader_main.load_readers()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"scrapy", "twisted", "psycopg2", "aiohttp", "asyncio"}))
"""
    assert run_python(code).strip() == "[]"


def test_memory_is_limited() -> None:
    code = """
from crawlproj.content.documents import sandbox
sandbox.limit_resources(200_000_000, 100)
try:
    bytearray(300_000_000)
except MemoryError:
    print("limited")
"""
    assert run_python(code).strip() == "limited"


def test_the_process_ends_when_the_crawl_is_killed() -> None:
    """Also while it is busy and does not look at its pipe: stopped, it never does."""
    code = """
import asyncio, os, signal, sys, time
from crawlproj.content.documents.reader_process import DocumentReader
from crawlproj.content.documents.budget import DocumentBudget
async def main():
    desk = DocumentReader(DocumentBudget(60, 512_000_000, 10_000_000))
    await desk.read(b"{\\\\rtf1 x}", "http://example.org/")
    os.kill(desk._process.pid, signal.SIGSTOP)
    print(desk._process.pid, flush=True)
    time.sleep(600)
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as crawl:
        assert crawl.stdout is not None
        number = int(crawl.stdout.readline())
        assert not is_gone(number)
        crawl.kill()
        wait_for(lambda: is_gone(number))


def test_an_idle_process_ends_at_the_end_of_its_pipe() -> None:
    command = [
        sys.executable,
        "-I",
        "-c",
        reader_process._CODE,
        "500000000",
        "10",
        "10",
        str(os.getpid()),
        *map(os.path.abspath, sys.path),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read(8)
        process.stdin.close()
        assert process.wait(60) == 0
