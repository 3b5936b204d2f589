"""Tables made at once and step by step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from crawlproj.database import migrations as module
from crawlproj.database.connection import Database
from crawlproj.database.migrations import Migration, list_migrations, migrate, pending_migrations
from crawlproj.errors import MigrationError
from crawlproj.frontier.base import compute_rank
from crawlproj.frontier.stored_links import LinksRow, StoredLink, read_links
from crawlproj.urls.canonical import url_key
from tests.support.catalog import catalog
from tests.support.copies import Copies, article, html


@pytest.fixture
def empty(new_database: Callable[[str], str]) -> Iterator[Database]:
    db = Database(new_database("template0"))
    yield db
    db.close()


def apply_steps(db: Database, steps: list[Migration]) -> None:
    """As an older version of the code left it."""
    for step in steps:
        with db.transaction() as tx:
            tx.run_script(step.sql)
            tx.run("migration_mark", number=step.number, name=step.name)


def test_a_new_database_gets_everything_at_once(any_server: str, empty: Database) -> None:
    names = [step.name for step in list_migrations()]
    assert pending_migrations(empty) == names
    assert migrate(empty) == names
    assert pending_migrations(empty) == []
    assert migrate(empty) == []
    assert [number for (number,) in empty.fetch_rows("migration_applied")] == [
        step.number for step in list_migrations()
    ]


def test_every_way_of_migrating_ends_in_the_present_schema(
    any_server: str, new_database: Callable[[str], str]
) -> None:
    """If this fails: schema.sql and the steps differ. Before the first release, copy schema.sql to
    0001_first.sql; afterwards write a new step.
    """
    fresh = Database(new_database("template0"))
    migrate(fresh)
    wanted = catalog(fresh)
    fresh.close()
    assert wanted["tables"]
    for released in range(1, len(list_migrations()) + 1):
        old = Database(new_database("template0"))
        apply_steps(old, list_migrations()[:released])
        assert migrate(old) == [step.name for step in list_migrations()[released:]]
        assert catalog(old) == wanted
        old.close()


def test_an_older_crawl_goes_on_breadth_first_in_the_order_of_finding(empty: Database) -> None:
    """Before, URLs of one depth had one rank, and where they came from was not stored."""
    apply_steps(empty, list_migrations()[:1])
    empty.run_script("""
        set search_path = crawlproj;
        insert into crawl (name, ordering, max_depth) values ('wide', 'bfs', 0), ('good', 'best', 0);
        insert into host (name) values ('a.example');
        insert into url (id, crawl, host, canonical, state, lane, rank, depth, score, first_seen)
        select c.id * 10 + n, c.id, 1, 'http://a.example/' || n, 'new', case n when 3 then 0 else 1 end, case n when 3 then 0 else -0.25 end,
            3, 0.25, '2026-02-03 04:05:06.789+00'::timestamptz - n * interval '10 microseconds'
        from crawl c, generate_series(1, 3) n""")
    assert "0002_sources" in migrate(empty)
    rows = empty.run_script(
        "select id, rank, first_seen, found, source from crawlproj.url order by id"
    )
    ranks = {id_: rank for id_, rank, *_ in rows}
    assert [ranks[id_] for id_ in (21, 22, 23)] == [-0.25, -0.25, 0.0]
    times = {id_: first_seen for id_, _, first_seen, *_ in rows}
    assert ranks[11] == compute_rank("bfs", 3, 0.25, times[11]), "as Python computes it"
    assert 3 < ranks[12] < ranks[11] < 4
    assert ranks[13] == 0, "a push"
    assert {(found, source) for *_, found, source in rows} == {(None, False)}


def test_pages_of_an_older_crawl_get_texts_and_verdicts_when_they_change(empty: Database) -> None:
    """Before, the text of a page was not kept, and no page was compared with another one."""
    apply_steps(empty, list_migrations()[:4])
    urls = [f"http://a.example/{name}" for name in ("changes", "stays")]
    ids = [url_key("copies", url) for url in urls]
    empty.run_script("""
        set search_path = crawlproj;
        insert into crawl (name, ordering, max_depth) values ('copies', 'best', 0);
        insert into host (name) values ('a.example');
        insert into crawl_host (crawl, host, name, stage, revisit) values (1, 1, 'a.example', 0, 0)""")
    for id_, url in zip(ids, urls, strict=True):
        empty.run_script(f"""
            set search_path = crawlproj;
            insert into url (id, crawl, host, canonical, state, lane, rank, depth, score, first_seen, visit, status, last_visit,
                next_visit, body_digest, block_digest)
            values ({id_}, 1, 1, '{url}', 'waiting', 2, 0, 0, 1, now(), 1, 200, now(), now(), '\\x{"11" * 16}', '\\x{"22" * 16}');
            insert into page (url, at, title, content_type, charset, language, length, noindex, noarchive, elapsed_s)
            values ({id_}, now(), 'Old', 'text/html', 'utf-8', 'en', 10, false, false, 0);
            insert into page_links values ({id_}, '{{}}', '', '', '{urls[0]}', 'A', 'text')""")
    assert migrate(empty) == [step.name for step in list_migrations()[4:]]
    copies = Copies(empty)
    assert copies.read(urls[0], html(article(1))) is None
    verdict = copies.read("http://b.example/copy", html(article(1)))
    assert verdict is not None and verdict.original == ids[0]
    copies.close()
    rows = empty.run_script(
        "select p.url, t.url, p.declared_language from crawlproj.page p "
        "left join crawlproj.page_text t on t.url = p.url"
    )
    kept = {id_: (text is not None, declared) for id_, text, declared in rows}
    assert kept[ids[0]] == (True, "")
    assert kept[ids[1]] == (False, "en"), "it is as it was"
    (row,) = empty.run_script(
        "select known, known_kinds, known_texts, other, other_kinds, other_texts, details "
        f"from crawlproj.page_links where url = {ids[1]}"
    )
    assert read_links(LinksRow(*row)) == [
        StoredLink(None, urls[0], "a", nofollow=True, texts=("text",))
    ]


def test_the_catalog_sees_a_small_difference(database: Database) -> None:
    before = catalog(database)
    database.run_script("alter table migration alter column name set default 'x'")
    assert catalog(database)["columns"] != before["columns"]


def test_a_newer_database_is_refused(database: Database) -> None:
    database.run("migration_mark", number=len(list_migrations()) + 3, name="from_the_future")
    for action in (migrate, pending_migrations):
        with pytest.raises(
            MigrationError,
            match=r"at migration 00\d\d, this code knows only 00\d\d: update crawlproj",
        ):
            action(database)


def test_missing_steps_are_applied_in_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = len(list_migrations()) + 1
    sqls = {
        "more": "create table more (a int)",
        "column": "alter table more add column b text default 'c'",
    }
    steps = [FakeStep(first, "more", sqls["more"]), FakeStep(first + 1, "column", sqls["column"])]
    known = [*list_migrations(), *steps]
    monkeypatch.setattr(module, "list_migrations", lambda: known)
    assert pending_migrations(database) == ["more", "column"]
    assert migrate(database) == ["more", "column"]
    assert database.run_script("insert into more (a) values (1) returning b") == [("c",)]


def test_a_failing_step_leaves_everything_as_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = len(list_migrations()) + 1
    known = [
        *list_migrations(),
        FakeStep(first, "good", "create table good (a int)"),
        FakeStep(first + 1, "bad", "oops"),
    ]
    before = catalog(database)
    monkeypatch.setattr(module, "list_migrations", lambda: known)
    with pytest.raises(MigrationError, match="migration bad failed, nothing was changed"):
        migrate(database)
    assert catalog(database) == before
    assert pending_migrations(database) == ["good", "bad"]


def test_two_workers_migrate_at_once_and_one_waits(
    any_server: str, new_database: Callable[[str], str]
) -> None:
    url = new_database("template0")
    done: list[list[str]] = []
    gate = threading.Barrier(2)

    def work() -> None:
        db = Database(url)
        db.connect()
        gate.wait()
        done.append(migrate(db))
        db.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(done) == [[], [step.name for step in list_migrations()]]


class FakeStep(Migration):
    """A step that brings its SQL along."""

    __slots__ = ("text",)
    text: str

    def __init__(self, number: int, name: str, text: str) -> None:
        super().__init__(number, name)
        object.__setattr__(self, "text", text)

    @property
    def sql(self) -> str:
        return self.text
