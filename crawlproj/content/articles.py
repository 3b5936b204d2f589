"""What an article is: its fields, taken from the bytes of a page.

The site's own selectors come first, where there are any, then a general recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

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
    body: bytes, url: str, *, charset: str = "", selectors: Mapping[str, str] | None = None
) -> ArticleFields:
    """The article of a page. `charset` is the one that the page was read in, if that is known;
    `selectors` are the site's own, by field.
    """
    raise NotImplementedError
