"""Guard, robots.txt and clocks of single pages: one request of a server at a time, in its pace."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import Any

import pytest
from scrapy.exceptions import CannotResolveHostError
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.fetch.pages import RefusedError
from crawlproj.oneoff.polite_hosts import PoliteHosts, SharedClocks
from crawlproj.politeness.clocks import FetchTiming

NAMES = {"*.test": "127.0.0.1", "other.example": "127.0.0.2", "inside.example": "10.1.2.3"}


def hosts_with(clocks: SharedClocks | None = None, **more: Any) -> PoliteHosts:
    settings = Settings()
    settings.setmodule("settings.base", priority="project")
    settings.setdict(
        {
            "DNS_HOSTS": NAMES,
            "GUARD_ALLOW_PRIVATE": True,
            "POLITENESS_DELAY": 0.2,
            "POLITENESS_SERVER_DELAY": 0.1,
            "POLITENESS_SLOWDOWN": 0,
            **more,
        },
        priority="cmdline",
    )
    return PoliteHosts(read_config(settings, "default"), clocks or SharedClocks())


class Visits:
    """Requests that take a moment each: when they were sent, and how many at a time."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []
        self.busy = 0
        self.most = 0

    async def ask(self, hosts: PoliteHosts, host: str, **timing: Any) -> None:
        url = f"http://{host}/"
        async with hosts.wait_for_turn(url):
            started = time.monotonic()
            self.busy += 1
            self.most = max(self.most, self.busy)
            self.sent.append((host, started))
            hosts.note_sent(host)
            await asyncio.sleep(0.01)
            hosts.note_extra(url, 200, FetchTiming(started, time.monotonic(), **timing))
            self.busy -= 1

    def gaps(self, host: str = "") -> list[float]:
        times = [at for name, at in self.sent if not host or name == host]
        return [later - earlier for earlier, later in pairwise(times)]


def test_a_server_is_asked_for_one_page_at_a_time_and_its_hosts_in_their_pace() -> None:
    clocks = SharedClocks()
    crawlers = [hosts_with(clocks), hosts_with(clocks)]
    visits = Visits()

    async def ask_all() -> None:
        names = ["a.test", "b.test", "a.test", "b.test"]
        await asyncio.gather(
            *(visits.ask(crawlers[number % 2], name) for number, name in enumerate(names))
        )

    asyncio.run(ask_all())
    assert visits.most == 1
    assert min(visits.gaps()) >= 0.1
    assert min(visits.gaps("a.test") + visits.gaps("b.test")) >= 0.2
    assert crawlers[0].leased_address("a.test") == "127.0.0.1"


def test_a_general_pause_comes_after_many_requests_and_before_one_host_too_many() -> None:
    hosts = hosts_with(
        POLITENESS_DELAY=0,
        POLITENESS_SERVER_DELAY=0,
        POLITENESS_PAUSE_AFTER=2,
        POLITENESS_PAUSE=0.2,
        POLITENESS_HOSTS_PER_SERVER=2,
    )
    visits = Visits()

    async def ask_all() -> None:
        for name in ("a", "a", "a", "b", "c"):
            await visits.ask(hosts, f"{name}.test")

    asyncio.run(ask_all())
    assert [gap >= 0.2 for gap in visits.gaps()] == [False, True, False, True]


def test_crawl_delay_holds_from_robots_txt_on() -> None:
    hosts = hosts_with(POLITENESS_DELAY=0, POLITENESS_SERVER_DELAY=0)
    visits = Visits()

    async def ask_all() -> None:
        await visits.ask(hosts, "a.test")
        assert not hosts.knows_robots("http://a.test/x")
        body = b"User-agent: *\nCrawl-delay: 0.3\nDisallow: /private"
        hosts.add_robots("http://a.test", 200, body, headers={})
        await visits.ask(hosts, "a.test")
        await visits.ask(hosts, "a.test")

    asyncio.run(ask_all())
    assert len(visits.gaps()) == 2
    assert min(visits.gaps()) >= 0.3
    assert hosts.knows_robots("http://a.test/x")
    assert hosts.robots_refusal("http://a.test/x") == ""
    assert hosts.robots_refusal("http://a.test/private/x") == "robots"


@pytest.mark.parametrize(
    ("status", "refusal"), [(404, ""), (403, ""), (503, "robots unread"), (0, "robots unread")]
)
def test_a_robots_txt_that_is_not_there_allows_and_one_that_cannot_be_read_does_not(
    status: int, refusal: str
) -> None:
    hosts = hosts_with()
    hosts.add_robots("http://a.test", status, b"", headers={})
    assert hosts.robots_refusal("http://a.test/x") == refusal


def test_what_may_not_be_asked_or_only_much_later_is_refused() -> None:
    async def ask(hosts: PoliteHosts, host: str) -> None:
        async with hosts.wait_for_turn(f"http://{host}/"):
            pass

    guarded = hosts_with(GUARD_ALLOW_PRIVATE=False, ROBOT_CONTACT="mailto:me@example.org")
    with pytest.raises(RefusedError, match="guard: private address"):
        asyncio.run(ask(guarded, "inside.example"))
    with pytest.raises(RefusedError, match="guard: no ROBOT_CONTACT"):
        asyncio.run(ask(hosts_with(), "inside.example"))
    with pytest.raises(CannotResolveHostError):
        asyncio.run(ask(hosts_with(), "nobody.invalid"))

    async def ask_twice() -> None:
        hosts = hosts_with(CRAWL_PATIENCE="1m")
        await Visits().ask(hosts, "a.test", failed=True, retry_after_s=3_600)
        with pytest.raises(RefusedError, match=r"resting: a\.test may be asked again in 3,\d+ s"):
            await ask(hosts, "a.test")

    asyncio.run(ask_twice())
