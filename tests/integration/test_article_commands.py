"""`scrapy article` and `scrapy fixture`: what they show and save, and what they say of bad input."""

from __future__ import annotations

import argparse
import gzip
import json
import signal
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.project import get_project_settings

from crawlproj.commands import article, fixture
from crawlproj.content.article_process import MAX_BODY
from crawlproj.news.saved_pages import check_page, saved_pages, site_rules
from spiders.echo import EchoSpider
from tests.support.crawling import ROOT, Result, run_command
from tests.support.webs import serve_models

PAGE = next((ROOT / "tests" / "sites" / "echo").glob("*.html.gz"))
EXPECTED: dict[str, Any] = json.loads(
    PAGE.with_name(PAGE.name.removesuffix(".html.gz") + ".json").read_text()
)
URL: str = EXPECTED["url"]
ENGLISH = [
    "The council has decided to mend the old road along the river before the winter comes, since "
    "the floods of last spring had taken most of what held it in place.",
    "People who live there say that they have asked for it for years, and that nobody had listened "
    "until a lorry went through the fence and down into the water.",
    "The work begins on Monday and will take three weeks, during which the buses go around the "
    "hill and stop at the school instead of at the bridge.",
]


def without_log(result: Result) -> list[str]:
    """What stands on the standard error output but for Scrapy's first lines of a log."""
    return [line for line in result.stderr.splitlines() if line.startswith("crawlproj: ")]


def test_a_file_is_shown_field_by_field(tmp_path: Path) -> None:
    shown = run_command(["article", str(PAGE), "--spider", "echo", "--url", URL], tmp_path)
    assert shown.code == 0, shown.stderr
    assert shown.stderr == "", "no log around it"
    lines = shown.stdout.splitlines()
    assert lines[0] == URL
    assert lines[1].startswith("In a crawl it is taken for: article (rule article: {regex: ^/(city")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines[3:-1]}
    assert rows["title"] == ["selector", EXPECTED["title"]]
    assert rows["authors"] == ["selector", EXPECTED["authors"][0]]
    assert rows["date"] == ["json-ld", EXPECTED["date"]]
    assert lines[-1].startswith("Not told: ")


def test_files_are_json_and_what_is_no_article_has_no_text(tmp_path: Path) -> None:
    for name, body in {"empty": b"", "bytes": bytes(range(256)) * 9, "xml": b"<?xml?><a>"}.items():
        (tmp_path / f"{name}.html").write_bytes(body)
    files = [str(PAGE), *map(str, sorted(tmp_path.glob("*.html")))]
    shown = run_command(["article", *files], tmp_path)
    assert shown.code == 0, shown.stderr
    found, *others = map(json.loads, shown.stdout.splitlines())
    assert found["title"].endswith("- read more"), "what the general extractor takes it for"
    assert found["origins"]["title"] == "json-ld"
    assert [item["date"] for item in others] == [None] * 3


def test_the_selectors_of_a_file_of_sites_are_shown(tmp_path: Path) -> None:
    sites = tmp_path / "sites.yaml"
    sites.write_text(
        """sites:
  - name: the echo
    domains: [echo.demo.test]
    rules: [{listing: {prefix: /}}]
    fields: {title: ".hd .big::text", authors: ".nobody"}
"""
    )
    words = ["article", str(PAGE), "--url", URL, "--spider", "news", "-a", f"sites={sites}"]
    shown = run_command(words, tmp_path)
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[1] == "In a crawl it is taken for: listing (rule listing: {prefix: /})"
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines[3:-2]}
    assert rows["title"] == ["selector", EXPECTED["title"]]
    assert lines[-1] == "Alarm: authors: the selector '.nobody' finds nothing"


def test_what_is_shown_of_a_page_is_what_a_crawl_takes(tmp_path: Path) -> None:
    """No date of the far future, the language of the text, and nothing of a page that is too
    big.
    """
    year = date.today().year + 3
    head = f'<meta property="article:published_time" content="{year}-03-02T10:00:00Z">'
    text = "".join(f"<p>{paragraph}</p>" for paragraph in ENGLISH)
    page = f"<html lang=sl><head>{head}<title>The road</title></head><body>{text}</body></html>"
    (tmp_path / "page.html").write_text(page)
    (tmp_path / "big.html").write_text(page + " " * MAX_BODY)
    words = ["article", *(str(tmp_path / f"{name}.html") for name in ("page", "big"))]
    found, big = map(json.loads, run_command(words, tmp_path).stdout.splitlines())
    assert (found["language"], found["origins"]["language"]) == ("en", "the text")
    assert found["text"]
    assert not (found["date"] or "").startswith(str(year))
    assert (big["text"], big["alarms"]) == (
        "",
        ["a crawl takes no article from this page: too_big"],
    )


def test_a_page_of_the_web_is_saved_and_is_a_test_that_passes(tmp_path: Path) -> None:
    with serve_models() as demo:
        settings = {"DNS_HOSTS": demo.dns_hosts}
        url = next(
            url
            for url, page in demo.web.truth_at(demo.now()).pages.items()
            if page.kind == "article" and "//echo." in url
        )
        options = ["--folder", str(tmp_path / "sites")]
        saved = run_command(["fixture", "echo", url, *options], tmp_path, settings)
        missing = run_command(["fixture", "echo", f"{url}x", *options], tmp_path, settings)
        shown = run_command(["article", url, "--spider", "echo", "--json"], tmp_path, settings)
        asked = [record.path for record in demo.log.records()]
    assert saved.code == 0, saved.stderr
    assert without_log(saved) == []
    pages = saved_pages("echo", tmp_path / "sites")
    assert [page.expected and page.expected["url"] for page in pages] == [url]
    assert f"Saved as {pages[0].path}; what is expected of it: " in saved.stdout
    assert check_page(pages[0], site_rules(EchoSpider, url)) == []
    assert gzip.decompress(pages[0].path.read_bytes()) == pages[0].body
    assert pages[0].expected is not None
    assert pages[0].expected["title"] == shown.json["title"]
    assert shown.json["site"] == "echo"
    assert missing.code == 3
    assert without_log(missing) == [f"crawlproj: nothing was saved: {url}x came with status 404"]
    assert asked.count("/robots.txt") == 3, "each asked for robots.txt first"


def complaint(
    command: article.Command, words: list[str], capsys: pytest.CaptureFixture[str], code: int = 2
) -> str:
    """The one line that a command ends with, of bad input."""
    command.settings = get_project_settings()
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    options, rest = parser.parse_known_args(words)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        command.run(rest, options)
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: scrapy article FILE... | URL"),
        (["page.html", URL], "usage: scrapy article"),
        ([URL, URL], "usage: scrapy article"),
        (["nowhere.html"], "nowhere.html can't be read: No such file or directory"),
        (["."], ". can't be read: Is a directory"),
        (["example.org/page"], "example.org/page can't be read: No such file"),
        ([str(PAGE), "--url", "a b"], "not a web address: 'a b'"),
        ([str(PAGE), "--spider", "ecko"], "there is no spider 'ecko'"),
        ([str(PAGE), "--spider", "site"], "the spider site is no NewsSpider"),
        ([str(PAGE), "--spider", "news"], "say which sites: -a sites=FILE.yaml"),
        ([str(PAGE), "--spider", "news", "-a", "sites"], "-a must be NAME=VALUE"),
        ([str(PAGE), "-a", "sites=x.yaml"], "-a is for a spider"),
    ],
)
def test_article_says_what_is_wrong(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in complaint(article.Command(), words, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: scrapy fixture NAME URL|FILE [--url URL]"),
        (["echo"], "usage: scrapy fixture"),
        (["echo", URL, URL], "usage: scrapy fixture"),
        (["echo", str(PAGE)], "whose page is it? Give its address: --url URL"),
        (["echo", "nowhere.html", "--url", URL], "nowhere.html can't be read"),
        (["echo", "https://example.org/x"], "is not on the site of the spider echo, which is echo"),
        (["echo", str(PAGE), "--url", "https://example.org/x"], "is not on the site of the spider"),
        (["echo", str(PAGE), "--url", "ftp://x/"], "not a web address: 'ftp://x/'"),
        (["ecko", URL], "there is no spider 'ecko'"),
        (["news", URL], "the spider news has no site of its own"),
    ],
)
def test_fixture_says_what_is_wrong_and_saves_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sites"
    command = fixture.Command()
    assert said in complaint(command, [*words, "--folder", str(folder)], capsys)
    assert not folder.exists()


def test_damaged_gzip_and_a_file_in_place_of_the_folder_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.html.gz"
    for body in (PAGE.read_bytes()[:200], PAGE.read_bytes()[:10] + b"\xff" * 99):
        cut.write_bytes(body)
        assert "cut.html.gz can't be read: " in complaint(article.Command(), [str(cut)], capsys)
    words = ["echo", str(PAGE), "--url", URL, "--folder", str(cut)]
    assert "Not a directory" in complaint(fixture.Command(), words, capsys, code=1)
