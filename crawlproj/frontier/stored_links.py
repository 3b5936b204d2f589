"""How the links of a page are stored in `page_links`, and read again.

Targets in this crawl are stored by id, all others by URL. A letter per link says its kind, a line
its text. What only few links have (further texts, a title, a language) is in `details`, a JSON
object by attribute and then by link: links are numbered from 0, first those by id, then those by
URL. Most links have none of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from crawlproj.frontier.base import Links

KIND_LETTERS: Final = {
    "a": "a",
    "area": "r",
    "link": "l",
    "img": "i",
    "iframe": "f",
    "script": "s",
    "feed": "e",
    "canonical": "c",
    "alternate": "t",
    "onclick": "o",
    "text": "x",
    "sitemap": "m",
    "refresh": "h",
    "media": "d",
    "next": "n",
}
"""One letter per link; anything else is '?'."""
_NOFOLLOW: Final = " nofollow"
NOFOLLOW_KINDS: Final = {kind: kind + _NOFOLLOW for kind in KIND_LETTERS}
"""Kinds of links that are not to be followed: rel=nofollow, or the page says so."""
MAX_TITLE: Final = 200
MAX_DETAILS: Final = 100_000
"""Characters of all details of a page. Of 181 real pages half had less than 370, the most 5,800."""
_ENTRY: Final = 10
"""Characters that an entry takes besides its text, about."""

_LETTERS: Final = KIND_LETTERS | {
    name: KIND_LETTERS[kind].upper() for kind, name in NOFOLLOW_KINDS.items()
}
_KINDS: Final = {letter: kind for kind, letter in KIND_LETTERS.items()}


class LinksRow(NamedTuple):
    """A row of `page_links` without its page; the fields are its columns."""

    known: Sequence[int]
    known_kinds: str
    known_texts: str
    other: str
    other_kinds: str
    other_texts: str
    details: str | None
    """None, or empty, if no link has any; so it is in rows from before there were details."""


class StoredLink(NamedTuple):
    """A link as it was read again. It has an id or a URL; its texts are distinct, none is empty.

    `title` is empty if it is one of the texts. `hreflang` are languages with blanks between them,
    as one page may be given for several.
    """

    id: int | None
    url: str | None
    kind: str
    nofollow: bool = False
    texts: tuple[str, ...] = ()
    title: str = ""
    hreflang: str = ""


def is_nofollow(kind: str) -> bool:
    """Whether a stored kind is that of a link that is not to be followed."""
    return kind.endswith(_NOFOLLOW)


def encode_links(links: Links) -> LinksRow:
    """The links of a page as a row of `page_links`."""
    return LinksRow(
        links.known,
        _encode_kinds(links.known_kinds),
        join_lines(links.known_texts),
        join_lines(links.other),
        _encode_kinds(links.other_kinds),
        join_lines(links.other_texts),
        links.details,
    )


def read_links(row: LinksRow) -> list[StoredLink]:
    """All links of a row: those by id and then those by URL, each in the order of the page."""
    links = [
        _read_link(id_, None, letter, text)
        for id_, letter, text in zip(
            row.known, row.known_kinds, row.known_texts.split("\n"), strict=False
        )
    ]
    links += [
        _read_link(None, url, letter, text)
        for url, letter, text in zip(
            row.other.split("\n"), row.other_kinds, row.other_texts.split("\n"), strict=False
        )
    ]
    if not row.details:
        return links
    details: dict[str, Any] = json.loads(row.details)
    for number, texts in details.get("texts", {}).items():
        link = links[int(number)]
        links[int(number)] = link._replace(texts=(*link.texts, *texts))
    for name in ("title", "hreflang"):
        for number, value in details.get(name, {}).items():
            links[int(number)] = links[int(number)]._replace(**{name: value})
    for number in details.get("nofollow", ()):
        links[number] = links[number]._replace(nofollow=True)
    return links


def _read_link(id_: int | None, url: str | None, letter: str, text: str) -> StoredLink:
    small = letter.lower()
    return StoredLink(id_, url, _KINDS.get(small, "?"), small != letter, (text,) if text else ())


class LinkDetails:
    """Collects what only few links of a page have.

    While they are collected, links by id have the numbers 0, 1, 2, and links by URL -1, -2, -3: how
    many there are by id is known at the end.
    """

    __slots__ = ("_hreflangs", "_left", "_nofollow", "_texts", "_titles")

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, ...]] = {}
        self._titles: dict[int, str] = {}
        self._hreflangs: dict[int, str] = {}
        self._nofollow: list[int] = []
        self._left = MAX_DETAILS

    def note(
        self, number: int, text: str, title: str, hreflang: str, more_texts: tuple[str, ...]
    ) -> None:
        """Keep what a link has besides its text, as long as there is room.

        NULs are dropped: Postgres would store their escapes, and then not read them as JSON.
        """
        if self._left <= 0:
            return
        if more_texts:
            self._texts[number] = more_texts
            characters = "".join(more_texts)
            self._left -= len(characters) + _ENTRY
            if "\0" in characters:
                self._texts[number] = tuple([more.replace("\0", "") for more in more_texts])
        if title and title != text:
            title = " ".join(title[: 5 * MAX_TITLE].replace("\0", "").split())[:MAX_TITLE]
            if title and title != text and title not in more_texts:
                self._titles[number] = title
                self._left -= len(title) + _ENTRY
        if hreflang:
            self._hreflangs[number] = hreflang.replace("\0", "")
            self._left -= len(hreflang) + _ENTRY

    def note_ignored(self, number: int) -> None:
        """Keep that a link says nofollow, which the crawl was told to ignore."""
        self._nofollow.append(number)

    def encode(self, known: int) -> str:
        """The details as JSON, empty if there are none; `known` links are stored by id."""
        details: dict[str, object] = {}
        for name, values in (
            ("texts", self._texts),
            ("title", self._titles),
            ("hreflang", self._hreflangs),
        ):
            if values:
                details[name] = {
                    number if number >= 0 else known + ~number: value
                    for number, value in values.items()
                }
        if self._nofollow:
            details["nofollow"] = [
                number if number >= 0 else known + ~number for number in self._nofollow
            ]
        if not details:
            return ""
        return _to_json(details)


_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _encode_kinds(kinds: Sequence[str]) -> str:
    """The kinds of links, a letter each; a big one for those that are not to be followed."""
    return "".join([_LETTERS.get(kind, "?") for kind in kinds])


def join_lines(texts: Sequence[str]) -> str:
    """One line for each text; line ends inside of them become spaces."""
    joined = "\n".join(texts)
    if joined.count("\n") < max(1, len(texts)):
        return joined
    return "\n".join([text.replace("\n", " ") for text in texts])
