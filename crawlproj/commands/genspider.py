"""`scrapy genspider`: Scrapy's own, with a template for news sites, and with the checks and exit
codes of our other commands.
"""

from __future__ import annotations

import argparse
import os
import re
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from scrapy.commands import genspider
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import closest_scrapy_cfg

from crawlproj.cli.command import check_words, exit_codes, print_error, print_lines
from crawlproj.cli.next_commands import scrapy_program
from crawlproj.errors import ConfigError
from crawlproj.news.yaml_file import nearest
from crawlproj.urls.canonical import host_of, origin_of, typed_url

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_NAME = 100
SUFFIX = ".tmpl"


class Command(genspider.Command):
    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. `-t news` makes one for a news site, with a folder for saved "
            "pages of it, which are its tests. Exit codes: 0 fine, 2 bad usage or input."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            if not opts.list and not opts.dump:
                check_words(args, 2, 2, usage=f"scrapy genspider {self.syntax()}")
                self._check_input(*args)
            super().run(args, opts)

    def _check_input(self, name: str, site: str) -> None:
        """Raise ConfigError for a name or a site of which no spider can be made."""
        assert self.settings is not None
        if not NAME.fullmatch(name) or len(name) > MAX_NAME:
            raise ConfigError(
                f"{name[:MAX_NAME]!r} can't name a spider: use letters, digits, and - _ . between "
                f"them, at most {MAX_NAME}"
            )
        if genspider.sanitize_module_name(name) == self.settings.get("BOT_NAME"):
            raise ConfigError(f"{name!r} is the name of the project: a spider needs another one")
        seed_of(site)

    def _generate_template_variables(
        self, module: str, name: str, url: str, template_name: str
    ) -> dict[str, Any]:
        variables: dict[str, Any] = super()._generate_template_variables(
            module, name, url, template_name
        )
        seed = seed_of(url)
        return variables | {
            "seed": seed,
            "origin": origin_of(seed),
            "site_domain": host_of(seed).removeprefix("www."),
        }

    def _genspider(
        self,
        module: str,
        name: str,
        url: str,
        template_name: str,
        template_file: str | os.PathLike[str],
    ) -> Path:
        path = super()._genspider(module, name, url, template_name, template_file)
        if Path(template_file).parent == our_templates():
            folder = make_test_folder(name)
            print_lines(next_lines(name, path, folder))
        return path

    def _find_template(self, template: str) -> Path:
        """A file, one of Scrapy's or the project's templates, or one of ours, in this order."""
        filename = template
        if not template.endswith(SUFFIX):
            filename += SUFFIX
        folders = (Path(), Path(self.templates_dir), our_templates())
        for path in (folder / filename for folder in folders):
            if path.is_file():
                return path
        raise ConfigError(
            f"there is no template {template!r}{nearest(template, self._templates())}"
        )

    def _list_templates(self) -> None:
        print_lines(["Available templates:", *(f"  {name}" for name in self._templates())])

    def _templates(self) -> list[str]:
        folders = (Path(self.templates_dir), our_templates())
        return sorted({path.stem for folder in folders for path in folder.glob(f"*{SUFFIX}")})

    def _spider_exists(self, name: str) -> bool:
        """Raise ConfigError if there is a spider of that name, or a file where it would go."""
        assert self.settings is not None
        folder = Path()
        if self.settings.get("NEWSPIDER_MODULE"):
            loader = get_spider_loader(self.settings)
            if name in loader.list():
                module = loader.load(name).__module__
                raise ConfigError(f"there is a spider {name!r} already, in {module} (see --force)")
            package = import_module(self.settings["NEWSPIDER_MODULE"])
            assert package.__file__ is not None
            folder = Path(package.__file__).parent
        path = folder / f"{genspider.sanitize_module_name(name)}.py"
        if path.exists():
            raise ConfigError(f"{path} is there already (see --force)")
        return False


def our_templates() -> Path:
    return Path(str(files("crawlproj"))) / "news" / "templates"


def seed_of(word: str) -> str:
    """The URL that a person means by a domain or a URL; ConfigError if it is neither."""
    url = typed_url(word)
    if url is not None and "://" not in word:
        url = typed_url(f"https://{word}")
    if url is None:
        raise ConfigError(f"{word[:200]!r} is no domain: write it as example.org")
    return url


def make_test_folder(name: str) -> Path | None:
    """The folder for saved pages of a spider, beside the project's own tests; None if it can't be
    made. An empty file keeps it in git.
    """
    config = closest_scrapy_cfg()
    root = Path(config).parent if config else Path()
    folder = root / "tests" / "sites" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            (folder / ".gitkeep").touch()
    except OSError as error:
        print_error(f"the folder {folder} can't be made: {error.strerror or error}")
        return None
    return folder


def next_lines(name: str, path: Path, folder: Path | None) -> list[str]:
    """What to do with a new spider."""
    scrapy = scrapy_program()
    lines = [f"Say in {short_path(path)} what its articles are. Then, with URL an article of it:"]
    if folder is not None:
        lines.append(
            f"  {scrapy} fixture {name} URL    saves it as a test, in {short_path(folder)}"
        )
    return [
        *lines,
        f"  {scrapy} article URL --spider {name}    shows each field, and where it came from",
        f"  {scrapy} crawl {name} -o articles.jsonl -s ROBOT_CONTACT=mailto:you@example.org",
    ]


def short_path(path: Path) -> str:
    """The path as seen from the current folder."""
    here = Path.cwd()
    if path.is_relative_to(here):
        return str(path.relative_to(here))
    return str(path)
