"""Has a page changed? What the pure judges say of it (content/changes.py, content/link_state.py),
with what is known of the page and of its host.

Lives on the event loop. What is known of a page comes with its ticket and goes with the end of its
visit; what is known of a host comes when it is leased, and is kept here.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from crawlproj.content.changes import Change, ChangeKind, ChangeRules, judge_change
from crawlproj.content.document import Document
from crawlproj.content.host_noise import HostNoise, unpack_noise
from crawlproj.content.link_state import (
    count_new_links,
    hash_links,
    is_link_state,
    pack_links,
)
from crawlproj.content.page_state import count_wall, unpack_state
from crawlproj.content.probe import (
    NO_PROBE,
    Probe,
    make_probe,
    month_of,
    probe_path,
    read_probe,
)
from crawlproj.frontier.base import Found, HostText, NewUrl, Ticket
from crawlproj.frontier.seen import FOLLOWED
from crawlproj.items import ChangeVerdict, Page
from crawlproj.scheduling.sources import SOURCE_KINDS, is_source
from crawlproj.urls.canonical import host_of, origin_of, url_key
from crawlproj.urls.domains import registered_domain

WALL_MARK: Final = b"W"
MAX_WALLS: Final = 3
"""What looks like a wall so many times in a row is what the page says now."""
MIN_LINKS: Final = 5
"""A listing that had at least so many links and has none is a wall."""
MIN_GONE: Final = 500
"""A page that loses at least so many letters, and most of what it had, may be gone."""
MAX_HOSTS: Final = 5_000
WRITE_GAP_S: Final = 30.0
"""How often what is known of a host is written."""
SET_ASIDE: Final = {
    "wall": "pages/wall",
    "soft 404": "pages/soft_gone",
    "probe": "pages/probe",
}
"""Why a page is set aside, and how that is counted."""


@dataclass(slots=True)
class KnownHost:
    """What is known of the texts of one host."""

    noise: HostNoise
    probe: Probe = NO_PROBE
    is_new: bool = False
    """Something was learned that is not stored yet."""
    written_at: float = 0.0


class ChangeWatch:
    """`add_urls` hands a URL to the frontier: the path that nobody has, when an answer to it is
    wanted; `put_texts` what is known of hosts.
    """

    def __init__(
        self,
        crawl: str,
        rules: ChangeRules,
        *,
        add_urls: Callable[[list[NewUrl]], None],
        put_texts: Callable[[Mapping[str, HostText]], None],
        count: Callable[[str, int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._crawl = crawl
        self._rules = rules
        self._add_urls = add_urls
        self._put_texts = put_texts
        self._count = count
        self._clock = clock
        self._hosts: OrderedDict[str, KnownHost] = OrderedDict()

    # What is known of hosts.

    def note_texts(self, texts: Mapping[str, HostText]) -> None:
        """Take in what is stored of hosts that were just leased."""
        for name, text in texts.items():
            known = KnownHost(unpack_noise(text.noise), read_probe(text.probe))
            known.written_at = self._clock()
            self._remember(name, known)

    def write_texts(self) -> None:
        """Hand over all that was learned and is not stored yet; when the crawl ends."""
        self._put_texts(
            {name: self._text_of(known) for name, known in self._hosts.items() if known.is_new}
        )

    def _host(self, name: str) -> KnownHost:
        known = self._hosts.get(name)
        if known is None:
            known = KnownHost(HostNoise(), written_at=self._clock())
            self._remember(name, known)
        return known

    def _remember(self, name: str, known: KnownHost) -> None:
        self._hosts[name] = known
        self._hosts.move_to_end(name)
        while len(self._hosts) > MAX_HOSTS:
            oldest, dropped = self._hosts.popitem(last=False)
            if dropped.is_new:
                self._put_texts({oldest: self._text_of(dropped)})

    def _text_of(self, known: KnownHost) -> HostText:
        known.is_new = False
        known.written_at = self._clock()
        return HostText(known.noise.pack() or None, known.probe.packed or None)

    def _learn(self, name: str, known: KnownHost) -> None:
        known.is_new = True
        if self._clock() - known.written_at > WRITE_GAP_S:
            self._put_texts({name: self._text_of(known)})

    # Pages.

    def judge(self, page: Page) -> ChangeVerdict:
        """Say once of a page that was read how it differs from its last visit."""
        if page.verdict is None:
            page.verdict = self._judge(page)
            if page.verdict.set_aside:
                self._count(SET_ASIDE[page.verdict.set_aside], 1)
        return page.verdict

    def _judge(self, page: Page) -> ChangeVerdict:
        ticket = page.ticket
        document = page.document
        assert isinstance(ticket, Ticket)
        if ticket.found is Found.PROBE:
            return ChangeVerdict(False, set_aside="probe")
        if document is None:
            changed = ticket.block_digest is not None and page.body_digest != ticket.body_digest
            return ChangeVerdict(changed)
        if page.kind in SOURCE_KINDS or page.page_kind == "listing":
            return self._judge_links(page, ticket, document)
        if page.kind != "html":
            return ChangeVerdict(_differs(document, ticket))
        if is_source(page):
            return self._judge_links(page, ticket, document)
        return self._judge_text(page, ticket, document)

    def _judge_links(self, page: Page, ticket: Ticket, document: Document) -> ChangeVerdict:
        """A page that leads to others has changed if it leads to new ones."""
        hashes = hash_links(_own_links(page, document))
        before, walls = _without_walls(ticket.page_state)
        if ticket.block_digest is None:
            before = None
        if before is not None and not hashes and len(before) > 4 * MIN_LINKS:
            if walls + 1 < MAX_WALLS:
                return _wall(WALL_MARK + bytes([walls + 1]) + before)
            before = None
        new = count_new_links(hashes, before)
        state = pack_links(hashes, before)
        if new is None:
            return ChangeVerdict(_differs(document, ticket), state=state)
        kind = ""
        if new:
            kind = ChangeKind.NEW_LINKS.value
        return ChangeVerdict(bool(new), kind, state=state, new_links=new)

    def _judge_text(self, page: Page, ticket: Ticket, document: Document) -> ChangeVerdict:
        known = self._host(ticket.host)
        is_new = ticket.block_digest is None
        if known.probe.is_answer(document) and (is_new or _differs(document, ticket)):
            return ChangeVerdict(False, ChangeKind.SOFT_404.value, set_aside="soft 404")
        if not is_new and not _differs(document, ticket):
            return ChangeVerdict(False)
        before = ticket.page_state
        if is_new or is_link_state(before):
            before = None
        judged = judge_change(
            document.blocks,
            before,
            ticket.url,
            host=known.noise,
            rules=self._rules,
            visit=ticket.visit,
        )
        change = judged.change
        is_wall = change.kind is ChangeKind.WALL
        if before is not None and (is_wall or _is_other_page(change, document)):
            month = month_of(page.at)
            is_asked = known.probe.is_known(month) or ticket.request is not None
            if not is_asked:
                self._ask_probe(ticket, month)
            if is_wall:
                return _wall(judged.state)
            stored = unpack_state(before)
            if not is_asked and stored is not None and not stored.walls:
                # Until it is known how the host answers for pages that are gone.
                return _wall(count_wall(before))
        if judged.noise.paths:
            known.noise = known.noise.merge(judged.noise)
            self._learn(ticket.host, known)
        if judged.first:
            return ChangeVerdict(_differs(document, ticket), state=judged.state)
        return ChangeVerdict(
            change.changed,
            change.kind.value,
            new_letters=change.new_letters,
            gone_letters=change.gone_letters,
            state=judged.state,
        )

    # Pages that are gone without saying so.

    def _ask_probe(self, ticket: Ticket, month: int) -> None:
        """Let the host be asked for a path that nobody has, once in a month: the URL is the same
        for all who ask.
        """
        url = origin_of(ticket.url) + probe_path(ticket.host, month)
        probe = NewUrl(
            url_key(self._crawl, url),
            url,
            ticket.host,
            depth=ticket.depth,
            parent=ticket.id,
            found=Found.PROBE,
        )
        self._add_urls([probe])

    def take_probe(self, page: Page) -> None:
        """Keep the answer to a path that nobody has. What is no page says clearly that there is
        none.
        """
        document = None
        if 200 <= page.status < 300:
            document = page.document
        name = page.ticket.host
        known = self._host(name)
        known.probe = make_probe(document, month_of(page.at))
        self._put_texts({name: self._text_of(known)})


def _differs(document: Document, ticket: Ticket) -> bool:
    return ticket.block_digest is not None and document.block_digest != ticket.block_digest


def _own_links(page: Page, document: Document) -> list[str]:
    """The links that a page may lead to new pages by; on other sites only those of feeds and
    sitemaps.
    """
    links = [link.url for link in document.links if link.kind in FOLLOWED]
    if page.kind in SOURCE_KINDS:
        return links
    site = registered_domain(host_of(page.url))
    is_own: dict[str, bool] = {}
    own = []
    for url in links:
        host = host_of(url)
        if host not in is_own:
            is_own[host] = registered_domain(host) == site
        if is_own[host]:
            own.append(url)
    return own


def _is_other_page(change: Change, document: Document) -> bool:
    """Has most of the text gone? Then it is another page, or one that says that there is none."""
    if not change.changed or change.gone_letters < MIN_GONE:
        return False
    common = max(document.letter_count - change.new_letters, 0)
    return change.gone_letters > 2 * common


def _without_walls(state: bytes | None) -> tuple[bytes | None, int]:
    """The state of the last good visit to a page of links, and how many walls came since."""
    if state is None or state[:1] != WALL_MARK or len(state) < 2:
        return state, 0
    return state[2:], state[1]


def _wall(state: bytes) -> ChangeVerdict:
    """What came is no page, but something before it: what is stored stays."""
    return ChangeVerdict(False, ChangeKind.WALL.value, state=state, set_aside="wall")
