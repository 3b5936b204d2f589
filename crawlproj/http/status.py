"""What a status means for a crawler, and how long Retry-After asks it to wait."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime

REDIRECTS = frozenset({301, 302, 303, 307, 308})
TEMPORARY_REDIRECTS = frozenset({302, 303, 307})
"""Redirects that may lead elsewhere next time: their URLs are visited again."""
FORBIDDEN = frozenset({401, 403, 407, 451})
GONE = frozenset({404, 410})
RETRYABLE = frozenset({
    408, 421, 425, 429, 430, 500, 502, 503, 504, 509,
    520, 521, 522, 523, 524, 525, 529, 530, 598, 599,
})  # fmt: skip


MAX_DATE = 100
"""Characters of a date."""


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After (a number or a date) asks for; None if it is invalid."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    if len(text) > MAX_DATE:
        return None
    try:
        at = parsedate_to_datetime(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=now.tzinfo)
        return max(0.0, (at - now).total_seconds())
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
