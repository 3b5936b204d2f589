"""Values of `meta` and `cb_kwargs` as JSON, so that they come back as they were.

What people pass from one callback to the next is stored: what JSON has, tuples, sets, dates, times,
Decimals, bytes, dicts with any keys, and items, often half-filled: scrapy.Item, dataclasses and the
other classes that itemadapter knows. An item is stored by the name of its class and its fields, and
made anew from them. Nothing is pickled: a class that is named in the database must be an item class
of a module that is loaded already, or of the spider's own project.
"""

from __future__ import annotations

import math
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any
from uuid import UUID

from itemadapter import ItemAdapter
from scrapy import Item

KIND = "__kind__"
"""The key that marks a dict as something else than a dict of JSON."""
VALUE = "__value__"
MAX_DEPTH = 50
"""Values are nested at most so deep: deeper ones hold themselves."""

Dump = Callable[[Any], Any]
KINDS: dict[type, tuple[str, Dump, Dump]] = {
    bytes: ("bytes", lambda value: b64encode(value).decode(), b64decode),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    range: (
        "range",
        lambda value: [value.start, value.stop, value.step],
        lambda parts: range(*parts),
    ),
}
"""Plain values: the name of a type, what is stored, and the way back."""
GROUPS: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
LOADS = {name: load for name, _, load in KINDS.values()}
MAKES: dict[str, Callable[[Any], Any]] = {name: kind for kind, name in GROUPS.items()}


def dump_value(value: Any, depth: int = 0) -> Any:
    """The value as JSON holds it; TypeError if it would not come back as it is."""
    if depth > MAX_DEPTH:
        raise TypeError("something that is nested too deep, or holds itself")
    kind = type(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):  # of a subclass, too: it is equal
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return float(value)
    if kind is list:
        return [dump_value(part, depth + 1) for part in value]
    if kind is dict:
        return _dump_dict(value, depth)
    if kind in GROUPS:
        return {KIND: GROUPS[kind], VALUE: [dump_value(part, depth + 1) for part in value]}
    if kind in KINDS:
        name, dump, _ = KINDS[kind]
        return {KIND: name, VALUE: dump(value)}
    if _is_item_class(kind):
        return _dump_item(value, depth)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} can't be stored")


def _dump_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    if KIND not in value and all(type(key) is str for key in value):
        return {key: dump_value(part, depth + 1) for key, part in value.items()}
    pairs = [
        [dump_value(key, depth + 1), dump_value(part, depth + 1)] for key, part in value.items()
    ]
    return {KIND: "dict", VALUE: pairs}


def _dump_item(item: Any, depth: int) -> dict[str, Any]:
    kind = type(item)
    path = f"{kind.__module__}:{kind.__qualname__}"
    if _find_class(path, "") is not kind:
        raise TypeError(f"the class {path} can't be found by its name")
    fields = {str(name): dump_value(value, depth + 1) for name, value in ItemAdapter(item).items()}
    return {KIND: "item", "class": path, VALUE: fields}


def load_value(stored: Any, project: str) -> Any:
    """The value that `dump_value` made this of. `project`: the package whose modules may be
    imported for it. ValueError if it can't be made any more.
    """
    if isinstance(stored, list):
        return [load_value(part, project) for part in stored]
    if not isinstance(stored, dict):
        return stored
    kind = stored.get(KIND)
    if kind is None:
        return {key: load_value(part, project) for key, part in stored.items()}
    inner = stored.get(VALUE)
    if kind in LOADS:
        return LOADS[kind](inner)
    if kind in MAKES:
        return MAKES[kind](load_value(inner, project))
    if kind == "dict" and isinstance(inner, list):
        return {load_value(key, project): load_value(part, project) for key, part in inner}
    if kind == "item":
        return _load_item(str(stored.get("class")), load_value(inner, project), project)
    raise ValueError(f"a value of the kind {kind!r} is not known")


def _load_item(path: str, fields: dict[str, Any], project: str) -> Any:
    """An item with just these fields. The project's own `__init__` is not called: it may ask for
    fields that are still to be filled in, and has run once already.
    """
    kind = _find_class(path, project)
    if kind is None or not _is_item_class(kind):
        raise ValueError(f"there is no item class {path}")
    unknown = fields.keys() - set(ItemAdapter.get_field_names_from_class(kind) or ())
    if unknown:
        raise ValueError(f"{path} has no field {min(unknown)}")
    if hasattr(kind, "model_construct"):  # pydantic
        return kind.model_construct(**fields)
    item: Any = object.__new__(kind)
    if isinstance(item, Item):
        Item.__init__(item, fields)
        return item
    for name, value in fields.items():
        object.__setattr__(item, name, value)
    return item


def _is_item_class(kind: type) -> bool:
    """Is it a class of items with fields of their own? Other kinds of dict are not: they hold more
    than their keys and values.
    """
    return ItemAdapter.is_item_class(kind) and not issubclass(kind, dict)


def _find_class(path: str, project: str) -> type | None:
    """The class of that name, if its module is loaded, or one of the project."""
    module_name, _, name = path.partition(":")
    module = sys.modules.get(module_name)
    if module is None:
        if not project or module_name.partition(".")[0] != project:
            return None
        try:
            module = import_module(module_name)
        except ImportError:
            return None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    return None
