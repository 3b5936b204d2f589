"""Contract: a domain with endless host names."""

from __future__ import annotations

from crawlproj.frontier.base import Lane
from tests.contract.worlds import World


class HostLimits:
    def test_a_domain_gets_only_so_many_hosts_by_links(self, world: World) -> None:
        frontier = world.frontier(domain_hosts=3)
        first = frontier.add(
            [world.url(frontier, "/", f"h{number}", depth=1) for number in range(5)]
        )
        assert (first.added, first.refused) == (3, 2)
        again = frontier.add(
            [world.url(frontier, "/", f"h{number}", depth=2) for number in range(3, 9)]
        )
        assert (again.added, again.refused) == (0, 6)
        assert frontier.add([world.url(frontier, "/more", "h0", depth=2)]).added == 1

    def test_what_people_give_is_not_limited(self, world: World) -> None:
        frontier = world.frontier(domain_hosts=2)
        seeds = [world.url(frontier, "/", f"s{number}") for number in range(4)]
        pushed = world.url(frontier, "/", "pushed", depth=3, lane=Lane.URGENT)
        assert frontier.add([*seeds, pushed]).added == 5
        assert frontier.add([world.url(frontier, "/", "found", depth=1)]).refused == 1
        assert frontier.add([world.url(frontier, "/deeper", "s3", depth=1)]).added == 1

    def test_other_crawls_and_domains_have_limits_of_their_own(self, world: World) -> None:
        one = world.frontier("one", domain_hosts=1)
        two = world.frontier("two", domain_hosts=1)
        for frontier in (one, two):
            assert frontier.add([world.url(frontier, "/", "a", depth=1)]).added == 1
            assert frontier.add([world.url(frontier, "/", "b", depth=1)]).refused == 1

    def test_a_name_that_only_ends_like_the_domain_is_another_one(self, world: World) -> None:
        frontier = world.frontier(domain_hosts=1)
        names = [
            f"a.x{world.tag}.test",
            f"a.y-x{world.tag}.test",
            f"x{world.tag}.test",
            f"b.x{world.tag}.test",
        ]
        urls = [world.at(frontier, f"http://{name}/", name) for name in names]
        committed = frontier.add(urls)
        assert (committed.added, committed.refused) == (3, 1)
        assert names[3] not in {
            found.host for found in frontier.get_urls([url.id for url in urls]).values()
        }
