"""`scrapy simulate`: how good revisit policies are, in virtual time and without the network."""

from __future__ import annotations

import argparse
import sys

from crawlproj.cli.command import FINE, ProjectCommand, add_json, print_json, print_lines
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_table
from crawlproj.simulate.populations import POPULATIONS
from crawlproj.simulate.table import Row, Table, make_table

LEAST_VISITS = 2
CLEAR_LINE = "\r\x1b[2K"


class Command(ProjectCommand):
    words = (0, sys.maxsize)

    def syntax(self) -> str:
        return "table [--pages N] [--visits N] [--population NAME] [--seed N] [--json]"

    def short_desc(self) -> str:
        return "Compare revisit policies on made-up pages, in virtual time"

    def long_desc(self) -> str:
        return (
            "table: all policies side by side, with the same number of visits, on pages that "
            f"change in different ways ({', '.join(POPULATIONS)}). Freshness is the part of the "
            "time that a copy is what the page says; age is how long ago the first change was that "
            "it lacks; both also as ratios to an oracle that knows how often each page changes. "
            "What runs is the code that a crawl runs."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        parser.add_argument("--pages", type=int, default=300, metavar="N", help="(default: 300)")
        parser.add_argument(
            "--visits", type=int, default=80, metavar="N",
            help="visits per page, in the mean (default: 80)",
        )  # fmt: skip
        parser.add_argument(
            "--population", action="append", metavar="NAME",
            help="pages of this sort only; may be given several times",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default: 1)")

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        if words != ["table"]:
            raise ConfigError(f"usage: scrapy simulate {self.syntax()} (there is: table)")
        table = make_table(
            _read_populations(opts.population),
            _read_number("--pages", opts.pages, least=1),
            _read_number("--visits", opts.visits, least=LEAST_VISITS),
            seed=_read_number("--seed", opts.seed, least=0),
            note_progress=_show_progress,
        )
        _show_progress("")
        if opts.json:
            print_json({"populations": table})
        else:
            print_lines(_table_lines(table))
        return FINE


def _read_populations(names: list[str] | None) -> list[str]:
    for name in names or []:
        if name not in POPULATIONS:
            raise ConfigError(
                f"--population {name!r} makes no sense: it must be one of {', '.join(POPULATIONS)}"
            )
    return names or list(POPULATIONS)


def _read_number(option: str, number: int, least: int) -> int:
    if number < least:
        raise ConfigError(f"{option} = {number} makes no sense: it must be {least} or more")
    return number


def _show_progress(text: str) -> None:
    """One line on a terminal, drawn anew each time."""
    if sys.stderr.isatty():
        print(f"{CLEAR_LINE}{text}", end="", file=sys.stderr, flush=True)


def _table_lines(table: Table) -> list[str]:
    """A block for each population."""
    lines: list[str] = []
    for name, rows in table.items():
        head = [name, "visits", "captured", "freshness", "of oracle", "age", "of oracle"]
        if "delay_s" in rows["uniform"]:
            head += ["delay", "of uniform"]
        cells = [[policy, *_row_cells(row)] for policy, row in rows.items()]
        lines += [*format_table(head, cells), ""]
    return lines[:-1]


def _row_cells(row: Row) -> list[str]:
    cells = [
        str(row["visits"]),
        f"{row['captured']:.1%}",
        f"{row['freshness']:.1%}",
        f"{row['freshness_to_oracle']:.3f}",
        _format_hours(row["age_s"]),
        f"{row['age_to_oracle']:.2f}",
    ]
    if "delay_s" in row:
        cells += [_format_hours(row["delay_s"]), f"{row['delay_to_uniform']:.2f}"]
    return cells


def _format_hours(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
