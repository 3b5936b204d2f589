"""The Postgres frontier lets changed rules take effect: at the start of a worker, in batches, since
a scope is Python, not SQL.

Workers of the same crawl wait for each other here, and the first does the work. One that dies
leaves what it has done; the next begins anew, or goes on where intervals are half changed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.frontier.base import Committed, CrawlSpec, Found, NewUrl, Rejudged
from crawlproj.frontier.rules import CrawlRules, IntervalRules, make_rescaling
from crawlproj.frontier.seen import FOLLOWED, depth_score
from crawlproj.frontier.stored_links import KIND_LETTERS
from crawlproj.urls.canonical import MAX_URL, host_of, url_key
from crawlproj.urls.scope import is_below

log = logging.getLogger(__name__)
T = TypeVar("T")

BATCH_SIZE = 5_000
PAGES_AT_ONCE = 500
"""Pages whose links are read at a time: each may have thousands."""
LOWEST_ID = -(2**63)
WAIT_S = 0.5
FOLLOWED_LETTERS = frozenset(KIND_LETTERS[kind] for kind in FOLLOWED)


class RulesChange:
    """One start of one worker. `settle` notes what hosts have to offer, inside a transaction;
    `run_transaction` repeats one that met another; `add` adds URLs.
    """

    def __init__(
        self,
        db: Database,
        crawl: int,
        spec: CrawlSpec,
        *,
        run_transaction: Callable[[Callable[[Transaction], int]], int],
        settle: Callable[[Transaction, list[int]], None],
        add: Callable[[Sequence[NewUrl]], Committed],
    ) -> None:
        self._db = db
        self._crawl = crawl
        self._spec = spec
        self._run_transaction = run_transaction
        self._settle = settle
        self._add = add

    def apply(self, rules: CrawlRules, wanted: Callable[[str], bool]) -> Rejudged:
        """See `Frontier.apply_rules`."""
        with self._alone():
            stored = self._db.fetch_value("crawl_rules", crawl=self._crawl)
            if stored is None:
                done = self._judge(wanted)
                self._store(rules.to_dict())
                return done
            done = Rejudged(rescheduled=self._finish_rescaling(stored))
            before = CrawlRules.from_dict(stored)
            if not rules.judges_like(before):
                judged = self._judge(wanted)
                done = replace(done, out=judged.out, back=judged.back)
                if rules.may_want_more_than(before):
                    added = self._add_outside_links(wanted) + self._add_opened_hosts(wanted)
                    done = replace(done, added=added)
                stored |= replace(rules, intervals=before.intervals).to_dict()
                self._store(stored)
            if rules.intervals != before.intervals:
                number = self._rescale(stored, rules.intervals, LOWEST_ID)
                done = replace(done, rescheduled=done.rescheduled + number)
            return done

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One worker of a crawl at a time."""
        while not self._db.fetch_value("lock_rules", crawl=self._crawl):
            time.sleep(WAIT_S)
        try:
            yield
        finally:
            self._db.run("unlock_rules", crawl=self._crawl)

    def _store(self, stored: dict[str, Any]) -> None:
        self._db.run("put_crawl_rules", crawl=self._crawl, rules=json.dumps(stored))

    def _judge(self, wanted: Callable[[str], bool]) -> Rejudged:
        """Judge queued URLs, and those that were ignored for the scope."""
        first = LOWEST_ID
        done = Rejudged()
        while True:
            rows = self._db.fetch_rows(
                "judged_urls", crawl=self._crawl, first=first, count=BATCH_SIZE
            )
            out = [id_ for id_, url, is_out in rows if not is_out and not wanted(url)]
            back = [id_ for id_, url, is_out in rows if is_out and wanted(url)]
            done = replace(
                done,
                out=done.out + self._change("leave_out_urls", out),
                back=done.back
                + self._change(
                    "take_back_urls",
                    back,
                    ordering=self._spec.order,
                    max_depth=self._spec.max_depth,
                ),
            )
            if len(rows) < BATCH_SIZE:
                return done
            last_id, _, _ = rows[-1]
            first = last_id + 1

    def _change(self, query: str, ids: list[int], **arguments: Any) -> int:
        """Run a query on URLs, which gives their hosts; return how many it changed."""
        if not ids:
            return 0

        def change(tx: Transaction) -> int:
            hosts = [host for (host,) in tx.fetch_rows(query, ids=array_literal(ids), **arguments)]
            self._settle(tx, sorted(set(hosts)))
            return len(hosts)

        return self._run_transaction(change)

    def _add_outside_links(self, wanted: Callable[[str], bool]) -> int:
        """Add what pages link to that was outside before: a page that does not change would never
        bring it.
        """
        first = LOWEST_ID
        added = 0
        while True:
            rows = self._db.fetch_rows(
                "outside_links", crawl=self._crawl, first=first, count=PAGES_AT_ONCE
            )
            found: dict[str, NewUrl] = {}
            for id_, depth, urls, letters in rows:
                for url, letter in zip(urls.split("\n"), letters, strict=False):
                    if letter in FOLLOWED_LETTERS and len(url) <= MAX_URL and wanted(url):
                        known = found.get(url)
                        if known is None or known.depth > depth + 1:
                            found[url] = self._new_url(url, depth + 1, id_)
            if found:
                added += self._add(list(found.values())).added
            if len(rows) < PAGES_AT_ONCE:
                return added
            first = rows[-1][0] + 1

    def _add_opened_hosts(self, wanted: Callable[[str], bool]) -> int:
        """Add what is known of hosts that were too many below their domain, where that does not
        matter any more: the first link to each.
        """
        rows = self._db.fetch_rows("surplus_hosts", crawl=self._crawl)
        opened = {
            name: url
            for name, url in rows
            if is_below(name, self._spec.open_domains) and wanted(url)
        }
        if not opened:
            return 0
        added = self._add([self._new_url(url, 1, None) for url in opened.values()]).added
        self._db.run("admit_hosts", crawl=self._crawl, names=array_literal(sorted(opened)))
        return added

    def _new_url(self, url: str, depth: int, parent: int | None) -> NewUrl:
        return NewUrl(
            url_key(self._spec.name, url),
            url,
            host_of(url),
            depth=depth,
            score=depth_score(depth),
            parent=parent,
            found=Found.LINK,
        )

    def _finish_rescaling(self, stored: dict[str, Any]) -> int:
        """Go on where a worker died while it changed intervals: each may be changed only once."""
        pending = stored.get("rescaling")
        if pending is None:
            return 0
        return self._rescale(stored, IntervalRules.from_dict(pending["to"]), pending["first"])

    def _rescale(self, stored: dict[str, Any], after: IntervalRules, first: int) -> int:
        """Change intervals and next visits of pages that wait for one. Each batch stores how far it
        is; at the end the new rules are stored.
        """
        before = IntervalRules.from_dict(stored["intervals"])
        pages = make_rescaling(before.pages, after.pages, after.policy)
        sources = make_rescaling(before.sources, after.sources, after.policy)
        changed = 0
        while True:
            rows = self._db.fetch_rows(
                "rescaled_urls", crawl=self._crawl, first=first, count=BATCH_SIZE
            )
            columns: tuple[list[Any], ...] = ([], [], [], [])
            for id_, last_visit, next_visit, interval_s, is_source, visit in rows:
                rule = sources if is_source else pages
                new_s, at = rule.new_visit(last_visit, next_visit, interval_s)
                for column, value in zip(columns, (id_, visit, new_s, at), strict=True):
                    column.append(value)
            if rows:
                first = rows[-1][0] + 1
            stored["rescaling"] = {"to": after.to_dict(), "first": first}
            if len(rows) < BATCH_SIZE:
                del stored["rescaling"]
                stored["intervals"] = after.to_dict()
            changed += self._write_intervals(columns, stored)
            if len(rows) < BATCH_SIZE:
                return changed

    def _write_intervals(self, columns: tuple[list[Any], ...], stored: dict[str, Any]) -> int:
        ids, visits, intervals, times = columns

        def write(tx: Transaction) -> int:
            rows = tx.fetch_rows(
                "put_intervals",
                crawl=self._crawl,
                id=array_literal(ids),
                visit=array_literal(visits),
                interval_s=array_literal(intervals),
                next_visit=array_literal(times),
            )
            self._settle(tx, sorted({host for (host,) in rows}))
            tx.run("put_crawl_rules", crawl=self._crawl, rules=json.dumps(stored))
            return len(rows)

        return self._run_transaction(write)
