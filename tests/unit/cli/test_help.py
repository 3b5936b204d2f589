"""What `--help` of our commands shows on a narrow terminal."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import pytest

from crawlproj.cli.command import HelpFormatter, ProjectCommand

COMMANDS = sorted(
    path.stem for path in Path("crawlproj/commands").glob("*.py") if path.stem != "__init__"
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns_and_has_no_heading_but_its_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = import_module(f"crawlproj.commands.{name}").Command()
    if not isinstance(command, ProjectCommand):
        return  # Scrapy's own command with some words of ours
    monkeypatch.setenv("COLUMNS", "80")
    parser = argparse.ArgumentParser(
        formatter_class=HelpFormatter,
        usage=f"scrapy {name} {command.syntax()}",
        conflict_handler="resolve",
        description=command.long_desc(),
    )
    command.settings = {"LOG_LEVEL": "INFO"}  # type: ignore[assignment]
    command.add_options(parser)
    lines = parser.format_help().splitlines()
    assert max(map(len, lines)) <= 80
    underlined = [
        lines[number - 1] for number, line in enumerate(lines) if set(line) in ({"="}, {"-"})
    ]
    assert underlined == ["Usage", "Options", "Global Options"]
