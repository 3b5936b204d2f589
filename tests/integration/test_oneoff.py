"""`scrapy shell`, `fetch`, `parse`, `view`, `check` and `bench` as Scrapy's users know them: single
pages, politely, and nothing is left behind. In our project, and in one that has joined by the
add-on, with and without our commands.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from crawlproj.archive.index_merge import merge_indexes
from tests.foreign import web
from tests.integration.test_joining import QUICK, command_of, join
from tests.integration.test_joining import project as project
from tests.support.archiving import PAGE, START, exchange, head, write
from tests.support.crawling import Result, run_command

CONTRACTS = '''
import scrapy

class Checked(scrapy.Spider):
    name = "checked"
    custom_settings = {{"FEEDS": {{"{feed}": {{"format": "json", "overwrite": True}}}}}}

    def parse(self, response):
        """A list has links.

        @url {base}/list/1
        @returns items 1 1
        @returns requests 1
        """
        yield {{"kind": "list", "url": response.url}}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
'''


@pytest.fixture
def shop() -> Iterator[type[web.Shop]]:
    with web.serving() as shop:
        yield shop


def one_off(folder: Path, *words: str, **settings: object) -> Result:
    """A command of our project. It may leave nothing in CRAWL_DIR."""
    result = run_command(words, folder / "crawl", settings, env={"BROWSER": "echo"})
    assert not (folder / "crawl").exists(), "nothing was stored"
    assert "Traceback" not in result.stderr
    return result


def test_fetch_follows_redirects_and_asks_robots_txt_first(
    shop: type[web.Shop], tmp_path: Path
) -> None:
    result = one_off(tmp_path, "fetch", f"{shop.base}/start")
    assert (result.code, result.stdout.count('<a href="/list/')) == (0, web.LISTS)
    assert "Crawled (200)" in result.stderr, "the log is not mixed with the page"
    assert list(shop.asked.items()) == [("GET /robots.txt", 1), ("GET /start", 1), ("GET /", 1)]
    headers = one_off(
        tmp_path, "fetch", "--headers", "--no-redirect", "--nolog", f"{shop.base}/old"
    )
    assert "> User-Agent: crawlproj\n" in headers.stdout
    assert "< Location: /item/1\n" in headers.stdout
    assert (headers.code, headers.stderr) == (0, "")


def test_what_is_not_fetched_is_one_line_and_an_exit_code(
    shop: type[web.Shop], tmp_path: Path
) -> None:
    for words in (["fetch"], ["shell", "-c", "response"], ["parse", "--spider", "site"]):
        result = one_off(tmp_path, *words, "--nolog", f"{shop.base}/private/item/x")
        assert result.code == 3
        assert result.stderr.splitlines() == [
            f"crawlproj: {shop.base}/private/item/x was not fetched: robots (robots.txt forbids it)"
        ]
    assert shop.asked == {"GET /robots.txt": 3}
    dead = one_off(tmp_path, "fetch", "--nolog", "http://127.0.0.1:9/")
    assert (dead.code, "port: 9 is not for the web" in dead.stderr) == (3, True)
    missing = one_off(tmp_path, "parse", "--spider", "site", "--nolog", f"{shop.base}/nowhere")
    assert (missing.code, "status 404" in missing.stderr) == (3, True)


def test_bad_usage_asks_nobody(shop: type[web.Shop], tmp_path: Path) -> None:
    public = {"GUARD_ALLOW_PRIVATE": False}
    url = f"{shop.base}/item/1"
    lines = {
        "ROBOT_CONTACT is empty": one_off(tmp_path, "fetch", "https://example.org/", **public),
        "is refused: private address": one_off(
            tmp_path, "shell", "-c", "1", url, **public, ROBOT_CONTACT="mailto:me@example.org"
        ),
        "there is no spider 'nobody'": one_off(tmp_path, "fetch", "--spider", "nobody", url),
        "has no such method": one_off(tmp_path, "parse", "--spider", "site", "-c", "nope", url),
        "is no time": one_off(tmp_path, "fetch", "--at", "yesterday", url),
        "No such file": one_off(tmp_path, "shell", "./nothing.html"),
    }
    for words, result in lines.items():
        assert result.code == 2, words
        assert words in result.stderr.splitlines()[-1]
    assert not shop.asked


def test_the_shell_opens_pages_files_and_nothing(shop: type[web.Shop], tmp_path: Path) -> None:
    code = (
        f"(fetch('{shop.base}/item/1'), fetch('{shop.base}/private/x'), response, "
        f"fetch('{shop.base}/item/2'), response.css('h1::text').get(), spider.name)"
    )
    result = one_off(tmp_path, "shell", "-c", code, f"{shop.base}/start")
    assert result.stdout == "(None, None, None, None, 'Item 2', 'default')\n"
    assert f"{shop.base}/private/x was not fetched: robots" in result.stderr
    assert list(shop.asked) == [
        "GET /robots.txt",
        "GET /start",
        "GET /",
        "GET /item/1",
        "GET /item/2",
    ]
    page = tmp_path / "page.html"
    page.write_text("<h1>Saved</h1>")
    shop.asked.clear()
    alone = {"GUARD_ALLOW_PRIVATE": False}
    saved = one_off(tmp_path, "shell", "-c", "response.css('h1::text').get()", str(page), **alone)
    assert (saved.code, saved.stdout) == (0, "Saved\n")
    empty = one_off(tmp_path, "shell", "-c", "(response, settings['BOT_NAME'])", **alone)
    assert (empty.code, empty.stdout) == (0, "(None, 'crawlproj')\n")
    assert not shop.asked


def test_view_opens_a_browser(shop: type[web.Shop], tmp_path: Path) -> None:
    viewed = one_off(tmp_path, "view", "--nolog", f"{shop.base}/item/3")
    assert (viewed.code, viewed.stdout.startswith("file:///")) == (0, True)
    Path(viewed.stdout.strip().removeprefix("file://")).unlink()


def test_pages_are_read_from_the_archive_as_they_were(tmp_path: Path) -> None:
    moved = exchange(1, body=b"", top=head("Location: /page/0", status="302 Found"), at=START)
    later = exchange(0, body=b"<h1>Later</h1>", at=START + timedelta(days=2))
    write(tmp_path / "warc", [(exchange(0), None), (moved, None), (later, None)])
    merge_indexes(tmp_path / "warc")
    files = sorted(tmp_path.rglob("*"))
    day = (START + timedelta(days=1)).isoformat()
    offline = {"GUARD_ALLOW_PRIVATE": False}

    def run(*words: str) -> Result:
        return run_command(words, tmp_path, offline)

    first = run("fetch", "--nolog", "--at", day, moved.url)
    assert (first.code, first.stdout.encode()) == (0, PAGE + b"\n")
    last = run("shell", "--at", "2030-01-01", "-c", "response.css('h1::text').get()", later.url)
    assert (last.code, last.stdout) == (0, "Later\n")
    absent = run("fetch", "--nolog", "--at", day, "https://example.org/nothing")
    assert (absent.code, "not in the archive" in absent.stderr) == (3, True)
    assert sorted(tmp_path.rglob("*")) == files, "and no database was made"


@pytest.mark.parametrize("with_commands", [True, False])
def test_a_project_that_has_joined_keeps_its_commands(
    with_commands: bool, project: Path, shop: type[web.Shop]
) -> None:
    join(project, 'COMMANDS_MODULE = "crawlproj.commands"\n' * with_commands)
    feed = project / "items.json"
    feed.write_text("[]")
    spider = project / "shop" / "spiders" / "checked.py"
    spider.write_text(CONTRACTS.format(base=shop.base, feed=feed))
    files = {path for path in project.rglob("*") if "__pycache__" not in path.parts}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command, env = command_of(words, QUICK)
        return subprocess.run(
            command, cwd=project, env=env, capture_output=True, text=True, timeout=60
        )

    fetched = run("fetch", f"{shop.base}/start")
    assert (fetched.returncode, fetched.stdout.count("/list/")) == (0, web.LISTS), fetched.stderr
    assert list(shop.asked) == ["GET /robots.txt", "GET /start", "GET /"]
    shell = run("shell", "-c", "response.url", f"{shop.base}/old")
    assert (shell.returncode, shell.stdout) == (0, f"{shop.base}/item/1\n"), shell.stderr
    words = ["--spider", "rules", "-a", f"base={shop.base}", "-c", "parse_item", "--nocolour"]
    parsed = run(
        "parse", *words, "--cbkwargs", '{"via": "me"}', "--pipelines", f"{shop.base}/item/1"
    )
    assert parsed.returncode == 0, parsed.stderr
    assert "{'checked': True" in parsed.stdout and "'via': 'me'" in parsed.stdout
    deep = run("parse", "--spider", "checked", "-d", "2", "--nocolour", f"{shop.base}/list/1")
    assert deep.stdout.count("'kind': 'list'") > 5, deep.stderr
    assert shop.asked["GET /private/item/x"] == 0
    shop.asked.clear()
    checked = run("check", "checked")
    assert (checked.returncode, "Ran 2 contracts" in checked.stderr) == (0, True), checked.stderr
    assert shop.asked == {"GET /robots.txt": 1, "GET /list/1": 1}
    assert feed.read_text() == "[]", "the feed of the spider's crawls is left alone"
    left = {path for path in project.rglob("*") if "__pycache__" not in path.parts}
    assert left == files, "no crawl, no database"
