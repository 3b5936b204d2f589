"""`scrapy genspider`: Scrapy's own templates, and ours for news sites, here and in other projects."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.utils.project import get_project_settings

from crawlproj.commands.genspider import Command
from settings import base
from tests.support.crawling import ROOT

JOINED = """
ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}
COMMANDS_MODULE = "crawlproj.commands"
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project of somebody else that has joined."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "tests" / "foreign" / "project", folder)
    with (folder / "shop" / "settings.py").open("a") as file:
        file.write(JOINED)
    yield folder


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A copy of this project, without its tests: a spider is written into it."""
    folder = tmp_path / "ours"
    for name in ("crawlproj", "middlewares", "pipelines", "settings", "spiders"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "scrapy.cfg", folder)
    return folder


def scrapy(*words: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    alien = {*base.OURS, "SCRAPY_SETTINGS_MODULE", "PYTHONPATH"}
    env = {name: value for name, value in os.environ.items() if name not in alien}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    command = [sys.executable, "-m", "scrapy", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


def test_a_news_spider_is_written_and_is_one(ours: Path) -> None:
    done = scrapy("genspider", "-t", "news", "my-paper", "www.example.org", cwd=ours)
    assert done.returncode == 0, done.stderr
    source = ours / "spiders" / "my_paper.py"
    text = source.read_text()
    assert 12 <= len(text.splitlines()) <= 25
    assert "def parse" not in text
    assert 'domains = ["example.org"]\n    seeds = ["https://www.example.org/"]' in text
    assert [path.name for path in (ours / "tests/sites/my-paper").iterdir()] == [".gitkeep"]
    assert "fixture my-paper URL" in done.stdout
    assert "article URL --spider my-paper" in done.stdout
    assert "crawl my-paper -o articles.jsonl" in done.stdout
    assert "my-paper" in scrapy("list", cwd=ours).stdout.split()
    # What it proposes in comments works as well.
    source.write_text(
        text.replace("    # article =", "    article =").replace("# fields", "fields")
    )
    run = scrapy("crawl", "my-paper", cwd=ours)
    assert run.returncode == 2
    assert "ROBOT_CONTACT is empty" in run.stderr, "the spider itself was all right"
    source.write_text(text.replace('    # article = r"', '    article = r"('))
    run = scrapy("crawl", "my-paper", cwd=ours)
    assert run.returncode == 2
    assert run.stderr.startswith("crawlproj: spider my-paper: article: regex = '(^/[0-9]{4}")
    assert len(run.stderr.splitlines()) == 1

    again = scrapy("genspider", "-t", "news", "my-paper", "example.org", cwd=ours)
    assert again.returncode == 2
    assert "there is a spider 'my-paper' already, in spiders.my_paper" in again.stderr
    other = scrapy("genspider", "-t", "news", "my.paper", "example.org", cwd=ours)
    assert other.returncode == 2 and "is there already" in other.stderr
    forced = scrapy(
        "genspider", "--force", "-t", "news", "my-paper", "http://localhost:80/n/", cwd=ours
    )
    assert forced.returncode == 0, forced.stderr
    assert 'domains = ["localhost"]\n    seeds = ["http://localhost/n/"]' in source.read_text()
    assert 'sources = ["http://localhost/feed.xml"]' in source.read_text()


def test_scrapys_own_templates_stay(ours: Path) -> None:
    listed = scrapy("genspider", "-l", cwd=ours).stdout.split()
    assert listed[2:] == ["basic", "crawl", "csvfeed", "news", "xmlfeed"]
    done = scrapy("genspider", "plain", "https://example.org/x", cwd=ours)
    assert done.returncode == 0, done.stderr
    assert 'start_urls = ["https://example.org/x"]' in (ours / "spiders/plain.py").read_text()
    assert not (ours / "tests").exists()
    dumped = scrapy("genspider", "-d", "news", cwd=ours)
    assert "class $classname(NewsSpider)" in dumped.stdout
    (ours / "own.tmpl").write_text("# $name of $domain\n")
    assert scrapy("genspider", "-t", "own.tmpl", "mine", "example.org", cwd=ours).returncode == 0
    assert (ours / "spiders/mine.py").read_text() == "# mine of example.org\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a b", "example.org"], "'a b' can't name a spider"),
        (["../x", "example.org"], "'../x' can't name a spider"),
        (['x"', "example.org"], "can't name a spider"),
        (["x" * 101, "example.org"], "can't name a spider"),
        (["crawlproj", "example.org"], "'crawlproj' is the name of the project"),
        (["site", "example.org"], "there is a spider 'site' already, in spiders.site"),
        (["x", "a b"], "'a b' is no domain: write it as example.org"),
        (["x", "nowhere"], "'nowhere' is no domain"),
        (["x", "ftp://example.org/"], "is no domain"),
        (["-t", "nws", "x", "example.org"], "there is no template 'nws': did you mean news?"),
        (["-d", "nws"], "there is no template 'nws'"),
        (["x"], "usage: scrapy genspider"),
        (["x", "example.org", "-z"], "unknown option -z"),
    ],
)
def test_bad_input_is_told_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command()
    command.settings = get_project_settings()
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    options, rest = parser.parse_known_args(words)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        command.run(rest, options)
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_project_of_somebody_else_gets_news_spiders_too(project: Path) -> None:
    done = scrapy("genspider", "-t", "news", "paper", "example.org", cwd=project, path=ROOT)
    assert done.returncode == 0, done.stderr
    assert (project / "tests" / "sites" / "paper").is_dir()
    assert 'name = "paper"' in (project / "shop" / "spiders" / "paper.py").read_text()
    run = scrapy("crawl", "paper", cwd=project, path=ROOT)
    assert run.returncode == 2
    assert "ROBOT_CONTACT is empty" in run.stderr
