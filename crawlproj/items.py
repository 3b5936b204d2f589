"""What travels through the pipelines."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from itemadapter import ItemAdapter

from crawlproj.archive.write_queue import Receipt
from crawlproj.content.document import Document
from crawlproj.content.robots_directives import NO_DIRECTIVES, RobotsDirectives
from crawlproj.frontier.base import ArticleSource, Content, DuplicateMarks, PageText, Ticket

if TYPE_CHECKING:
    from crawlproj.fetch.wire import WireCapture


@dataclass(frozen=True, slots=True)
class RobotsTicket:
    """The right to fetch the robots.txt of an origin before anything else of it.

    `waiting_ticket` is the URL that waits for it; its host is not `host` if the file has moved to
    another one.
    """

    url: str
    host: str
    server: int
    epoch: int
    waiting_ticket: Ticket
    hops: int = 0
    etag: str | None = None
    modified: str | None = None

    @property
    def has_moved(self) -> bool:
        """Has the file moved to another host?"""
        return self.host != self.waiting_ticket.host

    def with_lease(self, host: str, server: int, epoch: int) -> RobotsTicket:
        return replace(self, host=host, server=server, epoch=epoch)


@dataclass(frozen=True, slots=True)
class ChangeVerdict:
    """How a page that was read differs from its last visit, by scheduling/change_watch.py.

    `new_links`: of a page that leads to others, how many; None: nobody has counted. `state`: what
    the next visit is compared with; None keeps what is stored. `set_aside`: what came is not what
    the page says ("wall", "soft 404"), and what is stored of it stays.
    """

    changed: bool
    kind: str = ""
    new_letters: int = 0
    gone_letters: int = 0
    state: bytes | None = field(default=None, repr=False)
    new_links: int | None = None
    set_aside: str = ""
    new_hashes: frozenset[int] = field(default=frozenset(), repr=False)
    """Of `new_links`, by content/link_state.py."""
    new_articles: int | None = None
    """How many of the new links of an HTML page look like articles."""


@dataclass(slots=True, eq=False)
class Page:
    """What came of handing out one ticket: exactly one Page per ticket.

    `status` 0: no response, and `reason` says why. `started_s` and `ended_s`: when the request left
    and its response was there, in unix seconds on the frontier's clock; None if nothing was sent.
    The fields up to `error` are facts of the exchange; pipelines fill in the rest.
    """

    ticket: Ticket | RobotsTicket
    url: str
    status: int
    at: datetime
    reason: str = ""
    started_s: float | None = None
    ended_s: float | None = None
    content_type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    address: str = ""
    kind: str = ""
    body_digest: bytes = b""
    document: Document | None = field(default=None, repr=False)
    answered: int | None = None
    """The status that came, also if a middleware failed with it and `status` is 0; None: nothing
    was asked.
    """
    retry_after_s: float | None = None
    """What that response asked for."""
    took_s: float | None = None
    """How long the server took by the system's own measure, if that is less than we noticed."""
    error: str = ""
    marked: bool = False
    """Text and marks are made, if they are new."""
    page_kind: str = ""
    """Of an HTML page: article, listing or other."""
    text: PageText | None = field(default=None, repr=False)
    """What it says, if that is new."""
    article: ArticleSource | None = field(default=None, repr=False)
    """What its article is taken from, if it is one, has a new text, and articles are wanted."""
    marks: DuplicateMarks | None = field(default=None, repr=False)
    """What it is compared with other pages by, if that is new."""
    content: Content | None = field(default=None, repr=False)
    verdict: ChangeVerdict | None = field(default=None, repr=False)
    """How it differs from its last visit, once that was asked."""
    changed: bool = False
    fresh_links: int = 0
    """How many links it had that were new to this worker."""
    fresh_articles: int = 0
    """How many of them look like articles, if it is a known page that is or may be a hub."""
    unread: bool = False
    """It is a document that could not be read this time; another time it may."""
    lacked_room: bool = False
    """It was not read only because too much waited to be read: it comes again soon."""
    ended: bool = False
    directives: RobotsDirectives = NO_DIRECTIVES
    """What headers and meta elements say; of a page that was not read again, the headers only."""
    wire: WireCapture | None = field(default=None, repr=False)
    """What went over the wire, until it is archived."""
    receipt: Receipt | None = field(default=None, repr=False)

    @property
    def noindex(self) -> bool:
        """Is it no original and no copy? It says so, or its unavailable_after has passed."""
        expires = self.directives.expires
        return self.directives.noindex or (expires is not None and expires <= self.at)

    @property
    def elapsed_s(self) -> float:
        """How long the exchange took; 0 if nothing was sent."""
        if self.started_s is None or self.ended_s is None:
            return 0.0
        return self.ended_s - self.started_s


@dataclass
class Article:
    """An article, as it passes the pipelines and comes out of feeds; None or empty where its page
    does not say. Dates are ISO 8601.

    `url` is the canonical one of its addresses, `addresses` are the others that it is known by so
    far. `version` is 1, or higher if it was read before with another text.
    """

    url: str
    title: str | None
    text: str
    date: str | None = None
    modified: str | None = None
    authors: list[str] = field(default_factory=list)
    language: str | None = None
    section: str | None = None
    keywords: list[str] = field(default_factory=list)
    place: str | None = None
    image: str | None = None
    canonical: str | None = None
    site: str = ""
    labels: list[str] = field(default_factory=list)
    version: int = 1
    addresses: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """What is known of the page that an item comes from: it is a copy of another one."""

    duplicate_of: str
    """The URL of the page that had the content first."""
    duplicate_kind: str
    """exact, text, near or paragraph."""
    similarity: float


MAX_VERDICTS = 2_000
_verdicts: OrderedDict[int, tuple[object, ItemVerdict]] = OrderedDict()
"""Items of copies that were handed to the pipelines last, by their identity."""


def note_verdict(item: object, verdict: ItemVerdict) -> None:
    """Let pipelines know that an item comes from a copy: where the item has fields of these names
    they are filled in, and `verdict_of` tells it of any item.
    """
    _verdicts[id(item)] = (item, verdict)
    if len(_verdicts) > MAX_VERDICTS:
        _verdicts.popitem(last=False)
    adapter = ItemAdapter(item)
    for name in ("duplicate_of", "duplicate_kind", "similarity"):
        if name in adapter.field_names():
            adapter[name] = getattr(verdict, name)


def verdict_of(item: object) -> ItemVerdict | None:
    """What is known of the page of an item that is passing the pipelines; None: it is no copy."""
    noted = _verdicts.get(id(item))
    if noted is None or noted[0] is not item:
        return None
    return noted[1]
