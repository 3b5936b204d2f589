"""What the database knows, as plain values: of all crawls, of one URL, of one host. Looks only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from crawlproj.config import Config
from crawlproj.database.queries import Queries
from crawlproj.frontier import takedown
from crawlproj.frontier.base import Frontier, RobotsRow, State, StoredUrl
from crawlproj.politeness import robots
from crawlproj.urls.canonical import host_of, origin_of, url_key


def status_facts(db: Queries, now: datetime) -> dict[str, dict[str, Any]]:
    """Crawl -> its figures. `fetched`: the last visit got an answer; `documents`: there is a
    reading of it.
    """
    crawls: dict[str, dict[str, Any]] = {}
    for name, hosts, leased in db.fetch_rows("status_hosts", now=now):
        urls = {"known": 0, **{state.value: 0 for state in State}, "fetched": 0, "documents": 0}
        crawls[name] = {
            "urls": urls,
            "due_now": 0,
            "next_due": None,
            "hosts": hosts,
            "leased_servers": leased,
            "versions": 0,
        }
    for name, state, number, fetched, documents, due, next_due in db.fetch_rows(
        "status_urls", now=now
    ):
        crawl = crawls[name]
        crawl["urls"][state] += number
        for key_, more in (("known", number), ("fetched", fetched), ("documents", documents)):
            crawl["urls"][key_] += more
        crawl["due_now"] += due
        crawl["next_due"] = _earliest(crawl["next_due"], next_due)
    for name, versions in db.fetch_rows("status_versions"):
        crawls[name]["versions"] = versions
    return crawls


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)


def url_facts(
    db: Queries, frontier: Frontier, config: Config, url: str, canonical: str
) -> dict[str, Any]:
    """Everything about one URL; `state` is None if the crawl does not know it."""
    id_ = url_key(frontier.spec.name, canonical)
    row = frontier.get_urls([id_]).get(id_)
    rules = frontier.get_robots([origin_of(canonical)]).get(origin_of(canonical))
    facts: dict[str, Any] = {
        "url": url,
        "canonical": canonical,
        "crawl": frontier.spec.name,
        "state": None,
    }
    if row is not None:
        facts |= _facts(row, frontier)
    facts["forgotten"] = takedown.barring_rule(db, canonical)
    facts["robots"] = _verdict(rules, canonical, config.robot_name)
    facts["robots_read"] = rules.fetched if rules else None
    facts["host"] = _host_facts(
        db, frontier.now(), host_of(canonical), config=config, rules=[rules] if rules else []
    )
    return facts


def _facts(row: StoredUrl, frontier: Frontier) -> dict[str, Any]:
    parent = frontier.get_urls([row.parent]).get(row.parent) if row.parent is not None else None
    return {
        "state": row.state.value,
        "lane": row.lane.name.lower() if row.lane is not None else None,
        "why": row.why,
        "depth": row.depth,
        "score": row.score,
        "parent": parent.url if parent else None,
        "status": row.status,
        "visits": row.visit,
        "tries": row.tries,
        "changes": row.changes,
        "first_seen": row.first_seen,
        "last_visit": row.last_visit,
        "last_change": row.last_change,
        "next_visit": row.next_visit,
        "interval_s": row.interval_s,
        "moved_to": row.moved_to,
    }


def _verdict(row: RobotsRow | None, url: str, agent: str) -> str:
    """allowed, forbidden, unreachable (which keeps us away), or unknown (not read yet)."""
    if row is None:
        return "unknown"
    rules = robots.robots_from_row(row)
    if rules.unreachable:
        return "unreachable"
    return "allowed" if rules.allows(url, agent) else "forbidden"


def _host_facts(
    db: Queries, now: datetime, name: str, config: Config, rules: list[RobotsRow]
) -> dict[str, Any]:
    row = db.fetch_row("explain_host", host=name, now=now)
    nothing = (None, "", 0, None, "", None, None, None)
    own_rest, why, failures, server_rest, server_why, address, worker, until = row or nothing
    rests = [
        (at, reason)
        for at, reason in ((own_rest, why), (server_rest, server_why))
        if at is not None
    ]
    allowed, reason = max(rests, default=(None, ""))
    asked = max(
        (robots.robots_from_row(r).crawl_delay_s(config.robot_name) or 0.0 for r in rules),
        default=0.0,
    )
    crawl_delay = min(asked, config.host_rules.max_crawl_delay_s)
    own = config.host_rules.delay_s >= crawl_delay
    return {
        "name": name,
        "address": address,
        "next_allowed": allowed,
        "reason": reason,
        "failures": failures,
        "delay_s": config.host_rules.delay_s if own else crawl_delay,
        "delay_source": "POLITENESS_DELAY" if own else "robots.txt",
        "leased_by": worker,
        "leased_until": until,
    }


def host_facts(db: Queries, frontier: Frontier, config: Config, host_name: str) -> dict[str, Any]:
    """Everything about one host; `known` is False if the crawl has no URL of it."""
    now = frontier.now()
    urls: dict[str, int] = {state.value: 0 for state in State}
    due = 0
    next_due = None
    for state, number, ready, at in db.fetch_rows(
        "explain_host_urls", host=host_name, crawl=frontier.spec.name, now=now
    ):
        urls[state] = number
        due += ready
        next_due = _earliest(next_due, at)
    origins = [row[0] for row in db.fetch_rows("explain_host_robots", host=host_name)]
    rules = list(frontier.get_robots(origins).values())
    known = sum(urls.values())
    names = ("origin", "status", "fetched", "expires", "failures")
    read = [{name: getattr(row, name) for name in names} for row in rules]
    return {
        "crawl": frontier.spec.name,
        "known": known > 0,
        "urls": {"known": known, **urls},
        "due_now": due,
        "next_due": next_due,
        "forgotten": takedown.barring_rule(db, "", host_name),
        "robots": read,
        "host": _host_facts(db, now, host_name, config=config, rules=rules),
    }
