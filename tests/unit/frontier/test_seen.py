from __future__ import annotations

from dataclasses import replace

from crawlproj.content.document import Link
from crawlproj.frontier.base import Found, Lane, LeftOutHost, State, Ticket
from crawlproj.frontier.seen import SeenUrls
from crawlproj.urls.canonical import MAX_URL, url_key
from crawlproj.urls.scope import Scope, ScopeRules


def seen_urls(limit: int = 1000, nofollow: bool = False) -> SeenUrls:
    return SeenUrls("c", lambda url: url.startswith("http://in/"), limit, nofollow)


def ticket(depth: int = 0, id_: int = 7) -> Ticket:
    return Ticket(id_, "http://in/", "in", 1, 1, 0, Lane.NEW, State.NEW, depth)


def test_a_link_goes_through_once_and_again_only_if_it_is_nearer() -> None:
    seen = seen_urls()
    link = Link("http://in/a", "a", "text")
    assert [(u.url, u.depth, u.parent) for u in seen.classify_links(ticket(3), [link])[1]] == [
        ("http://in/a", 4, 7)
    ]
    assert seen.classify_links(ticket(3), [link])[1] == []
    assert seen.classify_links(ticket(5), [link])[1] == []
    assert [u.depth for u in seen.classify_links(ticket(0), [link])[1]] == [1]


def test_all_links_are_recorded_those_of_the_crawl_by_id() -> None:
    links = [
        Link("http://in/a", "a", "A"),
        Link("http://out/b", "a", "B"),
        Link("http://in/c.png", "img", "C"),
    ]
    kept, fresh = seen_urls().classify_links(ticket(), links)
    assert (kept.known, kept.known_kinds, kept.known_texts) == (
        (url_key("c", "http://in/a"),),
        ("a",),
        ("A",),
    )
    assert (kept.other, kept.other_kinds, kept.other_texts) == (
        ("http://out/b", "http://in/c.png"),
        ("a", "img"),
        ("B", "C"),
    )
    assert [u.url for u in fresh] == ["http://in/a"]


def test_nofollow_links_are_recorded_but_not_followed_unless_asked_for() -> None:
    link = Link("http://in/a", "a", nofollow=True)
    assert seen_urls().classify_links(ticket(), [link])[1] == []
    stored = seen_urls().classify_links(ticket(), [link])[0]
    assert (stored.known, stored.other, stored.other_kinds) == (
        (),
        ("http://in/a",),
        ("a nofollow",),
    )
    assert len(seen_urls(nofollow=True).classify_links(ticket(), [link])[1]) == 1


def test_a_page_that_says_nofollow_gives_no_urls() -> None:
    assert seen_urls().classify_links(ticket(), [Link("http://in/a", "a")], follow=False)[1] == []


def test_a_link_that_was_not_followed_is_followed_when_another_page_has_it() -> None:
    seen = seen_urls()
    seen.classify_links(ticket(), [Link("http://in/a", "a", nofollow=True)])
    assert len(seen.classify_links(ticket(), [Link("http://in/a", "a")])[1]) == 1


def test_endless_urls_are_counted_and_left_out() -> None:
    seen = seen_urls()
    assert seen.classify_links(ticket(), [Link("http://in/" + "x" * MAX_URL, "a")])[1] == []
    assert seen.too_long == 1


def test_what_it_forgets_goes_through_again() -> None:
    seen = seen_urls(limit=4)
    links = [Link(f"http://in/{n}", "a") for n in range(5)]
    assert len(seen.classify_links(ticket(), links)[1]) == 5
    assert len(seen.classify_links(ticket(), links[:1])[1]) == 1
    seen.forget_url("http://in/0")
    assert len(seen.classify_links(ticket(), links[:1])[1]) == 1


def test_it_stays_within_its_limit() -> None:
    seen = seen_urls(limit=100)
    for start in range(0, 1000, 50):
        seen.classify_links(
            ticket(), [Link(f"http://in/{n}", "a") for n in range(start, start + 50)]
        )
        assert len(seen._known) + len(seen._older) <= 100


def test_what_is_met_again_and_again_is_not_forgotten() -> None:
    seen = seen_urls(limit=100)
    often = Link("http://in/often", "a")
    seen.classify_links(ticket(), [often])
    for start in range(0, 1000, 20):
        assert seen.classify_links(
            ticket(), [*(Link(f"http://in/{n}", "a") for n in range(start, start + 20)), often]
        )[0].known[-1]
        assert seen.classify_links(ticket(), [often])[1] == []


def test_links_in_slices_are_sorted_as_at_once_also_when_other_pages_come_between() -> None:
    links = [Link(f"http://{('in', 'out')[n % 3 == 0]}/{n % 700}", "a", str(n)) for n in range(900)]
    whole = seen_urls().classify_links(ticket(), links)
    seen = seen_urls(limit=300)
    slices = seen.classify_in_slices(ticket(), links)
    others = []
    try:
        while True:
            next(slices)
            others += seen.classify_links(ticket(id_=8), [Link("http://in/697", "a")])[1]
    except StopIteration as end:
        stored, fresh = end.value
    assert stored == whole[0]
    assert sorted({url.url for url in fresh + others}) == sorted(url.url for url in whole[1])
    assert others


def test_media_are_recorded_and_not_followed_unless_they_are_feeds_or_sitemaps() -> None:
    seen = SeenUrls("c", lambda url: True, 1000, suffixes=frozenset({"gz", "mp4"}))
    film = Link("http://in/film.mp4", "a", "F")
    packed = "http://in/list.gz"
    for _ in range(2):
        kept, fresh = seen.classify_links(ticket(), [film, Link(packed, "a")])
        assert (kept.known, kept.other, fresh) == ((), (film.url, packed), [])
    assert seen.media == 2
    kept, fresh = seen.classify_links(ticket(), [Link(packed, "sitemap")])
    assert kept.known == (url_key("c", packed),)
    assert [url.url for url in fresh] == [packed]


def test_hosts_that_are_left_out_are_noted_once_with_their_first_link() -> None:
    scope = Scope(ScopeRules(include="/x"))
    scope.add_seeds(["http://in/"])
    seen = SeenUrls("c", scope, 1000)
    links = [Link(url, "a") for url in ("http://out/1", "http://out/2", "http://in/no")]
    seen.classify_links(ticket(), links)
    assert seen.take_left_out() == {"out": LeftOutHost("out", "http://out/1")}
    seen.classify_links(ticket(), [Link("http://out/3", "a")])
    assert seen.take_left_out() == {}


def test_a_link_outside_that_is_not_to_be_followed_is_recorded_as_such() -> None:
    seen = seen_urls()
    links = [Link("http://out/1", "a", nofollow=True), Link("http://out/2", "a")]
    assert seen.classify_links(ticket(), links)[0].other_kinds == ("a nofollow", "a")
    assert seen.classify_links(ticket(), links, follow=False)[0].other_kinds == (
        "a nofollow",
        "a nofollow",
    )


def test_a_nofollow_link_to_a_url_that_is_in_the_frontier_is_stored_by_its_id() -> None:
    seen = seen_urls()
    followed, fresh = seen.classify_links(ticket(), [Link("http://in/a", "a")])
    assert len(fresh) == 1
    stored, fresh = seen.classify_links(ticket(), [Link("http://in/a", "a", nofollow=True)])
    assert (stored.known, stored.other, fresh) == (followed.known, (), [])


FEEDS = [Link(f"http://feeds.out/{number}", "feed") for number in range(8)]


def scoped_seen() -> SeenUrls:
    return SeenUrls("c", Scope(ScopeRules(domains=frozenset({"in"}), exclude="/no")), 1000)


def test_feeds_elsewhere_belong_to_the_page_that_names_them_a_few_of_each_page() -> None:
    seen = scoped_seen()
    links = [Link("http://in/no.xml", "feed"), Link("http://out/a", "a"), *FEEDS]
    kept, fresh = seen.classify_links(ticket(), links)
    assert [(url.url, url.found) for url in fresh] == [
        (feed.url, Found.NAMED_FEED) for feed in FEEDS[:5]
    ]
    assert kept.known == tuple(url.id for url in fresh)
    # Nearer, and after everything was forgotten.
    assert seen.classify_links(ticket(), FEEDS[:5])[1] == []
    again = scoped_seen().classify_links(ticket(), FEEDS[:1])[1]
    assert [url.found for url in again] == [Found.NAMED_FEED]
    assert set(seen.take_left_out()) == {"out"}


def test_pages_of_such_feeds_name_no_others_and_what_they_list_is_judged_by_the_scope() -> None:
    seen = scoped_seen()
    assert seen.classify_links(ticket(), FEEDS, found=Found.FEED)[1] == []
    elsewhere = replace(ticket(), found=Found.NAMED_FEED)
    assert seen.classify_links(elsewhere, FEEDS)[1] == []
    assert seen.classify_links(ticket(), FEEDS, follow=False)[1] == []


def test_a_site_names_only_so_many_feeds() -> None:
    seen = scoped_seen()
    fresh = []
    for number in range(20):
        links = [Link(f"http://feeds.out/{number}/{other}", "feed") for other in range(5)]
        fresh += seen.classify_links(ticket(), links)[1]
    assert len(fresh) == 50


def test_links_to_feeds_of_the_same_site_or_a_service_are_feeds_near_its_front_page() -> None:
    links = [
        Link("http://feeds.feedburner.com/inside", "a"),
        Link("http://rss.in.test/news.xml", "a"),
        Link("http://other.test/rss.xml", "a"),
        Link("http://static.in.test/photo", "a"),
    ]
    scope = Scope(ScopeRules(domains=frozenset({"www.in.test"})))
    front = replace(ticket(), url="http://www.in.test/")
    fresh = SeenUrls("c", scope, 1000).classify_links(front, links)[1]
    assert [url.url for url in fresh] == [links[0].url, links[1].url]
    assert SeenUrls("c", scope, 1000).classify_links(replace(front, depth=2), links)[1] == []
