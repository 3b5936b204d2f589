"""Copies of pages as people ask for them: clusters, the biggest first, one page's cluster, and
pages made of paragraphs that stand elsewhere. Read piece by piece: there may be millions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from crawlproj.content.packed_text import TextBlock, unpack_blocks, visible_blocks
from crawlproj.database.arrays import array_literal
from crawlproj.database.queries import Queries
from crawlproj.duplicates.marks import PageMarker
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import DuplicateKind
from crawlproj.reports.facts import PageRow

CHUNK = 1_000
"""Copies that are read at a time."""
SIMILAR_CHUNK = 10_000
"""Pages that are read at a time for `iterate_similar`: each time all pages are looked at."""
FIRST_ID = 1 - 2**63
LAST_ID = 2**63 - 1
FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)
SHOWN_OTHERS = 3
"""Pages that are named of those with the same paragraphs."""
SHOWN_PARAGRAPHS = 3
EXCERPT = 80
"""Characters that are shown of a paragraph."""


class Copy(NamedTuple):
    """A copy: the columns of query `report_copies`. `original` is None if it is not known any
    more; `kept` is the page that stands for the whole cluster.
    """

    id: int
    url: str
    host: str
    crawl: str
    at: datetime
    kind: str
    similarity: float | None
    original_id: int
    original: str | None
    kept_id: int
    kept: str | None

    @property
    def is_kept(self) -> bool:
        return self.kept_id == self.id

    def as_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "original": self.original,
            "kind": self.kind,
            "similarity": self.similarity,
            "cluster": str(self.original_id),
            "at": self.at,
            "kept": self.is_kept,
            "kept_url": self.kept,
            "host": self.host,
            "crawl": self.crawl,
        }


@dataclass(frozen=True, slots=True)
class CopyCluster:
    """A page and how many copies it has, and the first of them."""

    original_id: int
    size: int
    copies: list[Copy]


def count_kinds(db: Queries, crawl: int) -> dict[str, int]:
    """The copies of a crawl by kind, kinds without any left out."""
    counted = dict(db.fetch_rows("report_kinds", crawl=crawl))
    return {kind.value: counted[kind] for kind in DuplicateKind if kind in counted}


def iterate_copies(
    db: Queries,
    *,
    original: int | None = None,
    crawl: int | None = None,
    kind: str | None = None,
    most: int | None = None,
) -> Iterator[Copy]:
    """Copies cluster by cluster, each cluster in the order of reading; `most`: so many of them."""
    last = (FIRST_ID, FIRST_TIME, FIRST_ID)
    left = LAST_ID if most is None else most
    while left > 0:
        rows = db.fetch_rows_as(
            "report_copies",
            Copy,
            original=original,
            crawl=crawl,
            kind=kind,
            after_original=last[0],
            after_at=last[1],
            after_url=last[2],
            count=min(CHUNK, left),
        )
        yield from rows
        if len(rows) < CHUNK:
            return
        left -= len(rows)
        last = (rows[-1].original_id, rows[-1].at, rows[-1].id)


def biggest_clusters(db: Queries, crawl: int, kind: str | None, count: int) -> dict[int, int]:
    """Originals with most copies in a crawl: how many each has."""
    return dict(db.fetch_rows("report_clusters", crawl=crawl, kind=kind, count=count))


def iterate_clusters(
    db: Queries, crawl: int, *, kind: str | None, count: int, shown: int
) -> Iterator[CopyCluster]:
    """The biggest clusters of a crawl, with the first copies of each."""
    for original, size in biggest_clusters(db, crawl, kind, count).items():
        copies = list(iterate_copies(db, original=original, crawl=crawl, kind=kind, most=shown))
        if copies:  # else they have ended since they were counted
            yield CopyCluster(original, size, copies)


def why_no_cluster(page: PageRow | None) -> str:
    """Why a known URL has no cluster, as a sentence."""
    if page is None:
        return "It was not read yet, so nobody knows whether it is a copy."
    if page.noindex:
        return "It says noindex, so it is compared with no other page."
    if not page.blocks:
        return "It has no text that is kept, and no other page has the same bytes."
    if not page.known_share:
        return "It is no copy of another page, and no other page is a copy of it."
    return (
        "It is no copy of another page, and no other page is a copy of it; but some of its "
        "paragraphs stand elsewhere, too."
    )


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """A page made of paragraphs that stand elsewhere. `others`: pages that have most of them, and
    how many; `paragraphs`: the beginnings of some.
    """

    url: str
    host: str
    at: datetime
    known_share: float
    duplicate_of: str | None
    duplicate_kind: str | None
    others: dict[str, int]
    paragraphs: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "known_share": self.known_share,
            "at": self.at,
            "host": self.host,
            "duplicate_of": self.duplicate_of,
            "duplicate_kind": self.duplicate_kind,
            "shares_with": [
                {"url": url, "paragraphs": number} for url, number in self.others.items()
            ],
            "paragraphs": self.paragraphs,
        }


def iterate_similar(
    db: Queries, crawl: str, rules: DuplicateRules, *, least: float, most: int | None
) -> Iterator[SimilarPage]:
    """Pages with at least such a share of known paragraphs, the highest first."""
    row = db.fetch_row("report_scheme", name=crawl)
    assert row is not None
    number, scheme = row
    marker = PageMarker(replace(rules, near=False, scope=_stored_scope(scheme, rules)), number)
    last = (2.0, LAST_ID)
    left = LAST_ID if most is None else most
    while left > 0:
        rows = db.fetch_rows(
            "report_similar",
            crawl=number,
            least=least,
            after_share=last[0],
            after_url=last[1],
            count=min(SIMILAR_CHUNK, left),
        )
        for id_, url, host, at, share, original, kind in rows:
            others, paragraphs = _shared_paragraphs(db, marker, id_, host)
            yield SimilarPage(url, host, at, share, original, kind, others, paragraphs)
        if len(rows) < SIMILAR_CHUNK:
            return
        left -= len(rows)
        last = (rows[-1][4], rows[-1][0])


def _stored_scope(scheme: str | None, rules: DuplicateRules) -> str:
    """The scope that the crawl had last; the settings of this command may say another."""
    for word in (scheme or "").split():
        name, _, value = word.partition("=")
        if name == "scope":
            return value
    return rules.scope


def _shared_paragraphs(
    db: Queries, marker: PageMarker, id_: int, host: str
) -> tuple[dict[str, int], list[str]]:
    """The pages that have most paragraphs of a page, and the beginnings of some of these."""
    row = db.fetch_row("stored_texts", ids=array_literal([id_]))
    if row is None:
        return {}, []
    blocks = visible_blocks(unpack_blocks(row[1]))
    texts = _texts_by_hash(marker, blocks, host)
    others: Counter[str] = Counter()
    known = set()
    rows = db.fetch_rows("report_paragraphs", hashes=array_literal(list(texts)), page=id_)
    for hash_, _, url in rows:
        others[url] += 1
        known.add(hash_)
    shared = [text[:EXCERPT] for hash_, text in texts.items() if hash_ in known]
    return dict(others.most_common(SHOWN_OTHERS)), shared[:SHOWN_PARAGRAPHS]


def _texts_by_hash(marker: PageMarker, blocks: list[TextBlock], host: str) -> dict[int, str]:
    """The long paragraphs of a page by the numbers under which they are stored."""
    texts: dict[int, str] = {}
    for block in blocks:
        for hash_, _ in marker.mark_paragraphs([block], host):
            texts.setdefault(hash_, block.text)
    return texts
