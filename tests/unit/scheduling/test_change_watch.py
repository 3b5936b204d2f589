"""What is said of a page's changes, with what is known of it and of its host."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.content.changes import MAX_WALLS, ChangeRules
from crawlproj.content.html import parse_page
from crawlproj.content.slices import SLICE_CHARACTERS
from crawlproj.frontier.base import Found, HostText, Lane, NewUrl, State, Ticket
from crawlproj.items import ChangeVerdict, Page
from crawlproj.revisit.base import Bounds
from crawlproj.revisit.uniform import UniformPolicy
from crawlproj.scheduling.change_watch import MAX_HOSTS, WRITE_GAP_S, ChangeWatch
from crawlproj.scheduling.marking import PageMarking
from crawlproj.scheduling.outcomes import OutcomeRules
from settings import base

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
URL = "http://a.example/news/1"
OUTCOMES = OutcomeRules(
    UniformPolicy(Bounds(timedelta(days=1), timedelta(hours=1))),
    retries=3,
    retry_delay=timedelta(hours=1),
    gone_limit=3,
    gone_interval=timedelta(days=1),
)
PROBE = "http://a.example/no"
WORDS = "The council of the town has met again to speak about the bridge number {} of all. "


class World:
    """A watch with ears: what it hands over, and a clock."""

    def __init__(self) -> None:
        self.urls: list[NewUrl] = []
        self.texts: dict[str, HostText] = {}
        self.counted: Counter[str] = Counter()
        self.threads: set[int] = set()
        """Those that handed something over."""
        self.now_s = 0.0
        self.watch = ChangeWatch(
            "one",
            ChangeRules(),
            add_urls=self.add_urls,
            put_texts=self.put_texts,
            count=self.count,
            clock=lambda: self.now_s,
        )

    def put_texts(self, texts: Mapping[str, HostText]) -> None:
        self.threads.add(threading.get_ident())
        self.texts.update(texts)

    def add_urls(self, urls: list[NewUrl]) -> None:
        self.threads.add(threading.get_ident())
        self.urls += urls

    def count(self, name: str, number: int) -> None:
        self.threads.add(threading.get_ident())
        self.counted[name] += number

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
            state = verdict.state or ticket.page_state
            return verdict, replace(ticket, visit=ticket.visit + 1, page_state=state)
        return verdict, replace(
            ticket,
            visit=ticket.visit + 1,
            reads=ticket.reads + 1,
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
    assert world.counted["pages/probe"] == 1
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
    assert verdict.set_aside == "wall", "all of the host may be behind it"
    world.visit(article(5), ticket("http://a.example/news/5"))
    verdict, _ = world.visit(sorry.format("/news/1"), again)
    assert (verdict.set_aside, verdict.changed) == ("soft 404", False)
    verdict, _ = world.visit(sorry.format("/news/1"), ticket("http://a.example/news/2"))
    assert verdict.set_aside == "soft 404", "new pages, too"


def test_what_nobody_has_never_becomes_a_page_in_whatever_lease_it_is_seen(world: World) -> None:
    """That the host has shown a page is stored; and what was taken for one before is looked at
    again, though it says what it said.
    """
    sorry = f"<body><p>{WORDS.format(0) * 9}</p><p>There is no {{}} here.</p></body>"
    url = "http://a.example/news/2"
    verdict, never = world.visit(sorry.format("/news/2"), ticket(url))
    assert not verdict.set_aside, "nobody knows yet"
    _, known = world.visit(article(*range(20)), ticket())
    probe = Page(ticket(PROBE, found=Found.PROBE), PROBE, 200, NOW, kind="html")
    probe.document = parse_page(sorry.format("/no").encode(), PROBE)
    world.watch.take_probe(probe)
    verdict, _ = world.visit(sorry.format("/news/9"), ticket("http://a.example/news/9"))
    assert verdict.set_aside == "soft 404", "it would be no page behind a wall either"
    for _ in range(MAX_WALLS):
        world.watch.note_texts(world.texts)
        verdict, walled = world.visit(sorry.format("/news/1"), known)
        assert verdict.set_aside == "wall"
        known = walled
    verdict, _ = world.visit(sorry.format("/news/1"), known)
    assert (verdict.set_aside, verdict.changed) == ("soft 404", False)
    gone = replace(known, state=State.GONE, tries=2)
    page = Page(gone, URL, 200, NOW, verdict=ChangeVerdict(False, "wall", set_aside="wall"))
    outcome = OUTCOMES.decide_outcome(page, gone)
    assert (outcome.state, outcome.tries) == (State.GONE, 2), "a wall does not bring it back"
    world.visit(article(5), ticket("http://a.example/news/5"))
    for number in range(MAX_WALLS + 1):
        other = World()
        other.watch.note_texts(world.texts)
        verdict, _ = other.visit(sorry.format("/news/1"), known)
        assert verdict.set_aside == "soft 404", f"lease {number}"
    same = Page(never, url, 200, NOW, kind="html", body=sorry.format("/news/2").encode())
    seen_again = world.watch.judge_same(same)
    assert seen_again is not None and seen_again.set_aside == "soft 404"
    short = sorry.format("/news/3") + "<p>But it was.</p>"
    verdict, kept = world.visit(article(3), ticket("http://a.example/news/3"))
    kept = replace(kept, block_digest=parse_page(short.encode(), kept.url).block_digest)
    verdict, _ = world.visit(short, kept)
    assert not verdict.set_aside, "a short page has much in common with the answer"


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


def test_walls_count_only_in_a_row(world: World) -> None:
    """A page that is there again in between, in other bytes or the same ones, is not a wall."""
    wall = "<body><p>Please agree to our cookies.</p></body>"
    _, known = world.visit(article(*range(20)), ticket())
    for number in range(5):
        for _ in range(3):
            verdict, known = world.visit(wall, known)
            assert verdict.set_aside == "wall"
        if number % 2:
            verdict, known = world.visit(article(*range(20)) + " " * number, known)
            assert not (verdict.changed or verdict.set_aside)
            continue
        page = Page(known, known.url, 200, NOW, kind="html", body_digest=known.body_digest or b"")
        state = OUTCOMES.decide_outcome(page, known).page_state
        assert state, "its bytes are the same: nobody has judged it"
        known = replace(known, page_state=state)


def test_a_listing_that_is_there_again_has_no_walls_either(world: World) -> None:
    paths = [f"/{number}" for number in range(9)]
    _, known = world.visit(listing(*paths), ticket(), "listing")
    for _ in range(4):
        verdict, known = world.visit("<body>Please agree</body>", known, "listing")
        assert verdict.set_aside == "wall"
        known = replace(known, etag='"1"')
        page = Page(known, known.url, 304, NOW)
        state = OUTCOMES.decide_outcome(page, known).page_state
        known = replace(known, page_state=state)


def test_a_seed_that_is_a_text_is_judged_by_its_text(world: World) -> None:
    terms = ticket("http://a.example/terms", depth=0, found=Found.SEED)
    _, again = world.visit(article(1, 2), terms, "other")
    verdict, again = world.visit(article(1, 2, 3), again, "other")
    assert verdict.changed and verdict.kind == "new text"
    front = ticket("http://a.example/", depth=0, found=Found.SEED)
    _, again = world.visit(listing("/1"), front, "other")
    verdict, _ = world.visit(listing("/1", text="Other words, and many of them"), again, "other")
    assert (verdict.changed, verdict.new_links) == (False, 0), "a front page by its links"


def test_the_path_that_nobody_has_is_no_seed(world: World) -> None:
    terms = ticket("http://a.example/terms", depth=0, found=Found.SEED)
    _, again = world.visit(article(*range(20)), terms, "other")
    world.visit("<body><p>Please agree.</p></body>", again, "other")
    assert [url.depth for url in world.urls] == [1]


def test_a_page_of_an_older_database_has_a_state_as_soon_as_it_is_read(world: World) -> None:
    _, again = world.visit(article(1, 2), ticket())
    verdict, _ = world.visit(article(1, 2) + "<!-- 7 -->", replace(again, page_state=None))
    assert not verdict.changed and verdict.state


def test_failures_and_walls_leave_what_is_known_to_be_noise(world: World) -> None:
    """They are no captures in which nothing had changed."""
    wall = "<body><p>Please agree to our cookies.</p></body>"
    advert = "<div class=ad>Buy {} for a very good price, and only this week</div>"
    _, known = world.visit(article(*range(20), extra=advert.format("zero")), ticket())
    for name in ("apples", "bread", "cheese", "dates", "eggs", "fish"):
        _, known = world.visit(article(*range(20), extra=advert.format(name * 3)), known)
    for number, name in enumerate(("grapes", "honey", "ice", "jam")):
        known = replace(known, visit=known.visit + 3)
        for _ in range(number):
            verdict, known = world.visit(wall, known)
            assert verdict.set_aside == "wall"
        verdict, known = world.visit(article(*range(20), extra=advert.format(name * 3)), known)
        assert (verdict.changed, verdict.set_aside) == (False, ""), name


def test_what_was_learned_in_a_short_lease_is_not_lost(world: World) -> None:
    """A host with a few pages is leased for less time than it takes to write what was learned."""
    world.watch.note_texts({"a.example": HostText()})
    known = ticket()
    for number in range(6):
        clock = f"<div class=clock>It is {number} past {number * 7919} by our clock</div>"
        _, known = world.visit(article(1, 2, extra=clock), known)
        world.now_s += WRITE_GAP_S / 3
        world.watch.note_texts(
            {"a.example": HostText(world.texts.get("a.example", HostText()).noise)}
        )
    assert world.texts["a.example"].noise


def test_a_host_that_is_asked_all_the_time_is_not_forgotten_for_others(world: World) -> None:
    known = ticket()
    for number in range(3):
        clock = f"<div class=clock>It is {number} past {number * 7919} by our clock</div>"
        _, known = world.visit(article(1, 2, extra=clock), known)
        for other in range(MAX_HOSTS // 2):
            world.watch.note_texts({f"{number}-{other}.example": HostText()})
    assert not world.texts, "it was never dropped"


def test_very_long_pages_are_compared_in_a_thread_that_changes_nothing(world: World) -> None:
    settings = Settings()
    settings.setmodule(base)
    marking = PageMarking(read_config(settings, "site"), None, changes=world.watch)
    long = "".join(f"<p>{WORDS.format(number) * 20}</p>" for number in range(2_000))
    world.watch.note_texts({"a.example": HostText()})
    _, known = world.visit(f"<main>{long}</main>", ticket())
    world.now_s += WRITE_GAP_S + 1
    clock = f"<p class=clock>{WORDS.format('seven')}</p>"
    for html in (f"<main>{long}{clock}</main>", f"<main>{long[: SLICE_CHARACTERS + 9_000]}</main>"):
        page = Page(known, known.url, 200, NOW, kind="html", body_digest=html.encode())
        page.document = parse_page(html.encode(), known.url)
        assert not marking.mark(page), "it is long"
        asyncio.run(marking.mark_apart(page))
        assert page.verdict is not None and page.marked
    assert world.texts and world.urls and world.counted["pages/wall"] == 1
    assert world.threads == {threading.get_ident()}
