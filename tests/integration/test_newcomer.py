"""Somebody who has just cloned the project and types `make crawl`: as root, and as an ordinary
user.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from settings import base

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
NETWORK = re.compile(r"(PIP|UV|SSL|REQUESTS|CURL)_|(https?|no|all)_proxy", re.I)
STEP_S = 300.0


@pytest.fixture
def clone() -> Iterator[Path]:
    """A fresh clone in a folder that everybody can enter; pytest's own are closed to others."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is not a git checkout")
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        clone = folder / "a clone"
        git = [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "-c",
            f"safe.directory={ROOT / '.git'}",
            "clone",
            "--quiet",
        ]
        subprocess.run([*git, "--no-hardlinks", str(ROOT), str(clone)], check=True)
        yield clone


def environment(home: Path, path: str) -> dict[str, str]:
    """A login's, with the way to the packages, without anything of ours or of an outer make."""
    names = [
        name
        for name in os.environ
        if NETWORK.match(name) and not name.endswith(("_CACHE_DIR", "_PYTHON"))
    ]
    return {
        "HOME": str(home),
        "PATH": path,
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in names},
    }


def make_crawl(
    clone: Path, env: dict[str, str], become: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*become, "make", "crawl"],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=STEP_S,
    )
    if "could not install" in done.stderr and os.environ.get("CI") != "true":
        pytest.skip(f"packages can't be installed here: {done.stderr[-500:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def figures(summary: str) -> tuple[int, str]:
    """Pages read, and what is said of them, from a summary that a newcomer can use."""
    assert "Crawl demo ended after" in summary
    assert "URLs known in all" in summary
    assert "scrapy status" in summary.partition("Try next:")[2]
    assert "export --what articles" in summary.partition("Try next:")[2]
    assert re.search(r"^  Articles +[1-9]", summary, re.M), summary
    assert "Traceback" not in summary
    pages = re.search(r"^  Pages +([\d,]+)  (.*)$", summary, re.M)
    assert pages, summary
    return int(pages[1].replace(",", "")), pages[2]


def check_two_runs(clone: Path, env: dict[str, str], become: tuple[str, ...] = ()) -> None:
    first, second = (make_crawl(clone, env, become) for _ in range(2))
    pages, detail = figures(first.stdout)
    assert pages > 100 and " new" in detail
    assert "Installing requirements/run.lock" in first.stderr
    again, detail = figures(second.stdout)
    assert again > 0 and "unchanged" in detail
    assert "Installing" not in second.stderr
    assert f"{clone}/.crawl/log/demo.log" in second.stdout
    status = [*become, ".venv/bin/scrapy", "status", "--json"]
    known = json.loads(
        subprocess.run(
            status, cwd=clone, env=env, capture_output=True, text=True, check=True
        ).stdout
    )
    assert known["crawls"]["demo"]["urls"]["known"] > 100
    changes = subprocess.run(
        ["git", "-c", f"safe.directory={clone}", "status", "--porcelain"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    )
    assert changes.stdout == "", "what a run leaves behind is ignored by git"


def test_a_fresh_clone_crawls_the_demo_web_twice(clone: Path) -> None:
    check_two_runs(clone, environment(Path.home(), os.environ["PATH"]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_can_do_the_same_without_uv(clone: Path) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not here")
    for name in ("home", "tmp"):
        (clone.parent / name).mkdir()
    for path in [clone.parent, *clone.parent.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    env = environment(clone.parent / "home", PLAIN_PATH) | {"TMPDIR": str(clone.parent / "tmp")}
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    check_two_runs(clone, env, become)


def test_the_environment_of_a_newcomer_holds_no_setting_of_ours() -> None:
    assert not base.OURS & environment(Path.home(), PLAIN_PATH).keys()
