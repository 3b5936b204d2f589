from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.database.arrays import _element, array_literal
from crawlproj.database.connection import Database

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(texts, max_size=20))
def test_many_texts_are_written_as_each_by_itself(values: list[str]) -> None:
    assert array_literal(values) == "{" + ",".join(map(_element, values)) + "}"


def test_values_of_all_kinds_come_back_from_postgres(database: Database) -> None:
    odd = [
        "plain",
        'quo"te',
        "back\\slash",
        "",
        "NULL",
        "{a,b}",
        "new\nline",
        "sep\x1farator",
        "é\U0001f310",
        "tab\t",
    ]
    assert database.run_script(f"select $q${array_literal(odd)}$q$::text[]")[0][0] == odd
    assert database.run_script(f"select '{array_literal([1, -(2**63), 2**63 - 1])}'::bigint[]")[0][
        0
    ] == [
        1,
        -(2**63),
        2**63 - 1,
    ]
    at = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
    assert database.run_script(f"select '{array_literal([at, None])}'::timestamptz[]")[0][0] == [
        at,
        None,
    ]
    assert database.run_script(f"select '{array_literal([True, False])}'::bool[]")[0][0] == [
        True,
        False,
    ]
    assert database.run_script(f"select '{array_literal([b'ab', None])}'::bytea[]")[0][0] == [
        b"ab",
        None,
    ]
    assert database.run_script(f"select '{array_literal([0.1, float('-inf')])}'::float8[]")[0][
        0
    ] == [
        0.1,
        float("-inf"),
    ]


def test_what_postgres_cannot_store_is_left_out() -> None:
    assert array_literal(["a\0b", "\ud800"]) == '{"ab","?"}'
