"""The process that names languages: it names the right ones, it is watched, replaced, and may do
nothing but read and answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from crawlproj.content import language_process
from crawlproj.content.language import UNDETERMINED, Sample, choose_sample
from crawlproj.content.language_process import LanguageReader
from tests.unit.content.test_language import TORTURE

ROOT = Path(__file__).resolve().parents[3]
TEXTS: dict[str, list[str]] = json.loads((ROOT / "tests/data/languages.json").read_text("utf-8"))
ENGLISH = [Sample(TEXTS["en"][0])]
START = (
    "import os, sys, struct; write = lambda text: os.write(1, struct.pack('<Q', len(text)) + "
    "text); write(b'[]'); "
)
"""How a stand-in for the process begins: it says that it is ready."""


@pytest.fixture(scope="module")
def reader() -> Iterator[LanguageReader]:
    reader = LanguageReader()
    yield reader
    reader.close()


def pid(reader: LanguageReader) -> int:
    assert reader._process is not None
    return reader._process.pid


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


def test_languages_of_ordinary_texts_are_found(reader: LanguageReader) -> None:
    assert len(TEXTS) >= 30 and all(len(passages) >= 3 for passages in TEXTS.values())
    pieces = []
    for language, passages in TEXTS.items():
        for passage in passages:
            pieces.append((language, choose_sample([passage])))
            pieces.append((language, passage[:200]))
            pieces.append((language, passage[-200:]))
    found = reader.detect([Sample(text) for _, text in pieces])
    wrong = [(right, code) for (right, _), code in zip(pieces, found, strict=True) if code != right]
    assert len(wrong) <= len(pieces) / 100, wrong


def test_a_declared_language_does_not_overrule_the_text(reader: LanguageReader) -> None:
    samples = [Sample(choose_sample(passages), "en-US") for passages in TEXTS.values()]
    assert reader.detect(samples) == list(TEXTS)


def test_both_kinds_of_norwegian_are_norwegian(reader: LanguageReader) -> None:
    text = (
        "Eg veit ikkje kva dei har gjort med båten, men han ligg ikkje lenger nede ved brygga. "
        "Kanskje har naboen lånt han for å hente veden sin frå den andre sida av fjorden."
    )
    assert reader.detect([Sample(text), Sample(text, "nn-NO"), Sample(text, "da")]) == ["no"] * 3


def test_a_page_in_two_languages_has_none_unless_it_declares_one(reader: LanguageReader) -> None:
    pairs = [("en", "de"), ("fr", "ar"), ("ru", "en"), ("zh", "en"), ("pl", "id"), ("es", "hu")]
    texts = [choose_sample([TEXTS[first][0], TEXTS[second][1]]) for first, second in pairs]
    assert reader.detect([Sample(text) for text in texts]) == [UNDETERMINED] * len(pairs)
    declared = [Sample(text, pair[1]) for text, pair in zip(texts, pairs, strict=True)]
    assert reader.detect(declared) == [pair[1] for pair in pairs]


def test_texts_that_say_too_little_have_no_language(reader: LanguageReader) -> None:
    texts = [
        "",
        "OK",
        "Read more",
        "Impressum Datenschutz",
        "登录 注册",
        "2026-11-18 12:00",
        "→→→ ★★★",
    ]
    assert reader.detect([Sample(text, "de") for text in texts]) == [UNDETERMINED] * len(texts)


def test_capital_letters_and_decomposed_ones_change_nothing(reader: LanguageReader) -> None:
    samples = []
    for language in ("de", "fr", "cs", "vi", "ru", "el"):
        samples.append(Sample(TEXTS[language][0].upper()))
        samples.append(Sample(unicodedata.normalize("NFD", TEXTS[language][0])))
    found = reader.detect(samples)
    assert found[::2] == found[1::2] == ["de", "fr", "cs", "vi", "ru", "el"]


def test_no_text_is_a_failure(reader: LanguageReader) -> None:
    before = (reader.failures, reader.processes_started)
    samples = [Sample(text, text) for text in TORTURE.values()]
    found = dict(zip(TORTURE, reader.detect(samples), strict=True))
    assert "" not in found.values()
    named = {name: code for name, code in found.items() if code != UNDETERMINED}
    assert named == {"surrogates between words": "en"}
    assert reader.detect([*ENGLISH, Sample("\ud800", "\udfff")]) == ["en", UNDETERMINED]
    assert (reader.failures, reader.processes_started) == before


def test_a_big_batch_is_answered_and_all_is_counted() -> None:
    reader = LanguageReader()
    try:
        reader.start()
        assert reader.detect([]) == []
        assert (reader.batches, reader.texts) == (0, 0)
        assert reader.detect(ENGLISH * 3000) == ["en"] * 3000
        assert reader.detect(ENGLISH * 2) == ["en"] * 2
        assert (reader.batches, reader.texts, reader.failures) == (2, 3002, 0)
        assert reader.processes_started == 1
        assert 30e6 < reader.rss_bytes() < 200e6
    finally:
        reader.close()
    assert reader.rss_bytes() == 0


def test_start_does_not_wait_and_is_done_once() -> None:
    reader = LanguageReader()
    try:
        start = time.monotonic()
        reader.start()
        reader.start()
        assert time.monotonic() - start < 0.3
        assert reader.processes_started == 1
    finally:
        reader.close()


def test_a_process_is_replaced_after_some_texts() -> None:
    reader = LanguageReader(per_process=4)
    try:
        assert [reader.detect(ENGLISH * 2) for _ in range(5)] == [["en", "en"]] * 5
        assert (reader.processes_started, reader.failures) == (3, 0)
    finally:
        reader.close()


def test_a_process_that_hangs_is_killed_and_the_next_batch_is_read() -> None:
    reader = LanguageReader(batch_s=1)
    try:
        assert reader.detect(ENGLISH) == ["en"]
        first = pid(reader)
        os.kill(first, signal.SIGSTOP)
        # More than a pipe takes: not even the writing may hang.
        assert reader.detect(ENGLISH * 2000) == [""] * 2000
        assert is_gone(first)
        assert reader.detect(ENGLISH) == ["en"]
        assert (reader.failures, reader.processes_started) == (1, 2)
    finally:
        reader.close()


def test_a_process_that_died_between_two_batches_is_replaced() -> None:
    reader = LanguageReader()
    try:
        assert reader.detect(ENGLISH) == ["en"]
        os.kill(pid(reader), signal.SIGKILL)
        wait_for(lambda: is_gone(pid(reader)))
        assert reader.detect(ENGLISH) == ["en"]
        assert (reader.failures, reader.processes_started) == (0, 2)
    finally:
        reader.close()


@pytest.mark.parametrize(
    "code",
    [
        "import ctypes; ctypes.string_at(0)",
        "os._exit(3)",
        "write(os.urandom(1000)); sys.stdin.read()",
        "write(b'[' * 2000); sys.stdin.read()",
        "write(b'[]'); sys.stdin.read()",
        "write(b'[' + b'7,' * 299 + b'7]'); sys.stdin.read()",
        'write(b"[" + b\'"en",\' * 299 + b\'"<b>"]\'); sys.stdin.read()',
        "[os.write(1, bytes([255]) * 65536) for _ in iter(int, 1)]",
        "os.write(1, bytes([9, 0, 0])); sys.stdin.read()",
        "sys.stdin.read()",
    ],
)
def test_whatever_the_process_does_the_batch_ends(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a bad text had taken it over."""
    monkeypatch.setattr(language_process, "_CODE", START + code)
    reader = LanguageReader(batch_s=0.5)
    try:
        assert reader.detect(ENGLISH * 300) == [""] * 300
        assert (reader.failures, reader.texts, reader._process) == (1, 0, None)
    finally:
        reader.close()


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import time; time.sleep(60)"])
def test_a_process_that_does_not_start_is_given_up_for_a_while(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_process, "_CODE", code)
    reader = LanguageReader(start_s=0.3)
    try:
        assert [reader.detect(ENGLISH) for _ in range(6)] == [[""]] * 6
        assert (reader.failures, reader.processes_started) == (3, 3)
        monkeypatch.undo()
        reader._start_s = 30
        assert reader.detect(ENGLISH) == [""]
        monkeypatch.setattr(language_process, "FORGET_S", 0.0)
        assert reader.detect(ENGLISH) == ["en"]
        assert reader.processes_started == 4
    finally:
        reader.close()


def test_a_program_that_is_not_there_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    reader = LanguageReader()
    reader.start()
    assert reader.detect(ENGLISH) == [""]
    assert reader.failures == 1
    reader.close()


def test_after_the_close_nothing_is_started() -> None:
    reader = LanguageReader()
    assert reader.detect(ENGLISH) == ["en"]
    number = pid(reader)
    reader.close()
    reader.close()
    assert is_gone(number)
    reader.start()
    assert reader.detect(ENGLISH) == [""]
    assert (reader.processes_started, reader.failures) == (1, 0)


def test_a_thread_may_ask_beside_an_event_loop_that_runs_processes_too() -> None:
    found: list[list[str]] = []
    reader = LanguageReader()

    def ask() -> None:
        for _ in range(3):
            found.append(reader.detect(ENGLISH * 50))
            os.kill(number := pid(reader), signal.SIGKILL)
            wait_for(lambda: is_gone(number))

    async def run() -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive():
            other = await asyncio.create_subprocess_exec("true")
            assert await other.wait() == 0

    try:
        uvloop.run(run())
    finally:
        reader.close()
    assert found == [["en"] * 50] * 3
    assert (reader.failures, reader.processes_started) == (0, 3)


def test_the_process_has_no_files_no_environment_and_a_session_of_its_own(
    reader: LanguageReader, tmp_path: Path
) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        own = LanguageReader()
        try:
            assert own.detect(ENGLISH) == ["en"]
            proc = Path(f"/proc/{pid(own)}")
            places = {str(place.readlink()) for place in (proc / "fd").iterdir()}
            assert {place.partition(":")[0] for place in places} == {"/dev/null", "pipe"}
            names = {
                line.partition("=")[0]
                for line in (proc / "environ").read_text().split("\0")
                if line
            }
            assert names <= {*language_process._ENVIRONMENT, "LD_LIBRARY_PATH", "TMPDIR"}
            assert os.getsid(pid(own)) == pid(own)
            assert len(list((proc / "task").iterdir())) == 1
        finally:
            own.close()


def test_the_process_may_call_only_what_is_on_the_list(reader: LanguageReader) -> None:
    if not Path("/proc/sys/kernel/seccomp").exists() or platform.machine() not in (
        "x86_64",
        "aarch64",
    ):
        pytest.skip("no filter for calls on this machine")
    assert reader.detect(ENGLISH) == ["en"]
    status = Path(f"/proc/{pid(reader)}/status").read_text()
    assert "Seccomp:\t2\n" in status and "NoNewPrivs:\t1\n" in status
    limits = Path(f"/proc/{pid(reader)}/limits").read_text()
    address_space = next(line for line in limits.splitlines() if "address space" in line)
    assert str(language_process.MEMORY) in address_space


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_crawls_side_loads_no_numpy_and_the_process_nothing_of_scrapy() -> None:
    client = """
import sys
import crawlproj.content.language_process
print(sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "py3langid", "asyncio"}))
"""
    process = """
import sys
from crawlproj.content import language_main
language_main.load_detector()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"scrapy", "twisted", "psycopg2", "lxml", "asyncio"}))
"""
    assert run_python(client).strip() == "[]"
    assert run_python(process).strip() == "[]"


@pytest.mark.parametrize("stopped", [True, False])
def test_the_process_ends_when_the_crawl_is_killed(stopped: bool) -> None:
    """Also while it is busy and does not look at its pipe: stopped, it never does."""
    code = f"""
import os, signal, time
from crawlproj.content.language import Sample
from crawlproj.content.language_process import LanguageReader
reader = LanguageReader()
reader.detect([Sample("x")])
if {stopped}:
    os.kill(reader._process.pid, signal.SIGSTOP)
print(reader._process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as crawl:
        assert crawl.stdout is not None
        number = int(crawl.stdout.readline())
        assert not is_gone(number)
        crawl.kill()
        wait_for(lambda: is_gone(number))
