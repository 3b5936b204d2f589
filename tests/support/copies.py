"""Pages that are read one after the other and judged as copies, on a real database."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256

from crawlproj.content.html import parse_page
from crawlproj.content.packed_text import stored_form
from crawlproj.database.connection import Database
from crawlproj.duplicates.marks import WITHDRAWN, PageMarker, make_page_text
from crawlproj.duplicates.postgres import DuplicateJudge
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import (
    Batch,
    Content,
    CrawlSpec,
    Lease,
    NewUrl,
    Outcome,
    State,
    Ticket,
    Verdict,
    Want,
)
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.urls.canonical import host_of, url_key

WORDS = tuple(
    f"{first}{second}"
    for first in ("ba", "cor", "del", "fan", "gol", "hir", "jun", "kel", "lom", "mar", "nes", "pil")
    for second in ("ter", "dan", "ville", "mon", "sip", "rak", "vel", "tos", "gun", "bird", "lake")
)


def sentence(seed: int, words: int = 14) -> str:
    chosen = random.Random(seed).choices(WORDS, k=words)
    return " ".join(chosen).capitalize() + "."


def paragraph(seed: int, sentences: int = 5) -> str:
    return " ".join(sentence(seed * 100 + n) for n in range(sentences))


def article(seed: int, paragraphs: int = 8) -> list[str]:
    return [paragraph(seed * 100 + n) for n in range(paragraphs)]


def html(paragraphs: list[str], title: str = "", head: str = "", frame: str = "") -> str:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return f"<html><head><title>{title}</title>{head}</head><body>{frame}<h1>{title}</h1>{body}</body></html>"


@dataclass
class Copies:
    """A worker that reads pages it is given. `judged` says what became of each."""

    database: Database
    rules: DuplicateRules = field(default_factory=DuplicateRules)
    crawl: str = "copies"
    worker: str = "w"
    leases: dict[str, Lease] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frontier = PostgresFrontier(self.database.new_connection(), CrawlSpec(self.crawl))
        self.frontier.open()
        self.marker = PageMarker(self.rules, self.frontier.crawl_id)
        self.judge = DuplicateJudge(self.marker)
        self.frontier.judge = self.judge

    def id(self, url: str) -> int:
        return url_key(self.crawl, url)

    def ticket(self, url: str) -> Ticket:
        """The ticket of a URL, which is added if it is new and due if it is known."""
        host = host_of(url)
        self.frontier.add([NewUrl(self.id(url), url, host, 1)])
        if host not in self.leases:
            number = int.from_bytes(sha256(f"{self.crawl} {host}".encode()).digest()[:2], "big")
            self.frontier.put_addresses({host: f"10.1.{number // 256}.{number % 256}"})
            for lease in self.frontier.lease(self.worker, 50):
                self.leases |= {found.name: lease for found in lease.hosts}
        lease = self.leases[host]
        wants = [Want(host, lease.server, lease.epoch, 1000)]
        return next(t for t in self.frontier.due_tickets(wants) if t.url == url)

    def outcome(self, url: str, page: str, noindex: bool = False) -> Outcome:
        ticket = self.ticket(url)
        body = page.encode()
        document = parse_page(body, url)
        digest = sha256(body).digest()[:16]
        blocks = stored_form(document.blocks)
        marks = WITHDRAWN
        if not noindex:
            first = ticket.block_digest is None
            marks = self.marker.mark_blocks(
                blocks, digest, document.block_digest, ticket.host, first=first
            )
        canonical = None
        if document.canonical and document.canonical != url:
            canonical = self.id(document.canonical)
        content = Content(
            digest,
            document.block_digest,
            kind="html",
            length=len(body),
            noindex=noindex,
            canonical=canonical,
            text=make_page_text(document, blocks, "html", with_sample=True),
            marks=marks,
        )
        now = self.frontier.now()
        return Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            State.WAITING,
            now,
            200,
            next_visit=now - timedelta(seconds=1),
            changed=ticket.block_digest not in (None, document.block_digest),
            content=content,
        )

    def read(self, url: str, page: str, noindex: bool = False) -> Verdict | None:
        """Read a page by itself; the verdict on it."""
        return self.read_all({url: page}, noindex).get(url)

    def read_all(self, pages: dict[str, str], noindex: bool = False) -> dict[str, Verdict]:
        """Read pages in one commit; those that are copies."""
        outcomes = [self.outcome(url, page, noindex) for url, page in pages.items()]
        committed = self.frontier.commit(Batch(outcomes), self.worker)
        assert committed.done == {outcome.id for outcome in outcomes}
        urls = {self.id(url): url for url in pages}
        return {urls[id_]: verdict for id_, verdict in committed.verdicts.items() if id_ in urls}

    def stored(self) -> dict[str, tuple[str, str]]:
        """What the database says: copy -> its original and how it was found."""
        rows = self.frontier.db.run_script("""
            select u.canonical, o.canonical, p.duplicate_kind from crawlproj.page p
            join crawlproj.url u on u.id = p.url join crawlproj.url o on o.id = p.duplicate_of""")
        return {url: (original, kind) for url, original, kind in rows}

    def kept(self) -> dict[str, str]:
        """Original -> the page that stands for its cluster."""
        rows = self.frontier.db.run_script("""
            select o.canonical, k.canonical from crawlproj.cluster c
            join crawlproj.url o on o.id = c.original join crawlproj.url k on k.id = c.kept""")
        return dict(rows)

    def count(self, table: str) -> int:
        number: int = self.frontier.db.run_script(f"select count(*) from crawlproj.{table}")[0][0]
        return number

    def close(self) -> None:
        self.frontier.close()
