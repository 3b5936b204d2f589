"""Our reader of feeds beside feedparser: damage and dates that each reads right, and the time it takes.

    pip install --target /tmp/feedparser feedparser
    PYTHONPATH=/tmp/feedparser python -m benchmarks.feeds

The damaged feeds and the dates are those of the tests, which were written for our reader, so it reads
all of them; what counts is how many the other one does not read. Titles are compared without markup,
and links alone, too. Without feedparser only ours is measured.
"""

from __future__ import annotations

import gzip
import time
import zlib
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from crawlproj.content.entry_dates import parse_entry_date
from crawlproj.content.feeds import clean_title, parse_entries
from crawlproj.urls.canonical import canonical_url
from tests.unit.content.test_entry_dates import NOW, RIGHT
from tests.unit.content.test_feeds_damaged import FEEDS, OTHERS, URL, Damage, read_damage

try:
    import feedparser  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    feedparser = None

ENTRIES = (20, 1_000)
RUNS = 5

Pairs = tuple[tuple[str, str], ...]


def ours(case: Damage) -> Pairs:
    """Links and titles as our reader has them."""
    return tuple((entry.url, entry.title) for entry in read_damage(case))


def theirs(case: Damage) -> Pairs:
    """The same of feedparser, made canonical like ours; gzip is undone for it."""
    body = case.body
    if body.startswith(b"\x1f\x8b"):
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            return ()
    headers = {"content-type": case.content_type, "content-location": case.url}
    found = feedparser.parse(body, response_headers=headers)
    pairs = []
    for entry in found.entries:
        url = canonical_url(entry.get("link", ""))
        if url:
            pairs.append((url, clean_title(entry.get("title", ""))))
    return tuple(dict.fromkeys(pairs))


def count_right(read: Callable[[Damage], Pairs], cases: Iterable[Damage]) -> tuple[int, int]:
    """How many are read right, and of how many at least the links are."""
    whole = links = 0
    for case in cases:
        try:
            found = read(case)
        except Exception:  # that, too, is an answer
            continue
        whole += found == case.expected
        links += [url for url, _ in found] == [url for url, _ in case.expected]
    return whole, links


def their_date(text: str) -> datetime | None:
    found = feedparser.datetimes._parse_date(text)
    if found is None:
        return None
    return datetime.fromtimestamp(timegm(found), UTC)


def count_dates(
    read: Callable[[str], datetime | None], cases: Mapping[str, datetime]
) -> tuple[int, int]:
    """How many dates are read right, and how many as another moment."""
    right = wrong = 0
    for text, expected in cases.items():
        try:
            found = read(text)
        except Exception:
            continue
        right += found == expected
        wrong += found is not None and found != expected
    return right, wrong


def make_feed(entries: int) -> bytes:
    """An ordinary feed, with a description of some hundred letters in each entry."""
    text = "The gardeners of the village have rebuilt their old bridge. " * 8
    items = "".join(
        f"<item><title>Story {number}</title><link>https://example.org/{number}</link>"
        f"<guid>https://example.org/{number}</guid><pubDate>{format_datetime(NOW)}</pubDate>"
        f"<description>&lt;p&gt;{text}&lt;/p&gt;</description></item>"
        for number in range(entries)
    )
    return f"<?xml version='1.0'?><rss version='2.0'><channel>{items}</channel></rss>".encode()


def measure_ms(read: Callable[[], Any]) -> float:
    """The quickest of some runs."""
    times = []
    for _ in range(RUNS):
        started_s = time.process_time()
        read()
        times.append(time.process_time() - started_s)
    return min(times) * 1000


def main() -> None:
    readers: list[tuple[str, Callable[[Damage], Pairs], Callable[[str], datetime | None]]] = [
        ("ours", ours, lambda text: parse_entry_date(text, NOW))
    ]
    if feedparser is None:
        print("feedparser is not installed: only ours is measured")
    else:
        readers.append((f"feedparser {feedparser.__version__}", theirs, their_date))
    dates = {text: at.astimezone(UTC) for text, at in RIGHT.items()}
    for name, read, read_date in readers:
        print(name)
        for what, cases in (("RSS and Atom", FEEDS), ("JSON, sitemaps, others", OTHERS)):
            whole, links = count_right(read, cases.values())
            print(f"  {what}: {whole} of {len(cases)} right, {links} by their links")
        right, wrong = count_dates(read_date, dates)
        print(f"  dates: {right} of {len(dates)} right, {wrong} wrong")
        for entries in ENTRIES:
            body = make_feed(entries)
            took_ms = measure_ms(lambda body=body: parse_entries(body, URL))  # type: ignore[misc]
            if read is theirs:
                took_ms = measure_ms(lambda body=body: feedparser.parse(body))  # type: ignore[misc]
            print(f"  a feed of {entries} entries: {took_ms:.1f} ms")


if __name__ == "__main__":
    main()
