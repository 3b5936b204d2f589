"""Columns of values as Postgres array literals: one parameter per column, however many rows.

Postgres reads such a literal many times faster than the same values as separate expressions, and Python writes it faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import isinf


def array(values: Iterable[object]) -> str:
    """`{1,NULL,"text"}`. NULs are dropped and lone surrogates replaced, since Postgres can't store them."""
    literal = "{" + ",".join([_element(value) for value in values]) + "}"
    try:
        literal.encode()
    except UnicodeEncodeError:
        literal = literal.encode("utf-8", "replace").decode()
    return literal


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\0", "").replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return repr(value) if not isinf(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes):
        return '"\\\\x' + value.hex() + '"'
    if isinstance(value, datetime):
        return '"' + value.isoformat() + '"'
    return str(int(value))  # type: ignore[call-overload]
