"""`scrapy robot_page`: the page for webmasters (Scrapy names commands after modules: no hyphen)."""

from __future__ import annotations

import argparse
from pathlib import Path

from crawlproj.cli.command import FINE, ProjectCommand, print_lines
from crawlproj.config import Config
from crawlproj.errors import CrawlprojError
from crawlproj.reports.robot_page import robot_page
from crawlproj.scheduling.request_log import rules_in_force


class Command(ProjectCommand):
    def syntax(self) -> str:
        return "[-o FILE]"

    def short_desc(self) -> str:
        return "Make a page for webmasters: who is this robot, how fast is it, how to stop it"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. HTML, made from the settings; put it where ROBOT_CONTACT "
            "leads, or link it from there."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of the screen"
        )

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        assert self.settings is not None
        rules = rules_in_force(self.settings)
        delay_s = float(rules.get("POLITENESS_SERVER_DELAY") or 0)
        pause_s = float(rules.get("POLITENESS_PAUSE") or 0)
        pause_after = int(rules.get("POLITENESS_PAUSE_AFTER") or 0)
        page = robot_page(config, delay_s, pause_after, pause_s=pause_s)
        if opts.output is None:
            print_lines(page.rstrip("\n"))
            return FINE
        try:
            opts.output.write_text(page, encoding="utf-8")
        except OSError as error:
            raise CrawlprojError(f"can't write {opts.output}: {error.strerror or error}") from None
        print_lines(f"Written to {opts.output}")
        return FINE
