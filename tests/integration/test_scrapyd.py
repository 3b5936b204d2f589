"""The egg, and a real Scrapyd in an empty folder that runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scrapyd_client import ScrapydClient

from crawlproj.demo import DemoServer, FrozenClock
from settings import base
from tests.support.webs import serve_models

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("crawlproj", "middlewares", "pipelines", "settings", "spiders")
JOB_S = 90.0


def environment() -> dict[str, str]:
    """Ours without settings of ours, and without a way to the working tree."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {*base.OURS, "PYTHONPATH", "SCRAPY_SETTINGS_MODULE"}
    }


def sources(tree: Path) -> set[str]:
    """Every file of our packages: code, SQL and all else."""
    found = {
        str(path.relative_to(tree))
        for name in PACKAGES
        for path in (tree / name).rglob("*")
        if path.is_file()
    }
    expected = {"crawlproj/database/sql/queries/frontier.sql", "settings/scrapyd.py"}
    assert expected | {"spiders/site.py"} < found
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packed, so that building leaves nothing behind in the working tree."""
    tree = tmp_path_factory.mktemp("tree")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    for name in ("pyproject.toml", "setup.py", "scrapy.cfg", "README.md"):
        shutil.copy(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def egg(tree: Path) -> Path:
    egg = tree / "crawlproj.egg"
    deploy(tree, "--build-egg", str(egg))
    return egg


def deploy(tree: Path, *words: str) -> str:
    command = [sys.executable, "-m", "scrapyd_client.deploy", *words]
    done = subprocess.run(command, cwd=tree, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Scrapyd:
    """A running one, with our egg in it."""

    url: str
    folder: Path
    client: Any

    def run(self, settings: dict[str, str], **arguments: str) -> str:
        """A job of the spider `site`, to its end; its log."""
        return self.ended(self.start(settings, **arguments))

    def start(self, settings: dict[str, str], spider: str = "site", **arguments: str) -> str:
        words = [("setting", f"{name}={value}") for name, value in settings.items()]
        job: str = self.client.schedule("crawlproj", spider, [*words, *arguments.items()])
        return job

    def ended(self, job: str, spider: str = "site") -> str:
        """The log of a job, once it has ended."""
        eventually(
            lambda: any(ended["id"] == job for ended in self.client.jobs("crawlproj")["finished"])
        )
        with urllib.request.urlopen(f"{self.url}/logs/crawlproj/{spider}/{job}.log") as answer:
            text: str = answer.read().decode()
        return text


def eventually(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + JOB_S
    while time.monotonic() < deadline:
        if found := ask():
            return found
        time.sleep(0.1)
    raise AssertionError(f"nothing after {JOB_S:.0f} s")


def answers(client: Any) -> bool:
    try:
        return bool(client.daemonstatus())
    except OSError:
        return False


@contextmanager
def running_scrapyd(folder: Path, python: str = sys.executable) -> Iterator[Scrapyd]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = (
        "[scrapyd]",
        "bind_address = 127.0.0.1",
        f"http_port = {port}",
        "poll_interval = 0.2",
        "max_proc = 2",
    )
    (folder / "scrapyd.conf").write_text("\n".join(own))
    with (folder / "scrapyd.log").open("w") as log:
        command = [python, "-m", "scrapyd"]
        server = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        found = Scrapyd(
            f"http://127.0.0.1:{port}", folder, ScrapydClient(f"http://127.0.0.1:{port}")
        )
        eventually(lambda: answers(found.client))
        yield found
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="module")
def scrapyd(tree: Path, egg: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    with running_scrapyd(tmp_path_factory.mktemp("scrapyd")) as found:
        point_to(tree / "scrapy.cfg", found.url)
        code, said = make_deploy(tree, "--egg", str(egg), "--version", "1")
        assert code == 0
        assert f"Deployed crawlproj, version 1, to {found.url}: 5 spiders." in said
        yield found


def make_deploy(tree: Path, *words: str) -> tuple[int, str]:
    """What `make deploy` runs: its exit code and all that it says."""
    command = [sys.executable, "-m", "crawlproj.cli.deploy", *words]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=tree, env=environment(), text=True, **both)  # type: ignore[call-overload]
    return done.returncode, done.stdout


def bare_python(folder: Path) -> str:
    """A Python with Scrapyd and what that needs, and nothing else."""
    venv.create(folder / "venv", symlinks=True)
    packages = folder / "packages"
    packages.mkdir()
    todo = {"scrapyd"}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            link = packages / top
            if not link.exists() and top != "__pycache__":
                link.symlink_to(Path(str(found.locate_file(top))))
        for line in found.requires or ():
            need = Requirement(line)
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            if wanted and canonicalize_name(need.name) not in seen:
                todo.add(canonicalize_name(need.name))
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    (site / "packages.pth").write_text(str(packages))
    return str(folder / "venv" / "bin" / "python")


def point_to(cfg: Path, url: str) -> None:
    config = ConfigParser()
    config.read(cfg)
    config["deploy"]["url"] = url
    with cfg.open("w") as file:
        config.write(file)


def test_the_egg_holds_every_file_and_names_the_settings(egg: Path, tree: Path) -> None:
    with zipfile.ZipFile(egg) as archive:
        names = set(archive.namelist())
        points = archive.read("EGG-INFO/entry_points.txt").decode()
    assert sources(tree) <= names
    assert points.split() == ["[scrapy]", "settings", "=", "settings.scrapyd"]
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs"))]


def test_the_wheel_holds_every_file(tree: Path, tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=tree, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        assert sources(tree) <= set(archive.namelist())


def test_a_job_crawls_the_demo_web_to_its_end(scrapyd: Scrapyd, tmp_path: Path) -> None:
    assert "site" in scrapyd.client.spiders("crawlproj")
    with DemoServer("tiny") as demo:
        settings = {
            "CRAWL_DIR": str(tmp_path / "crawl"),
            "GUARD_ALLOW_PRIVATE": "True",
            "DNS_HOSTS": json.dumps(demo.dns_hosts),
            "POLITENESS_DELAY": "0.02",
            "POLITENESS_SLOWDOWN": "0",
            "CRAWL_PATIENCE": "1s",
            "PANEL_INTERVAL": "0.2",
        }
        log = scrapyd.run(settings, seeds=demo.url("one"))
        answered = {
            record.host + record.path for record in demo.log.records() if record.status == 200
        }
        fetched = {url for url in answered if not url.endswith("/robots.txt")}
    assert "'finish_reason': 'finished'" in log, log
    assert "Spider closed (finished)" in log
    assert len(fetched) > 5
    assert f"'end/waiting': {len(fetched)}," in log
    progress = re.findall(r"INFO: (crawl site 0:\d\d  [\d,]+ pages?, .*)", log)
    assert progress and "/s: " in progress[0] and " in hand" in progress[0]
    assert "Traceback" not in log
    assert "DeprecationWarning" not in log
    assert (tmp_path / "crawl" / "pg").is_dir()
    assert not (scrapyd.folder / ".crawl").exists()


@pytest.mark.parametrize(
    "name",
    [
        "echo",
        pytest.param("lantern", marks=pytest.mark.proof),
        pytest.param("ridgeway", marks=pytest.mark.proof),
    ],
)
def test_a_news_spider_runs_as_a_job(name: str, scrapyd: Scrapyd, tmp_path: Path) -> None:
    out = tmp_path / "articles.jsonl"
    with serve_models(clock=FrozenClock()) as demo:
        settings = {
            "CRAWL_DIR": str(tmp_path / "crawl"),
            "GUARD_ALLOW_PRIVATE": "1",
            "DNS_HOSTS": json.dumps(demo.dns_hosts),
            "POLITENESS_DELAY": "0.02",
            "CRAWL_PATIENCE": "1s",
            "FEEDS": json.dumps({out.as_uri(): {"format": "jsonlines"}}),
        }
        log = scrapyd.ended(scrapyd.start(settings, name), name)
        pages = demo.web.truth_at(demo.now()).pages
    assert "'finish_reason': 'finished'" in log, log
    assert "Traceback" not in log
    articles = {
        url for url, page in pages.items() if page.kind == "article" and f"//{name}." in url
    }
    items = [json.loads(line) for line in out.read_text().splitlines()]
    assert {item["url"] for item in items} == articles
    assert {item["site"] for item in items} == {name}


def test_deploy_says_what_the_python_of_a_scrapyd_lacks(
    tree: Path, egg: Path, tmp_path: Path
) -> None:
    cfg = (tree / "scrapy.cfg").read_text()
    try:
        with running_scrapyd(tmp_path, bare_python(tmp_path)) as bare:
            point_to(tree / "scrapy.cfg", bare.url)
            code, said = make_deploy(tree, "--egg", str(egg))
            versions = bare.client.versions("crawlproj")
    finally:
        (tree / "scrapy.cfg").write_text(cfg)
    assert code == 1
    assert len(said.splitlines()) == 1, said
    assert said.startswith(f"crawlproj: {bare.url} can't run it: the Python of this Scrapyd lacks ")
    assert " deflate," in said and " google-re2," in said and " scrapy," not in said
    assert f"Install it there: {tmp_path}/venv/bin/python" in said
    assert "-m pip install 'ada-url<5,>=4.0.0' 'chardetng-py<1,>=0.3.5' " in said
    assert versions == [], "a version that can't run is taken back"


def test_deploy_says_why_nothing_was_deployed(tree: Path, egg: Path, tmp_path: Path) -> None:
    (tmp_path / "settings").symlink_to(tree / "settings")
    (tmp_path / "crawlproj").symlink_to(tree / "crawlproj")
    cfg = tmp_path / "scrapy.cfg"
    said = {}
    for name, text in {
        "nowhere": "[deploy]\nurl = http://127.0.0.1:9/\nproject = crawlproj\n",
        "no section": "",
        "no target": "[deploy:live]\nurl = http://127.0.0.1:9/\nproject = crawlproj\n",
    }.items():
        cfg.write_text(f"[settings]\ndefault = settings.local\n{text}")
        said[name] = make_deploy(tmp_path, "--egg", str(egg))
    assert said == {
        "nowhere": (
            1,
            "crawlproj: nothing was deployed: no Scrapyd answers at http://127.0.0.1:9/ "
            "(scrapy.cfg says where it is; scrapyd starts one)\n",
        ),
        "no section": (
            2,
            "crawlproj: scrapy.cfg does not say where to deploy: give it [deploy] with url = "
            "http://localhost:6800/ and project = crawlproj\n",
        ),
        "no target": (2, "crawlproj: scrapy.cfg has no target 'default'; it has: live\n"),
    }


@pytest.mark.parametrize("settings", [{"CRAWL_DIR": "here"}, {}])
def test_a_relative_folder_is_refused_in_the_log(
    scrapyd: Scrapyd, settings: dict[str, str]
) -> None:
    log = scrapyd.run(settings, seeds="http://127.0.0.1:9/")
    name = settings.get("CRAWL_DIR", ".crawl")
    assert f"CRAWL_DIR = {name!r} must be an absolute path under Scrapyd" in log
    assert not (scrapyd.folder / name).exists()


def test_a_job_that_is_cancelled_stops_in_order(scrapyd: Scrapyd, tmp_path: Path) -> None:
    with DemoServer("tiny") as demo:
        settings = {
            "CRAWL_DIR": str(tmp_path),
            "GUARD_ALLOW_PRIVATE": "1",
            "DNS_HOSTS": json.dumps(demo.dns_hosts),
        }
        job = scrapyd.start(settings | {"POLITENESS_DELAY": "30"}, seeds=demo.url("one"))
        eventually(lambda: demo.log.records())
        scrapyd.client.cancel("crawlproj", job)
        log = scrapyd.ended(job)
    assert "'finish_reason': 'shutdown'" in log, log
    assert "Traceback" not in log
