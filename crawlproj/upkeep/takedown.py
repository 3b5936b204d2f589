"""A take-down: out of the database, out of the archive, never fetched again, and on record.

All of it can be repeated. The rule is stored first, under a lock: whoever adds URLs later sees it.
Then the rows go in batches, then the records of the archive. A rule is ended when nothing of it is
left; rules that a kill left unfinished are finished by the next run, whatever that one is for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from crawlproj.archive import Archive
from crawlproj.archive.open_file import OPEN, SUFFIX
from crawlproj.archive.removal import survey_files
from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.errors import ArchiveError
from crawlproj.frontier.takedown import BELOW, TakedownRule, TakedownRules, is_url
from crawlproj.upkeep.warc_rewrite import RewriteResult, WarcRewriter
from crawlproj.urls.canonical import host_of

BATCH_URLS = 5_000
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


class StoredRule(NamedTuple):
    """A row of the query `takedown_rules`: a rule, and what it has removed so far."""

    id: int
    what: str
    reason: str
    barred: bool
    requested_at: datetime
    ended_at: datetime | None
    undone_at: datetime | None
    urls: int
    versions: int
    records: int
    files: int


@dataclass(frozen=True, slots=True)
class TakedownScope:
    """What rules mean in the database.

    `hosts` are whole hosts, names by id; `urls` are single URLs on the hosts `url_host_ids`.
    """

    hosts: dict[int, str] = field(default_factory=dict)
    url_host_ids: tuple[int, ...] = ()
    urls: tuple[str, ...] = ()

    def url_ids(self, db: Queries) -> list[int]:
        """The ids of all rows of all crawls; it reads the whole table once."""
        if not self.hosts and not self.url_host_ids:
            return []
        rows = db.fetch_rows(
            "takedown_urls",
            hosts=array_literal(self.hosts),
            some=array_literal(self.url_host_ids),
            urls=array_literal(self.urls),
        )
        return [id_ for (id_,) in rows]


def find_scope(db: Queries, names: Sequence[str]) -> TakedownScope:
    """The hosts and URLs that the names of rules mean."""
    urls = [name for name in names if is_url(name)]
    plain = [name for name in names if not is_url(name) and not name.startswith(BELOW)]
    below = [name.removeprefix(BELOW) for name in names if name.startswith(BELOW)]
    hosts = db.fetch_rows(
        "takedown_hosts", names=array_literal(plain), domains=array_literal(below)
    )
    url_hosts = db.fetch_rows(
        "takedown_hosts",
        names=array_literal({host_of(url) for url in urls}),
        domains=array_literal(()),
    )
    return TakedownScope(dict(hosts), tuple(dict(url_hosts)), tuple(urls))


def store_rules(db: Database, names: Sequence[str], reason: str, barred: bool) -> list[int]:
    """Store the rules and return their ids; from now on no URL of them is added."""
    with db.transaction() as tx:
        tx.run("takedown_fence")
        rows = tx.fetch_rows(
            "takedown_ask", what=array_literal(names), reason=reason, barred=barred
        )
        return [id_ for (id_,) in rows]


def erase_rows(db: Database, rule: TakedownRule) -> None:
    """Erase all that the database holds of a rule; what visits under way bring comes too late."""
    scope = find_scope(db, [rule.what])
    ids = scope.url_ids(db)
    until = rule.requested_at
    if rule.barred:
        until = FOREVER
    for start in range(0, len(ids), BATCH_URLS):
        with db.transaction() as tx:
            _erase_batch(tx, rule, array_literal(ids[start : start + BATCH_URLS]), until=until)
    db.run("takedown_origins", names=array_literal(scope.hosts.values()), until=until)


def _erase_batch(tx: Transaction, rule: TakedownRule, ids: str, until: datetime) -> None:
    if rule.barred:
        touched = tx.fetch_rows("takedown_bar", ids=ids)
        touched += tx.fetch_rows("takedown_requests", ids=ids)
    else:
        touched = tx.fetch_rows("takedown_blank", ids=ids, until=until)
    versions = tx.run("takedown_versions", ids=ids, until=until)
    tx.run("takedown_queued", ids=ids, until=until)
    tx.run("takedown_pages", ids=ids, until=until)
    tx.run("takedown_articles", ids=ids, until=until)
    tx.run("takedown_counted", id=rule.id, urls=len(touched), versions=versions)
    refresh_hosts(tx, touched)


def refresh_hosts(tx: Transaction, touched: Sequence[tuple[int, int]]) -> None:
    """Compute anew what these hosts have to offer; `touched` are pairs of crawl and host id."""
    if not touched:
        return
    hosts: dict[int, set[int]] = defaultdict(set)
    for crawl, host_id in touched:
        hosts[crawl].add(host_id)
    now = tx.fetch_value("now")
    for crawl in sorted(hosts):
        host_ids = array_literal(sorted(hosts[crawl]))
        tx.run("lock_hosts", crawl=crawl, hosts=host_ids)
        tx.run("refresh_hosts", crawl=crawl, hosts=host_ids, now=now)


def stored_rules(db: Queries) -> list[StoredRule]:
    """All rules that were ever stored, oldest first."""
    return db.fetch_rows_as("takedown_rules", StoredRule)


def pending_rules(db: Queries) -> TakedownRules:
    """Rules that are not ended: stored just now, or left by a kill."""
    return TakedownRules(
        TakedownRule(
            rule.id, rule.what, rule.reason, barred=rule.barred, requested_at=rule.requested_at
        )
        for rule in stored_rules(db)
        if rule.ended_at is None
    )


def carry_out(db: Database, config: Config, tell: Callable[[str], None]) -> RewriteResult:
    """Carry out and end all pending rules.

    ArchiveError if some records can't be reached now: then the rules stay pending.
    """
    rules = pending_rules(db)
    if not rules:
        return RewriteResult()
    for rule in rules.all:
        erase_rows(db, rule)
    reasons = {rule.what: rule.reason for rule in rules.all}
    with WarcRewriter(
        db, config.warc_dir, config.database_patience_s, tell=tell, calls=2
    ) as rewriter:
        result = rewriter.remove_records(
            rewriter.survey_files(rules.removed_by),
            rules.removed_by,
            reasons,
            now=db.fetch_value("now"),
        )
        still_open = rewriter.still_open(rules.removed_by)
        if still_open:
            raise ArchiveError(
                f"some of it is in {', '.join(still_open)}, which another process writes: do it "
                "again when that has ended"
            )
    db.run("takedown_ended", ids=array_literal(rule.id for rule in rules.all))
    return result


def undo_takedown(db: Database, names: Sequence[str]) -> tuple[list[str], int]:
    """Let these be fetched again; what was removed does not come back.

    Returns which of the names were barred, and how many URLs are queued.
    """
    with db.transaction() as tx:
        tx.run("takedown_fence")
        rows = tx.fetch_rows("takedown_undo", what=array_literal(names))
    undone = [what for (what,) in rows]
    ids: list[int] = []
    if undone:
        ids = find_scope(db, undone).url_ids(db)
    queued = 0
    for start in range(0, len(ids), BATCH_URLS):
        batch = array_literal(ids[start : start + BATCH_URLS])
        with db.transaction() as tx:
            touched = tx.fetch_rows("takedown_allow", ids=batch)
            refresh_hosts(tx, touched)
            queued += len(touched)
    db.fetch_value("takedown_call")
    return undone, queued


def preview_takedown(db: Queries | None, config: Config, names: Sequence[str]) -> dict[str, Any]:
    """What would go, and where it is; nothing is changed. Without a database: of the archive."""
    facts: dict[str, Any] = {"urls": 0, "pages": 0, "versions": 0, "hosts": []}
    if db is not None:
        scope = find_scope(db, names)
        row = db.fetch_row("takedown_preview", ids=array_literal(scope.url_ids(db)))
        assert row is not None
        urls, pages, versions = row
        hosts = sorted(scope.hosts.values())
        facts = {"urls": urls, "pages": pages, "versions": versions, "hosts": hosts}
    rules = TakedownRules(
        TakedownRule(0, name, "", barred=True, requested_at=FOREVER) for name in names
    )
    folder = config.warc_dir
    files = sorted([*Archive(folder).closed_files(), *folder.glob(f"*{SUFFIX}{OPEN}")])
    surveys = survey_files(files, rules.removed_by)
    facts["records"] = sum(survey.removed.total() for survey in surveys.values())
    facts["bytes"] = sum(survey.removed_bytes for survey in surveys.values())
    facts["files"] = sorted(surveys)
    return facts
