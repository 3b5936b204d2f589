"""The frontier: every URL ever seen, what came of it, and which ones may be fetched next.

The Protocol below is the only door to it. Two implementations pass one contract suite:
`memory.MemoryFrontier` (tests, simulator) and `postgres.PostgresFrontier` (the real one). Rules
that both keep:

- A URL is one row, known by `id` (64 bits of a hash of crawl and canonical form). It enters the
  queue once, however often it is added. Adding it again can only shorten its depth, raise its score
  above 1, tell when it was published if that is not known, bring it from backfill to the new ones
  (found nearer, or with a score above 1), push it into the urgent lane (always, or unless it was
  visited just now), or revive it (ignored for its depth, or retired: by a link that was not there
  or, from its `next_visit` on, by any).
- Only queued URLs have a lane. Lanes with a *rank* (urgent, new, backfill) are served lowest rank
  first, which is breadth-first in the order of finding if the crawl's order is bfs; lanes with a
  *time* (revisit, retry) are served earliest first, and never before their time.
- A worker may hand out URLs only of servers that it has leased. Handing out writes nothing: the
  visit number, which grows by one at each end, and the epoch of the lease make an end count
  exactly once, and never after the lease has moved on.
- `commit` is the only way an end, the links and the new URLs of a page are written: together, or
  not at all.

To add a field that comes with each ticket: the field in `Ticket` (below), the column of that name
in the query `refill` (database/sql/queries/frontier.sql), the field or property of that name in
`memory.rows.UrlRow`. If its value must be decoded, also a line in `rows.read_tickets`.

To add a field that the end of a visit stores: the field in `Outcome`, the argument and the
assignment in the query `end_visits`, its line in `writes.OUTCOME_COLUMNS`, the field of the row and
its line in `memory.rows.UrlRow.end_visit`. If the column is new, also `schema.sql` and a migration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Protocol

from crawlproj.archive.exchange import Original, RecordLocation
from crawlproj.archive.write_queue import Receipt
from crawlproj.frontier.rules import CrawlRules


class Lane(IntEnum):
    """Where a queued URL waits. The numbers are stored."""

    URGENT = 0
    NEW = 1
    REVISIT = 2
    BACKFILL = 3
    RETRY = 4


class Found(IntEnum):
    """The way in by which a URL has its depth and its parent. The numbers are stored."""

    SEED = 0
    LINK = 1
    FEED = 2
    SITEMAP = 3
    ROBOTS = 4
    """A sitemap that a robots.txt names."""
    PUSH = 5
    REDIRECT = 6
    REQUEST = 7
    """A request that a callback of the spider has yielded."""
    IMPORT = 8
    """A WARC file from elsewhere."""
    PROBE = 9
    """A path that nobody has, by whose answer pages that are gone are known."""
    NAMED_FEED = 10
    """A feed on a host outside of the scope: it belongs to the site that names it. The query
    `refill` and the view `site` have this number.
    """


TIMED_LANES = frozenset({Lane.REVISIT, Lane.RETRY})


class State(StrEnum):
    """What became of a URL. The names are stored."""

    NEW = "new"
    WAITING = "waiting"
    RETRY = "retry"
    DEAD = "dead"
    MOVED = "moved"
    GONE = "gone"
    RETIRED = "retired"
    FORBIDDEN = "forbidden"
    IGNORED = "ignored"


LONGEST_PAUSE = timedelta(days=30)
"""No pause and no lease is meant to last longer."""

LANE_OF = {
    State.NEW: Lane.NEW,
    State.WAITING: Lane.REVISIT,
    State.RETRY: Lane.RETRY,
    State.GONE: Lane.REVISIT,
}
"""States that are queued, and where. All other states are not queued."""

ORDERS = ("best", "bfs", "dfs")


@dataclass(frozen=True, slots=True)
class CrawlSpec:
    """A named frontier and its limits. Zero means no limit."""

    name: str
    order: str = "best"
    shares: Mapping[str, float] = field(
        default_factory=lambda: {"new": 0.3, "revisit": 0.4, "backfill": 0.1}
    )
    max_depth: int = 0
    max_hops: int = 20
    host_pages: int = 0
    host_bytes: int = 0
    pages: int = 0
    bytes: int = 0
    lease: timedelta = timedelta(seconds=120)
    domain_hosts: int = 0
    """So many hosts below one registered domain are let in by links: a domain that has every name
    (wildcard DNS) can't fill the frontier.
    """
    open_domains: frozenset[str] = frozenset()
    """Below these the crawl was told to go: their hosts are not limited by `domain_hosts`."""


class ArticleClaim(NamedTuple):
    """A long number that may name an article, and how many addresses with it are fetched. `shape`
    stands for crawl, host and form of address.
    """

    shape: int
    number: int
    most: int


class ArticleEnd(NamedTuple):
    """What the end of a visit says of a long number: there is no page, or (`is_free`) the number
    says nothing; None: no number of this shape does.
    """

    shape: int
    number: int | None
    is_free: bool = False


MAX_HELD_ADDRESSES = 20
"""So many addresses of one article wait for what becomes of others."""
SAME_ARTICLE = "same article"
"""Why a URL is ignored that is another address of an article."""


@dataclass(frozen=True, slots=True)
class NewUrl:
    """A URL on its way in. `request` is an ordinary Scrapy request as JSON text; None for a plain
    GET.
    """

    id: int
    url: str
    host: str
    depth: int = 0
    score: float = 1.0
    parent: int | None = None
    lane: Lane = Lane.NEW
    hops: int = 0
    request: str | None = None
    found: Found | None = None
    again: timedelta | None = None
    """A start request, or a source that a callback requests: if it is known it is asked again,
    ahead of all but pushes, unless it got a response within this time. None: a known URL stays as
    it is, unless the lane is urgent.
    """
    heir_of: int | None = None
    """A page that has moved here for good: what was learned of it goes on, unless this URL has been
    visited.
    """
    published: datetime | None = None
    """When a list, or the URL itself, says that it was published."""
    claim: ArticleClaim | None = None
    """If enough other addresses of the article are fetched, a new one is ignored for now."""

    @property
    def is_hot(self) -> bool:
        """Is it to be fetched ahead of other new URLs, also if it is known and waits?"""
        return self.lane is Lane.NEW and self.score > 1


@dataclass(frozen=True, slots=True)
class Ticket:
    """A URL as it is handed out: what to fetch, on which lease, and what the last visit left
    behind.
    """

    id: int
    url: str
    host: str
    server: int
    epoch: int
    visit: int
    lane: Lane
    state: State
    depth: int = 0
    tries: int = 0
    hops: int = 0
    changes: int = 0
    interval_s: float | None = None
    last_visit: datetime | None = None
    last_change: datetime | None = None
    etag: str | None = None
    modified: str | None = None
    body_digest: bytes | None = None
    block_digest: bytes | None = None
    request: dict[str, Any] | None = None
    expires: datetime | None = None
    """The page's own unavailable_after, as of the last reading."""
    original: Original | None = None
    """The record in the archive that has the body of the last reading."""
    noarchive: bool = False
    """What the page said about archiving when it was last read."""
    noindex: bool = False
    """The same about being indexed, or what a header of a 304 has said since."""
    found: Found | None = None
    """None: of a database from before this was stored."""
    source: bool = False
    """Whether the last visit took it for a source."""
    pushed: bool = False
    """It is urgent since somebody has pushed it, and not as a start request."""
    rate_a: float | None = None
    rate_b: float | None = None
    """What is learned of how often it changes (revisit/rates.py)."""
    own_a: float | None = None
    own_b: float | None = None
    """Numbers of a policy of one's own."""
    importance: float | None = None
    """What a visit is worth beside others of its kind; None: as much as any."""
    page_kind: str = ""
    """What kind of page it was when it was read last, see Content."""
    next_visit: datetime | None = None
    """When this visit was due."""
    page_state: bytes | None = field(default=None, repr=False)
    """What a change is judged by (content/page_state.py); as it is stored."""
    listed_at: datetime | None = None
    """When a sitemap says that it was changed last."""
    fresh_until: datetime | None = None
    """Until when its server said that it would not change."""
    published: datetime | None = None
    """When it was published, by what led to it."""
    source_kind: str = ""
    """What kind of source the last visit took it for, see SourceNote."""
    last_read: datetime | None = None
    """When a visit saw the page last: what is learned of its changes is measured from then."""
    reads: int = 0
    """How many visits have seen the page."""
    source_last_new: datetime | None = None
    """When it has brought something as a source."""
    source_gap_s: float | None = None
    """The usual time between two visits that brought something."""
    named_by: str = ""
    """Of a feed outside of the scope: the host of the page that names it."""

    @property
    def unread(self) -> bool:
        """Whether there was a page whose document could not be read, by chance perhaps: `tries`
        says how often.
        """
        return self.state is State.WAITING and self.tries > 0


class HeldAddress(NamedTuple):
    """A URL that is not fetched, since it is another address of `page`."""

    id: int
    page: int
    url: str


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one page, column by column: targets in this crawl by id, all others by URL.

    A target that was found only by links that are not to be followed is stored by its URL, too.
    `details` is what only few links have, see `stored_links`; `held`: addresses that turned out by
    them to be those of a page that is fetched, or is about to be.
    """

    known: tuple[int, ...] = ()
    known_kinds: tuple[str, ...] = ()
    known_texts: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    other_kinds: tuple[str, ...] = ()
    other_texts: tuple[str, ...] = ()
    details: str = ""
    held: tuple[HeldAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page: all of its blocks (content/packed_text.py), and what made them. `sample`
    is the piece of it by which its language is found.
    """

    packed: bytes
    words: int
    reader: str
    reader_version: int
    sample: str = ""


@dataclass(frozen=True, slots=True)
class ArticleSource:
    """What the article of a page is taken from, later: its body (compressed), and its charset."""

    body: bytes
    charset: str


@dataclass(frozen=True, slots=True)
class DuplicateMarks:
    """The numbers by which a page is compared with others, the scope mixed into each: of its bytes,
    of its normalised text (None: it has none), the bands of its signature (None: too short, or not
    wanted), and of its long paragraphs (hash and length). Made by duplicates/marks.py.
    """

    body: int
    text: int | None = None
    bands: tuple[int, ...] | None = None
    paragraphs: tuple[tuple[int, int], ...] = ()
    first: bool = True
    """It is the page's first text, so its paragraphs are counted."""
    withdrawn: bool = False
    """The page wants to be no original and no duplicate: noindex."""


class DuplicateKind(StrEnum):
    """How a page was found to be a copy. The names are stored."""

    EXACT = "exact"
    TEXT = "text"
    NEAR = "near"
    PARAGRAPH = "paragraph"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of which page another one is a copy, how that was found, and how much is the same."""

    original: int
    kind: DuplicateKind
    similarity: float = 1.0


@dataclass(frozen=True, slots=True)
class Content:
    """What a page said when it was last read; written only when there was something to read.

    `text` and `marks` are None if they are the same as before: what is stored of them stays.
    """

    body_digest: bytes
    block_digest: bytes
    title: str = ""
    content_type: str = ""
    charset: str = ""
    language: str = ""
    length: int = 0
    noindex: bool = False
    links: Links = Links()
    noarchive: bool = False
    kind: str = ""
    """What it is: article, listing or other (HTML), text, feed, sitemap, document, binary."""
    canonical: int | None = None
    """The page that it names by rel=canonical, if that is another one of this crawl."""
    text: PageText | None = None
    marks: DuplicateMarks | None = None
    article: ArticleSource | None = None


@dataclass(frozen=True, slots=True)
class PageChange:
    """How a page has changed: the kind (content/changes.py), and how many letters came and went."""

    kind: str
    new_letters: int = 0
    gone_letters: int = 0


@dataclass(frozen=True, slots=True)
class ServerHints:
    """What a server said with a page: when it was changed last, and until when it is fresh."""

    modified_at: datetime | None = None
    fresh_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What a visit has shown of a source. `kind`: feed, sitemap, sitemap index, news sitemap, hub,
    front page, seed, or former hub; empty if nothing was read: then it is what it was. `site`: the
    registered domain that it belongs to. `entries` and `newest`: what it lists, and its latest
    date. `new_links`: how many it listed for the first time. `problem`: what is odd about it.
    """

    kind: str
    site: str
    title: str = ""
    entries: int | None = None
    newest: datetime | None = None
    new_links: int = 0
    problem: str = ""


GAP_PART = 0.3
"""How much the last time between two visits that brought something counts in the usual one."""


@dataclass(frozen=True, slots=True)
class HostText:
    """What is known of the texts of a host: what differs on its pages without meaning anything
    (`noise`), and its answer to a path that nobody has (`probe`); both as they are stored. None in
    a commit keeps what is stored.
    """

    noise: bytes | None = field(default=None, repr=False)
    probe: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one visit. `next_visit` is set for queued states, for forbidden, and for retired:
    from then on any link brings it back. `content` None keeps what is stored.
    """

    id: int
    visit: int
    server: int
    epoch: int
    state: State
    at: datetime
    status: int = 0
    why: str = ""
    next_visit: datetime | None = None
    tries: int = 0
    interval_s: float | None = None
    changed: bool = False
    moved_to: str | None = None
    etag: str | None = None
    modified: str | None = None
    elapsed_s: float = 0.0
    received: int = 0
    depth: int | None = None
    """The depth of the page when its links were given theirs. If the page was found nearer
    meanwhile, so are they.
    """
    content: Content | None = None
    turns_noindex: bool = False
    """It was not read anew, but its header says noindex now."""
    expires: datetime | None = None
    """When the page is to be taken for gone. None keeps what is stored, unless there is content."""
    receipt: Receipt | None = None
    """Of the archive, which has written the location into it before the outcome is committed."""
    source: bool = False
    """Whether the page is a source, so that `interval_s` is one of a source."""
    rate_a: float | None = None
    rate_b: float | None = None
    own_a: float | None = None
    own_b: float | None = None
    """What the policy has learned. None keeps what is stored."""
    change: PageChange | None = None
    """What kind of change it was, if the page has changed."""
    page_state: bytes | None = field(default=None, repr=False)
    """What the next visit is compared with. None keeps what is stored."""
    hints: ServerHints | None = None
    """What the server said of changes. None keeps what is stored."""
    hints_met: tuple[tuple[str, bool], ...] = ()
    """What hints had said of this visit: the name of each, and whether it spoke of a change."""
    set_aside: bool = False
    """What came is not what the page says: a wall, or an error page. What is stored stays."""
    saw_page: bool = False
    """The page was there, read anew or not modified: what failed, was refused or was set aside has
    not seen it.
    """
    source_note: SourceNote | None = None
    """What the visit has shown, if the page is a source, or was one until now."""
    article_ends: tuple[ArticleEnd, ...] = ()
    """Addresses of articles that wait for this one go through."""

    @property
    def ends_page(self) -> bool:
        """Is the page gone for good, or has it moved for good? Then its text and its links stop
        counting.
        """
        if self.state is State.MOVED:
            return self.next_visit is None
        return self.state is State.RETIRED

    @property
    def body_location(self) -> RecordLocation | None:
        """Where the body is in the archive, if the visit brought one and it was stored whole."""
        if self.receipt is None or not 200 <= self.status < 300 or self.set_aside:
            return None
        location = self.receipt.record_location
        if location is None or location.kind != "response":
            return None
        return location


@dataclass(frozen=True, slots=True)
class RobotsRow:
    """robots.txt of an origin as stored: the fields are the columns of `get_robots`, in that order.
    `status` 0: not reached. `failures` counts tries that did not reach it. `body` is empty only if
    no file was read; while the file can't be reached it is what was read before.
    """

    origin: str
    host: str
    status: int
    body: str
    fetched: datetime
    expires: datetime
    failures: int = 0
    etag: str | None = None
    modified: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """The clock of a host or server as stored: no request before `until`, and why. For hosts also
    failures; for servers also which hosts were asked since the last general pause, how often, and
    when a request was last under way (`busy_at`).
    """

    until: datetime
    reason: str = ""
    failures: int = 0
    asked: Mapping[str, int] = field(default_factory=dict, hash=False)
    busy_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host that came with a lease. `pause` is its clock; `pages_left` is what its quota leaves
    (None: no limit); `prepared`: there was a response for its robots.txt at least once.
    """

    name: str
    server: int
    pause: Pause | None = None
    pages_left: int | None = None
    prepared: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's exclusive right to a server until `until`, and the server's hosts that have work
    in this crawl. `taken_over`: the worker before did not give it back. `kind` says by which order
    it was chosen: ranked, timed or unprepared.
    """

    server: int
    address: str
    epoch: int
    until: datetime
    hosts: tuple[Host, ...]
    pause: Pause | None = None
    taken_over: bool = False
    kind: str = "ranked"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another living worker. `ours`: of this crawl; `wanting`: it found no server to lease; `held`:
    how many servers it has; `rules`: its own rules of politeness by the names of their settings.
    """

    name: str
    ours: bool
    wanting: bool
    held: int
    rules: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Want:
    """Ask for up to `count` URLs of each lane of a leased host (`urgent`: of that lane only), none
    of them in `holding`.
    """

    host: str
    server: int
    epoch: int
    count: int
    holding: frozenset[int] = frozenset()
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class LeftOutHost:
    """A host that links lead to and that is not part of the crawl: the first such link, and why:
    "host" (the scope), or "domain hosts" (its domain has enough of them).
    """

    name: str
    url: str
    reason: str = "host"
    first_seen: datetime | None = None
    """When it was stored."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What a changed scope or interval did to known URLs: how many are left out now, are back, were
    added since links to them were outside before, and have another time of their next visit.
    """

    out: int = 0
    back: int = 0
    added: int = 0
    rescheduled: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that one group commit writes."""

    outcomes: Sequence[Outcome] = ()
    urls: Sequence[NewUrl] = ()
    robots: Sequence[RobotsRow] = ()
    clocks: Mapping[str, Pause] = field(default_factory=dict)
    server_clocks: Mapping[int, Pause] = field(default_factory=dict)
    left_out: Mapping[str, LeftOutHost] = field(default_factory=dict)
    texts: Mapping[str, HostText] = field(default_factory=dict)
    """By host."""
    listed: Mapping[int, datetime] = field(default_factory=dict)
    """Of known URLs when a sitemap says that they were changed."""
    since: datetime | None = None
    """URLs that were visited at this time or later are not queued again, however they are added."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: `done` are URLs whose outcomes counted, `late` how many outcomes came too
    late; then how many URLs were new, revived, or found nearer.
    """

    done: frozenset[int] = frozenset()
    late: int = 0
    added: int = 0
    revived: int = 0
    nearer: int = 0
    refused: int = 0
    """URLs that were left out, since their domain has too many hosts already."""
    hosts: frozenset[str] = frozenset()
    """Hosts that have queued URLs which this commit added or revived; maybe also hosts whose quota
    the same commit used up.
    """
    set_aside: int = 0
    """Ends and URLs that the database refused for what is in them."""
    verdicts: Mapping[int, Verdict] = field(default_factory=dict, hash=False)
    """Pages of this commit that are copies of others."""
    articles: int = field(default=0, compare=False)
    """Pages of this commit whose articles are to be taken."""
    article_copies: int = field(default=0, compare=False)
    """Pages that are articles, and copies of known ones."""
    lock_s: float = field(default=0.0, compare=False)
    """How long it waited for verdicts of other commits."""


MAX_LEFT_OUT = 100_000
"""So many hosts that are left out are kept for each crawl."""
MAX_READY = 100
"""Hosts that are ready are not counted further."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is left to do. `ready`: hosts with a URL that is due now, whether the host rests or not,
    counted up to MAX_READY; `soonest`: when the next of them may be asked or the next retry is due;
    `next_visit`: earliest revisit; `leased_elsewhere`: servers with work here that other workers
    hold; `spent`: the total quota is used up.
    """

    ready: int = 0
    soonest: datetime | None = None
    next_visit: datetime | None = None
    leased_elsewhere: int = 0
    spent: bool = False


@dataclass(frozen=True, slots=True)
class StoredUrl:
    """One URL as `get_urls` shows it: the fields are the columns of the query `look`, in that
    order.
    """

    id: int
    url: str
    host: str
    state: State
    lane: Lane | None
    rank: float | None
    depth: int
    score: float
    parent: int | None
    visit: int
    tries: int
    changes: int
    status: int
    why: str
    first_seen: datetime
    last_visit: datetime | None
    last_change: datetime | None
    next_visit: datetime | None
    interval_s: float | None
    moved_to: str | None
    found: Found | None
    source: bool
    published: datetime | None
    last_read: datetime | None


class Judge(Protocol):
    """Says of which pages others are copies: duplicates.postgres.DuplicateJudge."""

    lock_s: float
    """How long `settle` has waited for other commits, in all."""

    def look_up(self, queries: Any, outcomes: Sequence[Outcome]) -> Any:
        """Compare pages with all others before a commit; what it returns is for `settle`."""

    def preview(self, queries: Any, outcomes: Sequence[Outcome]) -> dict[int, Verdict]:
        """What the verdicts on pages will most likely be; nothing is written."""

    def settle(
        self, tx: Any, read: Sequence[Outcome], hosts: Mapping[int, int], looked_up: Any
    ) -> dict[int, Verdict]:
        """Judge pages that were just stored, and store the verdicts; the last thing in a commit.
        `hosts`: the number of each page's host.
        """


class Frontier(Protocol):
    """See the module's docstring for the rules. All methods block; call them from one thread."""

    spec: CrawlSpec

    def now(self) -> datetime:
        """The one clock that leases and due times are judged by."""

    def open(self) -> None:
        """Create the crawl unless it exists. A changed order ranks new URLs anew, a changed depth
        limit judges them anew.
        """

    def apply_rules(self, rules: CrawlRules, wanted: Callable[[str], bool]) -> Rejudged:
        """Let a scope or revisit interval take effect on known URLs that is not the stored one;
        then it is the stored one.

        Queued URLs that links have led to, plain ones and deeper than the seeds, are ignored if
        they are not `wanted` (`why` is "scope"); such as are, are back where they were. Links of
        stored pages that were outside are added if the scope may have grown, and the first links to
        hosts of `open_domains` that were too many before. Intervals of pages, in
        the scope or not, follow the changed first interval. Where nothing is stored, only queued
        URLs are judged.
        """

    def add(self, urls: Sequence[NewUrl]) -> Committed:
        """The same as commits of nothing but URLs; many are cut into several."""

    def commit(self, batch: Batch, worker: str = "") -> Committed:
        """Write all of it or nothing. Outcomes whose visit or epoch is no longer current, or whose
        server `worker` does not hold, are ignored and counted as late; clocks of a server that
        `worker` does not hold can only make a pause longer.
        """

    def preview_verdicts(self, outcomes: Sequence[Outcome]) -> dict[int, tuple[str, Verdict]]:
        """Those of the pages that will most likely be judged as copies, each with the URL of its
        original; nothing is written. Those without content are what they are.
        """

    def try_to_write(self) -> None:
        """Write a harmless URL with its page and its robots.txt, and take all of it back: raises
        what any commit would raise now.
        """

    def take_unresolved(self, limit: int) -> list[str]:
        """Hosts with queued URLs whose address is not known; each is given to one worker for a
        minute.
        """

    def take_outdated(self, limit: int) -> list[str]:
        """The same for hosts that come next, whose address was resolved too long ago (a day; five
        minutes after failures) and whose server nobody holds.
        """

    def put_addresses(self, addresses: Mapping[str, str]) -> None:
        """Store addresses by host. Hosts with the same address are on one server; a name that can't
        be resolved gets a server of its own.
        """

    def lease(
        self,
        worker: str,
        servers: int,
        ranked: int | None = None,
        unprepared: int | None = None,
        unseen: int = 0,
    ) -> list[Lease]:
        """Lease up to so many free servers that have due URLs of this crawl on hosts that may be
        asked soon: `ranked` of them by best rank (default: the proportion of the shares), the
        others by earliest time, what one class leaves to the other; of them at most `unprepared`
        (default: all) for hosts that are not prepared yet. A server whose worker died is taken
        over: each of its hosts counts as asked `unseen` times more than is stored.
        """

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        """The leases that this worker holds, with those of their hosts that have work, may be asked
        soon and are not `known`: hosts that are new, or whose time has come, since the server was
        leased. Leases without such hosts are left out.
        """

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        """Leases of the servers of these hosts, each with these hosts only, whether there is work
        for us or not, as far as they are free or this worker's already and may be asked soon. Also
        the names whose address is not known yet.
        """

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        """New ends of the leases that this worker still holds; a missing server is lost."""

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        """Those of the servers that other crawls have due URLs on."""

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        """Give servers back. Only what this worker holds is touched. `yielding`: other crawls come
        first for a moment. The turn of their hosts is over: hosts that have waited for longer come
        first, the slow and the failing ones later.
        """

    def has_free_servers(self) -> bool:
        """Whether there are free servers with due URLs of this crawl."""

    def heartbeat(
        self, worker: str, wanting: bool, rules: Mapping[str, float] | None = None
    ) -> list[Peer]:
        """Note that this worker lives, for as long as a lease lasts, and its rules of politeness,
        and return the others.
        """

    def remove_worker(self, worker: str) -> None:
        """Note that this worker has ended."""

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        """End the leases of workers that are dead for sure, and return how many servers they held.
        The servers rest for `rest`, or until the lease would have ended if that is sooner.
        """

    def due_tickets(self, wants: Sequence[Want], held: int | None = None) -> list[Ticket]:
        """Due URLs of leased hosts in the order of their lanes. Of pages that were never read (new,
        backfill, and retries of such) no more than the quotas leave beside what is held: of the
        host by its want, in all by `held`, the number of tickets that the worker holds in all its
        hosts (default: the sum of the wants). A quota that is used up closes the lanes of new URLs,
        but retries still go out.
        """

    def get_robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        """What is stored of these origins' robots.txt, expired or not."""

    def get_host_texts(self, hosts: Sequence[str]) -> dict[str, HostText]:
        """What is stored of the texts of these hosts."""

    def rejudge_forbidden(self, origin: str, allows: Callable[[str], bool]) -> int:
        """Judge URLs again after the robots.txt of an origin has changed: those that it forbade
        (`why` starts with "robots") and that are allowed now are new again, in all crawls, unless
        they are too deep. The result is how many of this crawl. Other crawls enforce their quotas
        themselves.
        """

    def set_aside(self, id_: int, visit: int, *, status: int, why: str) -> bool:
        """Give up a URL that nobody can end: the worker that had it died of it. False: that visit
        has ended meanwhile, or the URL is gone.
        """

    def outlook(self, worker: str = "") -> Outlook:
        """What is left to do, for a worker that holds no more tickets."""

    def unresolved_hosts(self, until: datetime) -> dict[str, datetime]:
        """Hosts without an address, and when their names were looked up, up to 1,000; none if any
        other host has a URL now, or a retry until then.
        """

    def get_urls(self, ids: Sequence[int]) -> dict[int, StoredUrl]:
        """The URLs that are known, by id."""

    def seed_urls(self) -> list[str]:
        """URLs at depth 0, oldest first: seeds, pushes, and where these redirect to; 10,000 at
        most.
        """

    def count_urls(self) -> dict[str, int]:
        """URLs per state, and `known` in all."""

    def find_left_out(self, name: str) -> LeftOutHost | None:
        """What is known of a host that was left out."""

    def count_left_out(self) -> int:
        """How many hosts were left out; no more than MAX_LEFT_OUT are kept, or a few more."""

    def close(self) -> None: ...


def merge_urls(first: NewUrl, second: NewUrl) -> NewUrl:
    """One URL that was added twice in a batch, as if one had come after the other."""
    nearer = second if second.depth < first.depth else first
    lane = first.lane
    if second.lane is Lane.URGENT or first.lane is Lane.BACKFILL:
        lane = second.lane
    found = nearer.found
    if Found.SEED in (first.found, second.found):
        found = Found.SEED
    again = first.again
    if again is None or (second.again is not None and second.again < again):
        again = second.again
    return replace(
        first,
        depth=nearer.depth,
        parent=nearer.parent,
        score=max(first.score, second.score),
        lane=lane,
        found=found,
        again=again,
        heir_of=first.heir_of if first.heir_of is not None else second.heir_of,
        published=first.published or second.published,
        claim=first.claim if second.claim is not None else None,
    )


def lane_of(outcome: Outcome) -> Lane | None:
    """The lane that a URL waits in after a visit. A page without a next visit is kept, but not
    queued. A forbidden URL with one is tried again then, since that is how we learn that robots.txt
    has changed where it forbids everything; so is a URL that has moved for a while only.
    """
    lane = LANE_OF.get(outcome.state)
    if outcome.state in (State.FORBIDDEN, State.MOVED):
        lane = Lane.REVISIT
    if lane in TIMED_LANES and outcome.next_visit is None:
        return None
    return lane


FINDING_STEP = timedelta(microseconds=10)
"""URLs of one commit are first seen so long after each other, in the order in which they came."""
FINDING_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
FINDING_STEPS = 2**45
"""So many steps are told apart: eleven years, and exact in a float with any depth below 256."""


def compute_rank(order: str, depth: int, score: float, first_seen: datetime) -> float:
    """The rank of a URL in a ranked lane, lowest first: the same as `url_rank` in SQL."""
    if order == "bfs":
        steps = (first_seen - FINDING_EPOCH) // FINDING_STEP
        return depth + min(max(steps, 0), FINDING_STEPS - 1) / FINDING_STEPS
    if order == "dfs":
        return float(-depth)
    return -score


PUSH_RANK = 0.0


def start_rank(at: datetime) -> float:
    """The rank of a start request that is asked again, in the urgent lane: in the order of starts,
    and behind all that was pushed.
    """
    return compute_rank("bfs", 1, 0.0, at)
