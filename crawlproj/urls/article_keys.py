"""Which addresses may be the same article, as far as addresses can tell: views (AMP, for printing)
and other slugs beside the same long number.

A view of what looks like an article is surely that article. A long number is only likely to name
one: `frontier/article_addresses.py` learns for each host and form of address whether it does.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from crawlproj.urls.canonical import host_of

MIN_DIGITS: Final = 6
MAX_DIGITS: Final = 12
_VIEW_PARAMETERS: Final = frozenset(
    (
        *("amp", "amp=", "amp=1", "amp=true", "outputtype=amp", "output=amp", "view=amp"),
        *("print", "print=", "print=1", "print=true", "printable=1", "view=print"),
        *("outputtype=print", "output=print", "format=print", "mode=print"),
    )
)
_MAY_BE_VIEW: Final = re.compile(r"amp|print").search
_WORDS: Final = r"[A-Za-z0-9%.~]+(?:[-_][A-Za-z0-9%.~]+){2,}"
"""A slug: at least three words."""
_ID: Final = rf"\d{{{MIN_DIGITS},{MAX_DIGITS}}}"
_EXTENSION: Final = r"(?P<ext>\.html?|\.php|\.aspx?)?"
_FORMS: Final = (
    (
        "last",
        re.compile(
            rf"(?P<folder>/(?:[^/]+/)*){_WORDS}[-_.,]a?(?P<id>{_ID}){_EXTENSION}/?"
        ).fullmatch,
    ),
    (
        "first",
        re.compile(rf"(?P<folder>/(?:[^/]+/)*)(?P<id>{_ID})[-_]{_WORDS}{_EXTENSION}/?").fullmatch,
    ),
    (
        "folder",
        re.compile(rf"(?P<folder>/(?:[^/]+/)*)(?P<id>{_ID})/{_WORDS}{_EXTENSION}/?").fullmatch,
    ),
    # An address without words is beside one with words in the same folder.
    (
        "folder",
        re.compile(
            rf"(?P<folder>/(?:[^/]+/)*(?:articles?|artikel|story|stories)/)(?P<id>{_ID}){_EXTENSION}/?"
        ).fullmatch,
    ),
    (
        "below",
        re.compile(rf"(?P<folder>/(?:[^/]+/)*){_WORDS}/(?P<id>{_ID}){_EXTENSION}/?").fullmatch,
    ),
)
_LONG_NUMBER: Final = re.compile(rf"\d{{{MIN_DIGITS},}}").findall
_LANGUAGE: Final = re.compile(r"/([a-z]{2}(?:[-_][A-Za-z]{2})?)/").match
_DATE: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12]\d|3[01])(?:\d{4})?)?")
_NO_ARTICLES: Final = frozenset(
    (
        *(
            "forum",
            "forums",
            "thread",
            "threads",
            "topic",
            "topics",
            "tag",
            "tags",
            "user",
            "users",
        ),
        *("profile", "profiles", "author", "authors", "comment", "comments", "kommentare"),
        *("gallery", "galleries", "galerie", "photo", "photos", "foto", "fotos", "image", "images"),
        *("bild", "bilder", "product", "products", "shop", "item", "calendar", "event", "events"),
        *("category", "categories", "search", "page", "members", "questions", "jobs", "listing"),
    )
)
"""Folders below which a number names something else than an article."""
_SLUG: Final = re.compile(_WORDS).fullmatch


class ArticleKey(NamedTuple):
    """`shape`: the host and the form of address, for which it is learned whether `number` says
    which article it is.
    """

    shape: str
    number: str


def article_key(url: str) -> ArticleKey | None:
    """The long number of a canonical URL that has the form of an article's; None if it has none."""
    start = url.index("/", 8)
    path = url[start:]
    if "?" in path or not path[1:]:
        return None
    numbers = _LONG_NUMBER(path)
    if len(numbers) != 1 or len(numbers[0]) > MAX_DIGITS or _DATE.fullmatch(numbers[0]):
        return None
    for name, match in _FORMS:
        found = match(path)
        if found:
            folder = found["folder"]
            if not _NO_ARTICLES.isdisjoint(folder.lower().split("/")):
                return None
            language = _LANGUAGE(folder)
            tongue = language[1] if language else ""
            shape = f"{url[:start]} {tongue} {name}{found['ext'] or ''}"
            return ArticleKey(shape, found["id"])
    return None


def viewed_urls(url: str) -> tuple[str, ...]:
    """The addresses that an article may have of which a canonical URL is another view, if it is
    one: without what makes it AMP, or a version for printing.
    """
    if not _MAY_BE_VIEW(url):
        return ()
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path
    found: list[str] = []
    query = parts.query.split("&") if parts.query else []
    rest = [word for word in query if word.lower() not in _VIEW_PARAMETERS]
    suffix = f"?{'&'.join(rest)}" if rest else ""
    if len(rest) < len(query):
        found.append(origin + path + suffix)
    for name in ("/amp", "/print"):
        if path.endswith((name, f"{name}/")):
            bare = path.rstrip("/").removesuffix(name)
            found += [f"{origin}{bare}{suffix}", f"{origin}{bare}/{suffix}"]
    if path.startswith(("/amp/", "/print/")):
        found.append(f"{origin}/{path.split('/', 2)[2]}{suffix}")
    if path.endswith((".amp.html", ".amp")):
        whole = path.removesuffix(".html").removesuffix(".amp")
        found += [f"{origin}{whole}.html{suffix}", f"{origin}{whole}{suffix}"]
    host = host_of(url)
    if host.startswith("amp."):
        bare = parts.netloc.removeprefix("amp.")
        rest_of_url = url[len(origin) :]
        found += [f"{parts.scheme}://{name}{rest_of_url}" for name in (bare, f"www.{bare}")]
    return tuple(each for each in found if _looks_like_article(each))


def _looks_like_article(url: str) -> bool:
    """Whether the last part of the path has three words, or a long number."""
    path = urlsplit(url).path.rstrip("/")
    name = path.rpartition("/")[2]
    folders = path.lower().split("/")[:-1]
    has_words = _SLUG(name) is not None or bool(_LONG_NUMBER(name))
    return has_words and _NO_ARTICLES.isdisjoint(folders)
