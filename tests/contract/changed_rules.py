"""Contract: a scope or revisit interval that has changed since the last start, and hosts that are
left out.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from crawlproj.frontier.base import (
    Batch,
    Content,
    Found,
    Frontier,
    Lane,
    LeftOutHost,
    Links,
    Rejudged,
    State,
)
from crawlproj.frontier.rules import CrawlRules, IntervalRules
from crawlproj.revisit.base import Bounds
from crawlproj.urls.canonical import url_key
from crawlproj.urls.scope import ScopeRules
from tests.contract.worlds import DAY_S, Hand, World, page, request_json

EXCLUDING = CrawlRules(ScopeRules(exclude="/out"))
ALL = CrawlRules(ScopeRules())


def not_out(url: str) -> bool:
    return "/out" not in url


def every(url: str) -> bool:
    return True


def five_days(**seconds: float) -> CrawlRules:
    times = {name: timedelta(seconds=value) for name, value in seconds.items()}
    bounds = replace(Bounds(timedelta(days=5), timedelta(minutes=10)), **times)
    return CrawlRules(ScopeRules(), intervals=IntervalRules(bounds, bounds, "adaptive"))


def read_pages(world: World, frontier: Frontier, **pages: Content) -> None:
    """Pages of host a, visited once: their next visit is in a day, by an interval of a day."""
    hand = Hand(world, frontier)
    for name, content in pages.items():
        hand.end(hand.ticket(f"/{name}"), content=content, interval_s=DAY_S)
    frontier.release_servers(hand.name, list(hand.leases))


class ChangedRules:
    def test_a_narrower_scope_takes_queued_urls_out_and_a_wider_one_brings_them_back(
        self, world: World
    ) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/in", "/out-read", "/out-new", depth=1, parent=7)
        read_pages(world, frontier, **{"out-read": page()})
        assert frontier.apply_rules(ALL, every) == Rejudged()
        paths = ("/in", "/out-read", "/out-new")
        before = [world.see(frontier, path) for path in paths]
        assert frontier.apply_rules(EXCLUDING, not_out) == Rejudged(out=2)
        for path in ("/out-read", "/out-new"):
            found = world.see(frontier, path)
            assert (found.state, found.why, found.lane) == (State.IGNORED, "scope", None)
        assert world.see(frontier, "/out-read").visit == 1
        assert world.versions(frontier, world.id(frontier, "/out-read"))
        assert frontier.apply_rules(EXCLUDING, every) == Rejudged()  # nothing has changed
        tickets = Hand(world, frontier).tickets()
        assert [ticket.url for ticket in tickets] == [world.url(frontier, "/in").url]
        assert frontier.apply_rules(ALL, every) == Rejudged(back=2)
        assert [world.see(frontier, path) for path in paths] == before

    def test_what_was_asked_for_is_not_judged(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/out-seed")
        world.give(frontier, "/out-moved", parent=7, hops=1)
        world.give(frontier, "/out-pushed", depth=1, lane=Lane.URGENT)
        world.give(frontier, "/out-request", depth=1, parent=7, request=request_json())
        world.give(frontier, "/out-feed", depth=1, parent=7, found=Found.NAMED_FEED)
        assert frontier.apply_rules(EXCLUDING, not_out) == Rejudged()
        assert frontier.count_urls()["new"] == 5

    def test_a_crawl_that_has_stored_no_rules_is_judged_too(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/out", depth=1, parent=7)
        assert frontier.apply_rules(EXCLUDING, not_out) == Rejudged(out=1)
        assert world.frontier().apply_rules(EXCLUDING, not_out) == Rejudged()

    def test_depth_and_scope_both_hold_for_what_comes_back(self, world: World) -> None:
        frontier = world.frontier(max_depth=2)
        world.give(frontier, "/out", depth=5, parent=7)
        world.give(frontier, "/out-near", depth=1, parent=7)
        frontier.apply_rules(EXCLUDING, not_out)
        deeper = world.frontier(max_depth=9)
        assert world.see(deeper, "/out").state is State.IGNORED
        nearer = world.frontier(max_depth=3)
        assert nearer.apply_rules(ALL, every).back == 2
        deep = world.see(nearer, "/out")
        assert (deep.state, deep.why) == (State.IGNORED, "depth")
        assert world.see(nearer, "/out-near").state is State.NEW
        world.frontier(max_depth=0)
        assert world.see(nearer, "/out").state is State.NEW

    def test_links_that_were_outside_are_added_when_the_scope_grows(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/page", depth=1, parent=7)
        urls = tuple(f"http://{world.host('a')}{path}" for path in ("/x", "/nofollow", "/y.png"))
        links = Links(other=urls, other_kinds=("a", "a nofollow", "img"), other_texts=("",) * 3)
        read_pages(world, frontier, page=replace(page(), links=links))
        frontier.apply_rules(EXCLUDING, not_out)
        assert frontier.apply_rules(ALL, every) == Rejudged(added=1)
        id_ = url_key(frontier.spec.name, urls[0])
        found = frontier.get_urls([id_])[id_]
        assert (found.url, found.depth) == (urls[0], 2)
        assert found.parent == world.id(frontier, "/page")

    def test_a_changed_interval_moves_the_next_visits(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/a", "/b", "/new")
        read_pages(world, frontier, a=page())
        hand = Hand(world, frontier, "another")
        early = world.clock.after(60)
        hand.end(hand.ticket("/b"), content=page(), interval_s=5 * DAY_S, next_visit=early)
        frontier.release_servers(hand.name, list(hand.leases))
        frontier.apply_rules(five_days(), every)
        daily = five_days(interval=DAY_S)
        assert frontier.apply_rules(daily, every) == Rejudged(rescheduled=2)
        found = world.see(frontier, "/a")
        later = world.clock.after(DAY_S / 5)
        assert (found.interval_s, found.next_visit) == (DAY_S / 5, later)
        assert found.rank == later.timestamp()
        # It was to come earlier than its interval says: that stays.
        assert world.see(frontier, "/b").next_visit == early
        assert frontier.apply_rules(daily, every) == Rejudged()
        frontier.apply_rules(five_days(interval=1, shortest=1), every)
        world.clock.advance(120)
        tickets = Hand(world, frontier, "third").tickets()
        assert {ticket.url[-2:] for ticket in tickets} == {"/a", "/b", "ew"}

    def test_a_host_that_is_left_out_is_kept_with_its_first_link(self, world: World) -> None:
        frontier = world.frontier(domain_hosts=1)
        name = world.host("elsewhere")
        first = LeftOutHost(name, f"http://{name}/first")
        frontier.commit(Batch(left_out={name: first}))
        frontier.commit(Batch(left_out={name: LeftOutHost(name, f"http://{name}/second")}))
        assert frontier.find_left_out(name) == replace(first, first_seen=world.clock.now)
        frontier.add([world.url(frontier, "/", f"h{number}", depth=1) for number in range(2)])
        refused = world.host("h1")
        assert frontier.find_left_out(refused) == LeftOutHost(
            refused, f"http://{refused}/", "domain hosts", world.clock.now
        )
        assert frontier.count_left_out() == 2
        assert frontier.find_left_out(world.host("h0")) is None
        assert world.frontier("two").count_left_out() == 0

    def test_hosts_of_open_domains_are_not_limited(self, world: World) -> None:
        domain = f"{world.tag}.example"
        frontier = world.frontier(domain_hosts=2, open_domains=frozenset({domain}))
        urls = [world.url(frontier, "/", f"h{number}", depth=1) for number in range(5)]
        other = [f"o{number}.x{world.tag}.test" for number in range(5)]
        urls += [world.at(frontier, f"http://{name}/", name) for name in other]
        committed = frontier.add(urls)
        assert (committed.added, committed.refused) == (7, 3)

    def test_hosts_that_were_too_many_come_in_when_their_domain_is_opened(
        self, world: World
    ) -> None:
        frontier = world.frontier(domain_hosts=1)
        frontier.apply_rules(ALL, every)
        frontier.add([world.url(frontier, "/", f"h{number}", depth=1) for number in range(3)])
        assert frontier.count_left_out() == 2
        domain = frozenset({f"{world.tag}.example"})
        opened = world.frontier(domain_hosts=1, open_domains=domain)
        done = opened.apply_rules(CrawlRules(ScopeRules(domains=domain)), every)
        assert (done, opened.count_left_out()) == (Rejudged(added=2), 0)
        id_ = url_key(opened.spec.name, f"http://{world.host('h2')}/")
        assert opened.get_urls([id_])[id_].state is State.NEW
