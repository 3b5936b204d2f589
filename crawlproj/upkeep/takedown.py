"""A take-down: out of the database, out of the archive, never fetched again, and on record. All of
it can be done again.

The rule comes first, behind a fence: whoever adds URLs later sees it. Then the rows go in batches,
then the records of the archive. A rule is ended when nothing of it is left; those that a kill left
are ended by the next run, whatever that one is for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from crawlproj.archive import Archive
from crawlproj.archive.open_file import OPEN, SUFFIX
from crawlproj.archive.removal import FileSurvey, survey_files
from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.errors import ArchiveError
from crawlproj.frontier.takedown import BELOW, TakedownRule, TakedownRules, is_url
from crawlproj.upkeep.warc_rewrite import RewriteResult, WarcRewriter
from crawlproj.urls.canonical import host_of

AT_ONCE = 5_000
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TakedownScope:
    """What rules mean in the database: whole hosts by id and name, and single URLs on
    some hosts.
    """

    hosts: dict[int, str] = field(default_factory=dict)
    some: tuple[int, ...] = ()
    urls: tuple[str, ...] = ()

    def url_ids(self, db: Queries) -> list[int]:
        """All rows of all crawls; one look at the whole table."""
        if not self.hosts and not self.some:
            return []
        rows = db.fetch_rows(
            "takedown_urls",
            hosts=array_literal(self.hosts),
            some=array_literal(self.some),
            urls=array_literal(self.urls),
        )
        return [row[0] for row in rows]


def find_scope(db: Queries, names: Sequence[str]) -> TakedownScope:
    urls = [name for name in names if is_url(name)]
    plain = [name for name in names if not is_url(name) and not name.startswith(BELOW)]
    below = [name.removeprefix(BELOW) for name in names if name.startswith(BELOW)]
    hosts = dict(
        db.fetch_rows("takedown_hosts", names=array_literal(plain), domains=array_literal(below))
    )
    some = dict(
        db.fetch_rows(
            "takedown_hosts",
            names=array_literal({host_of(url) for url in urls}),
            domains=array_literal(()),
        )
    )
    return TakedownScope(hosts, tuple(some), tuple(urls))


def store_rules(db: Database, names: Sequence[str], reason: str, barred: bool) -> list[int]:
    """The rules, stored; from now on no URL of them comes in. Returns their ids."""
    with db.transaction() as tx:
        tx.run("takedown_fence")
        return [
            row[0]
            for row in tx.fetch_rows(
                "takedown_ask", what=array_literal(names), reason=reason, barred=barred
            )
        ]


def erase_rows(db: Database, rule: TakedownRule) -> None:
    """All that the database holds of it; with ends of visits that are under way."""
    found = find_scope(db, [rule.what])
    ids = found.url_ids(db)
    until = FOREVER if rule.barred else rule.requested_at
    for start in range(0, len(ids), AT_ONCE):
        with db.transaction() as tx:
            _erase_some(tx, rule, array_literal(ids[start : start + AT_ONCE]), until=until)
    db.run("takedown_origins", names=array_literal(found.hosts.values()), until=until)


def _erase_some(tx: Transaction, rule: TakedownRule, ids: str, until: datetime) -> None:
    if rule.barred:
        touched = tx.fetch_rows("takedown_bar", ids=ids) + tx.fetch_rows(
            "takedown_requests", ids=ids
        )
    else:
        touched = tx.fetch_rows("takedown_blank", ids=ids, until=until)
    versions = tx.run("takedown_versions", ids=ids, until=until)
    tx.run("takedown_pages", ids=ids, until=until)
    tx.run("takedown_counted", id=rule.id, urls=len(touched), versions=versions)
    refresh_hosts(tx, touched)


def refresh_hosts(tx: Transaction, touched: Sequence[tuple[int, int]]) -> None:
    """What these hosts of these crawls have to offer now."""
    hosts: dict[int, set[int]] = defaultdict(set)
    for crawl, host_id in touched:
        hosts[crawl].add(host_id)
    now = tx.fetch_value("now") if hosts else None
    for crawl in sorted(hosts):
        these = array_literal(sorted(hosts[crawl]))
        tx.run("lock_hosts", crawl=crawl, hosts=these)
        tx.run("refresh_hosts", crawl=crawl, hosts=these, now=now)


def pending_rules(db: Queries) -> TakedownRules:
    """Rules that are not ended: asked for now, or left by a kill."""
    return TakedownRules(
        TakedownRule(*row[:5]) for row in db.fetch_rows("takedown_rules") if row[5] is None
    )


def carry_out(db: Database, config: Config, tell: Callable[[str], None]) -> RewriteResult:
    """All rules that are not ended. ArchiveError if some of it can't be reached now: then they stay
    so.
    """
    rules = pending_rules(db)
    if not rules:
        return RewriteResult()
    for rule in rules.all:
        erase_rows(db, rule)
    reasons = {rule.what: rule.reason for rule in rules.all}
    with WarcRewriter(db, config.warc_dir, config.database_patience_s, tell=tell, calls=2) as work:
        done = work.remove_records(
            work.survey_files(rules.removed_by),
            rules.removed_by,
            reasons,
            now=db.fetch_value("now"),
        )
        if left := work.still_open(rules.removed_by):
            raise ArchiveError(
                f"some of it is in {', '.join(left)}, which another process writes: do it again "
                "when that has ended"
            )
    db.run("takedown_ended", ids=array_literal(rule.id for rule in rules.all))
    return done


def undo_takedown(db: Database, names: Sequence[str]) -> tuple[list[str], int]:
    """Let it be fetched again: which of the names were barred, and how many URLs are queued. What
    is gone is gone.
    """
    with db.transaction() as tx:
        tx.run("takedown_fence")
        undone = [row[0] for row in tx.fetch_rows("takedown_undo", what=array_literal(names))]
    ids = find_scope(db, undone).url_ids(db) if undone else []
    queued = 0
    for start in range(0, len(ids), AT_ONCE):
        with db.transaction() as tx:
            touched = tx.fetch_rows(
                "takedown_allow", ids=array_literal(ids[start : start + AT_ONCE])
            )
            refresh_hosts(tx, touched)
            queued += len(touched)
    db.fetch_value("takedown_call")
    return undone, queued


def preview_takedown(db: Queries | None, config: Config, names: Sequence[str]) -> dict[str, Any]:
    """What would go, and where it is; nothing is changed. Without a database: what the
    archive has.
    """
    facts: dict[str, Any] = {"urls": 0, "pages": 0, "versions": 0, "hosts": []}
    if db is not None:
        found = find_scope(db, names)
        ids = array_literal(found.url_ids(db))
        row = db.fetch_row("takedown_preview", ids=ids)
        assert row is not None
        facts = {
            "urls": row[0],
            "pages": row[1],
            "versions": row[2],
            "hosts": sorted(found.hosts.values()),
        }
    rules = TakedownRules(
        TakedownRule(0, name, "", barred=True, requested_at=FOREVER) for name in names
    )
    folder = config.warc_dir
    files = sorted([*Archive(folder).closed_files(), *folder.glob(f"*{SUFFIX}{OPEN}")])
    seen: dict[str, FileSurvey] = survey_files(files, rules.removed_by)
    facts["records"] = sum(each.going.total() for each in seen.values())
    facts["bytes"] = sum(each.bytes for each in seen.values())
    facts["files"] = sorted(seen)
    return facts
