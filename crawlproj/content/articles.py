"""What an article is: its fields, taken from the bytes of a page.

The site's own selectors come first, where there are any, then a general recipe. Sites change
without a word: a selector that finds nothing, or much less or more text than the recipe, is not
believed and leaves an alarm. `article_page` reads the page, `article_text` its text,
`article_fields` all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from crawlproj.content.article_fields import (
    find_authors,
    find_canonical,
    find_image,
    find_keywords,
    find_language,
    find_modified,
    find_place,
    find_published,
    find_section,
    find_title,
    normalize_code,
    parse_date,
    split_authors,
    split_keywords,
    title_forms,
)
from crawlproj.content.article_page import ArticlePage, clean_lines, parse_page
from crawlproj.content.article_selectors import select_text, select_values, selector_fault
from crawlproj.content.article_text import general_text
from crawlproj.content.json_ld import plain_lines
from crawlproj.errors import ConfigError

FIELDS: Final = (
    "title",
    "text",
    "date",
    "modified",
    "authors",
    "language",
    "section",
    "keywords",
    "place",
    "image",
    "canonical",
)
"""The fields that a selector may be given for."""

LEAST_TEXT: Final = 0.7
MOST_TEXT: Final = 1.3
"""What selectors find, as a share of the general recipe's text, is believed between these two."""
LONG_BODY: Final = 250
"""Characters of a text in JSON-LD from which it may stand in for that of the page."""


@dataclass(frozen=True, slots=True)
class ArticleFields:
    """The fields of an article; None, or empty, where the page does not say.

    Dates are ISO 8601. `origins` says of each field that is there where it came from, `alarms` what
    is odd: selectors that find nothing, or much less or more text than the general recipe.
    """

    title: str | None = None
    text: str = ""
    date: str | None = None
    modified: str | None = None
    authors: tuple[str, ...] = ()
    language: str | None = None
    section: str | None = None
    keywords: tuple[str, ...] = ()
    place: str | None = None
    image: str | None = None
    canonical: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()


def extract_article(
    body: bytes,
    url: str,
    *,
    charset: str = "",
    selectors: Mapping[str, str] | None = None,
    latest: date | None = None,
) -> ArticleFields:
    """The article of a page. `charset` is the one that the page was read in, if that is known;
    `selectors` are the site's own, by field; dates after `latest` are not believed.

    No page makes it fail: what has no article gives empty fields.
    """
    page = parse_page(body, url, charset)
    if page is None:
        return ArticleFields()
    collected = _Collected(page, selectors or {}, latest)
    collected.set_texts("authors", *find_authors(page))
    collected.set_text("title", *find_title(page))
    collected.set_text("date", *find_published(page, latest))
    collected.set_text("modified", *find_modified(page, latest))
    collected.set_text("language", *find_language(page))
    collected.set_text("section", *find_section(page))
    collected.set_texts("keywords", *find_keywords(page))
    collected.set_text("place", *find_place(page))
    collected.set_text("image", *find_image(page))
    collected.set_text("canonical", *find_canonical(page))
    collected.set_article_text()
    return ArticleFields(
        **collected.values, origins=collected.origins, alarms=tuple(collected.alarms)
    )


def check_selector(field: str, selector: str) -> None:
    """Refuse a selector that cannot be used: ConfigError, in one line."""
    if field not in FIELDS:
        raise ConfigError(f"articles have no field {field!r}, only {', '.join(FIELDS)}")
    fault = selector_fault(selector)
    if fault:
        raise ConfigError(f"the selector of {field}, {selector!r}, is wrong: {fault}")


class _Collected:
    """The fields of one article while they are put together."""

    def __init__(
        self, page: ArticlePage, selectors: Mapping[str, str], latest: date | None
    ) -> None:
        self._page = page
        self._selectors = selectors
        self._latest = latest
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.alarms: list[str] = []

    def set_text(self, name: str, value: str | None, origin: str) -> None:
        """A field that is one value, given what the general recipe says."""
        selected = self._select_value(name)
        if selected:
            self._set_value(name, selected, "selector")
        else:
            self._set_value(name, value, origin)

    def set_texts(self, name: str, values: tuple[str, ...], origin: str) -> None:
        """A field that is several values."""
        selected = self._select_values(name)
        if selected and name == "authors":
            selected = [author for text in selected for author in split_authors(text)]
        if selected and name == "keywords":
            selected = list(split_keywords(selected))
        if selected:
            self._set_value(name, tuple(dict.fromkeys(selected)), "selector")
        else:
            self._set_value(name, values, origin)

    def set_article_text(self) -> None:
        """The text, when title and authors are known."""
        titles = [self.values.get("title") or "", *title_forms(self._page)]
        text = general_text(self._page, titles, self.values.get("authors", ()))
        origin = "trafilatura"
        body = clean_lines(plain_lines(self._page.article.get("articleBody")))
        if len(body) >= LONG_BODY and len(text) < len(body) / 2:
            text = body
            origin = "json-ld"
        selected = self._select_text(len(text))
        if selected:
            self._set_value("text", selected, "selector")
        else:
            self._set_value("text", text, origin)

    def _set_value(self, name: str, value: Any, origin: str) -> None:
        if value:
            self.values[name] = value
            self.origins[name] = origin

    def _select_text(self, general: int) -> str:
        """What the selector of the text finds, if it is about as much as the general recipe's."""
        if not self._can_select("text"):
            return ""
        selector = self._selectors["text"]
        text = clean_lines(select_text(self._page.tree, selector))
        if not text:
            self._warn_of("text", "finds nothing")
            return ""
        if general and not LEAST_TEXT <= len(text) / general <= MOST_TEXT:
            self._warn_of(
                "text", f"finds {len(text)} characters, the general recipe finds {general}"
            )
            return ""
        return text

    def _select_value(self, name: str) -> str | None:
        """The first value that the selector of a field finds and that can be one."""
        values = self._select_values(name)
        for text in values:
            value = self._read_value(name, text)
            if value:
                return value
        if values:
            self._warn_of(name, f"finds {values[0][:60]!r}, which is none")
        return None

    def _read_value(self, name: str, text: str) -> str | None:
        if name in ("date", "modified"):
            return parse_date(text, self._latest)
        if name in ("image", "canonical"):
            return self._page.absolute_url(text)
        if name == "language":
            return normalize_code(text)
        return text

    def _select_values(self, name: str) -> list[str]:
        if not self._can_select(name):
            return []
        values = select_values(self._page.tree, name, self._selectors[name])
        if not values:
            self._warn_of(name, "finds nothing")
        return values

    def _can_select(self, name: str) -> bool:
        """Whether there is a selector for a field, and one that can be used."""
        if not self._selectors.get(name):
            return False
        fault = selector_fault(self._selectors[name])
        if fault:
            self._warn_of(name, f"is wrong: {fault}")
        return not fault

    def _warn_of(self, name: str, fault: str) -> None:
        self.alarms.append(f"{name}: the selector {self._selectors[name]!r} {fault}")
