"""Pairs of pages through the judge of a crawl: `python -m benchmarks.neardup --cascade --data FOLDER`.

All pages of FOLDER are originals on a Postgres of its own. Each copy is written, judged in a
transaction by all that the judge has, and taken back. Twins that share only a frame or a notice are
judged on one host and on two, one after the other and in one commit. Reprints are an article in the
frame of another page, half of them with paragraphs moved, if over 90 % of their paragraphs are the
article's. Exit 1 if a goal is missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

from benchmarks.duplicates import database
from benchmarks.neardup import (
    BELOW,
    PRECISION_GOAL,
    RECALL_GOAL,
    TEMPLATE_PAIRS,
    Blocks,
    Page,
    has_article,
    load_pages,
    make_pairs,
    make_twins,
    wilson_interval,
)
from crawlproj.content.document import Document
from crawlproj.content.packed_text import pack_document, stored_form
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.duplicates.compare import judged_text
from crawlproj.duplicates.marks import PageMarker
from crawlproj.duplicates.paragraphs import paragraphs_in
from crawlproj.duplicates.postgres import DuplicateJudge
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import (
    Content,
    CrawlSpec,
    DuplicateKind,
    Outcome,
    PageText,
    State,
    Verdict,
)
from crawlproj.frontier.postgres import PostgresFrontier

ONE, OTHER = 10_001, 10_002
"""Ids of the pages of a pair; those of the originals are smaller."""
REPRINTS = 300


class _TakenBack(Exception):
    """Ends a transaction in which nothing is to stay."""


class Judged:
    """A crawl and its judge; each page has the host of its number."""

    def __init__(self, db: Database, crawl: str) -> None:
        frontier = PostgresFrontier(db.new_connection(), CrawlSpec(crawl))
        frontier.open()
        self.db = frontier.db
        self._now = frontier.now()
        self._marker = PageMarker(DuplicateRules(), frontier.crawl_id)
        self._judge = DuplicateJudge(self._marker, archived=False)

    def outcome(self, id_: int, blocks: Blocks) -> Outcome:
        document = Document(f"http://h{id_}.test/", blocks=blocks)
        digest = sha256(repr(blocks).encode("utf-8", "replace")).digest()[:16]
        marks = self._marker.mark_blocks(
            stored_form(blocks), digest, document.block_digest, "h.test", first=True
        )
        text = PageText(pack_document(document), 0, "html", 1)
        content = Content(digest, document.block_digest, text=text, marks=marks)
        return Outcome(id_, 0, 1, 1, State.WAITING, self._now, 200, content=content)

    def settle(
        self, tx: Transaction, outcomes: Sequence[Outcome], hosts: dict[int, int]
    ) -> dict[int, Verdict]:
        """As a commit does it, after it has written the texts."""
        looked_up = self._judge.look_up(tx, outcomes)
        packed = [o.content.text.packed for o in outcomes if o.content and o.content.text]
        ids = [outcome.id for outcome in outcomes]
        tx.run("put_texts", url=array_literal(ids), blocks=array_literal(packed))
        return self._judge.settle(tx, outcomes, hosts, looked_up)

    def try_pages(
        self, groups: Sequence[dict[int, Blocks]], hosts: dict[int, int]
    ) -> dict[int, Verdict]:
        """The verdicts on pages that come in groups; nothing of it stays."""
        verdicts: dict[int, Verdict] = {}
        with suppress(_TakenBack), self.db.transaction() as tx:
            for group in groups:
                outcomes = [self.outcome(id_, blocks) for id_, blocks in group.items()]
                verdicts |= self.settle(tx, outcomes, hosts)
            raise _TakenBack
        return verdicts


def add_rows(db: Database, ids: Sequence[int]) -> None:
    """URLs, pages and hosts with these numbers."""
    numbers = array_literal(ids)
    db.run_script(f"""set search_path = crawlproj;
        insert into host (id, name) overriding system value select n, 'h' || n || '.test' from unnest('{numbers}'::int[]) n;
        insert into url (id, crawl, host, canonical, state, depth, score, first_seen)
            select n, 1, n, 'http://h' || n || '.test/', 'waiting', 1, 1, now() from unnest('{numbers}'::bigint[]) n;
        insert into page (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s)
            select n, now(), '', '', '', '', 0, false, false, 0 from unnest('{numbers}'::bigint[]) n""")


def make_reprints(pages: Sequence[Page], random: Random) -> list[tuple[Blocks, Blocks]]:
    """Real pages, and their articles in the frames of others."""
    found: list[tuple[Blocks, Blocks]] = []
    while len(found) < REPRINTS:
        article, frame = random.sample(list(pages), 2)
        main = sum(frame.blocks[number].main for number in frame.body) > len(frame.body) / 2
        body = [article.blocks[number]._replace(main=main) for number in sorted(article.body)]
        if len(found) % 2:
            for _ in range(3):
                body.insert(random.randrange(len(body)), body.pop(random.randrange(len(body))))
        others = [block for number, block in enumerate(frame.blocks) if number not in frame.body]
        start = min(frame.body)
        reprint = others[:start] + body + others[start:]
        if known_share(reprint, article.blocks) > 0.9:
            found.append((article.blocks, reprint))
    return found


def known_share(page: Blocks, original: Blocks) -> float:
    known = {paragraph.hash for paragraph in paragraphs_in(judged_text(original))}
    own = paragraphs_in(judged_text(page))
    length = sum(paragraph.length for paragraph in own if paragraph.hash in known)
    return length / max(1, sum(paragraph.length for paragraph in own))


def share_text(hits: int, total: int) -> str:
    low, high = wilson_interval(hits, total)
    return f"{hits}/{total} ({low:.3f}-{high:.3f})"


def measure_cascade(folder: Path, wanted: int, seed: int) -> int:
    random = Random(seed)
    pages = load_pages(folder, every=True)
    articles = [page for page in pages if has_article(page)]
    bins = make_pairs(pages, wanted, random)
    twins = list(make_twins(articles, TEMPLATE_PAIRS, random))
    reprints = make_reprints(articles, random)
    missed = []
    with database() as (db, _):
        crawl, empty = Judged(db, "pages"), Judged(db, "pairs")
        ids = list(range(1, len(pages) + 1))
        add_rows(db, [*ids, ONE, OTHER])
        hosts = {id_: id_ for id_ in (*ids, ONE, OTHER)}
        same: dict[int, int] = {}
        for id_, page in zip(ids, pages, strict=True):
            with crawl.db.transaction() as tx:
                verdicts = crawl.settle(tx, [crawl.outcome(id_, page.blocks)], hosts)
            same |= {copy: verdict.original for copy, verdict in verdicts.items()}
        print(f"{len(pages)} pages, {len(same)} of them copies of others\n")

        print("| true similarity | found | by | what was done to those that are missed |")
        print("|---|---|---|---|")
        right = wrong = 0
        for limits, pairs in bins.items():
            kinds: Counter[str] = Counter()
            lost: Counter[str] = Counter()
            for pair in pairs:
                original = same.get(pair.page + 1, pair.page + 1)
                verdict = crawl.try_pages([{ONE: pair.copy}], hosts).get(ONE)
                if verdict is None:
                    lost[pair.edit] += 1
                elif verdict.original != original:
                    wrong += 1
                else:
                    kinds[verdict.kind.value] += 1
            found = kinds.total()
            if limits == BELOW:
                # What consists of known paragraphs is a copy however near the whole page is.
                wrong += found - kinds[DuplicateKind.PARAGRAPH.value]
            else:
                right += found
                if len(pairs) < wanted or found < RECALL_GOAL * len(pairs):
                    missed.append(f"recall from {limits[0]}: {found} of {len(pairs)}")
            text = share_text(found, len(pairs))
            left = dict(lost) if limits != BELOW else "-"
            print(f"| {limits[0]:.2f}-{min(limits[1], 1):.2f} | {text} | {dict(kinds)} | {left} |")
        precision = right / max(1, right + wrong)
        print(f"\nprecision {precision:.4f}: {wrong} wrong, {right} right")
        if precision < PRECISION_GOAL:
            missed.append(f"precision {precision:.4f}")

        for name, host in (("one host", ONE), ("two hosts", OTHER)):
            for at_once in (False, True):
                alike = 0
                for one, other in twins:
                    groups = [{ONE: one}, {OTHER: other}]
                    if at_once:
                        groups = [{ONE: one, OTHER: other}]
                    alike += bool(empty.try_pages(groups, {ONE: ONE, OTHER: host}))
                when = "in one commit" if at_once else "one after the other"
                print(f"same frame or notice only, {name}, {when}: {alike} of {len(twins)}")
                if alike:
                    missed.append(f"{alike} pairs by their frame alone on {name}")
        hits = sum(
            OTHER in empty.try_pages([{ONE: one}, {OTHER: other}], hosts) for one, other in reprints
        )
        print(f"articles in the frame of another host: {share_text(hits, len(reprints))}")
    print("\n" + ("goals missed: " + "; ".join(missed) if missed else "all goals met"))
    return 1 if missed else 0
