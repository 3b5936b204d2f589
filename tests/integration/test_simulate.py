"""`scrapy simulate`: its words, and its JSON. What policies promise is in tests/unit/simulate/."""

from __future__ import annotations

from pathlib import Path

from tests.support.crawling import run_command

KEYS = [
    "visits",
    "captured",
    "changed_visits",
    "freshness",
    "age_s",
    "freshness_to_oracle",
    "age_to_oracle",
]
SMALL = ["simulate", "table", "--pages", "10", "--visits", "10"]


def test_the_table_is_printed_also_as_json(tmp_path: Path) -> None:
    done = run_command([*SMALL, "--population", "drift", "--population", "sources"], tmp_path)
    assert done.code == 0, done.stderr
    blocks = done.stdout.split("\n\n")
    assert [block.split()[0] for block in blocks] == ["drift", "sources"]
    assert [len(block.splitlines()) for block in blocks] == [6, 6]
    table = run_command([*SMALL, "--json"], tmp_path).json["populations"]
    assert list(table) == [
        "periodic", "log-normal", "pareto", "mixed", "drift", "news", "sources"
    ]  # fmt: skip
    for name, rows in table.items():
        assert list(rows) == ["uniform", "adaptive", "classes", "optimal", "optimal beta=1.25"]
        more = ["delay_s", "delay_to_uniform"] if name == "sources" else []
        assert all(list(row) == KEYS + more for row in rows.values())
        assert all(row["visits"] == 100 for row in rows.values())


def test_what_it_does_not_know_is_refused_with_what_there_is(tmp_path: Path) -> None:
    for words, says in (
        (["simulate"], "there is: table"),
        (["simulate", "sweep"], "there is: table"),
        ([*SMALL, "--population", "foo"], "log-normal"),
        (["simulate", "table", "--pages", "0"], "1 or more"),
    ):
        refused = run_command(words, tmp_path)
        assert refused.code == 2
        assert says in refused.stderr and len(refused.stderr.splitlines()) == 1
