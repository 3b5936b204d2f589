from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import attr
import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.fetch.stored_values import dump_value, load_value

PROJECT = "tests"


class Quote(scrapy.Item):
    text = scrapy.Field()
    author = scrapy.Field()


@dataclass
class Product:
    name: str
    price: Decimal | None = None
    tags: list[str] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.made += 1


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    inner: Quote | None = None


@attr.s(auto_attribs=True)
class Book:
    title: str
    pages: int = 0


class Outer:
    @dataclass
    class Inner:
        x: int


def round_trip(value: Any) -> Any:
    return load_value(json.loads(json.dumps(dump_value(value), allow_nan=False)), PROJECT)


@pytest.mark.parametrize(
    "value",
    [
        (1, ("a", [2])),
        {"a", "b"},
        frozenset({1}),
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2026, 1, 2),
        time(3, 4),
        timedelta(days=-1, microseconds=3),
        Decimal("1.10"),
        b"\x00\xff",
        UUID(int=7),
        range(400, 600, 2),
        {1: "one", (2, 3): None},
        {"__kind__": "item", "class": "os:system", "__value__": {}},
        {"nested": [{"deep": (date(2026, 1, 1),)}]},
    ],
)
def test_values_come_back_as_they_were(value: Any) -> None:
    again = round_trip(value)
    assert again == value
    assert type(again) is type(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.binary() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    | st.dictionaries(st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_any_mixture_comes_back_as_it_was(value: Any) -> None:
    assert round_trip(value) == value


@pytest.mark.parametrize(
    "item",
    [
        Quote(text="half"),
        Product("p", Decimal("2"), ["a"]),
        Frozen("f", Quote(text="t", author=("a", "b"))),
        Book("b", 3),
        Outer.Inner(1),
    ],
)
def test_an_item_comes_back_with_the_fields_that_it_had(item: Any) -> None:
    again = round_trip({"item": item})["item"]
    assert type(again) is type(item)
    assert again == item


def test_what_cannot_come_back_is_refused() -> None:
    class Local(scrapy.Item):
        x = scrapy.Field()

    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(TypeError, match="nested"):
        dump_value(circle)
    for value in (Local(x=1), object(), lambda: 0, defaultdict(list), Product, float("nan")):
        with pytest.raises((TypeError, ValueError)):
            dump_value(value)


@pytest.mark.parametrize(
    "path",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:dict",
        "collections:OrderedDict",
        "antigravity:Item",
        "tests.nowhere:Item",
        "tests.unit.fetch.test_stored_values:Gone",
        "tests.unit.fetch.test_stored_values:PROJECT",
        "",
    ],
)
def test_only_item_classes_of_loaded_modules_or_the_project_are_made(path: str) -> None:
    with pytest.raises(ValueError, match="no item class"):
        load_value({"__kind__": "item", "class": path, "__value__": {}}, PROJECT)


def test_a_field_that_is_gone_and_a_kind_that_is_not_known_are_said() -> None:
    stored = dump_value(Quote(text="t"))
    stored["__value__"]["year"] = 1
    with pytest.raises(ValueError, match="no field year"):
        load_value(stored, PROJECT)
    with pytest.raises(ValueError, match="pickle"):
        load_value({"__kind__": "pickle", "__value__": ""}, PROJECT)
