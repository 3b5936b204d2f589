"""scrapy reextract gives what a crawl of the same web gave, whatever kind of spider it was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import zoo
from tests.support.crawling import ROOT, Result, run_command

pytestmark = pytest.mark.proof

SETTINGS = {
    "SPIDER_MODULES": "tests.spiders",
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "FRONTIER_RETRIES": 0,
}
NUMBERS = {"ruled": 8, "mapped": 6, "fed": 6, "tabled": 6, "chained": 19, "odd": 12}


@pytest.fixture
def web() -> Iterator[type[zoo.Zoo]]:
    with zoo.serving() as web:
        yield web


def run(
    verb: str, spider: str, web: type[zoo.Zoo], folder: Path, *words: str, **settings: object
) -> tuple[list[Any], Result]:
    """Its items, sorted, and all else that came of it."""
    out = folder / f"{verb}.jsonl"
    offline = (
        {"EXTENSIONS": {"tests.support.offline.NoSockets": 0}, "TRIED": folder / "tried.txt"}
        if verb == "reextract"
        else {}
    )
    command = [verb, spider, "-a", f"base={web.base}", "-O", str(out), *words]
    result = run_command(command, folder, {**SETTINGS, **offline, **settings})
    assert result.code == 0, result.stderr + result.log
    if offline:
        assert (folder / "tried.txt").read_text() == "", (
            "no socket to any network, no name looked up"
        )
    return sorted(
        map(json.loads, out.read_text().splitlines()),
        key=lambda item: json.dumps(item, sort_keys=True),
    ), result


@pytest.mark.parametrize("spider", NUMBERS)
def test_the_same_items_with_the_database_and_without_it(
    spider: str, web: type[zoo.Zoo], database_url: str, tmp_path: Path
) -> None:
    before, crawled = run("crawl", spider, web, tmp_path, DATABASE_URL=database_url)
    asked = dict(web.asked)
    again, result = run("reextract", spider, web, tmp_path, DATABASE_URL=database_url)
    assert again == before
    assert len(again) == NUMBERS[spider]
    broken = "spider_exceptions/ValueError"
    assert (
        result.stats.get(broken)
        == crawled.stats.get(broken)
        == (1 if spider == "chained" else None)
    )
    if spider not in ("fed", "tabled"):
        assert run("reextract", spider, web, tmp_path)[0] == before, "the files are enough"
    assert dict(web.asked) == asked


def test_the_guard_of_these_tests_ends_who_makes_a_socket() -> None:
    code = """
import socket
from tests.support.offline import end_at_any_socket
guarded = end_at_any_socket()
socket.socketpair()
socket.socket(socket.AF_UNIX)
print("alive" if guarded else "no guard here", flush=True)
socket.socket(socket.{})
"""
    for family in ("AF_INET", "AF_INET6"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(family)], cwd=ROOT, capture_output=True, text=True
        )
        assert done.stdout == "no guard here\n" or (done.stdout, done.returncode) == (
            "alive\n",
            -31,
        ), done.stderr
