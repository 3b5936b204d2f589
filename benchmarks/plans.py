"""Plans of each query of the frontier: `python -m benchmarks.plans > docs/plans.md`.

A frontier on a filled database does everything that it can. Before each query the same query is
explained, executed and undone; plans hold what was really read, not what was estimated. A test
reads them too, and finds whatever reads too much.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.fill import fill
from benchmarks.madeup import utc_now
from benchmarks.rounds import Round
from crawlproj.archive.exchange import RecordLocation
from crawlproj.archive.write_queue import Receipt
from crawlproj.articles.store import ArticleState, ArticleStore, NewArticle
from crawlproj.content.articles import ArticleFields
from crawlproj.content.document import Block, Document
from crawlproj.content.packed_text import pack_document, stored_form
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.queries import load_queries
from crawlproj.duplicates.marks import WITHDRAWN, PageMarker
from crawlproj.duplicates.postgres import DuplicateJudge
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import (
    ArticleClaim,
    ArticleEnd,
    ArticleSource,
    Batch,
    Content,
    CrawlSpec,
    Found,
    HeldAddress,
    HostText,
    LeftOutHost,
    Links,
    NewUrl,
    Outcome,
    PageText,
    RobotsRow,
    ServerHints,
    SourceNote,
    State,
    Ticket,
)
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.crawl_stats import CrawlStats
from crawlproj.scheduling.revisit_budget import RevisitBudget
from crawlproj.scheduling.source_watch import SourceWatch
from crawlproj.urls.canonical import host_of, origin_of, url_key

EXPLAIN = "explain (analyze, costs off, timing off, summary off, format json) "
Plan = dict[str, Any]
AT_START = "mend_"
LIMITS: dict[str, Any] = {"max_depth": 50, "domain_hosts": 50}
INTRODUCTION = """# Plans
What Postgres does for each query of `crawlproj/database/sql/queries` that a worker asks while it crawls, on a crawl of {urls:,} URLs on
{hosts:,} hosts: each step of the plan with the index it uses and the rows it really read. Of several calls the one that read
most is shown. A test keeps whole tables and long sorts out of it. Made by `python -m benchmarks.plans > docs/plans.md`.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One query that was run, and its plan."""

    name: str
    plan: Plan

    def nodes(self) -> Iterator[Plan]:
        todo = [self.plan]
        while todo:
            node = todo.pop()
            yield node
            todo += node.get("Plans", [])


def rows_read(node: Plan) -> float:
    """How many rows a node read: a scan all that it looked at, others what came from below."""
    if "Scan" in node["Node Type"]:
        removed = sum(value for name, value in node.items() if name.startswith("Rows Removed"))
        return float((node["Actual Rows"] + removed) * node["Actual Loops"])
    return float(
        sum(below["Actual Rows"] * below["Actual Loops"] for below in node.get("Plans", []))
    )


class WatchedTransaction(Transaction):
    seen: list[Seen]

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        if name in load_queries() and name != "discard":
            super()._send("savepoint", "savepoint watch", None)
            plan = super()._send(name, EXPLAIN + text, args)[1][0][0][0]["Plan"]
            super()._send("undo", "rollback to savepoint watch; release savepoint watch", None)
            self.seen.append(Seen(name, plan))
        return super()._send(name, text, args)


class WatchedDatabase(Database):
    """A database that explains each query before it runs it."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.seen: list[Seen] = []
        self._plans.runs_before_prepare = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as plain:
            watched = WatchedTransaction(self, plain._connection)
            watched.seen = self.seen
            yield watched

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        if name in load_queries():
            with self.transaction() as tx:
                return tx._send(name, text, args)
        return super()._send(name, text, args)


def exercise(dsn: str, crawl: str) -> list[Seen]:
    """Run every query that workers of a crawl with quotas run in the course of a day."""
    db = WatchedDatabase(dsn)
    db.run_script(COPIES)
    db.run_script(STATES)
    db.run_script(f"update crawl set max_depth = {LIMITS['max_depth']} where name = '{crawl}'")
    frontier = PostgresFrontier(db, CrawlSpec(crawl, host_pages=500, pages=10**9, **LIMITS))
    frontier.open()
    work = Round(frontier, "watched")
    names = frontier.take_unresolved(64) + frontier.take_outdated(64)
    frontier.put_addresses({name: f"10.1.1.{number}" for number, name in enumerate(names)})
    work.lease(100)
    work.refill()
    frontier.get_robots([f"https://{ticket.host}" for ticket in work.tickets[:100]])
    frontier.commit(_mixed_batch(work))
    while work.tickets:
        work.turn(200, frontier.now())
    work.refill()
    held = list(work.leases)
    frontier.new_hosts_on_leases(
        "watched", held, [host.name for lease in work.leases.values() for host in lease.hosts][:50]
    )
    frontier.lease_for_hosts(
        "watched", [*(host.name for host in work.leases[held[0]].hosts), "elsewhere.example"]
    )
    frontier.renew_leases("watched", held)
    frontier.contested_servers(held)
    frontier.outlook("watched")
    frontier.outlook("another")
    _rejudge(db, frontier)
    frontier.commit(Batch(_stored_again(work)), "watched")
    _judge_copies(db, frontier, work)
    _take_articles(db, frontier, work)
    _learn_changes(db, frontier, work)
    frontier.release_servers("watched", held[:50], yielding=True)
    frontier.lease("another", 100, unprepared=8)
    db.run_script("update server set until = now() where worker = 'another'")
    frontier.lease("third", 100, unprepared=8, unseen=3)
    frontier.heartbeat("watched", True)
    frontier.end_dead_workers(["third"], timedelta(seconds=1))
    frontier.remove_worker("watched")
    frontier.get_urls([ticket.id for ticket in work.tickets[:100]])
    frontier.seed_urls()
    frontier.count_urls()
    _over_quota(db, crawl)
    _rest(db, crawl)
    db.close()
    return db.seen


def _mixed_batch(work: Round) -> Batch:
    """A batch with robots.txt of new hosts, known URLs found nearer and pushed, and new hosts."""
    now = work.frontier.now()
    spec = work.frontier.spec
    tickets = work.tickets[:100]
    rows = [
        RobotsRow(
            f"https://{t.host}",
            t.host,
            200,
            body="User-agent: *\n",
            fetched=now,
            expires=now + timedelta(days=1),
        )
        for t in tickets
    ]
    nearer = [
        NewUrl(t.id, t.url, t.host, depth=max(0, t.depth - 1), score=1.0, parent=None)
        for t in tickets
    ]
    urls = [f"https://new{number}.{spec.name}.example/" for number in range(100)]
    return Batch(
        urls=[
            *nearer,
            *(NewUrl(url_key(spec.name, url), url, host_of(url), depth=1) for url in urls),
            *(
                NewUrl(t.id, t.url, t.host, found=Found.SEED, again=timedelta(minutes=5))
                for t in tickets[:50]
            ),
        ],
        robots=rows,
        left_out={
            name: LeftOutHost(name, f"http://{name}/")
            for name in (f"out{number}.example" for number in range(100))
        },
    )


def _stored_again(work: Round) -> list[Outcome]:
    """Pages that have not changed, but whose bodies went into the archive, and say noindex now."""
    now = work.frontier.now()
    place = RecordLocation(
        "a.warc.gz",
        1,
        2,
        kind="response",
        record_id=f"<urn:uuid:{UUID(int=1)}>",
        digest="sha1:A",
        at=now,
        original=None,
    )
    whose = [(t.id, t.visit, t.server, t.epoch, State.WAITING, now) for t in work.tickets[:50]]
    return [
        Outcome(
            *who,
            status=200,
            next_visit=now + timedelta(days=1),
            receipt=Receipt(place),
            turns_noindex=True,
        )
        for who in whose
    ]


COPIES = """
insert into exact select id, hashint8extended(id, 1), hashint8extended(id, 2) from url limit 50000;
insert into band select page, body + 1, body + 2, body + 3, body + 4, body + 5, body + 6, body + 7, body + 8 from exact;
insert into paragraph select hashint8extended(n, 3), n, n, 1 from generate_series(1, 100000) n;
insert into page_text select page, 'text' from exact;
insert into cluster select page, page from exact limit 20000;
insert into unjudged select id from url order by id desc limit 20000;
update page set duplicate_of = url + 1, noted = false where url in (select page from exact limit 2000);
analyze exact; analyze band; analyze paragraph; analyze page_text; analyze cluster; analyze page; analyze unjudged;
"""
"""Originals and paragraphs that nobody meets."""


def _judge_copies(db: Database, frontier: PostgresFrontier, work: Round) -> None:
    """Pages in groups of four, one text each; then other texts of them, and some noindex."""
    marker = PageMarker(DuplicateRules(), frontier.crawl_id)
    judge = DuplicateJudge(marker)
    frontier.judge = judge
    tickets = work.tickets[50:150]
    hosts = {ticket.id: number for number, ticket in enumerate(tickets, 1)}

    def read(ticket: Ticket, number: int, first: bool) -> Outcome:
        words = [f"{'new' * (not first)}word{number // 4 * 100 + n}" for n in range(100)]
        words[number % 4] = "another"
        blocks = [Block(" ".join(words[start : start + 25]), "p") for start in range(0, 100, 25)]
        document = Document(ticket.url, blocks=blocks)
        digest = f"{first} {number}".encode()
        marks = marker.mark_blocks(
            stored_form(blocks), digest, document.block_digest, ticket.host, first=first
        )
        if not first and number % 20 == 0:
            marks = WITHDRAWN
        page = PageText(pack_document(document), 100, "html", 1)
        content = Content(digest, document.block_digest, text=page, marks=marks)
        return Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            State.WAITING,
            frontier.now(),
            200,
            next_visit=frontier.now() + timedelta(days=1),
            content=content,
        )

    pages = [read(t, n, True) for n, t in enumerate(tickets)]
    frontier.commit(Batch(pages), "watched")
    judge.preview(db, pages)
    frontier.preview_verdicts([replace(page, content=None) for page in pages])
    again = [read(t, n, False) for n, t in enumerate(tickets) if n % 4 < 2]
    left, other = again[1].id, pages[2].id
    db.run_script(
        f"update page set duplicate_of = {other} where url = {left} or url in (select url from page limit 500);"
        f"insert into cluster values ({other}, {left}) on conflict (original) do update set kept = {left}"
    )
    looked_up = judge.look_up(db, again)
    with db.transaction() as tx:
        judge.settle(tx, again, hosts, looked_up)
        rows = tx.fetch_rows("unnoted", crawl=frontier.crawl_id)
        tx.run("mark_noted", ids=array_literal([row[0] for row in rows]))
    frontier.judge = None


ARTICLES = """
insert into article_queue (page, crawl, at, charset, body)
select page, (select min(crawl) from url), now() + make_interval(secs => row_number() over ()), 'utf-8', 'body'
from (select id as page from url order by id limit 100000) u;
insert into article (page, crawl, site, version, at, found_at, changed_at, title, text, fields, title_key, text_key)
select id, crawl, 'example', 1, now(), now(), now(), 'title', 'text', '{}', hashint8extended(id, 4), hashint8extended(id, 5)
from url order by id desc limit 50000;
insert into article_address select id, id from url order by id desc limit 20000;
insert into crawl_stat (crawl, span_s, at, fetches)
select 1, 60, date_trunc('minute', now()) - make_interval(mins => n), 1 from generate_series(1, 3000) n;
analyze article_queue; analyze article; analyze article_address; analyze crawl_stat;
"""
"""A queue of 100,000 pages, and articles that nobody meets."""


def _take_articles(db: Database, frontier: PostgresFrontier, work: Round) -> None:
    """Queue pages, some of them copies of known articles, take their articles, and tell of them."""
    db.run_script(ARTICLES)
    tickets = work.tickets[150:250]
    source = ArticleSource(b"body", "utf-8")
    read = [
        Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            State.WAITING,
            frontier.now(),
            200,
            next_visit=frontier.now() + timedelta(days=1),
            content=Content(
                b"article",
                b"article",
                article=source,
                links=Links(held=(HeldAddress(ticket.id ^ 1, ticket.id, f"{ticket.url}?amp=1"),)),
            ),
        )
        for ticket in tickets
    ]
    frontier.commit(Batch(read), "watched")
    pages = array_literal([ticket.id for ticket in tickets])
    db.run_script(f"update page set duplicate_of = url where url = any ('{pages}')")
    db.run("drop_article_copies", pages=array_literal([t.id for t in tickets[:50]]))
    store = ArticleStore(db, frontier.crawl_id, "watched")
    taken = [queued for _ in range(3) for queued in store.take(8)]
    for number, queued in enumerate(taken):
        store.begin(queued)
        text = f"The text of article number {number // 2}. " * 20
        new = NewArticle(queued, "example", "example", ArticleFields("A title", text))
        stored = store.put(new)
        if stored is not None and stored.version:
            store.addresses(queued.page)
    store.renew([queued.page for queued in taken])
    store.end((queued, ArticleState.SENT) for queued in taken)
    stats = CrawlStats(frontier)
    stats.add({"fetches": 1, "articles": 1})
    stats.write()


STATES = """
insert into page_state (url, state, listed_at) select id, 'state', now() from url order by id limit 50000;
insert into host_text (crawl, host, noise) select (select min(crawl) from url), id, 'noise' from host order by id limit 10000;
insert into host_hint (host, hint) select id, 'etag' from host;
insert into source (url, crawl, site, kind, first_visit, last_visit) select id, crawl, 'zone', 'feed', now(), now()
from url order by id limit 20000;
analyze page_state; analyze host_text; analyze host_hint; analyze source;
"""
"""What was learned of other pages and hosts."""


def _learn_changes(db: Database, frontier: PostgresFrontier, work: Round) -> None:
    """Pages that have changed, are gone or have moved, with all that is learned of them."""
    now = frontier.now()
    tickets = work.tickets[250:350]
    states = [State.WAITING, State.RETIRED, State.MOVED, State.WAITING]
    ends = [
        Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            states[number % 4],
            now,
            200,
            next_visit=now + timedelta(days=1) if number % 4 in (0, 3) else None,
            rate_a=1.0,
            rate_b=3600.0,
            page_state=b"state",
            hints=ServerHints(now, now),
            hints_met=(("etag", True), ("modified", False)),
            source_note=SourceNote("hub", "example", new_links=number % 3),
            article_ends=(_end_article(number),),
        )
        for number, ticket in enumerate(tickets)
    ]
    claims = [
        NewUrl(
            url_key(frontier.spec.name, f"{ticket.url}?{name}"),
            f"{ticket.url}?{name}",
            ticket.host,
            claim=ArticleClaim(number % 7, number, 1),
        )
        for number, ticket in enumerate(tickets)
        for name in ("a", "b")
    ]
    db.run_script(ARTICLE_KEYS)
    frontier.commit(Batch(urls=claims), "watched")
    heirs = [
        NewUrl(
            url_key(frontier.spec.name, f"{ticket.url}?new"),
            f"{ticket.url}?new",
            ticket.host,
            heir_of=ticket.id,
        )
        for ticket in tickets[:20]
    ]
    names = sorted({ticket.host for ticket in tickets})
    texts = {name: HostText(b"noise", b"probe") for name in names}
    listed = {ticket.id: now for ticket in tickets}
    hot = [NewUrl(t.id, t.url, t.host, t.depth, 1.5, published=now) for t in work.tickets[:3000]]
    frontier.commit(Batch(ends, [*heirs, *hot], texts=texts, listed=listed), "watched")
    frontier.get_host_texts(names)
    RevisitBudget(frontier, lambda numbers, age_s, source: (1.0, 0.0)).take_turn((1.1, 0.9))
    budget = RevisitBudget(frontier, lambda numbers, age_s, source: (1.0, 0.0), Ticking())
    budget.take_turn((1, 1))
    budget.sample_hosts()
    db.run_script(SOURCES)
    SourceWatch(frontier, 6.0, Ticking()).look_at_all()


def _end_article(number: int) -> ArticleEnd:
    """What an end says of a number: of a few, that their whole form of address says nothing."""
    if number < 2:
        return ArticleEnd(number, None, is_free=True)
    return ArticleEnd(number % 7, number, is_free=number % 2 > 0)


ARTICLE_KEYS = """
insert into article_key (shape, number, crawl, fetched) select 10 + n % 500, n, c.id, array[n]
from crawl c cross join generate_series(1000, 41000) n limit 40000;
analyze article_key;
"""
SOURCES = """
insert into source (url, crawl, site, kind, first_visit, last_visit, visits, entries, new_links, last_new, gap_s)
select id, crawl, 's' || id % 5000, case when id % 3 = 0 then 'sitemap index' else 'feed' end, now() - interval '20 days', now(), 99, 10, 50,
    now() - make_interval(hours => (id % 40)::int + 1), 3600
from url where id > 0 order by id limit 20000 on conflict do nothing;
insert into page_links (url, known, known_kinds, known_texts, other, other_kinds, other_texts)
select s.url, array(select id from url where visit > 0 limit 100), '', '', '', '', '' from source s where s.kind = 'sitemap index' limit 50
on conflict (url) do update set known = excluded.known;
analyze source;
"""
"""Sources, some of them silent."""


class Ticking:
    """A clock on which a minute passes each time that it is asked."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 60
        return self.now_s


def _rejudge(db: Database, frontier: PostgresFrontier) -> None:
    (found,) = db.run_script("select canonical from url where state = 'forbidden' limit 1")
    frontier.rejudge_forbidden(origin_of(found[0]), lambda _: True)


def _over_quota(db: Database, crawl: str) -> None:
    frontier = PostgresFrontier(db, CrawlSpec(crawl, host_pages=1, **LIMITS))
    frontier.open()
    work = Round(frontier, "last")
    work.lease(20)
    work.refill()
    work.turn(50, frontier.now())
    work.release()


def _rest(db: Database, crawl: str) -> None:
    """Lease while the best hosts rest, then in a full crawl on a day before anything is due."""
    best = (
        "select host from crawl_host where stage = {} and {} is not null order by {}, name "
        "limit 300"
    )
    for stage, name in product((0, 1, 2), ("place", "retry", "revisit")):
        db.run_script(
            "update host set next_allowed = now() + interval '1 hour' where id in "
            f"({best.format(stage, name, name)})"
        )
    PostgresFrontier(db, CrawlSpec(crawl, **LIMITS)).open()
    frontier = PostgresFrontier(
        db, CrawlSpec(crawl, pages=1, **LIMITS), lambda: utc_now() - timedelta(days=25)
    )
    for other in (PostgresFrontier(db, CrawlSpec(crawl, **LIMITS)), frontier):
        other.open()
        other.outlook("watched")
        other.lease("watched", 100, unprepared=8)


def text(seen: Seen) -> str:
    """A plan as short lines: what, by which index, how many rows were read."""
    lines: list[str] = []

    def walk(node: Plan, depth: int) -> None:
        of = [
            f"{word} {node[name]}"
            for word, name in (("by", "Index Name"), ("of", "Relation Name"))
            if name in node
        ]
        about = node.get("Operation", "") if node["Node Type"] == "ModifyTable" else ""
        what = " ".join([about or node["Node Type"], *of])
        lines.append(f"{'  ' * depth}{what}: {rows_read(node):.0f}")
        for below in node.get("Plans", []):
            walk(below, depth + 1)

    walk(seen.plan, 0)
    return "\n".join(lines)


def main(urls: int = 200_000, hosts: int = 20_000) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="plans-") as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        dsn = server.start()
        fill(dsn, "plans", urls, hosts=hosts)
        worst: dict[str, Seen] = {}
        for seen in exercise(dsn, "plans"):
            best = worst.setdefault(seen.name, seen)
            worst[seen.name] = max(best, seen, key=lambda one: max(map(rows_read, one.nodes())))
    print(INTRODUCTION.format(urls=urls, hosts=hosts))
    for name, seen in sorted(worst.items()):
        if name.startswith(AT_START):
            continue
        print(f"## {name}\n```\n{text(seen)}\n```")
    return 0


if __name__ == "__main__":
    sys.exit(main())
