"""What several frontiers in memory share, as workers share a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawlproj.frontier.base import LONGEST_PAUSE, CrawlSpec, RobotsRow
from crawlproj.frontier.memory.crawl import MemoryCrawl
from crawlproj.frontier.memory.rows import HostQueue, HostRow, ServerRow, WorkerRow


@dataclass(slots=True)
class MemoryStore:
    """The place of a database: what all frontiers on it know."""

    hosts: dict[str, HostRow] = field(default_factory=dict)
    servers: dict[int, ServerRow] = field(default_factory=dict)
    origins: dict[str, RobotsRow] = field(default_factory=dict)
    crawls: dict[str, MemoryCrawl] = field(default_factory=dict)
    workers: dict[str, WorkerRow] = field(default_factory=dict)

    @contextmanager
    def transaction(self, crawl: str) -> Iterator[None]:
        """All that the block writes stays, or nothing if it raises."""
        hosts = dict(self.hosts)
        servers = dict(self.servers)
        origins = dict(self.origins)
        saved = self.crawls[crawl].copy()
        try:
            yield
        except BaseException:
            self.hosts = hosts
            self.servers = servers
            self.origins = origins
            self.crawls[crawl] = saved
            raise

    def mend_clocks(self, now: datetime) -> None:
        """End pauses and leases that last longer than any that we make: the clock was wrong when
        they were written.
        """
        latest = now + LONGEST_PAUSE
        wrong = [host for host in self.hosts.values() if not has_passed(host.next_allowed, latest)]
        self.hosts |= {host.name: replace(host, pause=None) for host in wrong}
        for server in list(self.servers.values()):
            if not has_passed(server.next_allowed, latest):
                server = replace(server, next_allowed=None, asked={}, busy_at=None)
            if not has_passed(server.until, latest):
                server = replace(server, until=now)
            self.servers[server.id] = server

    def quota_spent(self, spec: CrawlSpec) -> bool:
        return self.crawls[spec.name].total.reaches_limit(spec.pages, spec.bytes)

    def host_queues(self, spec: CrawlSpec) -> dict[str, HostQueue]:
        """What each host has to offer to that crawl."""
        return self.crawls[spec.name].host_queues(self.quota_spent(spec))


def has_passed(at: datetime | None, now: datetime) -> bool:
    return at is None or at <= now
