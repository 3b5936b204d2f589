"""What is given to make reaches the commands as it was written; nothing in it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPY = """#!{python}
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ)]))
"""

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Our Makefile with a Python that only says how it was called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "run.lock").touch()
    (tmp_path / "requirements" / "install").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".run").touch()
    spy = tmp_path / ".venv" / "bin" / "python"
    spy.write_text(SPY.format(python=sys.executable))
    spy.chmod(0o755)
    return tmp_path


def make_crawl(folder: Path, *given: str, **env: str) -> tuple[list[str], dict[str, str]]:
    """The words and the environment of the command that `make crawl` runs."""
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "ARGS"))
    }
    done = subprocess.run(
        ["make", "crawl", *given],
        cwd=folder,
        env=clean | env,
        capture_output=True,
        text=True,
        check=True,
    )
    words, environ = json.loads(done.stdout)
    return words, environ


@pytest.mark.parametrize("from_environment", [False, True])
@pytest.mark.parametrize(
    "seeds",
    [
        "https://e.org/a$b?c=$(d)",
        "$(shell>touched)https://e.org/",
        "$$(touch${IFS}touched)",
        "`>touched`",
        "x;>touched;'\"#\\",
        "${eval$(shell>touched)}",
        "$(error,stop)",
    ],
)
def test_seeds_arrive_as_they_were_written(
    folder: Path, seeds: str, from_environment: bool
) -> None:
    if from_environment:
        words, _ = make_crawl(folder, SEEDS=seeds)
    else:
        words, _ = make_crawl(folder, f"SEEDS={seeds}")
    assert words[-2:] == ["-a", f"seeds={seeds}"]
    assert not (folder / "touched").exists()


def test_settings_arrive_as_they_were_written(folder: Path) -> None:
    given = {
        "POLITENESS_DELAY": "$(shell touch touched)",
        "CRAWL_NAME": "a,b (c) $d #e\\",
        "ROBOT_CONTACT": "mailto:me@example.org",
    }
    words, environ = make_crawl(folder, *(f"{name}={value}" for name, value in given.items()))
    assert words == ["-m", "scrapy", "demo"]
    assert {name: environ[name] for name in given} == given
    assert not (folder / "touched").exists()


def test_args_are_words_and_seeds_are_parted_by_blanks_or_commas(folder: Path) -> None:
    seeds = "SEEDS= https://a.test/ https://b.test/,https://c.test/"
    words, _ = make_crawl(folder, seeds, 'ARGS=-s A="b c" -a x=1')
    given = "seeds=https://a.test/,https://b.test/,https://c.test/"
    assert words[3:] == ["site", "-a", given, "-s", "A=b c", "-a", "x=1"]
    words, _ = make_crawl(folder, ARGS="$(shell touch touched) -x")
    assert not (folder / "touched").exists()
