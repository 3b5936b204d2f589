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
from crawlproj.archive.removal import Found, survey
from crawlproj.config import Config
from crawlproj.database.arrays import array
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.errors import ArchiveError
from crawlproj.frontier.takedown import BELOW, Rule, Rules, is_url
from crawlproj.upkeep.warc_rewrite import Done, Rewriting
from crawlproj.urls.canonical import host

AT_ONCE = 5_000
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reach:
    """What rules mean in the database: whole hosts by id and name, and single URLs on
    some hosts.
    """

    hosts: dict[int, str] = field(default_factory=dict)
    some: tuple[int, ...] = ()
    urls: tuple[str, ...] = ()

    def ids(self, db: Queries) -> list[int]:
        """All rows of all crawls; one look at the whole table."""
        if not self.hosts and not self.some:
            return []
        rows = db.rows(
            "takedown_urls", hosts=array(self.hosts), some=array(self.some), urls=array(self.urls)
        )
        return [row[0] for row in rows]


def reach(db: Queries, names: Sequence[str]) -> Reach:
    urls = [name for name in names if is_url(name)]
    plain = [name for name in names if not is_url(name) and not name.startswith(BELOW)]
    below = [name.removeprefix(BELOW) for name in names if name.startswith(BELOW)]
    hosts = dict(db.rows("takedown_hosts", names=array(plain), domains=array(below)))
    some = dict(
        db.rows("takedown_hosts", names=array({host(url) for url in urls}), domains=array(()))
    )
    return Reach(hosts, tuple(some), tuple(urls))


def ask(db: Database, names: Sequence[str], reason: str, barred: bool) -> list[int]:
    """The rules, stored; from now on no URL of them comes in. Returns their ids."""
    with db.transaction() as tx:
        tx.run("takedown_fence")
        return [
            row[0]
            for row in tx.rows("takedown_ask", what=array(names), reason=reason, barred=barred)
        ]


def erase(db: Database, rule: Rule) -> None:
    """All that the database holds of it; with ends of visits that are under way."""
    found = reach(db, [rule.what])
    ids = found.ids(db)
    until = FOREVER if rule.barred else rule.asked
    for start in range(0, len(ids), AT_ONCE):
        with db.transaction() as tx:
            _erase_some(tx, rule, array(ids[start : start + AT_ONCE]), until)
    db.run("takedown_origins", names=array(found.hosts.values()), until=until)


def _erase_some(tx: Transaction, rule: Rule, ids: str, until: datetime) -> None:
    if rule.barred:
        touched = tx.rows("takedown_bar", ids=ids) + tx.rows("takedown_requests", ids=ids)
    else:
        touched = tx.rows("takedown_blank", ids=ids, until=until)
    versions = tx.run("takedown_versions", ids=ids, until=until)
    tx.run("takedown_pages", ids=ids, until=until)
    tx.run("takedown_counted", id=rule.id, urls=len(touched), versions=versions)
    refresh(tx, touched)


def refresh(tx: Transaction, touched: Sequence[tuple[int, int]]) -> None:
    """What these hosts of these crawls have to offer now."""
    hosts: dict[int, set[int]] = defaultdict(set)
    for crawl, host_id in touched:
        hosts[crawl].add(host_id)
    now = tx.value("now") if hosts else None
    for crawl in sorted(hosts):
        these = array(sorted(hosts[crawl]))
        tx.run("lock_hosts", crawl=crawl, hosts=these)
        tx.run("refresh_hosts", crawl=crawl, hosts=these, now=now)


def pending(db: Queries) -> Rules:
    """Rules that are not ended: asked for now, or left by a kill."""
    return Rules(Rule(*row[:5]) for row in db.rows("takedown_rules") if row[5] is None)


def carry_out(db: Database, config: Config, tell: Callable[[str], None]) -> Done:
    """All rules that are not ended. ArchiveError if some of it can't be reached now: then they stay
    so.
    """
    rules = pending(db)
    if not rules:
        return Done()
    for rule in rules.all:
        erase(db, rule)
    reasons = {rule.what: rule.reason for rule in rules.all}
    with Rewriting(db, config.warc_dir, config.database_patience_s, tell, calls=2) as work:
        done = work.remove(work.survey(rules.gone), rules.gone, reasons, db.value("now"))
        if left := work.still_open(rules.gone):
            raise ArchiveError(
                f"some of it is in {', '.join(left)}, which another process writes: do it again "
                "when that has ended"
            )
    db.run("takedown_ended", ids=array(rule.id for rule in rules.all))
    return done


def undo(db: Database, names: Sequence[str]) -> tuple[list[str], int]:
    """Let it be fetched again: which of the names were barred, and how many URLs are queued. What
    is gone is gone.
    """
    with db.transaction() as tx:
        tx.run("takedown_fence")
        undone = [row[0] for row in tx.rows("takedown_undo", what=array(names))]
    ids = reach(db, undone).ids(db) if undone else []
    queued = 0
    for start in range(0, len(ids), AT_ONCE):
        with db.transaction() as tx:
            touched = tx.rows("takedown_allow", ids=array(ids[start : start + AT_ONCE]))
            refresh(tx, touched)
            queued += len(touched)
    db.value("takedown_call")
    return undone, queued


def preview(db: Queries | None, config: Config, names: Sequence[str]) -> dict[str, Any]:
    """What would go, and where it is; nothing is changed. Without a database: what the
    archive has.
    """
    facts: dict[str, Any] = {"urls": 0, "pages": 0, "versions": 0, "hosts": []}
    if db is not None:
        found = reach(db, names)
        ids = array(found.ids(db))
        row = db.row("takedown_preview", ids=ids)
        assert row is not None
        facts = {
            "urls": row[0],
            "pages": row[1],
            "versions": row[2],
            "hosts": sorted(found.hosts.values()),
        }
    rules = Rules(Rule(0, name, "", True, FOREVER) for name in names)
    folder = config.warc_dir
    files = sorted([*Archive(folder).files(), *folder.glob(f"*{SUFFIX}{OPEN}")])
    seen: dict[str, Found] = survey(files, rules.gone)
    facts["records"] = sum(each.going.total() for each in seen.values())
    facts["bytes"] = sum(each.bytes for each in seen.values())
    facts["files"] = sorted(seen)
    return facts
