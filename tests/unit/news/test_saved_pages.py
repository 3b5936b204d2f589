"""Saved pages: what their tests say of a spider that is broken on purpose, and the model spiders."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.utils.project import get_project_settings

from crawlproj.cli.page_source import SourcePage
from crawlproj.content.articles import extract_article
from crawlproj.news.saved_pages import (
    check_page,
    differences,
    missing_pages,
    name_of_url,
    news_spiders,
    save_page,
    saved_pages,
)
from crawlproj.news.spider import NewsSpider
from tests.support.crawling import ROOT

SITES = ROOT / "tests" / "sites"
SPIDERS = news_spiders(get_project_settings())
MODELS = ("echo", "lantern", "ridgeway")
BROKEN = """
from crawlproj.news.spider import NewsSpider


class Echo(NewsSpider):
    name = "echo"
    domains = ["echo.demo.test"]
    fields = {"title": ".hd .headline::text", "authors": ".kick::text"}


class Unsaved(NewsSpider):
    name = "unsaved"
    domains = ["example.org"]
"""


def run_saved_pages(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests of saved pages, as they run in a project in `folder`."""
    env = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}", "SCRAPY_SETTINGS_MODULE": "own_settings"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", "0", "tests"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one good saved page of the Quillham Echo, and no spider yet."""
    (tmp_path / "own_settings.py").write_text(
        'from settings.base import *\nSPIDER_MODULES = ["own_spiders"]\n'
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    pages = tmp_path / "tests" / "sites" / "echo"
    pages.mkdir(parents=True)
    shutil.copy(SITES / "test_saved_pages.py", pages.parent)
    page = saved_pages("echo", SITES)[0]
    shutil.copy(page.path, pages)
    shutil.copy(page.path.with_name(page.name + ".json"), pages)
    return tmp_path


def test_a_good_spider_passes(project: Path) -> None:
    (project / "own_spiders.py").write_text((ROOT / "spiders" / "echo.py").read_text())
    done = run_saved_pages(project)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_broken_selector_and_a_missing_page_are_told_in_a_line_each(project: Path) -> None:
    (project / "own_spiders.py").write_text(BROKEN)
    done = run_saved_pages(project)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    expected = saved_pages("echo", SITES)[0].expected
    assert expected is not None
    title = json.dumps(expected["title"])
    section = expected["section"]
    assert any(
        line.startswith(f'title: expected {title}, came "') and line.endswith("(from json-ld)")
        for line in lines
    )
    assert "title: the selector '.hd .headline::text' finds nothing" in lines
    authors = json.dumps(expected["authors"])
    assert f'authors: expected {authors}, came ["{section}"] (from selector)' in lines
    assert f'section: expected "{section}", came null (from nowhere)' in lines
    assert not [line for line in lines if line.startswith("text:")], "what is right is not told"
    assert (
        f"the spider unsaved has no saved page: scrapy fixture unsaved URL writes one into "
        f"{project}/tests/sites/unsaved" in lines
    )
    assert "2 failed, 1 passed" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_page_whose_json_is_missing_is_told(project: Path) -> None:
    folder = project / "tests" / "sites"
    next((folder / "echo").glob("*.json")).unlink()
    lines = [line for page in saved_pages("echo", folder) for line in check_page(page, None)]
    assert len(lines) == 1
    assert lines[0].endswith(".json is missing: scrapy fixture")


def test_differences_name_unknown_fields_and_cut_what_is_long() -> None:
    fields = extract_article(b"<h1>A title</h1>", "http://example.org/")
    lines = list(differences({"url": "x", "headline": "A", "text": "word " * 200}, fields))
    assert lines[0].startswith('text: expected "word word')
    assert lines[0].endswith("... (1,002 characters), came null (from nowhere)")
    assert lines[1].startswith("headline: there is no such field, there are title, text")
    assert len(lines) == 2


def test_pages_of_two_urls_with_one_name_are_both_kept(tmp_path: Path) -> None:
    fields = extract_article(b"<h1>A title</h1>", "http://example.org/")
    pages = [
        SourcePage(f"<h1>{number}</h1>".encode(), f"http://example.org/{path}")
        for number, path in enumerate(["a/story/", "b/story/", "a/story/"])
    ]
    paths = [save_page("x", page, fields, tmp_path) for page in pages]
    assert [path.name for path in paths] == ["story.html.gz", "story-2.html.gz", "story.html.gz"]
    saved = {page.name: page.body for page in saved_pages("x", tmp_path)}
    assert saved == {"story": b"<h1>2</h1>", "story-2": b"<h1>1</h1>"}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/", "index"),
        ("https://example.org/2026/11/Some%20News_x.html", "some-20news-x"),
        ("https://example.org/a/b/?id=3", "id-3"),
    ],
)
def test_a_saved_page_is_named_after_its_url(url: str, name: str) -> None:
    assert name_of_url(url) == name


# --- the three model spiders


def test_the_models_are_there_and_each_has_two_or_three_pages() -> None:
    assert set(MODELS) <= SPIDERS.keys()
    assert missing_pages(SPIDERS, SITES) == []
    assert all(2 <= len(saved_pages(name, SITES)) <= 3 for name in MODELS)
    folders = {folder.name for folder in SITES.iterdir() if folder.is_dir()} - {"__pycache__"}
    assert folders == SPIDERS.keys(), "no pages without a spider"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_short_and_only_states_what_is_its_own(name: str) -> None:
    text = inspect.getsource(sys.modules[SPIDERS[name].__module__])
    lines = len(text.splitlines())
    assert 12 <= lines <= 25
    assert "def " not in text
    assert SPIDERS[name].__bases__ == (NewsSpider,)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_no_selector_that_the_general_extractor_does_not_need(name: str) -> None:
    for field in SPIDERS[name].fields:
        needed = False
        for page in saved_pages(name, SITES):
            assert page.expected is not None
            others = {key: text for key, text in SPIDERS[name].fields.items() if key != field}
            found = extract_article(page.body, page.expected["url"], selectors=others)
            told = differences(page.expected, found)
            needed |= any(line.startswith(f"{field}:") for line in told)
        assert needed, field
