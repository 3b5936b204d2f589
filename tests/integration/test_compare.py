"""`scrapy compare`, as a process, on captures in files."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from crawlproj.commands.compare import read_page
from crawlproj.errors import ConfigError
from tests.support.crawling import Result, run_command

STORY = "".join(f"<p>Paragraph {number} of a page that hardly changes.</p>" for number in range(9))


def compare(tmp_path: Path, *words: str) -> Result:
    return run_command(["compare", *words], tmp_path)


def write(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    more = "<p>Quite another paragraph is new.</p>"
    return [
        write(tmp_path, "1.html", f"<main><div class=ad>Buy one</div>{STORY}</main>"),
        write(tmp_path, "2.html.gz", f"<main><div class=ad>Buy two</div>{STORY}</main>"),
        write(tmp_path, "3.html", f"<main><div class=ad>Buy three</div>{STORY}{more}</main>"),
        write(tmp_path, "4.html", f"<main><div class=ad>Buy three</div>{STORY}{more}</main>"),
        write(tmp_path, "5.html", "<main><p>Accept cookies?</p></main>"),
    ]


def test_each_capture_is_judged_by_those_before(tmp_path: Path, captures: list[str]) -> None:
    result = compare(tmp_path, *captures, "--json", "--url", "http://a.test/")
    assert result.code == 0, result.stderr
    assert [(row["from"], row["to"]) for row in result.json] == list(pairwise(captures))
    assert [(row["changed"], row["kind"]) for row in result.json] == [
        (False, "none"),
        (True, "new text"),
        (False, "none"),
        (False, "wall"),
    ]
    second = result.json[1]
    assert second["new_letters"] == 26 and second["gone_letters"] == 0
    assert {"reason": "path noise", "new": True, "text": "Buy three"}.items() <= next(
        mask for mask in second["masked"] if mask["new"]
    ).items()


def test_table_says_what_was_masked_and_why(tmp_path: Path, captures: list[str]) -> None:
    result = compare(tmp_path, *captures)
    assert result.code == 0, result.stderr
    assert "new text" in result.stdout and "4 steps, 1 changed." in result.stdout
    assert "'Buy three' came at div.ad; it stands where the page changes" in result.stdout


def test_bad_input_is_said_in_one_line(tmp_path: Path, captures: list[str]) -> None:
    missing = str(tmp_path / "none.html")
    text = write(tmp_path, "text.txt", "Only words.")
    image = tmp_path / "image.html"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    broken = tmp_path / "broken.html.gz"
    broken.write_bytes(gzip.compress(STORY.encode())[:40])
    for words, said in (
        ([captures[0]], "usage: scrapy compare FILE FILE..."),
        ([captures[0], text], "text.txt is not HTML"),
    ):
        result = compare(tmp_path, *words)
        assert result.code == 2 and not result.stdout
        assert said in result.stderr and len(result.stderr.splitlines()) == 1
    for name, url, said in (
        (missing, "", "none.html can't be read: No such file or directory"),
        (str(image), "", "image.html is not HTML"),
        (str(broken), "", "broken.html.gz can't be read"),
        (captures[0], "nonsense", "not a web address"),
    ):
        with pytest.raises(ConfigError, match=said):
            read_page(name, url)
    assert read_page(write(tmp_path, "empty.html", ""), "").body == b""
