"""scrapy reextract on files alone: versions, kinds of answers, what is left out, what
is refused.
"""

from __future__ import annotations

import json
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawlproj.archive.exchange import Original
from crawlproj.archive.records import compute_digest
from tests.support.archiving import PACKED, PAGE, START, exchange, head, write
from tests.support.crawling import Crawl, Result, run_command

pytestmark = pytest.mark.proof

DAY = timedelta(days=1)
PAGES = [f"https://example.org/page/{number}" for number in range(10)]
SETTINGS = {"SPIDER_MODULES": "tests.spiders", "CRAWL_NAME": "test"}


def run(folder: Path, *words: str, code: int = 0, spider: str = "pages", **more: object) -> Result:
    settings = {
        **SETTINGS,
        "EXTENSIONS": {"tests.support.offline.NoSockets": 0},
        "TRIED": folder / "tried.txt",
        **more,
    }
    result = run_command(
        ["reextract", spider, "-O", str(folder / "items.jsonl"), *words], folder, settings
    )
    assert result.code == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr + result.log
    assert not (folder / "tried.txt").exists() or (folder / "tried.txt").read_text() == ""
    return result


def items(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]


def page(text: str) -> bytes:
    return f"<p>{text}</p>".encode()


def test_versions_and_since(tmp_path: Path) -> None:
    same = (
        exchange(0, page("one"), at=START + DAY),
        Original(PAGES[0], START, compute_digest(page("one"))),
    )
    others = [
        (exchange(0, page(text), at=START + n * DAY), None)
        for n, text in ((0, "one"), (2, "two"), (3, "three"))
    ]
    write(tmp_path / "warc", [*others, same, (exchange(1, page("only")), None)])
    result = run(tmp_path)
    assert {item["url"]: item["text"] for item in items(tmp_path)} == {
        PAGES[0]: "three",
        PAGES[1]: "only",
    }
    assert "2 captures read, 2 items" in result.stdout
    assert items(tmp_path)[0]["at"] == str(START + 3 * DAY)[:19]
    run(tmp_path, "--versions", "all")
    assert sorted(item["text"] for item in items(tmp_path)) == ["one", "only", "three", "two"]
    run(tmp_path, "--since", (START + 2 * DAY).isoformat(), "--versions", "all")
    assert sorted(item["text"] for item in items(tmp_path)) == ["three", "two"]
    assert "no capture" in run(tmp_path, "--since", "2030-01-01", code=3).stderr


def test_bodies_are_unpacked_and_decoded_as_in_a_crawl(tmp_path: Path) -> None:
    packed = [
        (exchange(n, pack(page("gepackt ü")), head(f"Content-Encoding: {name}")), None)
        for n, (name, pack) in enumerate(PACKED.items())
    ]
    russian = exchange(
        7, "<p>Привет</p>".encode("windows-1251"), head(kind="text/html; charset=windows-1251")
    )
    japanese = exchange(
        8, "<meta charset=shift_jis><p>こんにちは</p>".encode("shift_jis"), head(kind="text/html")
    )
    chunked = exchange(9, page("in chunks"), head("Transfer-Encoding: chunked"))
    write(tmp_path / "warc", [*packed, (russian, None), (japanese, None), (chunked, None)])
    run(tmp_path)
    found = {item["url"]: item for item in items(tmp_path)}
    assert [found[url]["text"] for url in PAGES[: len(packed)]] == ["gepackt ü"] * len(packed)
    assert (found[PAGES[7]]["text"], found[PAGES[7]]["encoding"]) == ("Привет", "cp1251")
    assert found[PAGES[8]]["text"] == "こんにちは"
    assert (found[PAGES[9]]["chunked"], found[PAGES[9]]["class"]) == ("chunked", "HtmlResponse")
    assert {item["address"] for item in found.values()} == {"192.0.2.7"}


def test_what_is_asked_for_is_answered_once_and_the_rest_is_counted(tmp_path: Path) -> None:
    moved = exchange(2, b"", head(f"Location: {PAGES[3]}", status="301 Moved"))
    lost = exchange(4, b"", head("Location: /nowhere", status="302 Found"))
    exchanges = [
        exchange(0, page("start")),
        exchange(1, page("next")),
        moved,
        exchange(3, page("moved")),
        lost,
    ]
    write(tmp_path / "warc", [(each, None) for each in exchanges])
    follow = ",".join(
        [
            PAGES[1],
            PAGES[2],
            PAGES[4],
            "https://example.org/absent",
            "ftp://example.org/x",
            PAGES[1],
        ]
    )
    result = run(tmp_path, "-a", f"base={PAGES[0]}", "-a", f"follow={follow}")
    found = [(item["url"], item["text"], bool(item["via"])) for item in items(tmp_path)]
    assert sorted(found) == [
        (PAGES[0], "start", False),
        (PAGES[1], "next", True),
        (PAGES[3], "moved", True),
    ]
    assert result.stats["reextract/missing"] == 1
    assert "1 request not in the archive" in result.stdout
    assert result.stats["reextract/redirects"] == 1


def test_answers_are_given_inside_callbacks_too(tmp_path: Path) -> None:
    moved = exchange(1, b"", head(f"Location: {PAGES[2]}", status="302 Found"))
    write(tmp_path / "warc", [(exchange(0), None), (moved, None), (exchange(2, PAGE), None)])
    run(tmp_path, "-a", f"base={PAGES[0]}", "-a", f"more={PAGES[1]}", spider="inline")
    assert items(tmp_path)[0] == {"url": PAGES[0], "more": PAGES[2], "size": len(PAGE)}
    run(
        tmp_path, "-a", f"base={PAGES[0]}", "-a", "more=https://example.org/absent", spider="inline"
    )
    assert items(tmp_path)[0] == {"url": PAGES[0], "more": "DownloadFailedError"}


def test_bad_usage_is_one_line_with_code_2(tmp_path: Path) -> None:
    assert "there is no archive" in run(tmp_path, code=1).stderr
    write(tmp_path / "warc", [(exchange(0), None)])
    assert "there is no spider 'nobody'" in run(tmp_path, spider="nobody", code=2).stderr
    assert "--versions some" in run(tmp_path, "--versions", "some", code=2).stderr
    assert "is no time" in run(tmp_path, "--since", "yesterday", code=2).stderr
    assert "no such method" in run(tmp_path, "--callback", "absent", code=2).stderr
    assert "unknown option --often" in run(tmp_path, "--often", code=2).stderr
    assert "usage" in run_command(["reextract"], tmp_path, SETTINGS).stderr
    unreachable = run(tmp_path, code=1, DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert len(unreachable.stderr.strip().splitlines()) == 1
    run(tmp_path, "--callback", "other")
    assert items(tmp_path) == [{"url": PAGES[0], "other": True}]


def test_it_can_be_stopped(tmp_path: Path) -> None:
    write(
        tmp_path / "warc", [(exchange(number, page(str(number))), None) for number in range(8_000)]
    )
    with Crawl(
        ["reextract", "pages", "-O", str(tmp_path / "items.jsonl")],
        tmp_path,
        {**SETTINGS, "PANEL_INTERVAL": 0.1},
    ) as running:
        assert running.process.stdout is not None
        while "captures read" not in running.process.stdout.readline():
            time.sleep(0.01)
        running.stop(signal.SIGINT)
        result = running.wait()
    assert result.code == 130, result.stderr
    assert 0 < result.stats["reextract/captures"] < 8_000


def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    peaks = []
    for number, count in enumerate((500, 5_000)):
        folder = tmp_path / str(number)
        write(folder / "warc", [(exchange(n, page(str(n))), None) for n in range(count)])
        result = run(folder, EXTENSIONS={"tests.support.offline.Peak": 0})
        assert result.stats["reextract/captures"] == count
        peaks.append(result.stats["peak"])
    assert peaks[1] - peaks[0] < 8_000_000, peaks
