"""Has a page changed? What the pure judges say of it (content/changes.py, content/link_state.py),
with what is known of the page and of its host.

Lives on the event loop, but for `compare`. What is known of a page comes with its ticket and goes
with the end of its visit; what is known of a host comes when it is leased, and is kept here.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from crawlproj.content.changes import MAX_WALLS as MAX_TEXT_WALLS
from crawlproj.content.changes import Change, ChangeKind, ChangeRules, judge_change
from crawlproj.content.document import Document
from crawlproj.content.host_noise import NO_NOISE, HostNoise, unpack_noise
from crawlproj.content.link_state import (
    count_new_links,
    find_new_links,
    hash_link,
    hash_links,
    is_link_state,
    pack_links,
)
from crawlproj.content.page_state import clear_walls, count_wall, unpack_state
from crawlproj.content.probe import (
    NO_PROBE,
    Probe,
    make_probe,
    month_of,
    probe_path,
    read_probe,
)
from crawlproj.fetch.pages import document_of
from crawlproj.frontier.base import Found, HostText, NewUrl, State, Ticket
from crawlproj.frontier.seen import FOLLOWED
from crawlproj.items import ChangeVerdict, Page
from crawlproj.scheduling.link_places import count_articles
from crawlproj.scheduling.sources import SOURCE_KINDS, is_host_root, is_seed, was_hub
from crawlproj.urls.canonical import host_of, origin_of, url_key
from crawlproj.urls.domains import registered_domain

WALL_MARK: Final = b"W"
MAX_WALLS: Final = 3
"""What looks like a wall so many times in a row is what the page says now."""
MIN_LINKS: Final = 5
"""A listing that had at least so many links and has none is a wall."""
MIN_GONE: Final = 500
"""A page that loses at least so many letters, and most of what it had, may be gone."""
MAX_SAME: Final = 200_000
"""Bytes; a longer page with the same bytes is not parsed again: it is no short answer."""
MAX_HOSTS: Final = 2_000
WRITE_GAP_S: Final = 30.0
"""How often what is known of a host is written."""
SET_ASIDE: Final = {
    "wall": "pages/wall",
    "soft 404": "pages/soft_gone",
}
"""Why a page is set aside, and how that is counted. What nobody has is no page: every answer to it
is counted, whatever its status.
"""


@dataclass(slots=True)
class KnownHost:
    """What is known of the texts of one host."""

    noise: HostNoise
    probe: Probe = NO_PROBE
    is_new: bool = False
    """Something was learned that is not stored yet."""
    written_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison of a page came to: the verdict, what it says of the host, and the month for
    which its host is to be asked for a path that nobody has; 0: it is not.
    """

    verdict: ChangeVerdict
    noise: HostNoise = NO_NOISE
    probe_month: int = 0


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
        verdict: Callable[[str], str] = lambda url: "",
    ) -> None:
        """`verdict`: what the rules of its site say of a URL."""
        self._verdict = verdict
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
            own = self._hosts.get(name)
            if own is not None:
                known.probe = max(own.probe, known.probe, key=attrgetter("month", "has_pages"))
            if own is not None and own.is_new:
                # What was learned here in the last lease is not stored yet.
                own.probe = known.probe
                known = own
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
        self._hosts.move_to_end(name)
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
            return self.take_comparison(page, self.compare(page))
        return page.verdict

    def take_comparison(self, page: Page, comparison: Comparison) -> ChangeVerdict:
        """Keep what a comparison came to; the first one counts."""
        ticket = page.ticket
        if page.verdict is not None or not isinstance(ticket, Ticket):
            return comparison.verdict
        verdict = comparison.verdict
        page.verdict = verdict
        if verdict.set_aside in SET_ASIDE:
            self._count(SET_ASIDE[verdict.set_aside], 1)
        if verdict.kind and verdict.kind != ChangeKind.NONE:
            self._count(f"changes/{verdict.kind.replace(' ', '_')}", 1)
        if not verdict.set_aside and page.kind == "html":
            self.note_page(ticket.host, page.document)
        if comparison.probe_month:
            self._ask_probe(ticket, comparison.probe_month)
        if comparison.noise.paths:
            known = self._host(ticket.host)
            known.noise = known.noise.merge(comparison.noise)
            self._learn(ticket.host, known)
        return verdict

    def note_page(self, host: str, document: Document | None = None) -> None:
        """The host has shown a page, perhaps the same as at the last visit. Its answer to a path
        that nobody has is none, even if it was taken for one.
        """
        known = self._hosts.get(host)
        if known is None or known.probe.has_pages or not known.probe.blocks:
            return
        if document is None or not known.probe.is_answer(document):
            known.probe = known.probe.with_pages()
            self._put_texts({host: self._text_of(known)})

    def judge_same(self, page: Page) -> ChangeVerdict | None:
        """The verdict on a page whose bytes are those of the last visit, if it is one that nobody
        has: it was taken for a page when that was not known. None: it is as it was.
        """
        ticket = page.ticket
        assert isinstance(ticket, Ticket)
        known = self._hosts.get(ticket.host)
        if page.kind != "html" or known is None or not known.probe.blocks:
            self.note_page(ticket.host)
            return None
        if len(page.body) > MAX_SAME:
            return None
        document = document_of(page, page.body, ())
        if document is not None and _was_never_there(page, document, known.probe):
            return self.take_comparison(page, _soft_gone())
        self.note_page(ticket.host, document)
        return None

    def compare(self, page: Page) -> Comparison:
        """Compare a page with its last visits. Changes nothing: very long pages are compared in
        another thread.
        """
        ticket = page.ticket
        document = page.document
        assert isinstance(ticket, Ticket)
        if ticket.found is Found.PROBE:
            return Comparison(ChangeVerdict(False, set_aside="probe"))
        if document is None:
            changed = ticket.block_digest is not None and page.body_digest != ticket.body_digest
            return Comparison(ChangeVerdict(changed))
        if page.kind in SOURCE_KINDS or (page.kind == "html" and _is_hub(page, ticket)):
            return Comparison(self._judge_links(page, ticket, document))
        if page.kind != "html":
            return Comparison(ChangeVerdict(_differs(document, ticket)))
        return self._judge_text(page, ticket, document)

    def _judge_links(self, page: Page, ticket: Ticket, document: Document) -> ChangeVerdict:
        """A page that leads to others has changed if it leads to new ones."""
        links = _own_links(page, document)
        hashes = hash_links(links)
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
        verdict = ChangeVerdict(bool(new), kind, state=state, new_links=new)
        if not new:
            return replace(verdict, new_articles=0)
        new_hashes = find_new_links(hashes, before)
        if page.kind != "html":
            return replace(verdict, new_hashes=new_hashes)
        fresh = [url for url in links if hash_link(url) in new_hashes]
        articles = count_articles(fresh, links, self._verdict)
        return replace(verdict, new_hashes=new_hashes, new_articles=articles)

    def _judge_text(self, page: Page, ticket: Ticket, document: Document) -> Comparison:
        known = self._hosts.get(ticket.host) or KnownHost(NO_NOISE)
        is_new = ticket.block_digest is None
        may_be_gone = not is_seed(ticket) and (is_new or _differs(document, ticket))
        before = ticket.page_state
        if is_new or is_link_state(before):
            before = None
        if may_be_gone and known.probe.is_answer(document):
            stored = unpack_state(before)
            may_be_wall = not (known.probe.has_pages or ticket.state is State.GONE)
            if may_be_wall and before is not None and stored and stored.walls < MAX_TEXT_WALLS:
                return Comparison(_wall(count_wall(before)))
            # Wall or not: what a path that nobody has says too never becomes the page's text.
            return _soft_gone()
        if _was_never_there(page, document, known.probe):
            return _soft_gone()
        if before is not None and not _differs(document, ticket):
            return Comparison(ChangeVerdict(False, state=forget_walls(before)))
        judged = judge_change(
            document.blocks,
            before,
            ticket.url,
            host=known.noise,
            rules=self._rules,
            visit=ticket.reads,
        )
        change = judged.change
        is_wall = change.kind is ChangeKind.WALL
        probe_month = 0
        if before is not None and (is_wall or _is_other_page(change, document)):
            month = month_of(page.at)
            if not (known.probe.is_known(month) or ticket.request is not None):
                probe_month = month
            if is_wall:
                return Comparison(_wall(judged.state), probe_month=probe_month)
            stored = unpack_state(before)
            if probe_month and stored is not None and not stored.walls:
                # Until it is known how the host answers for pages that are gone.
                return Comparison(_wall(count_wall(before)), probe_month=probe_month)
        if judged.first:
            verdict = ChangeVerdict(_differs(document, ticket), state=judged.state)
            return Comparison(verdict, judged.noise, probe_month)
        verdict = ChangeVerdict(
            change.changed,
            change.kind.value,
            new_letters=change.new_letters,
            gone_letters=change.gone_letters,
            state=judged.state,
        )
        return Comparison(verdict, judged.noise, probe_month)

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
            # A URL of depth 0 would be a seed.
            depth=max(ticket.depth, 1),
            parent=ticket.id,
            found=Found.PROBE,
        )
        self._add_urls([probe])

    def take_probe(self, page: Page) -> None:
        """Keep the answer to a path that nobody has. What is no page says clearly that there is
        none.
        """
        self._count("pages/probe", 1)
        document = None
        if 200 <= page.status < 300:
            document = page.document
        name = page.ticket.host
        known = self._host(name)
        known.probe = make_probe(document, month_of(page.at))
        self._put_texts({name: self._text_of(known)})


def _soft_gone() -> Comparison:
    """The page is gone, though its server does not say so."""
    kind = ChangeKind.SOFT_404.value
    return Comparison(ChangeVerdict(False, kind, set_aside="soft 404"))


def _was_never_there(page: Page, document: Document, probe: Probe) -> bool:
    """Is a page that says what it said at the last visit, on a host that has others, the answer to
    a path that nobody has?
    """
    ticket = page.ticket
    if not isinstance(ticket, Ticket) or not probe.has_pages or is_seed(ticket):
        return False
    if _is_hub(page, ticket) or is_link_state(ticket.page_state):
        return False
    return probe.is_answer_for(document, ticket.url)


def forget_walls(state: bytes | None) -> bytes | None:
    """The state of a page that is there again just as it was, if there were walls since; None:
    there were none, so that what is stored is right.
    """
    if state is None:
        return None
    if state[:1] == WALL_MARK:
        return _without_walls(state)[0]
    return clear_walls(state)


def _is_hub(page: Page, ticket: Ticket) -> bool:
    """Is it HTML that leads to other pages? A seed that is a text is judged as such."""
    return page.page_kind == "listing" or is_host_root(ticket.url) or was_hub(ticket)


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
