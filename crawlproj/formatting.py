"""Figures, times and tables as people read them. Times are local, since they are meant for whoever
sits in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

SPANS = ((86_400, "d"), (3600, "h"), (60, "min"))


def format_count(number: int, one: str, many: str = "") -> str:
    """`1 page`, `1,204 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_bytes(size: int) -> str:
    """`12.3 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return format_count(size, "byte")


def format_duration(value: timedelta | float) -> str:
    """A length of time in its two largest units: `0.5 s`, `24 s`, `3 min 10 s`, `5 d`."""
    seconds = abs(value.total_seconds() if isinstance(value, timedelta) else value)
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
    return (
        f"{local:%H:%M:%S}"
        if local.date() == now.astimezone().date()
        else f"{local:%Y-%m-%d %H:%M}"
    )


def format_when(at: datetime, now: datetime) -> str:
    """`12:04:10 (in 24 s)`, `12:03:20 (26 s ago)`."""
    gap = (at - now).total_seconds()
    near = (
        "now"
        if abs(gap) < 0.05
        else f"in {format_duration(gap)}"
        if gap > 0
        else f"{format_duration(gap)} ago"
    )
    return f"{format_time(at, now)} ({near})"


def shorten_line(text: str, width: int) -> str:
    """One line of at most `width` characters; what is cut out of the middle is shown as dots."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    tail = max(0, (width - 3) // 3)
    return line[: max(0, width - 3 - tail)] + "..." + line[len(line) - tail :]


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; those of figures to the right."""
    columns = list(zip(head, *rows, strict=True))
    right = [
        bool(rows) and all(re.fullmatch(r"[\d,.%-]*", cell) for cell in column[1:])
        for column in columns
    ]
    sizes = [max(map(len, column)) for column in columns]
    lines = []
    for row in (head, *rows):
        cells = [c.rjust(n) if r else c.ljust(n) for c, n, r in zip(row, sizes, right, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines
