"""Saved pages of sites, with what is to be taken from them: the tests of a site's spider.

A folder per spider, `tests/sites/<spider>/`, holds pages as `NAME.html` or `NAME.html.gz`, each
with `NAME.json`: the page's URL and the expected fields. `scrapy fixture` writes both.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Protocol

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from crawlproj.content.article_main import AHEAD
from crawlproj.content.articles import FIELDS, ArticleFields, extract_article
from crawlproj.errors import ConfigError
from crawlproj.news.spider import NewsSpider
from crawlproj.urls.rules import SiteRules

FOLDER: Final = Path("tests/sites")
PAGE_ENDINGS: Final = (".html", ".html.gz")
EXPECTED_ENDING: Final = ".json"
URL: Final = "url"
CHARSET: Final = "charset"
MAX_SHOWN: Final = 200
GENERAL: Final = frozenset({"news"})
"""Spiders that have no site of their own."""
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A page in a file, and the fields that are expected of it. Without `expected` the file that
    should hold them is missing.
    """

    path: Path
    expected: Mapping[str, Any] | None

    @property
    def body(self) -> bytes:
        """The page as it came."""
        body = self.path.read_bytes()
        return gzip.decompress(body) if self.path.suffix == ".gz" else body

    @property
    def name(self) -> str:
        """The name of the page, without its endings."""
        return self.path.name.removesuffix(".gz").removesuffix(".html")


def news_spiders(settings: BaseSettings) -> dict[str, type[NewsSpider]]:
    """The spiders of a project that are each made for one news site, by name."""
    loader = get_spider_loader(settings)
    found: dict[str, type[NewsSpider]] = {}
    for name in loader.list():
        spidercls: type[Spider] = loader.load(name)
        if issubclass(spidercls, NewsSpider) and name not in GENERAL:
            found[name] = spidercls
    return found


def saved_pages(spider: str, folder: Path = FOLDER) -> list[SavedPage]:
    """The saved pages of a spider, by name."""
    pages = []
    for path in sorted((folder / spider).glob("*.html*")):
        if path.name.endswith(PAGE_ENDINGS):
            page = SavedPage(path, None)
            expected = path.with_name(page.name + EXPECTED_ENDING)
            if expected.exists():
                page = SavedPage(path, json.loads(expected.read_text("utf-8")))
            pages.append(page)
    return pages


class PageToSave(Protocol):
    """A page: its body, its URL, and the charset that its server declared."""

    @property
    def body(self) -> bytes: ...

    @property
    def url(self) -> str: ...

    @property
    def charset(self) -> str: ...


def save_page(spider: str, page: PageToSave, fields: ArticleFields, folder: Path = FOLDER) -> Path:
    """Save a page with what was taken from it as its expected fields; returns its path. A page of
    the same URL is replaced.
    """
    place = folder / spider
    place.mkdir(parents=True, exist_ok=True)
    name = _free_name(place, page.url)
    path = place / f"{name}.html.gz"
    path.write_bytes(gzip.compress(page.body, mtime=0))
    expected: dict[str, Any] = {URL: page.url}
    if page.charset:
        expected[CHARSET] = page.charset
    expected |= expected_fields(fields)
    text = json.dumps(expected, indent=2, ensure_ascii=False)
    (place / f"{name}{EXPECTED_ENDING}").write_text(text + "\n", "utf-8")
    return path


def _free_name(place: Path, url: str) -> str:
    """A name that no page of another URL has in this folder."""
    first = name_of_url(url)
    name = first
    number = 1
    while _url_saved_as(place / f"{name}{EXPECTED_ENDING}") not in ("", url):
        number += 1
        name = f"{first}-{number}"
    return name


def _url_saved_as(file: Path) -> str:
    """The URL of the page whose expected fields a file holds; empty if there is none."""
    if not file.exists():
        return ""
    return str(json.loads(file.read_text("utf-8")).get(URL, ""))


def name_of_url(url: str) -> str:
    """A file name that tells people which page it is."""
    rest = url.partition("://")[2].partition("/")[2].removesuffix("/")
    words = _NO_NAME.sub("-", rest.lower().rpartition("/")[2].removesuffix(".html")).strip("-")
    return words[:80] or "index"


def expected_fields(fields: ArticleFields) -> dict[str, Any]:
    """The fields of an article as they are written into a file, those that are empty left out."""
    values = {name: getattr(fields, name) for name in FIELDS}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value
    }


def check_page(page: SavedPage, site: SiteRules | None) -> list[str]:
    """What of a saved page differs from what is expected, a line each; none if all is well."""
    if page.expected is None:
        return [f"{page.path.with_name(page.name + EXPECTED_ENDING)} is missing: scrapy fixture"]
    url = page.expected.get(URL, "")
    selectors = dict(site.fields) if site is not None else None
    charset = page.expected.get(CHARSET, "")
    latest = date.today() + AHEAD
    fields = extract_article(page.body, url, charset=charset, selectors=selectors, latest=latest)
    return [*differences(page.expected, fields), *fields.alarms]


def differences(expected: Mapping[str, Any], fields: ArticleFields) -> Iterator[str]:
    """What of the fields differs from what is expected; fields that nothing is said of may be
    anything.
    """
    found = expected_fields(fields)
    for name in FIELDS:
        if name in expected and expected[name] != found.get(name):
            origin = fields.origins.get(name, "nowhere")
            yield (
                f"{name}: expected {_shown(expected[name])}, came {_shown(found.get(name))} "
                f"(from {origin})"
            )
    for name in expected:
        if name not in (*FIELDS, URL, CHARSET):
            yield f"{name}: there is no such field, there are {', '.join(FIELDS)}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}... ({len(text):,} characters)"


def missing_pages(spiders: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """A line for each spider that has no saved page."""
    return [
        f"the spider {name} has no saved page: scrapy fixture {name} URL writes one into "
        f"{folder / name}"
        for name in spiders
        if not saved_pages(name, folder)
    ]


def site_rules(spidercls: type[NewsSpider], url: str) -> SiteRules | None:
    """The rules that a spider has for the site of a URL."""
    try:
        return spidercls().site_of(url)
    except ConfigError as error:
        raise ConfigError(f"spider {spidercls.name}: {error}") from None
