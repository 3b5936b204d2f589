"""The fields of an article that a site gives selectors for, and whether the selectors are any."""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Selector

from crawlproj.content import articles
from crawlproj.errors import ConfigError
from crawlproj.news.yaml_file import nearest


def check_field(field: str) -> None:
    """Raise ConfigError if an article has no such field."""
    if field not in articles.FIELDS:
        raise ConfigError(
            f"an article has no field {field[:100]!r}{nearest(field, articles.FIELDS)}"
        )


def _check_syntax(field: str, selector: str) -> None:
    """CSS, or XPath where it begins with a slash, a dot and a slash, or a bracket."""
    empty = Selector(text="<p></p>")
    try:
        if selector.lstrip("(").startswith(("/", "./")):
            empty.xpath(selector)
        else:
            empty.css(selector)
    except Exception as error:  # the libraries have a handful of unrelated ones
        why = " ".join(str(error).split())
        raise ConfigError(f"{field} = {selector[:200]!r} is no selector: {why[:200]}") from None


check_selector: Callable[[str, str], None] = getattr(articles, "check_selector", _check_syntax)
"""Raises ConfigError if it is no selector for the field."""
