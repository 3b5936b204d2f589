"""`scrapy runspider FILE`: a spider that is in no project's folder, run as `scrapy crawl` runs one.

It has the same checks, the same politeness and the same crawl: that of the spider's name.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Spider
from scrapy.commands import runspider
from scrapy.spiderloader import DummySpiderLoader
from scrapy.utils.spider import iter_spider_classes

from crawlproj.cli.command import check_words, exit_codes
from crawlproj.commands import crawl
from crawlproj.errors import ConfigError


class Command(crawl.Command):
    requires_project = False
    default_settings: ClassVar[dict[str, Any]] = {"SPIDER_LOADER_CLASS": DummySpiderLoader}
    spidercls: type[Spider]

    def syntax(self) -> str:
        return "[options] <spider_file>"

    def short_desc(self) -> str:
        return "Run a spider from a Python file"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, as `scrapy crawl` runs those of the project: the same checks, "
            "politeness and exit codes, and a crawl of the spider's name."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Scrapy calls this before it starts anything: the last moment to refuse."""
        super(crawl.Command, self).process_options(args, opts)
        assert self.settings is not None
        with exit_codes(self.settings.get("LOG_FILE")):
            check_words(args, 1, 1, usage=f"scrapy runspider {self.syntax()}")
            self.spidercls = load_file(Path(args[0]))
            self.check_start(self.spidercls, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.run_spider(self.spidercls, opts)


def load_file(path: Path) -> type[Spider]:
    """The spider of a file, the last if there are several, as Scrapy takes it."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    try:
        module = runspider._import_file(path)
    except (ImportError, SyntaxError, ValueError) as error:
        raise ConfigError(f"{path} can't be loaded: {error}") from None
    spiders: list[type[Spider]] = list(iter_spider_classes(module))
    if not spiders:
        raise ConfigError(f"there is no spider in {path}")
    return spiders[-1]
