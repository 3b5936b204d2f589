from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.base import Host, Lane, Lease, State, Ticket
from crawlproj.politeness.clocks import (
    FetchTiming,
    HostClock,
    HostRules,
    PolitenessRules,
    ServerClock,
    ServerRules,
)
from crawlproj.scheduling.window import Window

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)


FREE = ServerRules(delay_s=0, hosts=100, pause_after=0)


def window(
    *hosts: str, deadline: float = 1e9, rules: ServerRules = FREE, servers: int = 100
) -> Window:
    """Each host on a server of its own, unless there are fewer servers."""
    all_rules = PolitenessRules(HostRules(delay_s=2, slowdown=0), rules)
    made = Window({"new": 0.3, "revisit": 0.4}, 20, all_rules)
    for number, name in enumerate(hosts):
        server = number % servers
        lease = Lease(server, f"127.0.0.{server}", 1, UNTIL, (Host(name, server),))
        made.admit_lease(lease, deadline, 0.0, ServerClock(), {name: HostClock()})
    return made


def ticket(
    id_: int, host: str = "a", lane: Lane = Lane.NEW, epoch: int = 1, digest: bytes | None = None
) -> Ticket:
    return Ticket(
        id_, f"http://{host}/{id_}", host, 1, epoch, 0, lane, State.NEW, block_digest=digest
    )


def hand_out(made: Window, now: float, leaves: bool = True) -> int | None:
    host = made.due_host(now)
    if host is None:
        return None
    picked = host.pop_ticket()
    made.start_request(host, picked, now)
    if leaves:
        made.mark_sent(host, now)
    return picked.id


def test_pauses_begin_when_the_request_has_left() -> None:
    made = window("a", "b", rules=ServerRules(delay_s=1, hosts=4, pause_after=0), servers=1)
    made.add_tickets([ticket(1), ticket(2, "b"), ticket(3)])
    assert hand_out(made, 0, leaves=False) == 1
    assert made.due_host(5) is None, "the first has not left yet"
    made.mark_sent(made.hosts["a"], 6.0)
    assert made.due_host(6.9) is None
    assert hand_out(made, 7) == 2
    made.update_clocks(made.hosts["a"], FetchTiming(0, 6.5))
    assert made.hosts["a"].clock.next_at == 8


def test_pauses_begin_at_the_end_of_a_request_that_was_not_seen_leaving() -> None:
    """Its connection may have reached the server at any moment: a handshake that failed, say."""
    made = window("a", "b", rules=ServerRules(delay_s=1, hosts=4, pause_after=0), servers=1)
    made.add_tickets([ticket(1), ticket(2, "b"), ticket(3)])
    assert hand_out(made, 0, leaves=False) == 1
    made.update_clocks(made.hosts["a"], FetchTiming(0, 6.5))
    made.finish_request(made.hosts["a"])
    assert made.due_host(7.4) is None
    assert hand_out(made, 7.5) == 2


def test_a_request_without_a_ticket_waits_until_that_of_another_host_has_left() -> None:
    made = window("a", "b", rules=ServerRules(delay_s=1, hosts=4, pause_after=0), servers=1)
    made.add_tickets([ticket(1), ticket(2, "b")])
    assert hand_out(made, 0, leaves=False) == 1
    assert made.take_turn(made.hosts["b"], 5.0) > 0, "nobody knows how long the pause is"
    made.mark_sent(made.hosts["a"], 5.0)
    assert made.take_turn(made.hosts["b"], 5.5) == 0.5
    assert made.take_turn(made.hosts["b"], 6.0) == 0
    made.hosts["b"].sent_at = 1.0
    made.update_clocks(made.hosts["b"], FetchTiming(6.0, 9.0))
    assert made.hosts["b"].server.clock.next_at == 10.0, "it was not seen leaving"


def test_a_request_that_never_leaves_holds_nobody_up_after_its_end() -> None:
    made = window("a", "b", rules=ServerRules(delay_s=1, hosts=4, pause_after=0), servers=1)
    made.add_tickets([ticket(1), ticket(2, "b")])
    assert hand_out(made, 0, leaves=False) == 1
    made.finish_request(made.hosts["a"])
    assert hand_out(made, 1) == 2


def test_only_one_ticket_of_a_host_is_out_at_a_time() -> None:
    made = window("a")
    made.add_tickets([ticket(1), ticket(2)])
    assert hand_out(made, 0) == 1
    assert hand_out(made, 0) is None
    made.finish_request(made.hosts["a"])
    assert hand_out(made, 0) == 2


def test_a_host_is_not_due_before_its_clock_even_if_the_clock_was_set_later() -> None:
    made = window("a")
    made.add_tickets([ticket(1)])
    made.hosts["a"].clock = HostClock(next_at=50)
    made.requeue_host(made.hosts["a"])
    assert hand_out(made, 49) is None
    assert made.next_time() == 50
    assert hand_out(made, 50) == 1


def test_nothing_is_handed_out_after_the_deadline_of_the_lease() -> None:
    made = window("a", deadline=10)
    made.add_tickets([ticket(1)])
    assert hand_out(made, 10) is None


def test_tickets_that_are_held_already_or_of_another_lease_are_dropped() -> None:
    made = window("a")
    assert (
        made.add_tickets([ticket(1), ticket(1), ticket(2, epoch=2), ticket(3, host="unknown")]) == 1
    )


def test_urgent_tickets_go_first() -> None:
    made = window("a")
    made.add_tickets([ticket(1), ticket(2, lane=Lane.REVISIT), ticket(3, lane=Lane.URGENT)])
    assert hand_out(made, 0) == 3


def test_a_ticket_that_waits_and_becomes_urgent_goes_first() -> None:
    made = window("a")
    made.add_tickets([ticket(1), ticket(2), ticket(3)])
    assert made.hosts["a"].unmovable_ids == set()
    assert made.add_tickets([ticket(3, lane=Lane.URGENT), ticket(3, lane=Lane.URGENT)]) == 1
    assert hand_out(made, 0) == 3
    assert made.add_tickets([ticket(3, lane=Lane.URGENT)]) == 0, "it is out"
    assert made.hosts["a"].unmovable_ids == {3}
    made.finish_request(made.hosts["a"])
    assert [hand_out(made, 9), made.hosts["a"].waiting] == [1, 1]


def test_a_retry_is_paid_by_the_share_of_what_it_was() -> None:
    made = window("a")
    made.add_tickets([ticket(1, lane=Lane.RETRY), ticket(2, lane=Lane.RETRY, digest=b"x")])
    assert {name: [t.id for t in queue] for name, queue in made.hosts["a"].classes.items()} == {
        "new": [1],
        "revisit": [2],
    }


def test_idle_hosts_leave_and_busy_ones_stay() -> None:
    made = window("idle", "more", "waiting", "out", "unstored", "resting")
    for host in made.hosts.values():
        host.more = host.name == "more"
    made.add_tickets([ticket(1, "waiting"), ticket(2, "resting")])
    made.hosts["out"].in_flight = object()
    made.hosts["unstored"].held_ids.add(9)
    made.hosts["resting"].clock = HostClock(next_at=100)
    assert {host.name for host in made.release_hosts(soon=10)} == {"idle", "resting"}
    assert set(made.hosts) == {"more", "waiting", "out", "unstored"}


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([Lane.NEW, Lane.REVISIT, Lane.URGENT])),
        max_size=60,
        unique_by=id,
    ),
    st.data(),
)
def test_every_ticket_is_handed_out_exactly_once_and_hosts_keep_their_pauses(
    arrivals: list[tuple[int, Lane]], data: st.DataObject
) -> None:
    made = window(*"01234")
    made.add_tickets(
        ticket(number, str(host), lane) for number, (host, lane) in enumerate(arrivals)
    )
    now = 0.0
    seen = []
    last = dict.fromkeys("01234", -10.0)
    while (at := made.next_time()) is not None:
        now = max(now, at) + data.draw(st.sampled_from([0.0, 0.3, 5.0]))
        while (host := made.due_host(now)) is not None:
            made.start_request(host, picked := host.pop_ticket(), now)
            seen.append(picked.id)
            assert now >= last[host.name] + 2
            last[host.name] = now
            made.update_clocks(host, FetchTiming(now, now))
            made.finish_request(host)
    assert sorted(seen) == list(range(len(arrivals)))


def test_a_server_is_asked_with_its_own_delay_whatever_the_host() -> None:
    made = window("a", "b", rules=ServerRules(delay_s=0.5, hosts=4), servers=1)
    made.add_tickets([ticket(1, "a"), ticket(2, "b")])
    assert hand_out(made, 10) == 1
    assert hand_out(made, 10.4) is None
    assert made.next_time() == 10.5
    assert hand_out(made, 10.5) == 2


def test_only_so_many_hosts_of_a_server_are_in_flight() -> None:
    made = window(*"abc", rules=ServerRules(delay_s=0, hosts=2, pause_after=0), servers=1)
    made.add_tickets([ticket(n, name) for n, name in enumerate("abc")])
    assert [hand_out(made, 0), hand_out(made, 0), hand_out(made, 0)] == [0, 1, None]
    made.update_clocks(made.hosts["a"], FetchTiming(0, 1))
    made.finish_request(made.hosts["a"])
    assert hand_out(made, 1) == 2


def test_after_so_many_requests_to_a_host_its_server_rests() -> None:
    made = window(
        "a", "b", rules=ServerRules(delay_s=0, hosts=4, pause_after=2, pause_s=100), servers=1
    )
    made.add_tickets([ticket(1, "a"), ticket(2, "a"), ticket(3, "a"), ticket(4, "b")])
    for now in (0.0, 2.0):
        host = made.hosts["a"]
        made.start_request(host, host.pop_ticket(), now)
        made.update_clocks(host, FetchTiming(now, now + 1))
        made.finish_request(host)
    assert made.next_time() == 103
    assert made.hosts["a"].server.clock.reason == "general pause"


ROUNDS = ServerRules(delay_s=0, hosts=2, pause_after=3, pause_s=100)


def answer(made: Window, name: str, now: float) -> None:
    made.update_clocks(made.hosts[name], FetchTiming(now, now))
    made.finish_request(made.hosts[name])


def no_more(made: Window, *names: str) -> None:
    """The database has nothing more of these hosts."""
    for name in names:
        made.hosts[name].more = False
        made.hosts[name].held_ids.clear()
    made.release_hosts(1e9)


def test_other_hosts_wait_for_the_pause_after_the_last_request_of_the_round() -> None:
    made = window(*"abc", rules=ROUNDS, servers=1)
    made.add_tickets([ticket(n, name) for n, name in enumerate("abc")])
    assert [hand_out(made, 0), hand_out(made, 0)] == [0, 1]
    answer(made, "a", 1)
    answer(made, "b", 2)
    assert made.due_host(50) is None, "both may have more, and then it is their turn"
    no_more(made, "a")
    assert made.next_time() is None
    no_more(made, "b")
    assert made.next_time() == 102
    assert made.servers[0].clock.reason == "general pause"
    assert hand_out(made, 102) == 2


def test_with_the_pause_the_counters_of_all_hosts_begin_anew() -> None:
    made = window("a", "b", rules=ROUNDS, servers=1)
    made.add_tickets([ticket(n, "ab"[n % 2]) for n in range(20)])
    starts = []
    now = 0.0
    while (at := made.next_time()) is not None:
        now = max(now, at)
        host = made.due_host(now)
        assert host is not None
        made.start_request(host, host.pop_ticket(), now)
        answer(made, host.name, now)
        starts.append((host.name, now))
    rounds = Counter(int(at // 100) for _, at in starts)
    assert len(starts) == 20
    assert list(rounds.values()) == [5, 5, 5, 5], "the third request to a host ends a round"


def test_a_server_does_not_wait_for_a_host_of_its_round_that_rests_for_longer() -> None:
    made = window(*"abc", rules=ROUNDS, servers=1)
    made.add_tickets([ticket(n, name) for n, name in enumerate("abcab")])
    assert [hand_out(made, 0), hand_out(made, 0)] == [0, 1]
    for name in "ab":
        made.update_clocks(made.hosts[name], FetchTiming(0, 0, retry_after_s=30))
        made.finish_request(made.hosts[name])
    assert made.next_time() == 100
    assert hand_out(made, 100) is not None


def test_a_rest_that_was_as_long_as_a_pause_was_one() -> None:
    made = window("a", rules=ROUNDS, servers=1)
    for number, now in enumerate((0, 10, 110, 120)):
        made.add_tickets([ticket(number)])
        assert hand_out(made, now) == number
        answer(made, "a", now)
    assert made.servers[0].clock.asked == {"a": 2}


def test_a_request_without_a_ticket_waits_for_the_round_of_its_host() -> None:
    made = window(*"abc", rules=ROUNDS, servers=1)
    assert [made.take_turn(made.hosts[name], 0) for name in "ab"] == [0, 0]
    assert made.take_turn(made.hosts["c"], 5) > 0
    assert [made.take_turn(made.hosts["a"], at) for at in (5, 10)] == [0, 0]
    assert made.take_turn(made.hosts["b"], 15) > 0, "the round is over"


def test_stricter_rules_hold_at_once() -> None:
    made = window(*"abc", servers=1)
    made.add_tickets([ticket(n, name) for n, name in enumerate("abc")])
    made.change_rules(PolitenessRules(HostRules(), ServerRules(hosts=1, pause_s=100)))
    assert [hand_out(made, 0), hand_out(made, 0)] == [0, None]
    answer(made, "a", 1)
    no_more(made, "a")
    assert made.next_time() == 101


def test_what_will_be_refused_does_not_cost_the_server_a_pause() -> None:
    made = window("a", "b", rules=ServerRules(delay_s=5, hosts=4), servers=1)
    made.add_tickets([ticket(1, "a"), ticket(2, "b")])
    host = made.due_host(0)
    assert host is not None
    made.start_request(host, host.pop_ticket(), 0, reaches_server=False)
    assert hand_out(made, 0) is not None


def test_a_parked_host_waits_until_it_is_taken_out_again() -> None:
    made = window("a")
    made.add_tickets([ticket(1)])
    host = made.hosts["a"]
    host.parked = True
    made.requeue_host(host)
    assert made.due_host(0) is None
    host.parked = False
    made.requeue_host(host)
    assert made.due_host(0) is host


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(1, 4), st.integers(0, 2**32))
def test_no_schedule_breaks_a_server_rule(arrivals: list[int], limit: int, seed: int) -> None:
    chance = Random(seed)
    rules = ServerRules(delay_s=0.5, hosts=limit, pause_after=5, pause_s=20)
    made = window(*"0123456789", rules=rules, servers=3)
    made.add_tickets(ticket(number, str(host)) for number, host in enumerate(arrivals))
    now = 0.0
    flying = []
    starts = {}
    rounds: dict[int, Counter[str]] = {}
    busy: dict[int, float] = {}
    handed = 0
    while handed < len(arrivals) or flying:
        while (host := made.due_host(now)) is not None:
            assert now >= starts.get(host.server.id, -1.0) + 0.5
            starts[host.server.id] = now
            server = host.server.id
            under_way = any(h.server is host.server for _, h in flying)
            if not under_way and now - busy.get(server, -1e9) >= 20 - 1e-6:
                rounds[server] = Counter()
            rounds[server][host.name] += 1
            assert len(rounds[server]) <= limit
            assert max(rounds[server].values()) <= 5
            made.start_request(host, host.pop_ticket(), now)
            flying.append((now, host))
            handed += 1
            assert sum(h.server is host.server for _, h in flying) <= limit
        if flying and chance.random() < 0.5:
            started, host = flying.pop(chance.randrange(len(flying)))
            busy[host.server.id] = now
            made.update_clocks(host, FetchTiming(started, now))
            host.more = False
            host.held_ids.clear()
            made.finish_request(host)
        now += chance.choice([0.1, 0.5, 3.0])
    assert handed == len(arrivals)


def test_a_lease_that_was_renewed_after_its_deadline_goes_on() -> None:
    made = window("a", deadline=10)
    made.add_tickets([ticket(1)])
    assert hand_out(made, 11) is None
    made.extend_lease(made.hosts["a"].server, 100)
    assert hand_out(made, 11) == 1
