from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from crawlproj.frontier.base import Found, Lane, NewUrl, State, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.barren_areas import ALLOWED_SHARE, PROVED, BarrenAreas

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TRIES = 12


def ticket(path: str, found: Found = Found.LINK, host: str = "a.test") -> Ticket:
    return Ticket(
        1,
        f"https://{host}{path}",
        host,
        server=1,
        epoch=1,
        visit=0,
        lane=Lane.NEW,
        state=State.NEW,
        found=found,
    )


def read(areas: BarrenAreas, path: str, kind: str = "other", links: tuple[str, ...] = ()) -> None:
    known = ticket(path)
    page = Page(known, known.url, 200, at=NOW)
    page.kind = "html"
    page.page_kind = kind
    areas.note_links(
        page, known, [NewUrl(n, f"https://a.test{link}", "a.test") for n, link in enumerate(links)]
    )
    areas.note_read(page, known)


def world(tries: int = TRIES, verdict: str = "", articles: int = PROVED) -> BarrenAreas:
    areas = BarrenAreas(tries, lambda url: verdict)
    for number in range(articles):
        read(areas, f"/world/the-bridge-of-village-{number}-is-open.html", "article")
    return areas


def talks(areas: BarrenAreas, count: int) -> None:
    for number in range(count):
        read(areas, f"/talk/topic/{number}/why-is-my-cat-on-the-roof-again")


def one_more(areas: BarrenAreas, **changes: object) -> bool:
    found = ticket("/talk/topic/99/why-is-my-cat-on-the-roof-again")
    return areas.leaves_out(replace(found, **changes))


def test_area_that_brought_nothing_is_left_out_after_some_tries() -> None:
    areas = world()
    talks(areas, TRIES - 1)
    assert not one_more(areas)
    talks(areas, 1)
    # One page in twenty is let through: the first one here, since five articles were useful.
    assert [one_more(areas) for _ in range(3)] == [False, True, True]
    assert not areas.leaves_out(ticket("/world/the-bridge-of-village-9-is-open.html"))
    assert not areas.leaves_out(ticket("/something/else"))


def test_what_is_named_as_a_forum_is_believed_to_be_one_sooner() -> None:
    areas = world()
    for number in range(3):
        read(areas, f"/forum/thread-{number}")
    assert [areas.leaves_out(ticket("/forum/thread-9")) for _ in range(2)] == [False, True]


def test_pages_that_lead_to_articles_are_no_waste_and_those_that_lead_to_waste_are() -> None:
    areas = world()
    for number in range(30):
        story = f"/world/the-story-number-{number}-of-many-more.html"
        read(areas, f"/archive/2025/{number}", "listing", (story,))
    assert not areas.leaves_out(ticket("/archive/2025/99"))
    talks(areas, TRIES)
    one_more(areas)
    for number in range(30):
        read(areas, f"/talk/list/{number}", links=(f"/talk/topic/{number}/why-is-my-cat-away",))
    lists = [areas.leaves_out(ticket("/talk/list/99")) for _ in range(9)]
    assert lists.count(False) <= ALLOWED_SHARE * (30 + PROVED) + 1 and any(lists)


def test_archives_of_articles_with_plain_addresses_are_no_waste() -> None:
    areas = BarrenAreas(TRIES, lambda url: "")
    for number in range(PROVED):
        read(areas, f"/story/{'abcdefgh'[number]}", "article")
    for number in range(30):
        read(areas, f"/archive/2025/{number}", "listing", (f"/story/x{'abcdefgh'[number % 8]}",))
    assert not any(areas.leaves_out(ticket("/archive/2025/99")) for _ in range(9))


def test_nothing_is_barren_where_articles_are_not_recognized() -> None:
    areas = world(articles=PROVED - 1)
    talks(areas, 100)
    assert not one_more(areas)


def test_what_is_asked_for_is_fetched_wherever_it_is() -> None:
    areas = world()
    talks(areas, 100)
    one_more(areas)
    assert one_more(areas)
    for found in (Found.SEED, Found.PUSH, Found.FEED, Found.REQUEST):
        assert not one_more(areas, found=found)
    assert not one_more(areas, lane=Lane.REVISIT)
    assert not one_more(areas, request={"method": "GET"})
    ruled = world(verdict="follow")
    talks(ruled, 100)
    assert not any(one_more(ruled) for _ in range(5))


def test_area_that_gets_articles_later_is_barren_no_more() -> None:
    areas = world()
    talks(areas, TRIES)
    one_more(areas)
    assert one_more(areas)
    read(areas, "/talk/topic/98/why-is-my-cat-on-the-roof-again", "article")
    assert not one_more(areas)
