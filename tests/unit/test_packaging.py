"""What is declared, what is locked, and what make offers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(name: str) -> dict[str, Version]:
    lines = (ROOT / "requirements" / f"{name}.lock").read_text().splitlines()
    found = [Requirement(line) for line in lines]
    return {item.name: Version(str(item.specifier).removeprefix("==")) for item in found}


@pytest.mark.parametrize("name", ["run", "test"])
def test_locks_name_versions_and_no_place(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    assert "://" not in text
    assert all(re.match(r"[\w.-]+==[\w.]+( ; .+)?$", line) for line in text.splitlines())


def test_locks_fit_what_is_declared() -> None:
    texts = [text for name in ("test", "deploy") for text in PROJECT["optional-dependencies"][name]]
    extras = [Requirement(text) for text in texts]
    run = locked("run")
    test = locked("test")
    assert all(
        item.specifier.contains(run[item.name])
        for item in map(Requirement, PROJECT["dependencies"])
    )
    assert all(
        item.specifier.contains(test[item.name]) for item in extras if item.name != "crawlproj"
    )
    assert run.items() <= test.items()


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    texts = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    bounds = {
        text: {item.operator for item in Requirement(text).specifier}
        for text in texts
        if not text.startswith("crawlproj[")
    }
    assert not [text for text, found in bounds.items() if found != {">=", "<"}]


def test_make_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.+)$", text, re.M)[1].split())  # type: ignore[index]
    assert phony - {"help"} == set(re.findall(r"@echo 'make (\w+)", text))
    assert phony <= set(re.findall(r"^(\w+):", text, re.M))
