"""A made-up crawl: rows as the frontier would have written them, for databases of any size.

Each host is made by itself: some URLs never visited, some waiting, failed, moved, gone. What the
frontier stores twice (best rank and earliest times of a host, its pages and bytes, URLs per state)
is computed here from the rows, not guessed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from crawlproj.frontier.base import Lane, State, compute_rank
from crawlproj.frontier.seen import depth_score
from crawlproj.urls.canonical import url_key

NULL = "\\N"
RECEIVED = 20_000
"""Bytes of each page."""
COLUMNS = {
    "server": "id address epoch next_allowed",
    "host": "id name server resolved prepared next_allowed failures",
    "origin": "origin host status body fetched expires",
    "crawl_host": "crawl host name stage ready retry revisit pages bytes",
    "url": "id crawl host canonical state lane rank depth score parent hops visit tries status why "
    "first_seen last_visit"
    " last_change next_visit interval_s etag body_digest block_digest moved_to rate_a rate_b",
    "page": "url at title content_type charset declared_language length noindex noarchive elapsed_s",
    "page_version": "url at status body_digest block_digest length",
    "page_state": "url state modified_at fresh_until",
    "host_text": "crawl host noise",
    "host_hint": "host hint changed_said changed_unsaid same_said same_unsaid",
    "page_links": "url known known_kinds known_texts other other_kinds other_texts",
}
"""Tables and the columns that are given, in an order that keeps every reference."""
SHARES = {
    State.NEW: 50,
    State.WAITING: 35,
    State.RETRY: 3,
    State.MOVED: 4,
    State.DEAD: 3,
    State.GONE: 2,
    State.RETIRED: 1,
    State.FORBIDDEN: 1,
    State.IGNORED: 1,
}
ENDS = {
    State.WAITING: (200, "", 0),
    State.RETRY: (503, "status", 2),
    State.MOVED: (301, "", 0),
    State.DEAD: (0, "timeout", 5),
    State.GONE: (404, "", 0),
    State.RETIRED: (404, "", 0),
    State.FORBIDDEN: (0, "robots", 0),
}
"""Status, reason and tries of URLs that were visited."""
STATE_BYTES = 1_200
"""Of what is kept of a page to tell changes: that of a news page of 48 KB."""
NOISE_BYTES = 400
HINTS = ("etag", "modified", "expires")
TITLES = (
    "Read more",
    "News of the day",
    "About us",
    "Older entries",
    "The council meets again on Thursday",
)


@dataclass(slots=True)
class Offer:
    """What `crawl_host` stores of a host."""

    ready: float | None = None
    retry: float | None = None
    revisit: float | None = None
    pages: int = 0

    def take(self, lane: Lane, rank: float) -> None:
        name = {Lane.RETRY: "retry", Lane.REVISIT: "revisit"}.get(lane, "ready")
        rank = float("-inf") if lane is Lane.URGENT else rank
        known = getattr(self, name)
        setattr(self, name, rank if known is None else min(known, rank))


@dataclass(slots=True)
class Maker:
    """Makes hosts one after the other.

    `rows` are COPY lines per table; the caller takes them away now and then.
    """

    crawl: int
    name: str
    now: datetime
    seed: int = 1
    first_id: int = 1
    links: int = 8
    order: str = "best"
    states_kept: bool = False
    """Also what tells changes of pages and hosts, which is most of all bytes."""
    asleep: bool = False
    """All is visited and nothing due for a day: URLs that lie beside those a crawl works on."""
    rows: dict[str, list[str]] = field(default_factory=lambda: {table: [] for table in COLUMNS})
    states: Counter[State] = field(default_factory=Counter)
    pages: int = 0

    def hosts(self, hosts: int, urls: int) -> Iterator[None]:
        """Make so many hosts; the number of URLs per host differs widely.

        Yields after each host, for the rows to be taken.
        """
        chance = random.Random(self.seed)
        sizes = [min(chance.paretovariate(1.2), 1000.0) for _ in range(hosts)]
        scale = (urls - hosts) / sum(sizes)
        wanted = 0.0
        made = 0
        server = self.first_id
        for number, size in enumerate(sizes):
            wanted += 1 + size * scale
            if chance.random() < 0.6:
                server = self.first_id + number
            count = urls - made if number == hosts - 1 else max(1, round(wanted) - made)
            self._host(chance, self.first_id + number, server, urls=count)
            made += count
            yield

    def _host(self, chance: random.Random, host: int, server: int, urls: int) -> None:
        """Make one host; one in 20 is not resolved yet, one in 10 not prepared.

        A server has the number of its first host.
        """
        at = self.now.isoformat()
        name = f"www.{chance.choice(('daily', 'paper', 'shop', 'town'))}{host}.example"
        if server == host:
            self._put(
                "server",
                server,
                f"{server >> 16 & 255}.{server >> 8 & 255}.{server & 255}.10.{server >> 24}",
                0,
                None,
            )
        lot = 1.0 if self.asleep else chance.random()
        stage = 0 if lot < 0.05 else 1 if lot < 0.15 else 2
        rests = (
            self.now + timedelta(hours=chance.random())
            if stage == 2 and chance.random() < 0.03
            else None
        )
        resolved = (
            (self.now - timedelta(hours=chance.random() * 20)).isoformat() if stage else "-infinity"
        )
        self._put(
            "host",
            host,
            name,
            server if stage else None,
            resolved,
            stage == 2,
            rests and rests.isoformat(),
            0,
        )
        if stage == 2:
            body = "User-agent: *\\nDisallow: /private/\\n"
            self._put(
                "origin",
                f"https://{name}",
                name,
                200,
                body,
                at,
                (self.now + timedelta(days=1)).isoformat(),
            )
        if self.states_kept:
            noise = f"\\\\x{chance.randbytes(NOISE_BYTES).hex()}"
            self._put("host_text", self.crawl, host, noise)
            for hint in HINTS:
                self._put("host_hint", host, hint, 1, 2, 3, 4)
        offer = self._urls(chance, host, f"https://{name}", count=urls, visited=stage == 2)
        self.pages += offer.pages
        offers = offer.ready, offer.retry, offer.revisit, offer.pages, offer.pages * RECEIVED
        self._put("crawl_host", self.crawl, host, name, stage, *offers)

    def _urls(
        self, chance: random.Random, host: int, root: str, count: int, visited: bool
    ) -> Offer:
        offer = Offer()
        shares = {
            state: share
            for state, share in SHARES.items()
            if not self.asleep or state not in (State.NEW, State.RETRY)
        }
        states = (
            chance.choices(list(shares), list(shares.values()), k=count)
            if visited
            else [State.NEW] * count
        )
        urls = [
            f"{root}/"
            if n == 0
            else f"{root}/{2000 + n % 26}/{n % 12 + 1:02}/an-article-of-some-length-{n}.html"
            for n in range(count)
        ]
        ids = [url_key(self.name, url) for url in urls]
        for n, (id_, url, state) in enumerate(zip(ids, urls, states, strict=True)):
            self.states[state] += 1
            depth = min(n, 1 + n.bit_length() // 2)
            fate = self._fate(chance, state, depth, url=url)
            if fate[0] is not None:
                offer.take(fate[0], fate[1])
            self._put(
                "url",
                id_,
                self.crawl,
                host,
                url,
                state.value,
                *fate[:2],
                depth,
                depth_score(depth),
                ids[0] if n else None,
                *fate[2:],
            )
            if state is State.WAITING:
                offer.pages += 1
                self._page(chance, id_, fate[8], digest=fate[13], ids=ids)
        return offer

    def _fate(self, chance: random.Random, state: State, depth: int, url: str) -> tuple[Any, ...]:
        """The columns of a URL from `lane` on, without depth, score and parent."""
        first_seen = self.now - timedelta(days=40)
        seen = first_seen.isoformat()
        if state in (State.NEW, State.IGNORED):
            lane = chance.choices((Lane.NEW, Lane.BACKFILL, Lane.URGENT), (97, 2.9, 0.1))[0]
            rank = 0.0
            if lane is not Lane.URGENT:
                rank = compute_rank(self.order, depth, depth_score(depth), first_seen)
            queued = (None, None, 21) if state is State.IGNORED else (lane, rank, 0)
            return (
                *queued,
                0,
                0,
                0,
                "redirects" if state is State.IGNORED else "",
                seen,
                *[None] * 10,
            )
        status, why, tries = ENDS[state]
        days = {State.WAITING: 30, State.RETRY: 0.2, State.GONE: 60, State.FORBIDDEN: 30}.get(state)
        when = (
            None
            if days is None
            else self.now
            + timedelta(days=chance.uniform(0.04 if self.asleep else -0.04, 0.96) * days)
        )
        again = None if when is None else Lane.RETRY if state is State.RETRY else Lane.REVISIT
        last = (self.now - timedelta(days=chance.uniform(1, 30))).isoformat()
        read = state is State.WAITING
        digest = f"\\\\x{chance.getrandbits(128):032x}" if read else None
        changed, interval, etag = (last, 86400.0 * 7, '"5f3a-61c"') if read else (None, None, None)
        moved_to = f"{url}?moved" if state is State.MOVED else None
        timed = when.timestamp() if when else None
        when_text = when.isoformat() if when else None
        return (
            again,
            timed,
            0,
            chance.randint(1, 4),
            tries,
            status,
            why,
            seen,
            last,
            changed,
            when_text,
            interval,
            etag,
            digest,
            digest,
            moved_to,
            chance.uniform(0.5, 10) if read else None,
            chance.uniform(1e5, 1e7) if read else None,
        )

    def _page(
        self, chance: random.Random, id_: int, at: object, digest: object, ids: list[int]
    ) -> None:
        self._put(
            "page",
            id_,
            at,
            chance.choice(TITLES),
            "text/html",
            "utf-8",
            "en",
            RECEIVED,
            False,
            False,
            0.2,
        )
        self._put("page_version", id_, at, 200, digest, digest, RECEIVED)
        if self.states_kept:
            state = f"\\\\x{chance.randbytes(STATE_BYTES).hex()}"
            self._put("page_state", id_, state, at, at)
        known = chance.sample(ids, min(self.links, len(ids)))
        texts = "\\n".join(chance.choice(TITLES) for _ in known)
        other = "\\n".join(f"https://elsewhere{chance.randint(1, 999)}.example/" for _ in range(2))
        known_text = "{" + ",".join(map(str, known)) + "}"
        self._put(
            "page_links", id_, known_text, "a" * len(known), texts, other, "ai", "Elsewhere\\n"
        )

    def _put(self, table: str, *values: object) -> None:
        self.rows[table].append("\t".join([_text(value) for value in values]))


def _text(value: object) -> str:
    if value is None:
        return NULL
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Lane):
        return str(int(value))
    return str(value)


def utc_now() -> datetime:
    return datetime.now(UTC)
