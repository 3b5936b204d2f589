"""Columns of values as Postgres array literals: one parameter per column, however many rows.

Postgres reads such a literal many times faster than the same values as separate expressions, and
Python writes it faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isinf
from typing import Any

SEPARATOR = "\x1f"


def array_literal(values: Iterable[object]) -> str:
    """Values as `{1,NULL,"text"}`.

    NULs are dropped and lone surrogates replaced, since Postgres can't store them.
    """
    if not isinstance(values, list | tuple):
        values = list(values)
    types = set(map(type, values))
    if types == {int}:
        return "{" + ",".join(map(str, values)) + "}"
    if types == {str}:
        literal = "{" + _texts(values) + "}"
    else:
        literal = "{" + ",".join(map(_element, values)) + "}"
    try:
        literal.encode()
    except UnicodeEncodeError:
        literal = literal.encode("utf-8", "replace").decode()
    return literal


def _texts(values: Sequence[Any]) -> str:
    """Texts escaped as one string, which is many times faster than each by itself."""
    text = SEPARATOR.join(values)
    if text.count(SEPARATOR) != len(values) - 1:
        return ",".join(map(_element, values))
    text = text.replace("\0", "").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace(SEPARATOR, '","') + '"'


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\0", "").replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        if not isinf(value):
            return repr(value)
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return '"\\\\x' + value.hex() + '"'
    if isinstance(value, datetime):
        return '"' + value.isoformat() + '"'
    return str(int(value))  # type: ignore[call-overload]
