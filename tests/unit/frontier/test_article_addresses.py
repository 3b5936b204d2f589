"""Articles under several addresses go through once, and nothing else is lost by it."""

from __future__ import annotations

from crawlproj.content.document import Link
from crawlproj.frontier.article_addresses import ENOUGH, MAX_HELD, ArticleAddresses
from crawlproj.frontier.base import CrawlSpec, Found, Lane, State, Ticket
from crawlproj.frontier.memory.frontier import MemoryFrontier
from crawlproj.frontier.memory.store import MemoryStore
from crawlproj.frontier.seen import SeenUrls


def make_seen(limit: int = 10_000) -> SeenUrls:
    return SeenUrls("c", lambda _: True, limit, addresses=ArticleAddresses(limit))


def address(number: int, words: str = "bridge-is-open") -> str:
    return f"http://in/{1_000_000 + number}/{words}.html"


def ticket(url: str) -> Ticket:
    return Ticket(7, url, "in", 1, 1, 0, Lane.NEW, State.NEW, 1)


def list_urls(seen: SeenUrls, *urls: str, found: Found = Found.FEED) -> list[str]:
    """What goes through of the links of a list."""
    links = [Link(url, "feed") for url in urls]
    _, fresh = seen.classify_links(ticket("http://in/"), links, found=found)
    return [url.url for url in fresh]


def read_page(seen: SeenUrls, url: str, canonical: str = "") -> list[str]:
    links = [Link(canonical, "canonical")] if canonical else []
    _, fresh = seen.classify_links(ticket(url), links)
    return [url.url for url in fresh]


def teach(seen: SeenUrls) -> None:
    for number in range(ENOUGH):
        list_urls(seen, address(number, "feed-has-this"))
        read_page(seen, address(number, "feed-has-this"), address(number))


def test_views_of_what_goes_through_are_recorded_only() -> None:
    seen = make_seen()
    url = "http://in/world/bridge-is-open-again"
    assert list_urls(seen, url, f"{url}?amp=1", f"{url}?print=1") == [url]
    links, _ = seen.classify_links(ticket(url), [Link(f"{url}/amp/", "a", "light")])
    assert links.other == (f"{url}/amp/",) and not links.known


def test_a_view_goes_through_where_nothing_links_the_article() -> None:
    seen = make_seen()
    assert list_urls(seen, "http://in/amp/bridge-is-open-again") != []


def test_two_addresses_of_a_number_go_through_until_the_host_is_known() -> None:
    seen = make_seen()
    urls = [address(1, words) for words in ("a-b-c", "d-e-f", "g-h-i")]
    assert list_urls(seen, *urls) == urls[:2]


def test_one_goes_through_once_canonical_links_have_shown_what_numbers_mean() -> None:
    seen = make_seen()
    teach(seen)
    assert list_urls(seen, address(9, "a-b-c"), address(9, "d-e-f")) == [address(9, "a-b-c")]
    assert read_page(seen, address(9, "a-b-c"), address(9)) == []


def test_another_host_is_not_known_by_it() -> None:
    seen = make_seen()
    teach(seen)
    urls = ["http://other/1234567/a-b-c", "http://other/1234567/d-e-f"]
    assert list_urls(seen, *urls) == urls


def test_numbers_that_name_more_than_one_page_hold_nothing_back() -> None:
    seen = make_seen()
    urls = [address(1, f"photo-of-part-{n}x") for n in range(9)]
    assert list_urls(seen, *urls) == urls[:2]
    assert read_page(seen, urls[0], urls[0]) == []
    assert read_page(seen, urls[1], urls[1]) == urls[2:]
    more = [address(2, f"photo-of-part-{n}x") for n in range(9)]
    assert list_urls(seen, *more) == more


def test_pages_that_say_nothing_release_the_others() -> None:
    seen = make_seen()
    urls = [address(1, words) for words in ("a-b-c", "d-e-f", "g-h-i")]
    list_urls(seen, *urls)
    assert read_page(seen, urls[0]) == urls[2:]


def test_if_the_first_is_no_page_the_others_go_through() -> None:
    seen = make_seen()
    teach(seen)
    list_urls(seen, address(9, "a-b-c"), address(9, "d-e-f"))
    assert [url.url for url in seen.note_failed(address(9, "a-b-c"))] == [address(9, "d-e-f")]
    url = "http://in/world/bridge-is-open-again"
    list_urls(seen, url, f"{url}?amp=1")
    assert [found.url for found in seen.note_failed(url)] == [f"{url}?amp=1"]


def test_what_is_held_back_is_bounded_and_released_if_nothing_was_learned() -> None:
    seen = make_seen(10 * MAX_HELD)
    released = []
    for number in range(MAX_HELD + 5):
        urls = [address(number, words) for words in ("a-b-c", "d-e-f", "g-h-i")]
        released += list_urls(seen, *urls)[2:]
    assert released == [address(number, "g-h-i") for number in range(5)]


def test_two_addresses_go_through_also_with_other_workers_and_after_a_restart() -> None:
    spec = CrawlSpec("c")
    store = MemoryStore()
    frontier = MemoryFrontier(spec, store)
    frontier.open()
    ids = {}

    def offer(words: str) -> None:
        """A worker that remembers nothing finds an address."""
        _, fresh = make_seen().classify_links(
            ticket("http://in/"), [Link(address(1, words), "feed")], found=Found.FEED
        )
        frontier.add(fresh)
        ids[words] = fresh[0].id

    def queued() -> list[str]:
        return [
            words for words in ids if frontier.get_urls([ids[words]])[ids[words]].state is State.NEW
        ]

    for words in ("feed-has-this", "sitemap-has-this", "front-has-this", "amp-has-this"):
        offer(words)
    assert queued() == ["feed-has-this", "sitemap-has-this"]


def test_what_ends_say_of_numbers_is_told_once() -> None:
    seen = make_seen()
    urls = [address(1, words) for words in ("a-b-c", "d-e-f")]
    list_urls(seen, *urls)
    read_page(seen, urls[0])
    (end,) = seen.take_article_ends(urls[0])
    assert (end.number, end.is_free) == (1_000_001, True)
    assert seen.take_article_ends(urls[0]) == ()
    seen.note_failed(urls[1])
    (end,) = seen.take_article_ends(urls[1])
    assert (end.number, end.is_free) == (1_000_001, False)
    assert seen.leads_elsewhere(urls[1], "http://in/login")
    assert not seen.leads_elsewhere(urls[1], urls[0])


def test_a_page_is_no_other_address_of_itself() -> None:
    seen = make_seen()
    teach(seen)
    list_urls(seen, address(9))
    seen.forget_url(address(9))
    assert list_urls(seen, address(9)) == [address(9)]
