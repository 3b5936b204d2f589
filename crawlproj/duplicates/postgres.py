"""The judge of duplicates on Postgres: one verdict per page, in the page's own commit.

What takes long is done before the commit (`look_up`) and before its lock; under the lock only the
look-up is repeated, and what was not there before is compared. So two workers that bring the same
text at the same moment agree on one original. Runs in the database thread.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from crawlproj.content.packed_text import TextBlock, unpack_blocks, visible_blocks
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Transaction
from crawlproj.database.queries import Queries
from crawlproj.duplicates.compare import (
    JudgedText,
    is_same_content,
    judged_text,
    near_similarity,
)
from crawlproj.duplicates.listings import is_same_list, listed_links
from crawlproj.duplicates.marks import WITHDRAWN, PageMarker
from crawlproj.duplicates.reprints import is_reprint
from crawlproj.duplicates.rules import BANDS
from crawlproj.frontier.base import DuplicateKind, DuplicateMarks, Outcome, Verdict

log = logging.getLogger(__name__)

BOILERPLATE: Final = 5
"""A paragraph that stands on so many pages of a host says nothing of any of them."""
ORPHANS: Final = 200
"""So many copies whose original has changed or is gone are judged anew in one commit."""
ORPHANS_GAP_S: Final = 60.0
"""How often it is looked whether there are more of them, if none are known of."""
MAX_KEPT_CHARACTERS: Final = 2_000_000
"""Of texts that are ready to be compared."""


class ComparedText(NamedTuple):
    """The text of a page, ready to be compared; `links` if the page is a list of links."""

    judged: JudgedText
    links: frozenset[str] | None
    packed: bytes


@dataclass(slots=True)
class JudgedPage:
    """A page that is compared with all others."""

    id: int
    host: int
    marks: DuplicateMarks
    packed: bytes
    at: datetime | None = None
    """When it was read; None: it is only judged anew, since its original has changed."""
    known_share: float | None = None
    by_paragraphs: Verdict | None = None


@dataclass(slots=True)
class Candidates:
    """What was found for pages: originals with the same bytes or text, or maybe near."""

    exact: dict[int, Verdict] = field(default_factory=dict)
    near: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


class LookedUp:
    """Comparisons that were made already: pairs of pages and how near they are (None: not)."""

    def __init__(self) -> None:
        self.similarities: dict[tuple[int, int], float | None] = {}
        self.texts: dict[int, ComparedText] = {}
        self.gone_paragraphs: list[tuple[int, int]] = []
        """Hashes and pages: paragraphs that stood on pages and do so no longer."""


class DuplicateJudge:
    """Says of which pages others are copies. `archived`: an archive is written, which is told of
    copies later. `lock_s`: how long it waited for other commits.
    """

    def __init__(self, marker: PageMarker, archived: bool = True) -> None:
        self._marker = marker
        self._archived = archived
        self._rules = marker.rules
        self._cache = _TextCache()
        self._orphans_at = 0.0
        self.lock_s = 0.0

    # Before the commit.

    def look_up(self, queries: Queries, outcomes: Iterable[Outcome]) -> LookedUp:
        """Compare pages with all originals, without writing anything."""
        looked_up = LookedUp()
        pages = _pages_of(outcomes, {})
        if pages:
            self._compare_near(queries, pages, self._find(queries, pages), looked_up)
        if self._rules.paragraphs:
            kept = {page.id: page.marks for page in pages if not page.marks.first}
            kept |= dict.fromkeys(_withdrawn_of(outcomes), WITHDRAWN)
            looked_up.gone_paragraphs = self._gone_paragraphs(queries, kept)
        return looked_up

    def _gone_paragraphs(
        self, queries: Queries, pages: Mapping[int, DuplicateMarks]
    ) -> list[tuple[int, int]]:
        """Paragraphs of the texts that are stored of pages and that are not in their new ones."""
        if not pages:
            return []
        gone = []
        rows = queries.fetch_rows("stored_texts", ids=array_literal(sorted(pages)))
        hosts = queries.fetch_rows("hosts_of_pages", ids=array_literal(sorted(pages)))
        names = {id_: name for id_, name, _ in hosts}
        for id_, packed in rows:
            new = {hash_ for hash_, _ in pages[id_].paragraphs}
            old = self._marker.mark_paragraphs(_stored_blocks(packed), names[id_])
            gone += [(hash_, id_) for hash_, _ in old if hash_ not in new]
        return gone

    def preview(self, queries: Queries, outcomes: Sequence[Outcome]) -> dict[int, Verdict]:
        """What the verdicts will most likely be; nothing is written, and other pages may come
        between.
        """
        ids = array_literal([outcome.id for outcome in outcomes])
        hosts = queries.fetch_rows("hosts_of_pages", ids=ids)
        pages = _pages_of(outcomes, {id_: host for id_, _, host in hosts})
        if not pages:
            return {}
        looked_up = LookedUp()
        found = self._find(queries, pages)
        self._compare_near(queries, pages, found, looked_up)
        rows = [(hash_, page.id) for page in pages for hash_, _ in page.marks.paragraphs]
        if rows:
            hashes, ids_of_hashes = zip(*rows, strict=True)
            stored = queries.fetch_rows(
                "find_paragraphs", hash=array_literal(hashes), page=array_literal(ids_of_hashes)
            )
            self._judge_by_paragraphs(queries, pages, stored, looked_up)
        return self._decide(pages, found, looked_up)

    # In the commit.

    def settle(
        self,
        tx: Transaction,
        read: Sequence[Outcome],
        hosts: Mapping[int, int],
        looked_up: LookedUp | None,
    ) -> dict[int, Verdict]:
        """Write the verdicts on pages that were just stored; the last thing in a commit."""
        if looked_up is None:
            looked_up = LookedUp()
        withdrawn = _withdrawn_of(read)
        pages = _pages_of(read, hosts)
        pages += self._orphans(tx, pages, withdrawn)
        if not pages and not withdrawn:
            return {}
        if looked_up.gone_paragraphs:
            hashes, ids = zip(*sorted(looked_up.gone_paragraphs), strict=True)
            tx.run("drop_paragraphs", hash=array_literal(hashes), page=array_literal(ids))
        self._judge_paragraphs(tx, pages, looked_up)
        started = time.monotonic()
        tx.run("lock_duplicates", scope=self._marker.lock_number)
        self.lock_s += time.monotonic() - started
        found = self._find(tx, pages)
        self._compare_near(tx, pages, found, looked_up)
        verdicts = self._decide(pages, found, looked_up, withdrawn)
        self._write(tx, pages, verdicts, withdrawn)
        return verdicts

    def _orphans(
        self, tx: Transaction, pages: Sequence[JudgedPage], withdrawn: Sequence[int]
    ) -> list[JudgedPage]:
        """Copies of pages that have another text now, or are gone: they are judged anew, by what
        is stored. Of many, some; the others are noted, and wait for the next commits.
        """
        changed = [page.id for page in pages if not page.marks.first] + list(withdrawn)
        if changed:
            judged = [page.id for page in pages] + list(withdrawn)
            noted = tx.run(
                "note_orphans", originals=array_literal(changed), judged=array_literal(judged)
            )
            if noted:
                self._orphans_at = 0.0
        if time.monotonic() < self._orphans_at:
            return []
        crawl = None
        if self._rules.scope != "all":
            crawl = self._marker.crawl
        rows = tx.fetch_rows("take_orphans", crawl=crawl, most=ORPHANS)
        if len(rows) < ORPHANS:
            self._orphans_at = time.monotonic() + ORPHANS_GAP_S
        orphans = []
        for id_, host, name, body_digest, block_digest, packed in rows:
            blocks = _stored_blocks(packed or b"")
            text_digest = None
            if blocks:
                text_digest = block_digest
            # Bytes that are not known are like no others.
            body = body_digest or str(id_).encode()
            marks = self._marker.mark_blocks(blocks, body, text_digest, name, first=False)
            orphans.append(JudgedPage(id_, host, marks, packed or b""))
        return orphans

    def _find(self, queries: Queries, pages: Sequence[JudgedPage]) -> Candidates:
        found = Candidates()
        rows = queries.fetch_rows(
            "find_exact",
            page=array_literal([page.id for page in pages]),
            body=array_literal([page.marks.body for page in pages]),
            text=array_literal([page.marks.text for page in pages]),
        )
        for id_, original, same_bytes in rows:
            kind = DuplicateKind.EXACT if same_bytes else DuplicateKind.TEXT
            found.exact[id_] = Verdict(original, kind)
        signed = [page for page in pages if page.marks.bands and page.id not in found.exact]
        if signed:
            rows = queries.fetch_rows("find_bands", **_band_columns(signed))
            for id_, other in rows:
                found.near[id_].append(other)
        return found

    def _compare_near(
        self,
        queries: Queries,
        pages: Sequence[JudgedPage],
        found: Candidates,
        looked_up: LookedUp,
    ) -> None:
        """Compare pages with those that share a band, unless that was done before."""
        pairs = {
            (id_, other)
            for id_, others in found.near.items()
            for other in others
            if (id_, other) not in looked_up.similarities
        }
        if not pairs:
            return
        by_id = {page.id: page for page in pages}
        stored = sorted({other for _, other in pairs} - by_id.keys())
        self._load_texts(queries, stored, looked_up)
        for id_, other in sorted(pairs):
            if other in by_id:
                # An original whose text is new in this commit: what is stored of it is outdated.
                continue
            looked_up.similarities[id_, other] = self._near_similarity(
                self._text_of(by_id[id_], looked_up), looked_up.texts.get(other)
            )

    def _load_texts(self, queries: Queries, ids: Iterable[int], looked_up: LookedUp) -> None:
        missing = [id_ for id_ in ids if id_ not in looked_up.texts]
        if missing:
            rows = queries.fetch_rows("stored_texts", ids=array_literal(missing))
            for id_, packed in rows:
                looked_up.texts[id_] = self._cache.judge(packed)

    def _text_of(self, page: JudgedPage, looked_up: LookedUp) -> ComparedText:
        text = looked_up.texts.get(page.id)
        if text is None:
            text = looked_up.texts[page.id] = self._cache.judge(page.packed)
        return text

    def _near_similarity(self, text: ComparedText, other: ComparedText | None) -> float | None:
        if other is None or not is_same_list(text.links, other.links):
            return None
        return near_similarity(
            text.judged, other.judged, self._rules.shingle, self._rules.threshold
        )

    def _decide(
        self,
        pages: Sequence[JudgedPage],
        found: Candidates,
        looked_up: LookedUp,
        withdrawn: Iterable[int] = (),
    ) -> dict[int, Verdict]:
        """One verdict after the other: pages of one commit may be copies of each other, too."""
        batch = _OriginalsOfBatch()
        # What is stored of these is outdated by this commit.
        outdated = {page.id for page in pages}.union(withdrawn)
        verdicts: dict[int, Verdict] = {}
        for page in pages:
            verdict = found.exact.get(page.id)
            if verdict is None or verdict.original in outdated:
                verdict = batch.find_exact(page.marks)
            if verdict is None:
                near = [id_ for id_ in found.near.get(page.id, ()) if id_ not in outdated]
                verdict = self._nearest(page, near, looked_up)
            if verdict is None and page.marks.bands:
                verdict = self._nearest_in_batch(page, batch, looked_up)
            if verdict is None and page.by_paragraphs is not None:
                original = page.by_paragraphs.original
                if original in verdicts:
                    original = verdicts[original].original
                if original != page.id and (original not in outdated or original in batch.ids):
                    verdict = replace(page.by_paragraphs, original=original)
            if verdict is None:
                batch.add(page)
            else:
                verdicts[page.id] = verdict
        return verdicts

    def _nearest(
        self, page: JudgedPage, others: Iterable[int], looked_up: LookedUp
    ) -> Verdict | None:
        best: Verdict | None = None
        for other in others:
            similarity = looked_up.similarities.get((page.id, other))
            if similarity is not None and (best is None or similarity > best.similarity):
                best = Verdict(other, DuplicateKind.NEAR, similarity)
        return best

    def _nearest_in_batch(
        self, page: JudgedPage, batch: _OriginalsOfBatch, looked_up: LookedUp
    ) -> Verdict | None:
        others = batch.sharing_bands(page.marks)
        for other in others:
            looked_up.similarities[page.id, other.id] = self._near_similarity(
                self._text_of(page, looked_up), self._text_of(other, looked_up)
            )
        return self._nearest(page, [other.id for other in others], looked_up)

    # Paragraphs.

    def _judge_paragraphs(
        self, tx: Transaction, pages: Sequence[JudgedPage], looked_up: LookedUp
    ) -> None:
        """Remember the paragraphs of pages, and find how much of each page stands elsewhere."""
        rows = [
            (hash_, page.host, page.id, page.marks.first)
            for page in pages
            for hash_, _ in page.marks.paragraphs
        ]
        if not rows:
            return
        rows.sort()
        hashes, hosts, ids, first = zip(*rows, strict=True)
        stored = tx.fetch_rows(
            "know_paragraphs",
            hash=array_literal(hashes),
            host=array_literal(hosts),
            page=array_literal(ids),
            first=array_literal(first),
        )
        self._judge_by_paragraphs(tx, pages, stored, looked_up)
        shares = [page for page in pages if page.known_share is not None and page.at is not None]
        if shares:
            tx.run(
                "put_known_shares",
                page=array_literal([page.id for page in shares]),
                at=array_literal([page.at for page in shares]),
                share=array_literal([page.known_share for page in shares]),
            )

    def _judge_by_paragraphs(
        self,
        queries: Queries,
        pages: Iterable[JudgedPage],
        stored: Iterable[tuple[Any, ...]],
        looked_up: LookedUp,
    ) -> None:
        """Judge one page after the other, by what is stored and by those before it."""
        known = _KnownParagraphs()
        for row in stored:
            known.add_stored(*row)
        for page in pages:
            if page.marks.paragraphs:
                share, originals = known.share_of(page)
                page.known_share = share
                if share is not None and share > self._rules.paragraph_threshold:
                    original = self._find_same_page(queries, page, originals, known, looked_up)
                    if original is not None:
                        page.by_paragraphs = Verdict(original, DuplicateKind.PARAGRAPH, share)
                known.add_page(page)

    def _find_same_page(
        self,
        queries: Queries,
        page: JudgedPage,
        originals: Iterable[tuple[int, int]],
        known: _KnownParagraphs,
        looked_up: LookedUp,
    ) -> int | None:
        """The first of some pages (each with its host) that is about the same."""
        text = self._text_of(page, looked_up)
        for original, host in originals:
            in_batch = known.pages.get(original)
            if in_batch is None:
                self._load_texts(queries, [original], looked_up)
                other = looked_up.texts.get(original)
            else:
                other = self._text_of(in_batch, looked_up)
            if other is not None and _is_same_page(text, other, same_host=host == page.host):
                return original
        return None

    # What is written.

    def _write(
        self,
        tx: Transaction,
        pages: Sequence[JudgedPage],
        verdicts: Mapping[int, Verdict],
        withdrawn: Sequence[int],
    ) -> None:
        originals = [page for page in pages if page.id not in verdicts]
        signed = [page for page in originals if page.marks.bands]
        again = [page.id for page in pages if not page.marks.first]
        copies = [id_ for id_ in again if id_ in verdicts] + list(withdrawn)
        bandless = copies + [
            page.id for page in originals if not page.marks.first and not page.marks.bands
        ]
        if copies or bandless:
            tx.run("drop_marks", ids=array_literal(copies), bandless=array_literal(bandless))
        left: list[int] = []
        if again or withdrawn:
            rows = tx.fetch_rows("drop_clusters", ids=array_literal([*again, *withdrawn]))
            left = [original for (original,) in rows]
        if originals:
            originals.sort(key=lambda page: page.id)
            tx.run(
                "put_exact",
                page=array_literal([page.id for page in originals]),
                body=array_literal([page.marks.body for page in originals]),
                text=array_literal([page.marks.text for page in originals]),
            )
        if signed:
            tx.run("put_bands", **_band_columns(signed))
        self._write_verdicts(tx, verdicts, [*again, *withdrawn])
        joined = {id_: verdict.original for id_, verdict in verdicts.items()}
        if left:
            joined |= dict(tx.fetch_rows("members", originals=array_literal(left)))
        if joined:
            ids = sorted(joined)
            tx.run(
                "put_clusters",
                page=array_literal(ids),
                original=array_literal([joined[id_] for id_ in ids]),
            )

    def _write_verdicts(
        self, tx: Transaction, verdicts: Mapping[int, Verdict], again: Iterable[int]
    ) -> None:
        ids = sorted({*verdicts, *again})
        if not ids:
            return
        told = [verdicts.get(id_) for id_ in ids]
        tx.run(
            "put_verdicts",
            page=array_literal(ids),
            original=array_literal([verdict and verdict.original for verdict in told]),
            kind=array_literal([verdict and verdict.kind.value for verdict in told]),
            similarity=array_literal([verdict and verdict.similarity for verdict in told]),
            archived=self._archived,
        )


class _OriginalsOfBatch:
    """Pages of one commit that are nobody's copies so far."""

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._bodies: dict[int, int] = {}
        self._texts: dict[int, int] = {}
        self._bands: dict[tuple[int, int], list[JudgedPage]] = defaultdict(list)

    def add(self, page: JudgedPage) -> None:
        marks = page.marks
        self.ids.add(page.id)
        self._bodies[marks.body] = page.id
        if marks.text is not None:
            self._texts[marks.text] = page.id
        for number, band in enumerate(marks.bands or ()):
            self._bands[number, band].append(page)

    def find_exact(self, marks: DuplicateMarks) -> Verdict | None:
        original = self._bodies.get(marks.body)
        if original is not None:
            return Verdict(original, DuplicateKind.EXACT)
        if marks.text is not None:
            original = self._texts.get(marks.text)
            if original is not None:
                return Verdict(original, DuplicateKind.TEXT)
        return None

    def sharing_bands(self, marks: DuplicateMarks) -> list[JudgedPage]:
        found: dict[int, JudgedPage] = {}
        for number, band in enumerate(marks.bands or ()):
            for page in self._bands.get((number, band), ())[:BANDS]:
                found[page.id] = page
        return list(found.values())[:BANDS]


class _KnownParagraphs:
    """Where the paragraphs of a commit's pages stand: on stored pages, and on each other."""

    def __init__(self) -> None:
        self._stored: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        """Page and hash -> originals that have it, each with its host."""
        self._boilerplate: set[tuple[int, int]] = set()
        self.pages: dict[int, JudgedPage] = {}
        """Those of the commit that were judged, by id."""
        self._batch: dict[int, list[JudgedPage]] = defaultdict(list)

    def add_stored(self, page: int, hash_: int, original: int, host: int, number: int) -> None:
        """Take a row of `know_paragraphs`."""
        if number >= BOILERPLATE:
            self._boilerplate.add((page, hash_))
        else:
            self._stored[page, hash_].append((original, host))

    def add_page(self, page: JudgedPage) -> None:
        self.pages[page.id] = page
        for hash_, _ in page.marks.paragraphs:
            self._batch[hash_].append(page)

    def share_of(self, page: JudgedPage) -> tuple[float | None, list[tuple[int, int]]]:
        """How much of a page's long paragraphs stands on other pages (None: it has none that
        count), and those pages with their hosts, the one with most of it first.
        """
        total = 0
        known = 0
        lengths: dict[tuple[int, int], int] = defaultdict(int)
        for hash_, length in page.marks.paragraphs:
            if (page.id, hash_) in self._boilerplate:
                continue
            earlier = self._batch.get(hash_, [])
            if sum(other.host == page.host for other in earlier) >= BOILERPLATE:
                continue
            total += length
            places = set(self._stored.get((page.id, hash_), ()))
            places.update((other.id, other.host) for other in earlier if other.id != page.id)
            if places:
                known += length
                for place in places:
                    lengths[place] += length
        if not total:
            return None, []
        return known / total, sorted(lengths, key=lambda place: (-lengths[place], place[0]))[:BANDS]


def _pages_of(outcomes: Iterable[Outcome], hosts: Mapping[int, int]) -> list[JudgedPage]:
    """The pages that are to be judged, in the order in which they were read."""
    pages = []
    for outcome in outcomes:
        content = outcome.content
        if content is None or content.marks is None or content.marks.withdrawn:
            continue
        packed = b""
        if content.text is not None:
            packed = content.text.packed
        pages.append(
            JudgedPage(outcome.id, hosts.get(outcome.id, 0), content.marks, packed, outcome.at)
        )
    return pages


def _withdrawn_of(outcomes: Iterable[Outcome]) -> list[int]:
    """Pages that want to be no originals and no copies, or are gone."""
    return [outcome.id for outcome in outcomes if outcome.ends_page or _wants_out(outcome)]


def _wants_out(outcome: Outcome) -> bool:
    if outcome.content is None or outcome.content.marks is None:
        return outcome.turns_noindex
    return outcome.content.marks.withdrawn


def _band_columns(pages: Sequence[JudgedPage]) -> dict[str, str]:
    columns = {"page": array_literal([page.id for page in pages])}
    for number in range(BANDS):
        columns[f"h{number + 1}"] = array_literal(
            [page.marks.bands[number] for page in pages if page.marks.bands]
        )
    return columns


def _is_same_page(text: ComparedText, other: ComparedText, *, same_host: bool) -> bool:
    """Whether the long paragraphs of two pages are what both are about: pages may share a notice
    that is their only long paragraph.
    """
    if not is_same_list(text.links, other.links):
        return False
    if same_host:
        return is_same_content(text.judged, other.judged)
    return is_reprint(_visible_blocks(text.packed), _visible_blocks(other.packed))


def _stored_blocks(packed: bytes) -> list[TextBlock]:
    """The blocks of a stored text. A damaged one is like no other: a bad page stops nothing."""
    try:
        return unpack_blocks(packed)
    except Exception as error:
        log.warning("A stored text cannot be read, its page is compared with nothing: %s", error)
        return []


def _visible_blocks(packed: bytes) -> list[TextBlock]:
    return visible_blocks(_stored_blocks(packed))


class _TextCache:
    """Stored texts, ready to be compared: originals that many pages are like are kept at hand."""

    def __init__(self, most: int = MAX_KEPT_CHARACTERS) -> None:
        self._most = most
        self._characters = 0
        self._texts: OrderedDict[bytes, ComparedText] = OrderedDict()

    def judge(self, packed: bytes) -> ComparedText:
        text = self._texts.get(packed)
        if text is not None:
            self._texts.move_to_end(packed)
            return text
        runs = _visible_blocks(packed)
        judged = judged_text(runs)
        text = ComparedText(judged, listed_links(runs, judged), packed)
        self._texts[packed] = text
        self._characters += judged.characters
        while self._characters > self._most:
            _, oldest = self._texts.popitem(last=False)
            self._characters -= oldest.judged.characters
        return text
