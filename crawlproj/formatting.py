"""Numbers, times and tables as people read them.

Times are local: they are meant for whoever sits in front of the screen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

SPANS = ((86_400, "d"), (3600, "h"), (60, "min"))


def format_count(number: int, one: str, many: str = "") -> str:
    """A number and its noun: `1 page`, `1,204 pages`; `many` is an irregular plural."""
    if number == 1:
        return f"{number:,} {one}"
    return f"{number:,} {many or one + 's'}"


def printable(text: str) -> str:
    """The text with escapes for what is not to be printed: control, bidi and other such characters.

    What others wrote can't steer a terminal then, nor make lines of its own.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def format_share(share: float) -> str:
    """A share of 0 to 1 as percent: `97.5 %`; what is less than all is never shown as 100 %."""
    tenths = math.floor(share * 1000 + 0.001)
    return f"{tenths / 10:.1f}".removesuffix(".0") + " %"


def format_bytes(size: int) -> str:
    """A size in its largest unit: `12.3 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return format_count(size, "byte")


def format_duration(value: timedelta | float) -> str:
    """A length of time in its two largest units: `0.01 s`, `24 s`, `3 min 10 s`, `5 d`."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    seconds = abs(value)
    if 0.0005 <= seconds < 0.095:
        return f"{seconds:.1g} s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    left = round(seconds)
    parts = []
    for size, unit in SPANS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    if left:
        parts.append(f"{left} s")
    return " ".join(parts[:2])


def format_time(at: datetime, now: datetime) -> str:
    """The time of day, with the date unless it is today."""
    local = at.astimezone()
    if local.date() == now.astimezone().date():
        return f"{local:%H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M}"


def format_when(at: datetime, now: datetime) -> str:
    """A time and how far away it is: `12:04:10 (in 24 s)`, `12:03:20 (26 s ago)`."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 0.05:
        distance = "now"
    elif seconds > 0:
        distance = f"in {format_duration(seconds)}"
    else:
        distance = f"{format_duration(seconds)} ago"
    return f"{format_time(at, now)} ({distance})"


def shorten_line(text: str, width: int) -> str:
    """The text as one line of at most `width` characters; dots stand for what the middle lost."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    tail = max(0, (width - 3) // 3)
    return line[: max(0, width - 3 - tail)] + "..." + line[len(line) - tail :]


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; columns that hold only numbers are aligned to the right."""
    columns = []
    for column in zip(head, *rows, strict=True):
        width = max(map(len, column))
        if rows and all(re.fullmatch(r"[\d,.%-]*", cell) for cell in column[1:]):
            columns.append([cell.rjust(width) for cell in column])
        else:
            columns.append([cell.ljust(width) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
