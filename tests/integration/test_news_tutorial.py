"""The tutorial of news spiders, run word for word: every block of commands in the terminal that it
says, on a copy of the project, to a job on a real Scrapyd.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlproj.news.spider import NewsSpider, site_of_class
from settings import base
from tests.support.crawling import ROOT

TEXT = (ROOT / "docs" / "news-tutorial.md").read_text()
BLOCKS = re.findall(r"^```(sh|python|)\n(.*?)^```", TEXT, re.M | re.S)
COMMANDS = [text for kind, text in BLOCKS if kind == "sh"]
SHOWN = [text for kind, text in BLOCKS if not kind]
WAIT_S = 120.0
PACKAGES = ("crawlproj", "middlewares", "pipelines", "settings", "spiders", "tests", "requirements")
FILES = ("Makefile", "README.md", "pyproject.toml", "scrapy.cfg", "setup.py")


class Terminal:
    """A shell in a folder. A command that does not end by itself is ended with it."""

    def __init__(self, folder: Path, env: dict[str, str], log: Path) -> None:
        self._log = log
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._blocks = 0

    def type(self, block: str) -> None:
        """Type a block, and do not wait for its end."""
        assert self._shell.stdin
        self._shell.stdin.write(block)
        self._shell.stdin.flush()

    def run(self, block: str) -> str:
        """What a block prints; each of its commands must succeed."""
        before = len(self.output)
        self._blocks += 1
        end = f"end of block {self._blocks}:"
        self.type("trap 'failed=1' ERR; failed=0\n" + block + f'echo; echo "{end} $failed"\n')
        wait_until(lambda: f"{end} " in self.output, block)
        printed, _, code = self.output[before:].partition(end)
        assert code.split()[0] == "0", f"{block}\n{printed}"
        return printed

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        os.killpg(self._shell.pid, signal.SIGTERM)
        assert self._shell.stdin
        self._shell.stdin.close()
        self._shell.wait(timeout=60)


def wait_until(done: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, with our environment as its own."""
    folder = tmp_path / "project"
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture
def ports() -> dict[str, str]:
    """Those of the text, and others that are free here."""
    return {name: str(free_port()) for name in ("8780", "6800")}


@pytest.fixture
def open_terminal(
    project: Path, tmp_path: Path, ports: dict[str, str]
) -> Iterator[Callable[[str], Terminal]]:
    # What `make` would install is there already.
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "make"
    shim.write_text(f'#!/bin/sh\nexec {shutil.which("make")} -o .venv/.test "$@"\n')
    shim.chmod(0o755)
    alien = {*base.OURS, "PYTHONPATH", "SCRAPY_SETTINGS_MODULE", "MAKEFLAGS", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in alien}
    env |= {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{env['PATH']}",
        "SCRAPYD_HTTP_PORT": ports["6800"],
    }
    cfg = project / "scrapy.cfg"
    cfg.write_text(cfg.read_text().replace("6800", ports["6800"]))
    with ExitStack() as stack:

        def open_one(name: str) -> Terminal:
            terminal = Terminal(project, env, tmp_path / f"{name}.log")
            stack.callback(terminal.close)
            # Whatever activate puts first, make is the one of above.
            terminal.type(f'make() {{ {shim} "$@"; }}\n')
            return terminal

        yield open_one


def job_ended(port: str) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/listjobs.json") as answer:
        return len(json.load(answer)["finished"]) == 1


def answers(port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def first_columns(table: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in map(str.split, table.splitlines()) if len(row) > 2]


def items(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.proof
def test_the_tutorial_works_word_for_word(
    project: Path, ports: dict[str, str], open_terminal: Callable[[str], Terminal]
) -> None:
    def here(text: str) -> str:
        for name, port in ports.items():
            text = text.replace(name, port)
        return text

    serve, second, begin, look, look_again, mend, save, third, deploy, export = map(here, COMMANDS)
    web = open_terminal("web")
    web.type(serve.replace("--serve", f"--serve --port {ports['8780']}"))
    wait_until(lambda: "served until Ctrl-C" in web.output, "the demo web")
    assert second.splitlines()[1].strip() in web.output, "it says the same as the text"

    terminal = open_terminal("work")
    terminal.run(second)
    crawled = terminal.run(begin)
    assert re.search(r"^  Articles +[5-9]  [5-9] new", crawled, re.M), crawled
    looked = terminal.run(look)
    assert set(first_columns(SHOWN[0])) <= set(first_columns(looked))
    assert "- read more" in looked and "Echo Newsroom" in looked
    assert "section" in looked.partition("Not told: ")[2]

    code = next(text for kind, text in BLOCKS if kind == "python")
    (project / "spiders" / "quillham.py").write_text(here(code))
    looked = terminal.run(look_again)
    assert set(first_columns(SHOWN[1])) <= set(first_columns(looked))
    assert "Alarm" not in looked and "- read more" not in looked

    terminal.run(mend)
    first, mended, kept = (
        items(project / f"{name}.jsonl") for name in ("articles", "mended", "all")
    )
    assert all(str(item["title"]).endswith("- read more") for item in first)
    assert {item["url"] for item in mended} == {item["url"] for item in first}
    assert not [item for item in mended if str(item["title"]).endswith("- read more")]
    assert {(item["url"], item["title"]) for item in kept} == {
        (item["url"], item["title"]) for item in mended
    }

    saved = terminal.run(save)
    assert "Saved as tests/sites/quillham/" in saved
    assert " passed" in saved and "failed" not in saved
    assert len(list((project / "tests" / "sites" / "quillham").glob("*.html.gz"))) == 1

    scrapyd = open_terminal("scrapyd")
    scrapyd.run(second)
    scrapyd.type(third)
    wait_until(lambda: answers(ports["6800"]), "Scrapyd")
    deployed = terminal.run(deploy)
    assert "Deployed crawlproj, version " in deployed
    assert '"status": "ok"' in deployed
    wait_until(lambda: job_ended(ports["6800"]), "the job")
    terminal.run(export)
    found = items(project / "deployed.jsonl")
    assert {item["url"] for item in found} >= {item["url"] for item in first}
    assert all(item["section"] in ("City", "Stage") for item in found)


@pytest.mark.parametrize("page", ["README.md", "docs/news.md", "docs/news-tutorial.md"])
def test_each_news_spider_of_the_docs_is_one(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    spiders = [block for block in blocks if "NewsSpider" in block]
    assert spiders
    for block in spiders:
        names: dict[str, object] = {}
        exec(block, names)
        made = [
            value
            for value in names.values()
            if isinstance(value, type) and issubclass(value, NewsSpider) and value is not NewsSpider
        ]
        assert [site_of_class(spider).name for spider in made]
