from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.base import Host, Lane, Lease, State, Ticket
from crawlproj.politeness import HostClock
from crawlproj.window import Window

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)


def window(*hosts: str, deadline: float = 1e9) -> Window:
    made = Window({"new": 0.3, "revisit": 0.4}, 20)
    for number, name in enumerate(hosts, 1):
        lease = Lease(number, f"127.0.0.{number}", 1, UNTIL, (Host(name, number, None),))
        made.admit(lease, deadline, lambda _: HostClock())
    return made


def ticket(id_: int, host: str = "a", lane: Lane = Lane.NEW, epoch: int = 1, digest: bytes | None = None) -> Ticket:
    return Ticket(id_, f"http://{host}/{id_}", host, 1, epoch, 0, lane, State.NEW, block_digest=digest)


def hand_out(made: Window, now: float) -> int | None:
    host = made.due(now)
    if host is None:
        return None
    picked = host.pick()
    host.out = picked
    return picked.id


def test_only_one_ticket_of_a_host_is_out_at_a_time() -> None:
    made = window("a")
    made.take([ticket(1), ticket(2)])
    assert hand_out(made, 0) == 1
    assert hand_out(made, 0) is None
    made.hosts["a"].out = None
    made.ready(made.hosts["a"])
    assert hand_out(made, 0) == 2


def test_a_host_is_not_due_before_its_clock_even_if_the_clock_was_set_later() -> None:
    made = window("a")
    made.take([ticket(1)])
    made.hosts["a"].clock = HostClock(next_at=50)
    assert hand_out(made, 49) is None
    assert made.next_time() == 50
    assert hand_out(made, 50) == 1


def test_nothing_is_handed_out_after_the_deadline_of_the_lease() -> None:
    made = window("a", deadline=10)
    made.take([ticket(1)])
    assert hand_out(made, 10) is None


def test_tickets_that_are_held_already_or_of_another_lease_are_dropped() -> None:
    made = window("a")
    assert made.take([ticket(1), ticket(1), ticket(2, epoch=2), ticket(3, host="unknown")]) == 1


def test_urgent_tickets_go_first() -> None:
    made = window("a")
    made.take([ticket(1), ticket(2, lane=Lane.REVISIT), ticket(3, lane=Lane.URGENT)])
    assert hand_out(made, 0) == 3


def test_a_retry_is_paid_by_the_share_of_what_it_was() -> None:
    made = window("a")
    made.take([ticket(1, lane=Lane.RETRY), ticket(2, lane=Lane.RETRY, digest=b"x")])
    assert {name: [t.id for t in queue] for name, queue in made.hosts["a"].classes.items()} == {"new": [1], "revisit": [2]}


def test_idle_hosts_leave_and_busy_ones_stay() -> None:
    made = window("idle", "more", "waiting", "out", "unstored", "resting")
    for host in made.hosts.values():
        host.more = host.name == "more"
    made.take([ticket(1, "waiting"), ticket(2, "resting")])
    made.hosts["out"].out = object()
    made.hosts["unstored"].holding.add(9)
    made.hosts["resting"].clock = HostClock(next_at=100)
    assert {host.name for host in made.leave(soon=10)} == {"idle", "resting"}
    assert set(made.hosts) == {"more", "waiting", "out", "unstored"}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([Lane.NEW, Lane.REVISIT, Lane.URGENT])), max_size=60, unique_by=id),
    st.data(),
)
def test_every_ticket_is_handed_out_exactly_once_and_hosts_keep_their_pauses(
    arrivals: list[tuple[int, Lane]], data: st.DataObject
) -> None:
    made = window(*"01234")
    made.take(ticket(number, str(host), lane) for number, (host, lane) in enumerate(arrivals))
    now, seen, last = 0.0, [], dict.fromkeys("01234", -10.0)
    while (at := made.next_time()) is not None:
        now = max(now, at) + data.draw(st.sampled_from([0.0, 0.3, 5.0]))
        while (host := made.due(now)) is not None:
            seen.append(host.pick().id)
            assert now >= last[host.name] + 2
            last[host.name] = now
            host.clock = HostClock(next_at=now + 2)
            made.ready(host)
    assert sorted(seen) == list(range(len(arrivals)))
