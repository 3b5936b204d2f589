"""What a page's markup says of the kind of page it is, found in the one parse that there is.

These are claims: many systems write og:type=article on every page that they make. What is made of
them is in `page_kinds`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_JSON_LD: Final = 100_000
"""Characters of a script that are looked at."""
MAX_TYPES: Final = 20
"""Schema.org types that are kept of a page."""
MAX_SIGN: Final = 300
"""Characters that are kept of an attribute."""
DATE_NAMES: Final = frozenset(
    (
        "article:published_time",
        "article.published",
        "citation_publication_date",
        "cxenseparse:recs:publishtime",
        "date",
        "datepublished",
        "dc.date",
        "dc.date.issued",
        "dcterms.created",
        "dcterms.date",
        "og:article:published_time",
        "og:pubdate",
        "parsely-pub-date",
        "pubdate",
        "publication_date",
        "publish-date",
        "publishdate",
        "sailthru.date",
    )
)
"""Names of meta elements that say when a page was published."""
_NAMELESS: Final = frozenset(
    (
        "aggregaterating",
        "contactpoint",
        "country",
        "entrypoint",
        "imageobject",
        "language",
        "listitem",
        "organization",
        "newsmediaorganization",
        "person",
        "place",
        "postaladdress",
        "propertyvaluespecification",
        "readaction",
        "searchaction",
        "speakablespecification",
        "thing",
        "webpageelement",
        "website",
    )
)
"""Schema.org types that stand on pages of all kinds."""
_TYPE: Final = re.compile(r'\s{0,20}:\s{0,20}(?:"([^"]{1,100})"|\[([^\]]{1,200})\])').match


class PageSigns(NamedTuple):
    """Signs of one page. All words are lower case."""

    og_type: str = ""
    """og:type of the Open Graph."""
    types: tuple[str, ...] = ()
    """Names of the Schema.org types in JSON-LD and of the page's outermost elements, in the order
    of the page, without those that stand on every page.
    """
    published: str = ""
    """When the head says that it was published, as written."""
    body_class: str = ""
    """The classes of the body, where systems write which template they used."""
    article_elements: int = 0
    time_elements: int = 0


NO_SIGNS: Final = PageSigns()


def find_json_ld_types(script: str) -> list[str]:
    """The types that JSON-LD names, without reading it as JSON: a broken one says as much."""
    found: list[str] = []
    for piece in script[:MAX_JSON_LD].split('"@type"', 50)[1:]:
        names = _TYPE(piece[:300])
        if names is None:
            continue
        for name in (names[1] or names[2]).split(","):
            found += note_type(name.strip(' \t\r\n"'))
    return found


def note_type(name: str) -> list[str]:
    """The name of a type, which may be a URL, as a list; empty if it says nothing."""
    name = name.rpartition("/")[2].lower()
    if not name or name in _NAMELESS:
        return []
    return [name]
