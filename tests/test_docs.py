"""The docs say what the code does: every setting, stat, command and link is checked against the
source.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules

import pytest
import scrapy.commands

from crawlproj.frontier.base import State
from crawlproj.scheduling.visits import STAT_AREAS
from settings import base

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCES = [
    path
    for name in ("crawlproj", "spiders", "middlewares", "pipelines")
    for path in (ROOT / name).rglob("*.py")
]
COUNTERS = {"inc_value", "set_value", "max_value", "min_value", "count", "_count", "inc"}
COMMANDS = {module.name for module in iter_modules([str(ROOT / "crawlproj" / "commands")])}
REASONED = {f"{area}/REASON" for area in STAT_AREAS.values()}
SCRAPYS = {module.name for module in iter_modules(scrapy.commands.__path__)}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rows(name: str) -> list[list[str]]:
    """The cells of all table rows of a page, without the back-ticks around them."""
    lines = [
        line for line in (ROOT / "docs" / name).read_text().splitlines() if line.startswith("| `")
    ]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


def defaults() -> dict[str, str]:
    """Our settings as the file has them, whatever the environment says, in the way the docs write
    them.
    """
    found: dict[str, str] = {}
    for node in ast.parse((ROOT / "settings" / "base.py").read_text()).body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if isinstance(target, ast.Name) and target.id in base.OURS:
            assert isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            found[target.id] = shown(ast.literal_eval(node.value))
    return found


def shown(value: object) -> str:
    if isinstance(value, str):
        return value or "empty"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def stats() -> set[str]:
    """Names of all stats that the code raises; `*` stands for what is filled in."""
    return {
        name
        for path in SOURCES
        for name in raised(path)
        if re.fullmatch(r"[a-z_*]+/[a-z_*]+", name)
    }


def raised(path: Path) -> Iterator[str]:
    """Of a name that is a variable, all that this file ever calls so."""
    tree = ast.parse(path.read_text())
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.func, ast.Name | ast.Attribute)
        ):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called in COUNTERS:
                argument = node.args[0]
                values = (
                    assigned.get(argument.id, []) if isinstance(argument, ast.Name) else [argument]
                )
                yield from (text for value in values for text in texts(value))


def texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)  # type: ignore[misc]
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def fits(name: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[A-Za-z_]+"), name) is not None


def code_lines(path: Path) -> list[str]:
    """Lines of fenced blocks, and what stands in back-ticks in the text."""
    text = path.read_text()
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.M | re.S)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    return [
        line.removeprefix("$ ").strip() for block in blocks for line in block.splitlines()
    ] + spans


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


def files() -> list[Path]:
    """Everything that belongs to the project: tracked, or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not here")
    if done.returncode:
        pytest.skip("this is not a git checkout")
    return [path for line in done.stdout.splitlines() if (path := ROOT / line).is_file()]


def test_every_setting_is_documented_with_its_default() -> None:
    assert set(defaults()) == set(base.OURS)
    assert {row[0]: row[1] for row in rows("settings.md")} == defaults()
    assert not [row[0] for row in rows("settings.md") if len(row) != 3 or len(row[2]) < 10]


def test_every_stat_is_documented() -> None:
    documented = [row[0] for row in rows("stats.md")]
    assert REASONED.issubset(documented)
    assert {"end/*", "refused/guard"}.issubset(stats())
    assert not [
        pattern for pattern in stats() if not any(fits(name, pattern) for name in documented)
    ]
    assert {f"end/{state.value}" for state in State} - {"end/new", "end/ignored"} <= set(documented)


def test_every_documented_stat_exists() -> None:
    patterns = stats() - {"*/*"}
    names = {row[0] for row in rows("stats.md")} - REASONED
    assert not [name for name in names if not any(fits(name, pattern) for pattern in patterns)]


def test_every_command_is_documented() -> None:
    headings = re.findall(r"^## `scrapy (\w+)", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert set(headings) == COMMANDS
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_commands_in_the_docs_exist(path: Path) -> None:
    lines = code_lines(path)
    used = {match[1] for line in lines if (match := re.match(r"scrapy (\w+)", line))}
    made = {match[1] for line in lines if (match := re.match(r"make (\w+)", line))}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert used <= COMMANDS | SCRAPYS
    assert made <= targets


def test_every_table_is_described() -> None:
    tables = set(
        re.findall(
            r"^create table (\w+)",
            (ROOT / "crawlproj" / "database" / "sql" / "schema.sql").read_text(),
            re.M,
        )
    )
    assert {row[0] for row in rows("database.md")} == tables


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_relative_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        place, _, anchor = target.partition("#")
        file = (path.parent / place).resolve() if place else path
        assert file.exists(), target
        if anchor:
            assert anchor in {
                slug(heading) for heading in re.findall(r"^#+ (.+)$", file.read_text(), re.M)
            }, target


def test_every_page_of_the_docs_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)", (ROOT / "README.md").read_text()))
    assert linked == {name_of(path) for path in DOCS if path.parent != ROOT}


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    folders = r"(?<![\w.:*/}\])-])/(?:root|home|Users|work|mnt|workspace|tmp/lab)/\w"
    hosts = r"pypi\.org|pythonhosted|registry\.npm|index-url\s*[=:]\s*\S|extra-index-url\s+\S"
    pattern = re.compile(f"{folders}|{hosts}")
    found = {
        name_of(path): match[0]
        for path in files()
        if path.suffix != ".png" and (match := pattern.search(text_of(path)))
    }
    found.pop("tests/test_docs.py", None)
    assert not found


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_every_module_that_a_page_names_is_there() -> None:
    """By its path or the end of it, in back-ticks."""
    modules = [f"/{name_of(path)}" for top in ROOT.glob("[a-z]*") for path in top.rglob("*.py")]
    missing = []
    for page in DOCS:
        if page.name in {"decisions.md", "CHANGELOG.md", "tutorial.md", "news-tutorial.md"}:
            continue  # they tell of what was, or of what is to be written
        for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page.read_text()):
            if not any(module.endswith(f"/{name}") for module in modules):
                missing.append(f"{page.name}: {name}")
    assert not missing
