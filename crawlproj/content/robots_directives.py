"""The directives of a page for robots: meta robots and the X-Robots-Tag header."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_KNOWN: Final = frozenset(
    (
        "noindex",
        "nofollow",
        "noarchive",
        "nocache",
        "none",
        "all",
        "index",
        "follow",
        "archive",
        "nosnippet",
        "noimageindex",
        "notranslate",
        "nositelinkssearchbox",
        "indexifembedded",
    )
)
_WITH_VALUE: Final = ("max-snippet", "max-image-preview", "max-video-preview")
_UNTIL: Final = "unavailable_after"
_ROBOT: Final = re.compile(r"\s*([A-Za-z*][\w.*-]*)\s*:(.*)", re.S)
MAX_DATE: Final = 100
"""Characters of a date."""

MAX_CONTENT: Final = 10_000
"""Characters that are read of a meta element or header."""


@dataclass(frozen=True, slots=True)
class RobotsDirectives:
    """The page's directives for us; `unavailable_after` is the date as it was written."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    unavailable_after: str | None = None

    def __or__(self, other: RobotsDirectives) -> RobotsDirectives:
        """Both together, since all directives of a page hold; of two dates the earlier one."""
        if other is NO_DIRECTIVES:
            return self
        if self is NO_DIRECTIVES:
            return other
        dates = [date for date in (self.unavailable_after, other.unavailable_after) if date]
        return RobotsDirectives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noarchive or other.noarchive,
            unavailable_after=min(dates, key=_date_or_never, default=None),
        )

    @property
    def expires(self) -> datetime | None:
        """When the page is to be taken for gone; None if it gives no date that we understand."""
        if not self.unavailable_after:
            return None
        return parse_date(self.unavailable_after)


NO_DIRECTIVES: Final = RobotsDirectives()


def parse_date(text: str) -> datetime | None:
    """The date as mail, HTTP or ISO 8601 write it; None if it is none of these.

    Without a zone it is UTC, without a time midnight. What is longer than any date is none.
    """
    text = text.strip()
    if len(text) > MAX_DATE:
        return None
    bare = _without_utc(text)
    for parse, form in (
        (datetime.fromisoformat, bare),
        (parsedate_to_datetime, bare),
        (parsedate_to_datetime, f"{bare} 00:00:00"),
    ):
        try:
            found = parse(form)
            if found.tzinfo is None:
                return found.replace(tzinfo=UTC)
            return found.astimezone(UTC)
        except (ValueError, IndexError, TypeError, OverflowError):
            continue
    return None


def _without_utc(text: str) -> str:
    """The text without a word for UTC at its end."""
    before = text[-4:-3]
    if text[-3:].upper() in ("UTC", "GMT") and not (before.isalnum() or before == "_"):
        return text[:-3].rstrip()
    if text[-1:] in ("Z", "z"):
        return text[:-1].rstrip()
    return text


def _date_or_never(text: str) -> datetime:
    return parse_date(text) or datetime.max.replace(tzinfo=UTC)


def parse_robots_meta(content: str) -> RobotsDirectives:
    """The directives in the content of a meta element.

    A date may hold commas: what follows it and is no known word belongs to it.
    """
    words: set[str] = set()
    until: list[str] = []
    if len(content) > MAX_CONTENT:
        content = content[:MAX_CONTENT].rpartition(",")[0]  # without what was cut
    for part in content.split(","):
        word = part.strip().lower()
        if word.startswith(_UNTIL):
            until = [part.strip()[len(_UNTIL) :].lstrip(" :=")]
        elif _KNOWN.issuperset(word.split()) or word.startswith(_WITH_VALUE):
            words.update(word.split())
        elif until and word:
            until.append(part.strip())
    return RobotsDirectives(
        noindex=not words.isdisjoint(("noindex", "none")),
        nofollow=not words.isdisjoint(("nofollow", "none")),
        noarchive=not words.isdisjoint(("noarchive", "nocache")),
        unavailable_after=", ".join(until) or None,
    )


def parse_robots_headers(
    values: Iterable[str], agents: tuple[str, ...] = ("robots",)
) -> RobotsDirectives:
    """The directives of all X-Robots-Tag headers.

    What follows `name:` holds for that robot only, up to the next name.
    """
    total = NO_DIRECTIVES
    for value in values:
        ours: list[str] = []
        for_us = True
        for part in value.split(","):
            named = _ROBOT.fullmatch(part)
            if named and not named[1].lower().startswith((_UNTIL, *_WITH_VALUE)):
                for_us = named[1].lower() in (*agents, "*")
                part = named[2]
            if for_us:
                ours.append(part)
        total |= parse_robots_meta(",".join(ours))
    return total
