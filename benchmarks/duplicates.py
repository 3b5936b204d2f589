"""The store of duplicates as it grows: `python -m benchmarks.duplicates [PAGES [PARAGRAPHS [DIGESTS]]]`.

It fills the tables with made-up originals, then judges batches of 200 pages, 5 % of them copies,
and prints time and CPU per page, and bytes per row of each table. Then digests are added up to
DIGESTS, and four clients at once put and look up others. `make growth` runs it with a million
pages, ten million paragraphs and 5.7 million digests, which takes some minutes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random

from benchmarks.meter import postgres_cpu_s
from crawlproj.content.document import Block, Document
from crawlproj.content.packed_text import pack_document, stored_form
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate
from crawlproj.duplicates.marks import PageMarker
from crawlproj.duplicates.postgres import DuplicateJudge, LookedUp
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import Content, CrawlSpec, DuplicateMarks, Outcome, PageText, State
from crawlproj.frontier.postgres import PostgresFrontier

BATCH = 200
WORDS = [f"w{n}" for n in range(5_000)]
HOSTS = 1_000


@contextmanager
def database() -> Iterator[tuple[Database, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="duplicates-"))
    try:
        with EmbeddedPostgres(folder) as postgres:
            db = Database(postgres.start())
            migrate(db)
            yield db, folder / "pg" / "data"
            db.close()
    finally:
        shutil.rmtree(folder)


def fill(db: Database, pages: int, paragraphs: int) -> None:
    """Originals and paragraphs that nobody meets, made by Postgres itself."""
    db.run_script(
        f"""set search_path = crawlproj; set session_replication_role = replica;
        insert into crawl (name, ordering, max_depth) values ('grown', 'best', 0);
        insert into host (name) select 'h' || n || '.test' from generate_series(1, {HOSTS}) n;
        insert into url (id, crawl, host, canonical, state, depth, score, first_seen)
            select n, 1, n % {HOSTS} + 1, 'http://h' || n % {HOSTS} + 1 || '.test/' || n, 'waiting', 1, 1, now()
            from generate_series(1, {pages}) n;
        insert into exact select n, hashint8extended(n, 1), hashint8extended(n, 2) from generate_series(1, {pages}) n;
        insert into band select n, hashint8extended(n, 11), hashint8extended(n, 12), hashint8extended(n, 13),
            hashint8extended(n, 14), hashint8extended(n, 15), hashint8extended(n, 16), hashint8extended(n, 17),
            hashint8extended(n, 18) from generate_series(1, {pages}) n;
        insert into paragraph select hashint8extended(n, 21), n % {HOSTS} + 1, n / 12 + 1, 1
            from generate_series(1, {paragraphs}) n;
        analyze url; analyze exact; analyze band; analyze paragraph;"""
    )


def page_outcome(marker: PageMarker, id_: int, text: list[str], now: object) -> Outcome:
    url = f"http://h{id_ % HOSTS + 1}.test/{id_}"
    document = Document(url, blocks=[Block(part, "div/p") for part in text])
    digest = sha256(f"{id_}".encode()).digest()[:16]
    blocks = stored_form(document.blocks)
    marks = marker.mark_blocks(blocks, digest, document.block_digest, "h.test", first=True)
    packed = PageText(pack_document(document), 900, "html", 1)
    content = Content(digest, document.block_digest, text=packed, marks=marks)
    return Outcome(id_, 0, 1, 1, State.WAITING, now, 200, content=content)  # type: ignore[arg-type]


def new_batch(
    marker: PageMarker, first_id: int, chance: Random, known: list[list[str]], now: object
) -> list[Outcome]:
    outcomes = []
    for id_ in range(first_id, first_id + BATCH):
        if known and chance.random() < 0.05:
            text = chance.choice(known)
        else:
            text = [" ".join(chance.choices(WORDS, k=60)) for _ in range(15)]
            known.append(text)
        outcomes.append(page_outcome(marker, id_, text, now))
    return outcomes


def judge_batches(db: Database, data: Path, pages: int, rounds: int = 30) -> None:
    """What a page costs beside so many others."""
    frontier = PostgresFrontier(db.new_connection(), CrawlSpec("grown"))
    frontier.open()
    for near, paragraphs in ((False, False), (True, False), (True, True)):
        marker = PageMarker(DuplicateRules(near=near, paragraphs=paragraphs), frontier.crawl_id)
        judge = DuplicateJudge(marker)
        chance = Random(near + 2 * paragraphs)
        known: list[list[str]] = []
        wall = own = 0.0
        backend = 0.0
        copies = 0
        for number in range(rounds):
            first_id = pages + 1 + BATCH * (number + rounds * (near + 2 * paragraphs))
            outcomes = new_batch(marker, first_id, chance, known, frontier.now())
            ids = [outcome.id for outcome in outcomes]
            hosts = {id_: id_ % HOSTS + 1 for id_ in ids}
            prepare(db, outcomes)
            before = postgres_cpu_s(data)
            started, cpu = time.perf_counter(), time.process_time()
            looked_up: LookedUp = judge.look_up(frontier.db, outcomes)
            with frontier.db.transaction() as tx:
                copies += len(judge.settle(tx, outcomes, hosts, looked_up))
            if number >= 5:
                wall += time.perf_counter() - started
                own += time.process_time() - cpu
                backend += postgres_cpu_s(data) - before
        judged = (rounds - 5) * BATCH
        what = "exact" + ", near" * near + ", paragraphs" * paragraphs
        print(
            f"{pages:>9,} pages, {what:<24} {wall / judged * 1e6:>6.0f} us wall, {own / judged * 1e6:>4.0f} us client CPU, "
            f"{backend / judged * 1e6:>4.0f} us Postgres per page; {copies} copies of {rounds * BATCH}"
        )
    frontier.close()


def prepare(db: Database, outcomes: list[Outcome]) -> None:
    """Rows of url, page and page_text, as a commit has written them before it judges."""
    ids = array_literal([outcome.id for outcome in outcomes])
    db.run_script(f"""set search_path = crawlproj;
        insert into url (id, crawl, host, canonical, state, depth, score, first_seen)
            select n, 1, n % {HOSTS} + 1, 'http://h' || n % {HOSTS} + 1 || '.test/' || n, 'waiting', 1, 1, now()
            from unnest('{ids}'::bigint[]) n;
        insert into page (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s)
            select n, now(), '', '', '', '', 0, false, false, 0 from unnest('{ids}'::bigint[]) n""")
    db.run(
        "put_texts",
        url=ids,
        blocks=array_literal(
            [o.content.text.packed for o in outcomes if o.content and o.content.text]
        ),
    )


def exact_rate(db: Database, pages: int, clients: int = 4, batches: int = 100) -> None:
    """Digests that are put and looked up per millisecond by four clients at once."""
    rates = {}
    for kind in ("puts", "gets"):
        barrier = threading.Barrier(clients + 1)

        def work(number: int, kind: str = kind, barrier: threading.Barrier = barrier) -> None:
            connection = db.new_connection()
            chance = Random(number)
            marks = [
                [
                    DuplicateMarks(chance.getrandbits(63), chance.getrandbits(63))
                    for _ in range(BATCH)
                ]
                for _ in range(batches)
            ]
            connection.fetch_value("now")
            barrier.wait()
            for position, batch in enumerate(marks):
                first = 10**12 + (number * batches + position) * BATCH
                columns = {
                    "page": array_literal(range(first, first + BATCH)),
                    "body": array_literal([mark.body for mark in batch]),
                    "text": array_literal([mark.text for mark in batch]),
                }
                if kind == "puts":
                    connection.run("put_exact", **columns)
                else:
                    connection.fetch_rows("find_exact", **columns)
            barrier.wait()
            connection.close()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        for thread in threads:
            thread.start()
        if kind == "puts":
            db.run_script("alter table crawlproj.exact drop constraint if exists exact_page_fkey")
        barrier.wait()
        started = time.perf_counter()
        barrier.wait()
        rates[kind] = clients * batches * BATCH / (time.perf_counter() - started) / 1000
        for thread in threads:
            thread.join()
    print(
        f"{pages:>9,} digests, {clients} clients: {rates['puts']:.1f} puts and {rates['gets']:.1f} gets per ms"
    )


def add_digests(db: Database, pages: int, digests: int) -> None:
    """Digests of further originals, which nobody meets."""
    db.run_script(
        f"""set search_path = crawlproj; set session_replication_role = replica;
        insert into exact select n, hashint8extended(n, 1), hashint8extended(n, 2)
            from generate_series({10**10 + pages + 1}, {10**10 + digests}) n;
        set session_replication_role = origin; analyze exact"""
    )


def sizes(db: Database) -> None:
    for table in ("exact", "band", "paragraph", "page_text", "page", "url"):
        ((size, rows),) = db.run_script(
            f"select pg_total_relation_size('crawlproj.{table}'), count(*) from crawlproj.{table}"
        )
        if rows:
            print(f"  {table:<10} {rows:>10,} rows, {size / rows:>6.0f} bytes per row")


def main(pages: int, paragraphs: int, digests: int) -> None:
    with database() as (db, data):
        started = time.monotonic()
        fill(db, pages, paragraphs)
        print(f"filled in {time.monotonic() - started:.0f} s")
        sizes(db)
        judge_batches(db, data, pages)
        print("after these pages:")
        sizes(db)
        if digests > pages:
            add_digests(db, pages, digests)
        exact_rate(db, max(pages, digests))


if __name__ == "__main__":
    numbers = [int(float(word)) for word in sys.argv[1:4]]
    main(*(numbers + [10_000, 100_000, 0][len(numbers) :]))
