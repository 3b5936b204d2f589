"""Contract: hosts, servers, leases, and what they let out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from crawlproj.frontier.base import Batch, Frontier, Host, Lane, Lease, Outlook, State, Want
from tests.contract.worlds import DAY_S, Hand, World, page

NEW_FIRST = {"new": 1.0, "revisit": 0.0}


def addresses(leases: Iterable[Lease]) -> set[str]:
    return {lease.address for lease in leases}


def waiting(world: World, frontier: Frontier, host: str, due_s: float, state: State = State.WAITING) -> None:
    """A host with one URL that is due at that distance from now."""
    world.give(frontier, "/timed", host=host, lane=Lane.URGENT)
    hand = Hand(world, frontier, "before")
    hand.end(hand.ticket("/timed", host), state, next_visit=world.clock.after(due_s))
    frontier.release(hand.name, list(hand.leases))


class Resolving:
    def test_a_host_with_queued_urls_is_to_be_resolved_by_one_worker(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        one.add([world.url(one, "/", "a"), world.url(one, "/", "b")])
        assert set(one.unresolved(9)) == {world.host("a"), world.host("b")}
        assert two.unresolved(9) == []
        world.clock.advance(59)
        assert two.unresolved(9) == []
        world.clock.advance(1)
        assert set(two.unresolved(9)) == {world.host("a"), world.host("b")}

    def test_no_more_hosts_than_asked_for(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", str(n)) for n in range(5)])
        first, second = frontier.unresolved(3), frontier.unresolved(3)
        assert (len(first), len(second)) == (3, 2)
        assert not set(first) & set(second)
        assert frontier.unresolved(3) == []

    def test_best_hosts_are_resolved_first(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", "a", score=0.25), world.url(frontier, "/", "b", score=0.5)])
        assert frontier.unresolved(1) == [world.host("b")]

    def test_a_resolved_host_is_not_asked_for_again(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        world.clock.advance(1000)
        assert frontier.unresolved(9) == []

    def test_hosts_without_queued_urls_need_no_address(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        frontier.add([world.url(frontier, "/", depth=2)])
        assert frontier.unresolved(9) == []

    def test_hosts_of_other_crawls_are_theirs_until_added_here(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        one.add([world.url(one)])
        assert two.unresolved(9) == []
        two.add([world.url(two)])
        assert two.unresolved(9) == [world.host("a")]
        assert one.unresolved(9) == []
        world.resolve(one, "a")
        assert addresses(two.lease("w", 9)) == {world.address("a")}

    def test_an_unresolved_host_is_not_leased(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier)])
        assert frontier.lease("w", 9) == []

    def test_hosts_of_one_address_are_one_server(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", host) for host in "abc"])
        frontier.resolved({world.host("a"): world.address("x"), world.host("b"): world.address("x")})
        frontier.resolved({world.host("c"): world.address("x")})
        (lease,) = frontier.lease("w", 9)
        assert {host.name for host in lease.hosts} == {world.host(name) for name in "abc"}
        assert {host.server for host in lease.hosts} == {lease.server}

    def test_resolved_again_a_host_moves(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.resolved({world.host("a"): world.address("new")})
        assert addresses(frontier.lease("w", 9)) == {world.address("new")}

    def test_any_text_is_an_address(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", host) for host in "ab"])
        own = {world.host(name): f"unknown:{world.host(name)}" for name in "ab"}
        frontier.resolved(own)
        assert addresses(frontier.lease("w", 9)) == set(own.values())

    def test_no_addresses_and_unknown_hosts_are_nothing(self, world: World) -> None:
        frontier = world.frontier()
        frontier.resolved({})
        frontier.resolved({world.host("unknown"): world.address("x")})
        assert frontier.unresolved(9) == [] and frontier.lease("w", 9) == []


class Leasing:
    def test_a_lease_names_server_time_and_hosts(self, world: World) -> None:
        frontier = world.frontier(lease=timedelta(seconds=30), host_pages=7)
        world.give(frontier, "/")
        (lease,) = frontier.lease("w", 1)
        assert (lease.address, lease.until) == (world.address("a"), world.clock.after(30))
        assert lease.hosts == (Host(world.host("a"), lease.server, None, 7),)

    def test_a_lease_is_exclusive_until_it_expires(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        world.give(one, "/")
        (first,) = one.lease("one", 9)
        assert two.lease("two", 9) == [] and one.lease("one", 9) == []
        world.clock.advance(119)
        assert two.lease("two", 9) == []
        world.clock.advance(1)
        (second,) = two.lease("two", 9)
        assert (second.server, second.epoch) == (first.server, first.epoch + 1)

    def test_a_lease_holds_in_all_crawls(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        world.give(one, "/")
        world.give(two, "/")
        (lease,) = one.lease("one", 9)
        assert two.lease("two", 9) == []
        one.release("one", [lease.server])
        assert addresses(two.lease("two", 9)) == {lease.address}

    def test_no_more_servers_than_asked_for(self, world: World) -> None:
        frontier = world.frontier()
        for name in "abcde":
            world.give(frontier, "/", host=name)
        assert len(frontier.lease("w", 3)) == 3
        assert len(frontier.lease("w", 3)) == 2
        assert frontier.lease("w", 3) == [] and frontier.lease("other", 0) == []

    def test_best_servers_are_leased_first(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        for name, score in (("a", 0.25), ("b", 0.75), ("c", 0.5)):
            world.give(frontier, "/", host=name, score=score)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [{world.address(name)} for name in "bca"]

    def test_of_equal_servers_the_first_by_name_is_leased(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        for name in "cab":
            world.give(frontier, "/", host=name)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [{world.address(name)} for name in "abc"]

    @pytest.mark.parametrize(("order", "names"), [("best", "bca"), ("bfs", "acb"), ("dfs", "bca")])
    def test_the_order_decides_between_servers(self, world: World, order: str, names: str) -> None:
        frontier = world.frontier(shares=NEW_FIRST, order=order)
        for name, depth, score in (("a", 1, 0.25), ("b", 5, 0.75), ("c", 3, 0.5)):
            world.give(frontier, "/", host=name, depth=depth, score=score)
        assert [addresses(frontier.lease("w", 1)) for _ in names] == [{world.address(name)} for name in names]

    def test_backfill_counts_as_ranked_work(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        world.give(frontier, "/", host="a", score=0.25)
        world.give(frontier, "/", host="b", score=0.5, lane=Lane.BACKFILL)
        assert addresses(frontier.lease("w", 1)) == {world.address("b")}

    def test_urgent_servers_are_leased_before_all_others(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST, order="dfs")
        world.give(frontier, "/", host="a", depth=9)
        world.give(frontier, "/", host="b", lane=Lane.URGENT)
        assert addresses(frontier.lease("w", 1)) == {world.address("b")}

    def test_earliest_servers_are_leased_first(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.0, "revisit": 1.0})
        for name, due_s, state in (("a", 30, State.WAITING), ("b", 10, State.RETRY), ("c", 20, State.GONE)):
            waiting(world, frontier, name, due_s, state)
        world.clock.advance(60)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [{world.address(name)} for name in "bca"]

    def test_what_is_not_due_is_not_leased(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 100)
        waiting(world, frontier, "b", 100, State.RETRY)
        world.clock.advance(99)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        assert len(frontier.lease("w", 9)) == 2

    @pytest.mark.parametrize(("count", "new", "ranked"), [(4, 0.5, 2), (3, 0.5, 2), (4, 0.25, 1), (1, 0.25, 1), (2, 0, 0), (3, 1, 3)])
    def test_places_are_shared_between_new_and_due(self, world: World, count: int, new: float, ranked: int) -> None:
        frontier = world.frontier(shares={"new": new, "revisit": 1 - new})
        for n in range(4):
            world.give(frontier, "/", host=f"new{n}")
            waiting(world, frontier, f"due{n}", -n)
        leased = addresses(frontier.lease("w", count))
        assert len(leased) == count
        assert len(leased & {world.address(f"new{n}") for n in range(4)}) == ranked

    def test_places_that_one_class_cannot_fill_go_to_the_other(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.5, "revisit": 0.5})
        world.give(frontier, "/", host="new")
        for n in range(4):
            waiting(world, frontier, f"due{n}", 0)
        assert len(frontier.lease("w", 4)) == 4
        other = world.frontier("two", shares={"new": 0.5, "revisit": 0.5})
        for n in range(4):
            world.give(other, "/", host=f"fresh{n}")
        assert len(other.lease("w", 4)) == 4

    def test_a_server_with_both_kinds_of_work_takes_one_place(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.5, "revisit": 0.5})
        for name in "ab":
            waiting(world, frontier, name, 0)
            world.give(frontier, "/", host=name)
        assert addresses(frontier.lease("w", 2)) == {world.address("a"), world.address("b")}

    def test_without_shares_new_urls_come_first(self, world: World) -> None:
        frontier = world.frontier(shares={})
        waiting(world, frontier, "due", -100)
        world.give(frontier, "/", host="new")
        assert addresses(frontier.lease("w", 1)) == {world.address("new")}

    def test_a_resting_host_is_leased_shortly_before_its_time(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.commit(Batch(clocks={world.host("a"): world.clock.after(60)}))
        world.clock.advance(49)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        (lease,) = frontier.lease("w", 9)
        assert lease.hosts[0].next_allowed == world.clock.after(10)

    def test_a_clock_is_set_forwards_and_backwards(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        world.give(one, "/")
        for seconds in (500, 5):
            one.commit(Batch(clocks={world.host("a"): world.clock.after(seconds), world.host("unknown"): world.clock.now}))
        world.give(two, "/")
        assert two.lease("w", 1)[0].hosts[0].next_allowed == world.clock.after(5)

    def test_a_lease_brings_all_hosts_with_work_also_resting_ones(self, world: World) -> None:
        frontier, other = world.frontier(), world.frontier("two")
        names = ("ready", "resting", "due", "later", "done")
        waiting(world, frontier, "due", 10)
        waiting(world, frontier, "later", 1000, State.RETRY)
        waiting(world, frontier, "done", 0, State.DEAD)
        for name in ("ready", "resting"):
            world.give(frontier, "/", host=name)
        world.give(other, "/", host="elsewhere")
        frontier.resolved({world.host(name): world.address("x") for name in (*names, "elsewhere")})
        frontier.commit(Batch(clocks={world.host("resting"): world.clock.after(1000)}))
        world.clock.advance(10)
        (lease,) = frontier.lease("w", 9)
        assert {host.name for host in lease.hosts} == {world.host(name) for name in ("ready", "resting", "due")}

    def test_renewing_moves_the_end(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        world.clock.advance(100)
        assert one.renew("one", [lease.server]) == {lease.server: world.clock.after(120)}
        world.clock.advance(100)
        assert two.lease("two", 9) == []
        world.clock.advance(20)
        assert len(two.lease("two", 9)) == 1

    def test_an_expired_lease_that_nobody_took_can_be_renewed(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        world.clock.advance(500)
        assert one.renew("one", [lease.server]) == {lease.server: world.clock.after(120)}
        assert two.lease("two", 9) == []

    def test_a_lost_lease_is_missing_from_what_was_renewed(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        for name in "ab":
            world.give(one, "/", host=name)
        mine = {lease.address: lease.server for lease in one.lease("one", 9)}
        a, b = mine[world.address("a")], mine[world.address("b")]
        world.clock.advance(121)
        one.renew("one", [b])
        assert [lease.server for lease in two.lease("two", 9)] == [a]
        assert set(one.renew("one", [a, b, 2**31 - 1])) == {b}
        assert one.renew("one", []) == {}

    def test_a_released_server_is_free_at_once_under_a_new_epoch(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        one.release("one", [lease.server])
        assert one.renew("one", [lease.server]) == {}
        (again,) = two.lease("two", 9)
        assert (again.server, again.epoch) == (lease.server, lease.epoch + 1)

    def test_only_ones_own_servers_are_released(self, world: World) -> None:
        one, two = world.frontier(), world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        two.release("two", [lease.server])
        two.release("two", [])
        assert two.lease("two", 9) == []
        assert set(one.renew("one", [lease.server])) == {lease.server}


class Handing:
    def test_handing_out_writes_nothing(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        hand = Hand(world, frontier)
        before = world.see(frontier)
        assert hand.tickets() == hand.tickets() != []
        assert world.see(frontier) == before

    def test_a_ticket_carries_the_row(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=3, hops=2)
        ticket = Hand(world, frontier).ticket("/x")
        url = world.url(frontier, "/x")
        assert (ticket.id, ticket.url, ticket.host, ticket.visit) == (url.id, url.url, url.host, 0)
        assert (ticket.lane, ticket.state, ticket.depth, ticket.tries, ticket.hops) == (Lane.NEW, State.NEW, 3, 0, 2)
        assert (ticket.changes, ticket.interval_s, ticket.last_visit, ticket.last_change) == (0, None, None, None)

    @pytest.mark.parametrize(("order", "paths"), [("best", "bca"), ("bfs", "acb"), ("dfs", "bca")])
    def test_ranked_lanes_are_served_lowest_rank_first(self, world: World, order: str, paths: str) -> None:
        frontier = world.frontier(order=order)
        for lane in (Lane.NEW, Lane.BACKFILL):
            for path, depth, score in (("a", 1, 0.25), ("b", 5, 0.75), ("c", 3, 0.5)):
                world.give(frontier, f"/{lane}{path}", depth=depth, score=score, lane=lane)
        tickets = Hand(world, frontier).tickets(2)
        expected = [world.id(frontier, f"/{lane}{path}") for lane in (Lane.NEW, Lane.BACKFILL) for path in paths[:2]]
        assert [ticket.id for ticket in tickets] == expected

    def test_equal_ranks_are_served_by_id(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, *(f"/{n}" for n in range(9)))
        ids = [ticket.id for ticket in Hand(world, frontier).tickets(5)]
        assert ids == sorted(world.id(frontier, f"/{n}") for n in range(9))[:5]

    def test_timed_lanes_are_served_earliest_first(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/1", "/2", "/3", "/4")
        hand = Hand(world, frontier)
        for path, due_s in (("/1", 30), ("/2", 10), ("/3", 20), ("/4", 99)):
            hand.end(hand.ticket(path), next_visit=world.clock.after(due_s))
        world.clock.advance(50)
        assert [ticket.id for ticket in hand.tickets(2)] == [world.id(frontier, "/2"), world.id(frontier, "/3")]
        assert len(hand.tickets()) == 3

    def test_each_lane_gives_up_to_the_count(self, world: World) -> None:
        frontier = world.frontier()
        kinds = (("new", Lane.NEW), ("old", Lane.BACKFILL), ("now", Lane.URGENT))
        world.give(frontier, *(f"/timed{n}" for n in range(6)))
        hand = Hand(world, frontier)
        for n in range(6):
            hand.end(hand.ticket(f"/timed{n}"), (State.WAITING, State.RETRY)[n % 2], next_visit=world.clock.now)
        for name, lane in kinds:
            world.give(frontier, *(f"/{name}{n}" for n in range(3)), lane=lane)
        tickets = hand.tickets(2)
        assert [ticket.lane for ticket in tickets] == [lane for lane in Lane for _ in range(2)]
        assert hand.tickets(0) == []

    def test_what_is_held_is_not_handed_out_again(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, *(f"/{n}" for n in range(5)))
        hand = Hand(world, frontier)
        first = {ticket.id for ticket in hand.tickets(2)}
        second = {ticket.id for ticket in hand.tickets(9, first)}
        assert (len(first), len(second), first & second) == (2, 3, set())

    def test_only_the_wanted_hosts_are_served(self, world: World) -> None:
        frontier = world.frontier()
        for name in "ab":
            world.give(frontier, "/1", "/2", host=name)
        hand = Hand(world, frontier)
        hand.lease()
        want = next(want for want in hand.wants() if want.host == world.host("b"))
        assert {ticket.host for ticket in frontier.refill([want])} == {world.host("b")}
        assert {ticket.host for ticket in hand.tickets()} == {world.host("a"), world.host("b")}

    def test_urls_of_another_crawl_are_not_handed_out(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        world.give(one, "/one")
        world.give(two, "/two")
        assert [ticket.id for ticket in Hand(world, one).tickets()] == [world.id(one, "/one")]

    def test_a_lost_lease_lets_nothing_out(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        hand, other = Hand(world, frontier, "one"), Hand(world, frontier, "two")
        hand.lease()
        world.clock.advance(121)
        assert len(other.tickets()) == 1
        assert hand.tickets() == []

    def test_nothing_wanted_or_known_is_nothing_given(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.refill([]) == []
        assert frontier.refill([Want(world.host("a"), 1, 1, 5)]) == []
        world.give(frontier, "/")
        (lease,) = frontier.lease("w", 1)
        assert frontier.refill([Want(world.host("unknown"), lease.server, lease.epoch, 5)]) == []

    def test_new_pages_stay_within_the_hosts_quota(self, world: World) -> None:
        frontier = world.frontier(host_pages=4)
        world.give(frontier, *(f"/{n}" for n in range(6)))
        world.give(frontier, "/old0", "/old1", lane=Lane.BACKFILL, score=0.5)
        hand = Hand(world, frontier)
        ticket = hand.tickets(1)[0]
        hand.end(ticket, content=page(), next_visit=world.clock.now)
        given = hand.tickets(2)
        assert [t.lane for t in given] == [Lane.NEW, Lane.NEW, Lane.REVISIT, Lane.BACKFILL]
        held = [t.id for t in given if t.lane is not Lane.REVISIT]
        assert [t.lane for t in hand.tickets(9, held[:2])] == [Lane.NEW, Lane.REVISIT]
        assert [t.lane for t in hand.tickets(9, held)] == [Lane.REVISIT]

    def test_a_lease_tells_what_the_quota_leaves(self, world: World) -> None:
        frontier = world.frontier(host_pages=2)
        world.give(frontier, "/1", "/2")
        hand = Hand(world, frontier)
        hand.end(hand.tickets(1)[0], content=page())
        frontier.release(hand.name, list(hand.leases))
        assert [host.room for host in frontier.lease("w", 1)[0].hosts] == [1]

    def test_new_pages_stay_within_the_total_quota(self, world: World) -> None:
        frontier = world.frontier(pages=5)
        for name in "ab":
            world.give(frontier, *(f"/{n}" for n in range(4)), host=name)
        hand = Hand(world, frontier)
        assert len(hand.tickets(9)) == 5
        first = hand.tickets(1)
        assert len(first) == 2
        for ticket in first:
            hand.end(ticket, content=page())
        assert len(hand.tickets(9)) == 3
        wants = [Want(w.host, w.server, w.epoch, 9, frozenset({n})) for n, w in enumerate(hand.wants())]
        assert len(frontier.refill(wants)) == 1

    @pytest.mark.parametrize("limits", [{"pages": 1}, {"bytes": 10}])
    def test_a_spent_crawl_revisits_but_fetches_nothing_new(self, world: World, limits: dict[str, int]) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/1", "/2", score=2)
        world.give(frontier, "/", host="b")
        hand = Hand(world, frontier)
        hand.end(next(ticket for ticket in hand.tickets(1) if ticket.host == world.host("a")), content=page(), received=10)
        assert hand.tickets() == []
        assert frontier.outlook(hand.name) == Outlook(0, None, world.clock.after(DAY_S), 0, True)
        world.clock.advance(DAY_S)
        later = Hand(world, frontier, "later")
        assert [lease.address for lease in later.lease()] == [world.address("a")]
        assert [ticket.lane for ticket in later.tickets()] == [Lane.REVISIT]
        world.give(frontier, "/now", host="b", lane=Lane.URGENT)
        assert [lease.address for lease in later.lease()] == [world.address("b")]
        assert {ticket.lane for ticket in later.tickets()} == {Lane.REVISIT, Lane.URGENT}


class Looking:
    def test_an_empty_crawl_has_no_outlook(self, world: World) -> None:
        assert world.frontier().outlook() == Outlook()

    def test_hosts_with_urls_to_fetch_are_ready_resolved_or_not(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", "/2", host="a")
        frontier.add([world.url(frontier, "/", "b")])
        assert frontier.outlook() == Outlook(2, world.clock.now)

    def test_a_resting_host_is_ready_but_may_be_asked_later(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.commit(Batch(clocks={world.host("a"): world.clock.after(500)}))
        assert frontier.outlook() == Outlook(1, world.clock.after(500))
        world.clock.advance(600)
        assert frontier.outlook() == Outlook(1, world.clock.now)

    def test_a_retry_is_waited_for(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 300, State.RETRY)
        waiting(world, frontier, "b", 200, State.RETRY)
        assert frontier.outlook() == Outlook(0, world.clock.after(200))
        frontier.commit(Batch(clocks={world.host("b"): world.clock.after(900)}))
        assert frontier.outlook() == Outlook(0, world.clock.after(300))
        world.clock.advance(300)
        assert frontier.outlook() == Outlook(2, world.clock.now)

    def test_a_revisit_is_announced_but_not_waited_for(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 300)
        waiting(world, frontier, "b", 200, State.GONE)
        due = world.clock.after(200)
        assert frontier.outlook() == Outlook(0, None, due)
        world.clock.advance(250)
        assert frontier.outlook() == Outlook(1, world.clock.now, due)

    def test_ones_own_leases_are_still_ready(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.lease("w", 9)
        assert frontier.outlook("w") == Outlook(1, world.clock.now)

    def test_servers_of_other_workers_are_counted_apart(self, world: World) -> None:
        frontier = world.frontier()
        for name in "ab":
            world.give(frontier, "/", host=name)
        frontier.resolved({world.host(name): world.address("x") for name in "ab"})
        world.give(frontier, "/", host="c")
        frontier.lease("other", 9)
        assert frontier.outlook("w") == frontier.outlook() == Outlook(leased_elsewhere=2)
        world.clock.advance(120)
        assert frontier.outlook("w") == Outlook(3, world.clock.now)

    def test_a_lease_elsewhere_counts_for_retries_and_due_revisits_only(self, world: World) -> None:
        frontier = world.frontier(lease=timedelta(seconds=500))
        for name, state in (("a", State.RETRY), ("b", State.WAITING), ("c", State.WAITING), ("d", State.DEAD)):
            world.give(frontier, "/", host=name)
            hand = Hand(world, frontier, "other")
            hand.end(hand.ticket("/", name), state, next_visit=None if state is State.DEAD else world.clock.after(200))
        assert frontier.outlook("w") == Outlook(0, None, world.clock.after(200), 1)
        world.clock.advance(200)
        assert frontier.outlook("w") == Outlook(0, None, world.clock.now, 3)

    def test_another_crawls_lease_is_elsewhere_too(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        world.give(one, "/")
        world.give(two, "/")
        one.lease("one", 9)
        assert two.outlook("two") == Outlook(leased_elsewhere=1)
        assert one.outlook("one") == Outlook(1, world.clock.now)

    @pytest.mark.parametrize("limits", [{"pages": 2}, {"bytes": 20}])
    def test_the_total_quota_is_spent_when_it_is_reached(self, world: World, limits: dict[str, int]) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/1", "/2", "/3")
        hand = Hand(world, frontier)
        spent = []
        for _ in range(2):
            hand.end(hand.tickets(1)[0], content=page(), received=10)
            spent.append(frontier.outlook().spent)
        assert spent == [False, True]

    def test_counts_name_every_state(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        world.give(frontier, "/1", "/2")
        world.give(frontier, "/3", depth=2)
        assert frontier.counts() == {"known": 3, **{s.value: 0 for s in State}, "new": 2, "ignored": 1}
