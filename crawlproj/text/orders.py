"""What a page orders robots to do: meta robots and the X-Robots-Tag header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_KNOWN: Final = frozenset(
    (
        "noindex", "nofollow", "noarchive", "nocache", "none", "all", "index", "follow", "archive", "nosnippet",
        "noimageindex", "notranslate", "nositelinkssearchbox", "indexifembedded",
    )
)  # fmt: skip
_WITH_VALUE: Final = ("max-snippet", "max-image-preview", "max-video-preview")
_UNTIL: Final = "unavailable_after"


@dataclass(frozen=True, slots=True)
class Orders:
    """The page's own orders; `unavailable_after` is the date as it was written."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    unavailable_after: str | None = None

    def __or__(self, other: Orders) -> Orders:
        """Both hold: several orders on one page add up."""
        return Orders(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noarchive or other.noarchive,
            self.unavailable_after or other.unavailable_after,
        )


NO_ORDERS: Final = Orders()


def read(content: str) -> Orders:
    """Orders in the content of a meta element. A date may hold commas: what is no known word belongs to it."""
    words: set[str] = set()
    until: list[str] = []
    for part in content.split(","):
        word = part.strip().lower()
        if word.startswith(_UNTIL):
            until = [part.strip()[len(_UNTIL) :].lstrip(" :=")]
        elif word in _KNOWN or word.startswith(_WITH_VALUE):
            words.add(word)
        elif until and word:
            until.append(part.strip())
    return Orders(
        noindex=not words.isdisjoint(("noindex", "none")),
        nofollow=not words.isdisjoint(("nofollow", "none")),
        noarchive=not words.isdisjoint(("noarchive", "nocache")),
        unavailable_after=", ".join(until) or None,
    )


def read_headers(values: Iterable[str], agents: tuple[str, ...] = ("robots",)) -> Orders:
    """Orders of all X-Robots-Tag headers; one that starts with `name:` holds for that robot only."""
    total = NO_ORDERS
    for value in values:
        name, colon, rest = value.partition(":")
        name = name.strip().lower()
        if not colon or "," in name or name == _UNTIL or name in _WITH_VALUE:
            total |= read(value)
        elif name in agents:
            total |= read(rest)
    return total
