"""The files of named queries, their reader, and rows by name."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crawlproj
from crawlproj.database.queries import (
    Queries,
    Query,
    load_queries,
    parse_files,
    parse_queries,
    sql_path,
)

names = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)


def query_files() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sql_path("queries").iterdir()}


def test_every_query_of_the_files_is_found() -> None:
    lines = "\n".join(query_files().values()).splitlines()
    headers = [line for line in lines if line.startswith("-- name:")]
    assert len(load_queries()) == len(headers) > 0
    assert load_queries()["migration_lock"].file == "database.sql"


def test_every_query_has_one_line_of_description() -> None:
    queries = load_queries().values()
    assert [query.name for query in queries if len(query.description) < 20] == []
    assert [query.name for query in queries if not query.description.endswith(".")] == []
    assert [query.name for query in queries if len(query.description) > 110] == []


def test_every_file_begins_with_what_it_is_about() -> None:
    texts = query_files()
    assert {name for name, text in texts.items() if not text.startswith("-- ")} == set()
    assert {name for name, text in texts.items() if text.startswith("-- name:")} == set()


def test_a_query_reaches_up_to_the_next_header() -> None:
    queries = parse_queries(
        "-- about\n\n-- name: one\nselect 1;\n-- a comment\n\n-- name: two\nselect %(b)s, %(a)s, "
        "%(b)s;\n"
    )
    assert list(queries) == ["one", "two"]
    assert queries["one"].sql == "select 1;"
    assert queries["two"].arguments == {"a", "b"}


def test_the_first_comment_describes_and_the_others_stay() -> None:
    queries = parse_queries(
        "-- name: a\n-- What it gives.\n-- Planned each time: why.\nselect %(x)s;\n"
        "-- name: b\nselect %(x)s;\n-- name: c\n-- Planned each time.\nselect %(x)s;\n",
        "some.sql",
    )
    assert queries["a"].description == "What it gives."
    assert queries["a"].sql == "-- Planned each time: why.\nselect %(x)s;"
    assert not queries["a"].is_preparable
    assert queries["b"].description == ""
    assert queries["b"].is_preparable
    assert queries["c"].is_preparable
    assert {query.file for query in queries.values()} == {"some.sql"}


def test_a_name_that_stands_twice_is_refused_with_both_files() -> None:
    texts = {"two.sql": "-- name: a\nselect 2;", "one.sql": "-- name: a\nselect 1;"}
    with pytest.raises(ValueError, match=r"two queries are named a: in one\.sql and in two\.sql"):
        parse_files(texts)
    assert list(parse_files({"one.sql": texts["one.sql"]})) == ["a"]


class TwoHosts(Queries):
    """Rows as a database would give them."""

    def _statement(self, query: Query) -> str:
        return query.sql

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        return 2, [("a.example", 1), ("b.example", 2)]


class HostId(NamedTuple):
    name: str
    id: int


class JustName(NamedTuple):
    name: str


def test_rows_by_name_are_the_same_rows() -> None:
    db = TwoHosts()
    plain = db.fetch_rows("host_ids", names=[])
    named = db.fetch_rows_as("host_ids", HostId, names=[])
    assert named == plain
    assert [row.id for row in named] == [1, 2]
    assert named[0].name == "a.example"


def test_rows_by_name_must_have_all_columns() -> None:
    with pytest.raises(TypeError, match="Expected 1"):
        TwoHosts().fetch_rows_as("host_ids", JustName, names=[])


@given(st.dictionaries(names, st.lists(names, max_size=4), min_size=1, max_size=5))
def test_names_and_arguments_survive_the_file(wanted: dict[str, list[str]]) -> None:
    text = "".join(
        f"-- name: {name}\nselect "
        f"{', '.join(f'%({argument})s' for argument in arguments) or 1};\n\n"
        for name, arguments in wanted.items()
    )
    assert {name: set(query.arguments) for name, query in parse_queries(text).items()} == {
        name: set(arguments) for name, arguments in wanted.items()
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select 1;\n-- name: a\nselect 1;", "before the first"),
        ("-- name: a\nselect 1;\n-- name: a\nselect 2;", "two queries are named a"),
        ("-- name: a\n-- only a comment\n", "a is empty"),
        ("-- name: A b\nselect 1;", "bad name"),
        ("-- name:\nselect 1;", "bad name"),
        ("-- name: a\nselect 5 % 2;", "a has a lone %"),
        ("-- name: a\nselect %s;", "a has a lone %"),
    ],
)
def test_a_broken_file_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_queries(text)


def test_doubled_percent_is_one_percent_with_and_without_arguments() -> None:
    queries = parse_queries("-- name: a\nselect 5 %% 2;\n-- name: b\nselect %(x)s %% 2;")
    assert queries["a"].sql == "select 5 % 2;"
    assert queries["b"].sql == "select %(x)s %% 2;"


def test_missing_and_surplus_arguments_are_refused() -> None:
    query = parse_queries("-- name: a\nselect %(x)s;")["a"]
    query.check_arguments({"x": 1})
    with pytest.raises(TypeError, match="query a wants x, not nothing"):
        query.check_arguments({})
    with pytest.raises(TypeError, match="query a wants x, not x, y"):
        query.check_arguments({"x": 1, "y": 2})


def test_queries_and_migrations_are_read_out_of_a_zipped_egg(tmp_path: Path) -> None:
    package = Path(crawlproj.__file__).parent
    egg = tmp_path / "crawlproj.egg"
    with zipfile.ZipFile(egg, "w") as archive:
        for path in [*package.rglob("*.py"), *package.rglob("*.sql")]:
            archive.write(path, Path("crawlproj") / path.relative_to(package))
    env = {
        "PYTHONPATH": os.pathsep.join(
            [str(egg), *(path for path in sys.path if "site-packages" in path)]
        )
    }
    program = (
        "import crawlproj, crawlproj.database.queries, crawlproj.database.migrations as m;"
        "print(crawlproj.__file__, len(crawlproj.database.queries.load_queries()), "
        "m.list_migrations()[0].sql.count('create table'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    origin, count, tables = done.stdout.split()
    assert origin.startswith(str(egg))
    assert int(count) == len(load_queries())
    assert int(tables) > 0
