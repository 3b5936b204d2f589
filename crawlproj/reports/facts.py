"""The facts behind `scrapy status` and `scrapy explain`, as plain values that JSON can hold too:
of all crawls, of one URL, of one host.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from crawlproj.articles.delays import read_delays
from crawlproj.config import Config
from crawlproj.content.packed_text import unpack_blocks, visible_blocks
from crawlproj.database.queries import Queries
from crawlproj.frontier import takedown
from crawlproj.frontier.base import (
    PUSH_RANK,
    DuplicateKind,
    Frontier,
    Lane,
    RobotsRow,
    State,
    StoredUrl,
)
from crawlproj.frontier.rules import CrawlRules
from crawlproj.frontier.stored_links import LinksRow, read_links
from crawlproj.politeness import robots
from crawlproj.reports.changes import change_facts
from crawlproj.reports.history import revisit_values
from crawlproj.urls.canonical import host_of, origin_of, url_key
from crawlproj.urls.scope import Scope, ScopeRules
from crawlproj.urls.suffixes import has_suffix

LEFT_OUT = "left out"
"""In place of a state: it is not part of the crawl."""
MAX_NAMES = 5
"""So many hosts are shown of a scope."""
LATELY = timedelta(days=7)
"""Articles of so many days tell how soon they are fetched."""
MAX_LANGUAGES = 10
"""So many languages are shown of a crawl, those of most pages."""


class _HostRow(NamedTuple):
    """The columns of query `explain_host`; the defaults stand for a host that was never asked."""

    host_next_allowed: datetime | None = None
    host_reason: str = ""
    failures: int = 0
    server_next_allowed: datetime | None = None
    server_reason: str = ""
    address: str | None = None
    worker: str | None = None
    leased_until: datetime | None = None


class PageRow(NamedTuple):
    """The columns of query `explain_page`."""

    noindex: bool
    reader: str
    language: str
    words: int
    duplicate_of: int | None
    original: str | None
    """None, too, if the original is not known any more."""
    duplicate_kind: str | None
    similarity: float | None
    known_share: float | None
    blocks: bytes | None
    copies: int


def status_facts(db: Queries, now: datetime) -> dict[str, dict[str, Any]]:
    """The figures of each crawl, by its name.

    `fetched` counts URLs whose last visit got a response, `documents` those whose text was read.
    `duplicates` counts copies by kind, `languages` pages by language, of most pages first.
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
            "duplicates": {kind.value: 0 for kind in DuplicateKind},
            "words": 0,
            "languages": {},
            "articles": 0,
            "articles_per_day": 0,
            "articles_waiting": 0,
            "useful_per_day": 0,
            "useful_share": None,
            "freshness": None,
            "age_s": None,
            **revisit_values(0, 0, 0, 0),
            "sources": 0,
            "silent_sources": 0,
            "disagreeing_sources": 0,
            "missed_links": 0,
            "delay_p50_s": None,
            "delay_p95_s": None,
        }
    rows = db.fetch_rows("status_urls", now=now)
    for name, state, number, fetched, documents, due, next_due in rows:
        crawl = crawls[name]
        crawl["urls"][state] += number
        crawl["urls"]["known"] += number
        crawl["urls"]["fetched"] += fetched
        crawl["urls"]["documents"] += documents
        crawl["due_now"] += due
        crawl["next_due"] = _earliest(crawl["next_due"], next_due)
    for name, versions in db.fetch_rows("status_versions"):
        crawls[name]["versions"] = versions
    _add_texts(db, crawls)
    for name, articles, day, waiting, fetches, useful in db.fetch_rows("status_articles"):
        crawls[name] |= {
            "articles": articles,
            "articles_per_day": day,
            "articles_waiting": waiting,
            "useful_per_day": useful,
        }
        if articles and fetches:
            crawls[name]["useful_share"] = round(min(1.0, useful / fetches), 4)
    for name, freshness, age_s, *revisits in db.fetch_rows("status_freshness"):
        crawls[name] |= {"freshness": freshness, "age_s": age_s, **revisit_values(*revisits)}
    _add_sources(db, crawls, now)
    return crawls


def _add_sources(db: Queries, crawls: dict[str, dict[str, Any]], now: datetime) -> None:
    """Add sources, and how soon articles were fetched of late."""
    for id_, name, sources, silent, disagreeing, missed in db.fetch_rows("status_sources"):
        crawl = crawls[name]
        crawl |= {
            "sources": sources,
            "silent_sources": silent,
            "disagreeing_sources": disagreeing,
            "missed_links": missed,
        }
        if crawl["articles"]:
            delays = read_delays(db, id_, now - LATELY)
            if delays is not None:
                crawl |= {"delay_p50_s": delays.p50_s, "delay_p95_s": delays.p95_s}


def _add_texts(db: Queries, crawls: dict[str, dict[str, Any]]) -> None:
    """Add words, languages and copies: one look at all pages tells all three."""
    languages: dict[str, Counter[str]] = {name: Counter() for name in crawls}
    for name, language, kind, pages, words in db.fetch_rows("status_texts"):
        crawl = crawls[name]
        crawl["words"] += words
        if kind is not None:
            crawl["duplicates"][kind] += pages
        if language:
            languages[name][language] += pages
    for name, counted in languages.items():
        crawls[name]["languages"] = dict(counted.most_common(MAX_LANGUAGES))


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)


def url_facts(
    db: Queries, frontier: Frontier, config: Config, url: str, canonical: str
) -> dict[str, Any]:
    """Everything about one URL; `state` is None if the crawl does not know it."""
    key = url_key(frontier.spec.name, canonical)
    stored = frontier.get_urls([key]).get(key)
    origin = origin_of(canonical)
    robots_row = frontier.get_robots([origin]).get(origin)
    facts: dict[str, Any] = {
        "url": url,
        "canonical": canonical,
        "crawl": frontier.spec.name,
        "state": None,
    }
    if stored is not None:
        facts |= _stored_facts(stored, frontier)
        facts |= _text_facts(find_page(db, key))
        facts["links"] = _link_facts(db, key)
        since_s = None
        if stored.last_read is not None:
            since_s = (frontier.now() - stored.last_read).total_seconds()
        facts |= change_facts(db, frontier.spec.name, key, since_s)
    else:
        facts |= _left_out_facts(frontier, config, db, canonical)
    facts["forgotten"] = takedown.barring_rule(db, canonical)
    facts["robots"] = _robots_verdict(robots_row, canonical, config.robot_name)
    facts["robots_read"] = None
    robots_rows = []
    if robots_row is not None:
        facts["robots_read"] = robots_row.fetched
        robots_rows.append(robots_row)
    facts["host"] = _host_facts(
        db,
        frontier.now(),
        host_of(canonical),
        config=config,
        robots_rows=robots_rows,
        delay_s=kept_delay_s(db, frontier.spec.name, config),
    )
    return facts


def _left_out_facts(frontier: Frontier, config: Config, db: Queries, url: str) -> dict[str, Any]:
    """Why a URL that is not known is left out, by the scope that the crawl had last; nothing if it
    is not.
    """
    left_out = frontier.find_left_out(host_of(url))
    stored = db.fetch_value("explain_rules", name=frontier.spec.name)
    rules = CrawlRules()
    if stored is not None:
        rules = CrawlRules.from_dict(stored)
    scope = Scope(rules.scope or ScopeRules())
    reason = ""
    if rules.scope is not None:
        reason = scope.reason(url)
    if not reason and left_out is not None and left_out.reason == "domain hosts":
        reason = left_out.reason
    if not reason and has_suffix(url, rules.suffixes):
        reason = "suffix"
    if not reason:
        return {}
    facts: dict[str, Any] = {"state": LEFT_OUT, "why": reason}
    facts["rule"] = scope.ignoring_rule(url)
    if reason != "rule":
        facts["rule"] = _rule_in_force(reason, scope.rules, config)
    facts["first_link"] = None
    facts["first_seen"] = None
    if left_out is not None and reason in ("host", "domain hosts"):
        facts["first_link"] = left_out.url
        facts["first_seen"] = left_out.first_seen
    return facts


def _rule_in_force(reason: str, scope: ScopeRules, config: Config) -> str:
    """The rule that leaves something out, as a person would give it."""
    if reason == "domain hosts":
        return f"FRONTIER_DOMAIN_HOSTS={config.spec.domain_hosts}"
    if reason == "suffix":
        return "URL_SUFFIXES"
    if reason == "include":
        return f"include={scope.include}"
    if reason == "exclude":
        return f"exclude={scope.exclude}"
    parts = []
    if scope.seed_hosts:
        parts.append(f"seeds on {_some_names(scope.seed_hosts)}")
    if scope.domains:
        parts.append(f"domains={_some_names(scope.domains)}")
    if scope.hosts:
        parts.append(f"hosts={scope.hosts}")
    return ", ".join(parts)


def _some_names(names: frozenset[str]) -> str:
    shown = sorted(names)[:MAX_NAMES]
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ",".join(shown) + more


def _stored_facts(stored: StoredUrl, frontier: Frontier) -> dict[str, Any]:
    parent = None
    if stored.parent is not None:
        parent = frontier.get_urls([stored.parent]).get(stored.parent)
    return {
        "state": stored.state.value,
        "lane": None if stored.lane is None else stored.lane.name.lower(),
        "pushed": stored.lane is Lane.URGENT and stored.rank == PUSH_RANK,
        "why": stored.why,
        "depth": stored.depth,
        "score": stored.score,
        "found": None if stored.found is None else stored.found.name.lower(),
        "parent": parent.url if parent else None,
        "status": stored.status,
        "visits": stored.visit,
        "tries": stored.tries,
        "changes": stored.changes,
        "first_seen": stored.first_seen,
        "last_visit": stored.last_visit,
        "last_change": stored.last_change,
        "next_visit": stored.next_visit,
        "interval_s": stored.interval_s,
        "source": stored.source,
        "moved_to": stored.moved_to,
    }


def find_page(db: Queries, key: int) -> PageRow | None:
    """What is known of the text of a page and of its copies; None: it was never read."""
    columns = db.fetch_row("explain_page", id=key)
    return None if columns is None else PageRow(*columns)


def crawls_knowing(db: Queries, url: str) -> list[str]:
    """The crawls that have a URL, by name."""
    crawls = [name for (name,) in db.fetch_rows("crawl_names")]
    ids = [url_key(crawl, url) for crawl in crawls]
    return [name for (name,) in db.fetch_rows("crawls_with_url", ids=ids)]


def _text_facts(page: PageRow | None) -> dict[str, Any]:
    """`text`: how much of it is kept; None if nothing is."""
    if page is None:
        names = ("duplicate_of", "duplicate_kind", "similarity", "known_share", "copies")
        return dict.fromkeys((*names, "language", "words", "text"))
    text = None
    if page.blocks:
        blocks = visible_blocks(unpack_blocks(page.blocks))
        characters = sum(len(block.text) for block in blocks)
        text = {"blocks": len(blocks), "characters": characters}
    return {
        "duplicate_of": page.original,
        "duplicate_kind": page.duplicate_kind,
        "similarity": page.similarity,
        "known_share": page.known_share,
        "copies": page.copies,
        "language": page.language or None,
        "words": page.words,
        "text": text,
    }


def _link_facts(db: Queries, key: int) -> dict[str, int] | None:
    """How many links of a page are stored; None if it was never read."""
    row = db.fetch_row("explain_links", id=key)
    if row is None:
        return None
    links = read_links(LinksRow(*row))
    return {
        "all": len(links),
        "inside": sum(link.id is not None for link in links),
        "nofollow": sum(link.nofollow for link in links),
    }


def _robots_verdict(row: RobotsRow | None, url: str, robot_name: str) -> str:
    """The word allowed, forbidden, unreachable (which keeps us away) or unknown (not read yet)."""
    if row is None:
        return "unknown"
    rules = robots.robots_from_row(row)
    if rules.unreachable:
        return "unreachable"
    if rules.allows(url, robot_name):
        return "allowed"
    return "forbidden"


def _host_facts(
    db: Queries,
    now: datetime,
    name: str,
    config: Config,
    robots_rows: list[RobotsRow],
    delay_s: float,
) -> dict[str, Any]:
    columns = db.fetch_row("explain_host", host=name, now=now)
    host = _HostRow(*columns) if columns else _HostRow()
    rests = []
    if host.host_next_allowed is not None:
        rests.append((host.host_next_allowed, host.host_reason))
    if host.server_next_allowed is not None:
        rests.append((host.server_next_allowed, host.server_reason))
    next_allowed, reason = max(rests, default=(None, ""))
    delay_source = "POLITENESS_DELAY"
    crawl_delay_s = capped_crawl_delay_s(robots_rows, config)
    if crawl_delay_s > delay_s:
        delay_s = crawl_delay_s
        delay_source = "robots.txt"
    return {
        "name": name,
        "address": host.address,
        "next_allowed": next_allowed,
        "reason": reason,
        "failures": host.failures,
        "delay_s": delay_s,
        "delay_source": delay_source,
        "leased_by": host.worker,
        "leased_until": host.leased_until,
    }


def kept_delay_s(db: Queries, crawl: str, config: Config) -> float:
    """The pause between two requests to a host that a crawl keeps: that of its last run, whose
    settings need not be those of the command that asks.
    """
    stored: float | None = db.fetch_value("explain_delay", name=crawl)
    if stored is None:
        return config.rules.host.delay_s
    return stored


def capped_crawl_delay_s(rows: list[RobotsRow], config: Config) -> float:
    """The longest Crawl-delay of a host's robots.txt files, up to the longest that we accept."""
    longest = 0.0
    for row in rows:
        crawl_delay_s = robots.robots_from_row(row).crawl_delay_s(config.robot_name)
        longest = max(longest, crawl_delay_s or 0.0)
    return min(longest, config.rules.host.max_crawl_delay_s)


def host_facts(db: Queries, frontier: Frontier, config: Config, host_name: str) -> dict[str, Any]:
    """Everything about one host; `known` is False if the crawl has no URL of it."""
    now = frontier.now()
    urls: dict[str, int] = {state.value: 0 for state in State}
    due = 0
    next_due = None
    rows = db.fetch_rows("explain_host_urls", host=host_name, crawl=frontier.spec.name, now=now)
    for state, number, due_of_state, next_due_of_state in rows:
        urls[state] = number
        due += due_of_state
        next_due = _earliest(next_due, next_due_of_state)
    known = sum(urls.values())
    origins = [origin for (origin,) in db.fetch_rows("explain_host_robots", host=host_name)]
    robots_rows = list(frontier.get_robots(origins).values())
    robots_facts = [
        {
            "origin": row.origin,
            "status": row.status,
            "fetched": row.fetched,
            "expires": row.expires,
            "failures": row.failures,
        }
        for row in robots_rows
    ]
    left_out: dict[str, Any] = {}
    if not known:
        left_out = _left_out_facts(frontier, config, db, f"http://{host_name}/")
    if left_out.get("why") not in (None, "host", "domain hosts"):
        left_out = {}
    return {
        "crawl": frontier.spec.name,
        "state": None,
        "known": known > 0,
        "urls": {"known": known, **urls},
        "due_now": due,
        "next_due": next_due,
        "forgotten": takedown.barring_rule(db, "", host_name),
        "robots": robots_facts,
        "host": _host_facts(
            db,
            now,
            host_name,
            config=config,
            robots_rows=robots_rows,
            delay_s=kept_delay_s(db, frontier.spec.name, config),
        ),
        **left_out,
    }
