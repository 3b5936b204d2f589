from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.base import Peer
from crawlproj.scheduling.sharing import PeerSummary, summarize_peers

helds = st.lists(st.integers(0, 60), min_size=2, max_size=6)


def crew(helds: list[int], me: int, wanting: bool = True) -> PeerSummary:
    return summarize_peers(
        Peer(str(n), True, wanting, held) for n, held in enumerate(helds) if n != me
    )


def test_workers_of_other_crawls_do_not_count() -> None:
    assert summarize_peers(
        [Peer("a", True, False, 3), Peer("b", False, True, 9), Peer("c", True, True, 0)]
    ) == PeerSummary(2, 3, True)


@given(helds, st.integers(0, 100))
def test_while_nobody_wants_anything_everybody_takes_what_is_free(
    held: list[int], capacity: int
) -> None:
    alone = crew(held, 0, wanting=False)
    assert (alone.servers_to_return(held[0]), alone.server_limit(held[0], capacity)) == (
        0,
        capacity,
    )


@given(helds)
def test_what_is_given_back_is_not_taken_again(held: list[int]) -> None:
    """Whether the others have taken it or not."""
    mine = held[0]
    others = crew(held, 0)
    given = others.servers_to_return(mine)
    left = mine - given
    assert left >= others.server_limit(left, 256) or not given


@given(helds)
def test_giving_and_taking_leave_nobody_with_more_than_a_share(held: list[int]) -> None:
    free = 0
    total = sum(held)
    wanting = [False] * len(held)
    for _ in range(30):
        for me in range(len(held)):
            others = summarize_peers(
                Peer(str(n), True, wanting[n], held[n]) for n in range(len(held)) if n != me
            )
            given = others.servers_to_return(held[me])
            room = others.server_limit(held[me] - given, 256) - held[me] + given
            taken = min(free, max(0, room))
            wanting[me] = room > 0 and not taken
            free = free + given - taken
            held[me] = held[me] - given + taken
    assert sum(held) + free == total
    assert free == 0 and max(held) <= total // len(held) + 1, (
        "nobody has more than an equal share, rounded up"
    )


@given(st.integers(0, 30), st.integers(2, 6))
def test_somebody_takes_a_server_that_comes_up_when_all_are_equal(each: int, workers: int) -> None:
    assert crew([each] * workers, 0).server_limit(each, 256) > each
