"""Guard, robots.txt and clocks of the hosts that a command asks, for as long as it runs.

All crawlers of a process share the clocks: `scrapy check` runs one for each spider.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy.exceptions import CannotResolveHostError

from crawlproj.config import Config, config_of
from crawlproj.fetch.big_bodies import BigBodies
from crawlproj.fetch.pages import RefusedError
from crawlproj.fetch.resolver import Resolver, look_up
from crawlproj.frontier.clock import FrontierClock
from crawlproj.politeness.clocks import FetchTiming, HostClock, ServerClock, ServerRules
from crawlproj.politeness.guard import StaticNames
from crawlproj.politeness.networks import SharedNetworks
from crawlproj.politeness.robots import RobotsCache, row_from_response
from crawlproj.urls.canonical import canonical_url, host_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlproj.frontier.base import Ticket
    from crawlproj.items import RobotsTicket

log = logging.getLogger(__name__)

SAID_FROM_S = 1.0
"""A wait that is longer is said, so that nobody thinks that the command hangs."""


@dataclass(slots=True)
class SharedClocks:
    """The clocks of hosts and servers; a server is asked for one page at a time, whatever its host.

    Times are those of the monotonic clock.
    """

    hosts: dict[str, HostClock] = field(default_factory=dict)
    servers: dict[str, ServerClock] = field(default_factory=dict)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    asked: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """How often each host of a server was asked since the last general pause."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the last request to a server ended."""

    def next_at(self, host: str, server: str) -> float:
        times = [0.0]
        if host in self.hosts:
            times.append(self.hosts[host].next_at)
        if server in self.servers:
            times.append(self.servers[server].next_at)
        return max(times)

    def count_request(self, host: str, server: str, rules: ServerRules) -> None:
        """Count a request that is about to wait for its turn; it comes after a general pause if
        its host, or too many hosts, were asked before.
        """
        asked = self.asked[server]
        full = host not in asked and len(asked) >= rules.hosts
        if rules.pause_after and (full or asked[host] >= rules.pause_after):
            at = self.ended.get(server, 0.0) + rules.pause_s
            clock = self.servers.get(server, ServerClock())
            self.servers[server] = clock.resting_until(at, "general pause")
            asked.clear()
        asked[host] += 1


class PoliteHosts:
    """What a worker is for a crawl, without leases and without a database."""

    def __init__(self, config: Config, clocks: SharedClocks) -> None:
        self._config = config
        self._clocks = clocks
        self._resolver = Resolver(
            StaticNames(dict(config.dns_hosts)), SharedNetworks(config.shared_networks), threads=1
        )
        self._addresses: dict[str, str] = {}
        self._servers: dict[str, str] = {}
        self._sent: dict[str, float] = {}
        self._robots = RobotsCache(config.robot_name)
        self._robots_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        now = time.monotonic()
        self._clock = FrontierClock(datetime.now(UTC), now, now)
        self._big_bodies = BigBodies()
        self.last_failure: tuple[str, str] | None = None
        """URL and reason of the last request, if it came to nothing."""
        self.last_status = 0

    # What the download handler asks.

    def leased_address(self, host: str) -> str | None:
        """The address that a host was looked up to have."""
        return self._addresses.get(host)

    def note_sent(self, host: str) -> None:
        self._sent[host] = time.monotonic()

    def note_response(self, ticket: Ticket | RobotsTicket, timing: FetchTiming) -> None:
        """Never called: requests of single pages have no tickets."""

    def note_extra(self, url: str, status: int, timing: FetchTiming) -> None:
        """Set the clocks of the host and its server from what came back."""
        host = _host_in(url)
        server = self._servers[host]
        timing = replace(timing, sent=self._sent.pop(host, None))
        clock = self._clocks.hosts.get(host, HostClock())
        self._clocks.hosts[host] = clock.after_fetch(timing, self._config.rules.host)
        self._clocks.ended[server] = timing.ended

    @property
    def clock(self) -> FrontierClock:
        return self._clock

    @property
    def big_bodies(self) -> BigBodies:
        return self._big_bodies

    # Turns.

    @asynccontextmanager
    async def wait_for_turn(self, url: str) -> AsyncIterator[None]:
        """A block in which the host of the URL may be asked, once.

        RefusedError if it may not be asked, or only after CRAWL_PATIENCE.
        """
        host = _host_in(url)
        server = await self._find_server(host)
        async with self._clocks.locks[server]:
            rules = self._config.rules.server
            self._clocks.count_request(host, server, rules)
            await self._rest(host, server)
            clock = self._clocks.servers.get(server, ServerClock())
            self._clocks.servers[server] = clock.after_start(time.monotonic(), rules)
            yield

    async def _rest(self, host: str, server: str) -> None:
        wait_s = self._clocks.next_at(host, server) - time.monotonic()
        if wait_s > self._config.patience.total_seconds():
            raise RefusedError(f"resting: {host} may be asked again in {wait_s:,.0f} s")
        if wait_s > SAID_FROM_S:
            log.info("%s is asked again in %.1f s", host, wait_s)
        while wait_s > 0:
            await asyncio.sleep(wait_s)
            wait_s = self._clocks.next_at(host, server) - time.monotonic()

    async def _find_server(self, host: str) -> str:
        """The server of a host, looked up once. RefusedError if the guard refuses its address."""
        server = self._servers.get(host)
        if server is not None:
            return server
        address = self._resolver.known_address(host)
        if address is None:
            address = await asyncio.to_thread(look_up, host)
        if not address:
            raise CannotResolveHostError(f"{host} has no address")
        refusal = self._config.guard.refusal_reason(address)
        if refusal:
            raise RefusedError(f"guard: {refusal}")
        self._addresses[host] = address
        self._servers[host] = self._resolver.server_key(host, address)
        return self._servers[host]

    # robots.txt.

    def robots_lock(self, origin: str) -> asyncio.Lock:
        """Held by the one request that fetches a robots.txt; the others of its origin wait."""
        return self._robots_locks[origin]

    def knows_robots(self, url: str) -> bool:
        return self._robots.get_fresh(url, self._clock.now()) is not None

    def add_robots(self, origin: str, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Keep what came for a robots.txt, with the pause that it asks for."""
        url = f"{origin}/robots.txt"
        host = _host_in(url)
        row = row_from_response(
            url,
            host,
            status,
            body=body,
            now=self._clock.now(),
            ttl=self._config.robots_ttl,
            headers=headers,
        )
        robots = self._robots.add_row(row)
        clock = self._clocks.hosts.get(host)
        if clock is None:
            return
        slower = clock.with_crawl_delay(robots.crawl_delay_s(self._robots.agent))
        sent_at = clock.next_at - clock.delay_s(self._config.rules.host)
        at = sent_at + slower.delay_s(self._config.rules.host)
        self._clocks.hosts[host] = slower.resting_until(at, "crawl-delay")

    def robots_refusal(self, url: str) -> str:
        """Why robots.txt does not let a URL pass; empty if it does."""
        robots = self._robots.get(url)
        if robots is None or robots.unreachable:
            return "robots unread"
        if not robots.allows(url, self._robots.agent):
            return "robots"
        return ""

    # What came of it.

    def note_status(self, status: int) -> None:
        self.last_failure = None
        self.last_status = status

    def note_failure(self, url: str, reason: str) -> None:
        self.last_failure = (url, reason)
        log.error("Not fetched: %s: %s", url, reason)


_hosts: WeakKeyDictionary[Crawler, PoliteHosts] = WeakKeyDictionary()
_clocks = SharedClocks()


def polite_hosts_of(crawler: Crawler) -> PoliteHosts:
    """The hosts that a crawler asks, made when first needed."""
    hosts = _hosts.get(crawler)
    if hosts is None:
        hosts = _hosts[crawler] = PoliteHosts(config_of(crawler), _clocks)
    return hosts


def _host_in(url: str) -> str:
    return host_of(canonical_url(url) or url)
