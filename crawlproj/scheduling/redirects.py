"""Where a redirect leads, and whether it is followed.

The frontier follows redirects a step at a time: each hop is a URL of its own, with its own host's
pauses and robots.txt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from crawlproj.fetch.requests import redirected_request
from crawlproj.fetch.stored_values import load_value
from crawlproj.frontier.base import Found, Lane, NewUrl, Outcome, Ticket
from crawlproj.frontier.seen import SeenUrls
from crawlproj.scheduling.spider import LearnsSeeds, chooses_links
from crawlproj.urls.canonical import canonical_url, url_key

CIRCLE_S = 60.0
"""A URL is made urgent by redirects at most once in this time: they may go in circles."""
PERMANENT_REDIRECTS = frozenset({301, 308})
"""A page that has moved for good takes along what was learned of it."""
MAX_URGED = 10_000
"""So many URLs that were made urgent are remembered."""


class RedirectFollower:
    """Makes a new URL of a redirect that is followed. `is_onsite` is Scrapy's offsite rule, for
    spiders that have domains and no `wants`. `again`: the target of a start request is asked again
    unless it was visited within this time.
    """

    def __init__(
        self,
        crawl: str,
        spider: object,
        seen_urls: SeenUrls,
        *,
        is_onsite: Callable[[str], bool],
        again: timedelta,
    ) -> None:
        self._crawl = crawl
        self._spider = spider
        self._seen_urls = seen_urls
        self._is_onsite = is_onsite
        self._again = again
        self._urged: dict[int, float] = {}

    def follow(self, outcome: Outcome, ticket: Ticket) -> list[NewUrl]:
        """Return the URL that a redirect leads to, if it is followed. The target of a seed is a
        seed, so that a site that has moved is still crawled.
        """
        target = outcome.moved_to
        if target is None:
            return []
        seed = ticket.request is None and ticket.depth == 0
        if seed and isinstance(self._spider, LearnsSeeds):
            self._spider.learn_seeds([target])
        if not self._is_followed(target, outcome.status, ticket):
            return []
        return [self._make_urgent(self._new_url(target, outcome.status, ticket), ticket)]

    def _new_url(self, target: str, status: int, ticket: Ticket) -> NewUrl:
        hops = ticket.hops + 1
        if ticket.request is None:
            found = Found.REDIRECT
            if self._is_named_feed(target, ticket):
                found = Found.NAMED_FEED
            url = self._seen_urls.new_url(target, ticket.depth, ticket.id, found=found, hops=hops)
            if status in PERMANENT_REDIRECTS and ticket.block_digest is not None:
                return replace(url, heir_of=ticket.id)
            return url
        address = canonical_url(target) or target
        url = self._seen_urls.new_url(
            address, ticket.depth, ticket.id, found=Found.REDIRECT, hops=hops
        )
        name = f"redirect:{ticket.id}:{target}"
        request = json.dumps(redirected_request(ticket.request, target, status))
        return replace(url, id=url_key(self._crawl, name), request=request)

    def _make_urgent(self, url: NewUrl, ticket: Ticket) -> NewUrl:
        """Let the target of an urgent URL be urgent too: who pushed a URL wants what it leads to,
        also if that is known. That of a start request is asked again as that was: a seed that has
        moved must still lead to what is new.
        """
        if not ticket.pushed and (ticket.lane is Lane.URGENT or ticket.depth == 0):
            return replace(url, again=self._again)
        now = time.monotonic()
        if not ticket.pushed or now - self._urged.get(url.id, -CIRCLE_S) < CIRCLE_S:
            return url
        if len(self._urged) >= MAX_URGED:
            self._urged.clear()
        self._urged[url.id] = now
        return replace(url, lane=Lane.URGENT)

    def _is_named_feed(self, target: str, ticket: Ticket) -> bool:
        """Is it where a feed has moved to that is outside of the scope, as that was?"""
        return ticket.found is Found.NAMED_FEED and self._seen_urls.is_outside(target)

    def _is_followed(self, target: str, status: int, ticket: Ticket) -> bool:
        """Is it followed? Of a URL, if the spider wants its target. Of an ordinary request as
        Scrapy would: not if the spider takes the redirect itself, and not off its domains, unless
        it was a start or not to be filtered.
        """
        request = ticket.request
        if request is None and chooses_links(self._spider):
            return self._seen_urls.wants(target) or self._is_named_feed(target, ticket)
        if request is None:
            meta: dict[str, Any] = {}
            unfiltered = ticket.depth == 0
        else:
            meta = request["meta"]
            unfiltered = request["dont_filter"]
        own = getattr(self._spider, "handle_httpstatus_list", ())
        taken = load_value(meta.get("handle_httpstatus_list", own), project="")
        if meta.get("dont_redirect") or meta.get("handle_httpstatus_all") or status in taken:
            return False
        return unfiltered or self._is_onsite(target)
