"""What is said of a page's changes, with what is known of it and of its host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawlproj.content.changes import ChangeRules
from crawlproj.content.html import parse_page
from crawlproj.frontier.base import Found, HostText, Lane, NewUrl, State, Ticket
from crawlproj.items import ChangeVerdict, Page
from crawlproj.scheduling.change_watch import WRITE_GAP_S, ChangeWatch

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
URL = "http://a.example/news/1"
WORDS = "The council of the town has met again to speak about the bridge number {} of all. "


class World:
    """A watch with ears: what it hands over, and a clock."""

    def __init__(self) -> None:
        self.urls: list[NewUrl] = []
        self.texts: dict[str, HostText] = {}
        self.counted: Counter[str] = Counter()
        self.now_s = 0.0
        self.watch = ChangeWatch(
            "one",
            ChangeRules(),
            add_urls=self.urls.extend,
            put_texts=self.put_texts,
            count=lambda name, number: self.counted.update({name: number}),
            clock=lambda: self.now_s,
        )

    def put_texts(self, texts: Mapping[str, HostText]) -> None:
        self.texts.update(texts)

    def visit(
        self,
        html: str,
        ticket: Ticket,
        page_kind: str = "article",
        status: int = 200,
        days: int = 0,
    ) -> tuple[ChangeVerdict, Ticket]:
        """The verdict on a visit, and the ticket of the next one."""
        page = Page(ticket, ticket.url, status, NOW + timedelta(days=days), kind="html")
        page.document = parse_page(html.encode(), ticket.url)
        page.page_kind = page_kind
        page.body_digest = html.encode()
        verdict = self.watch.judge(page)
        assert self.watch.judge(page) is verdict
        if verdict.set_aside:
            return verdict, replace(ticket, page_state=verdict.state or ticket.page_state)
        return verdict, replace(
            ticket,
            visit=ticket.visit + 1,
            state=State.WAITING,
            body_digest=page.body_digest,
            block_digest=page.document.block_digest,
            page_state=verdict.state or ticket.page_state,
        )


def ticket(url: str = URL, **fields: object) -> Ticket:
    made = Ticket(
        1, url, "a.example", server=1, epoch=1, visit=0, lane=Lane.REVISIT, state=State.NEW, depth=2
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def article(*numbers: int, extra: str = "") -> str:
    text = "".join(f"<p>{WORDS.format(n) * 3}</p>" for n in numbers)
    return f"<html><body><main><h1>News</h1>{text}{extra}</main></body></html>"


def listing(*paths: str, text: str = "") -> str:
    links = "".join(f"<a href={path}>{path}</a>" for path in paths)
    return f"<html><body><h1>All</h1>{links}<p>{text}</p></body></html>"


@pytest.fixture
def world() -> World:
    return World()


def test_a_first_visit_is_no_change_and_leaves_a_state(world: World) -> None:
    verdict, _ = world.visit(article(1, 2), ticket())
    assert not verdict.changed and verdict.state and not verdict.set_aside


def test_another_paragraph_is_a_change(world: World) -> None:
    _, again = world.visit(article(1, 2), ticket())
    verdict, _ = world.visit(article(1, 2, 3), again)
    assert verdict.changed and verdict.kind == "new text" and verdict.new_letters > 100


def test_the_same_text_in_other_bytes_keeps_the_state(world: World) -> None:
    _, again = world.visit(article(1, 2), ticket())
    verdict, _ = world.visit(article(1, 2).replace("<p>", "<p >"), again)
    assert not verdict.changed and verdict.state is None


def test_without_a_state_another_text_is_a_change(world: World) -> None:
    """A database from before."""
    _, again = world.visit(article(1, 2), ticket())
    verdict, _ = world.visit(article(1, 4), replace(again, page_state=None))
    assert verdict.changed and verdict.state


def test_a_listing_is_judged_by_its_new_links(world: World) -> None:
    _, again = world.visit(listing("/1", "/2"), ticket(), "listing")
    verdict, again = world.visit(listing("/1", "/2", text="other"), again, "listing")
    assert (verdict.changed, verdict.new_links) == (False, 0)
    verdict, again = world.visit(listing("/2", "/3", "/4"), again, "listing")
    assert (verdict.changed, verdict.new_links, verdict.kind) == (True, 2, "new links")
    verdict, again = world.visit(listing("/1", "/4"), again, "listing")
    assert (verdict.changed, verdict.new_links) == (False, 0), "one of them comes back"


def test_links_to_other_sites_do_not_make_a_listing_change(world: World) -> None:
    _, again = world.visit(listing("/1"), ticket(), "listing")
    verdict, _ = world.visit(listing("/1", "https://ads.example.org/7"), again, "listing")
    assert verdict.new_links == 0


def test_a_listing_without_links_is_a_wall_and_then_the_page(world: World) -> None:
    paths = [f"/{number}" for number in range(9)]
    _, again = world.visit(listing(*paths), ticket(), "listing")
    for _ in range(2):
        verdict, again = world.visit("<body>Please agree</body>", again, "listing")
        assert verdict.set_aside == "wall"
    verdict, _ = world.visit(listing(*paths), again, "listing")
    assert verdict.new_links == 0 and not verdict.set_aside
    verdict, again = world.visit("<body>Please agree</body>", again, "listing")
    assert not verdict.set_aside


def test_a_page_that_becomes_a_listing_begins_anew(world: World) -> None:
    _, again = world.visit(article(1, 2), ticket())
    verdict, again = world.visit(listing("/1", "/2"), again, "listing")
    assert verdict.new_links is None and not verdict.set_aside
    verdict, _ = world.visit(article(1, 2), again)
    assert verdict.state and not verdict.set_aside


def test_a_wall_asks_once_a_month_how_the_host_answers_for_nothing(world: World) -> None:
    wall = "<body><p>Please agree to our cookies.</p></body>"
    _, again = world.visit(article(*range(20)), ticket())
    verdict, again = world.visit(wall, again)
    assert verdict.set_aside == "wall" and world.counted["pages/wall"] == 1
    (probe,) = world.urls
    assert probe.found is Found.PROBE and probe.url.startswith("http://a.example/no-such-page-")
    world.visit(wall, again)
    assert {url.id for url in world.urls} == {probe.id}, "the same URL, which is asked once"
    asked = ticket(probe.url, found=Found.PROBE)
    page = Page(asked, probe.url, 404, NOW)
    world.watch.take_probe(page)
    world.urls.clear()
    verdict, again = world.visit(wall, again)
    assert verdict.set_aside == "wall" and not world.urls
    world.visit(wall, again, days=31)
    assert len(world.urls) == 1 and world.urls[0].id != probe.id


def test_what_looks_like_the_answer_for_nothing_is_gone(world: World) -> None:
    sorry = "<body><h1>Sorry</h1><p>The page {} could not be found on this server.</p></body>"
    _, again = world.visit(article(*range(20)), ticket())
    verdict, again = world.visit(sorry.format("/news/1"), again)
    assert verdict.set_aside == "wall"
    probe = Page(ticket("http://a.example/no", found=Found.PROBE), "http://a.example/no", 200, NOW)
    probe.kind = "html"
    probe.document = parse_page(sorry.format("/news/1").encode(), probe.url)
    world.watch.take_probe(probe)
    assert world.texts["a.example"].probe
    verdict, _ = world.visit(sorry.format("/news/1"), again)
    assert (verdict.set_aside, verdict.changed) == ("soft 404", False)
    verdict, _ = world.visit(sorry.format("/news/1"), ticket("http://a.example/news/2"))
    assert verdict.set_aside == "soft 404", "new pages, too"
    # Another worker knows it from the database.
    other = World()
    other.watch.note_texts(world.texts)
    verdict, _ = other.visit(sorry.format("/news/1"), again)
    assert verdict.set_aside == "soft 404"
    verdict, _ = other.visit(article(1), ticket("http://a.example/news/3"))
    assert not verdict.set_aside


def test_what_was_learned_of_a_host_is_handed_over_now_and_then(world: World) -> None:
    known = ticket()
    for number in range(4):
        clock = f"<div class=clock>It is {number} past {number * 7919} by our clock</div>"
        world.now_s += 1
        _, known = world.visit(article(1, 2, extra=clock), known)
    assert not world.texts
    world.now_s += WRITE_GAP_S
    clock = "<div class=clock>It is 99 past 99999 by our clock</div>"
    world.visit(article(1, 2, extra=clock), known)
    assert world.texts["a.example"].noise
    world.texts.clear()
    world.visit(article(1, 2, extra=clock.replace("99", "77")), known)
    world.watch.write_texts()
    assert world.texts["a.example"].noise
