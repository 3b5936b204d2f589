"""Articles in Postgres: one row for each whatever addresses it has, versions, and the queue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from crawlproj.articles.store import ArticleState, ArticleStore, NewArticle, QueuedPage, Stored
from crawlproj.content.articles import extract_article
from crawlproj.content.document import Link
from crawlproj.content.packed_text import pack_body, unpack_body
from crawlproj.database.connection import Database
from crawlproj.frontier.article_addresses import ENOUGH, ArticleAddresses
from crawlproj.frontier.base import ArticleSource, Batch, Links
from crawlproj.frontier.seen import SeenUrls
from crawlproj.reports.export import iterate_articles
from crawlproj.upkeep import takedown
from crawlproj.urls.canonical import url_key
from tests.support.copies import Copies, article
from tests.support.news_web import news_article

HOST = "https://www.weekly.example"
SITE = "weekly.example"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FIRST = f"{HOST}/world/2.html"
SLUG = f"{HOST}/world/2-bridge.html"
OTHER_SLUG = f"{HOST}/local/bridge-rebuilt.html"
AMP = f"{HOST}/amp/2.html"
PRINT = f"{HOST}/print/2.html"
TITLE = "Gardeners of village 2 rebuilt their old bridge"
PAGES = {
    FIRST: news_article(2),
    SLUG: news_article(2, links="<p><a href=/>Other words around it</a></p>"),
    OTHER_SLUG: news_article(2, links="<p>Some more of us: <a href=/a>a</a></p>", json_ld=False),
    AMP: news_article(2, canonical=FIRST, json_ld=False, paragraphs=article(2, 6)[:5]).replace(
        "</article>", "</article><p>This is the quick version, made for telephones.</p>"
    ),
    PRINT: f"<html><head><title>{TITLE} - The Weekly</title></head><body><h1>{TITLE}</h1>"
    + "".join(f"<p>{text}</p>" for text in article(2, 6))
    + "<p>Printed from the Weekly. All rights reserved by the Weekly.</p></body></html>",
}


@dataclass
class Newsroom:
    """A worker that reads pages of a site, and takes their articles."""

    copies: Copies
    store: ArticleStore

    def read(self, pages: dict[str, str]) -> None:
        """Read pages in one commit, each of which is an article."""
        outcomes = []
        for url, page in pages.items():
            outcome = self.copies.outcome(url, page)
            assert outcome.content is not None
            source = ArticleSource(pack_body(page.encode()), "utf-8")
            content = replace(outcome.content, kind="article", article=source)
            outcomes.append(replace(outcome, content=content))
        committed = self.copies.frontier.commit(Batch(outcomes), self.copies.worker)
        assert committed.done == {outcome.id for outcome in outcomes}

    def take(self) -> dict[str, Stored]:
        """Take all articles of the queue; what came of each."""
        found = {}
        while pages := self.store.take(10):
            for queued in pages:
                found[queued.url] = self.put(queued)
                if found[queued.url].version:
                    sent = queued._replace(version=found[queued.url].version)
                    self.store.end([(sent, ArticleState.SENT)])
        return found

    def put(self, queued: QueuedPage) -> Stored:
        stored = self.store.put(self.article_of(queued))
        assert stored is not None
        return stored

    def article_of(self, queued: QueuedPage) -> NewArticle:
        assert queued.body is not None
        fields = extract_article(unpack_body(queued.body), queued.url, charset=queued.charset)
        assert fields.text
        return NewArticle(queued, SITE, SITE, fields)

    def rows(self, sql: str) -> list[Any]:
        return self.copies.database.run_script(sql)

    def waiting(self) -> int:
        number: int = self.rows("select count(*) from crawlproj.article_queue")[0][0]
        return number

    def articles(self) -> list[str]:
        """The pages that have an article of their own."""
        return [
            row[0]
            for row in self.rows("""select u.canonical from crawlproj.article a
            join crawlproj.url u on u.id = a.page order by a.found_at""")
        ]

    def states(self) -> dict[str, str]:
        return dict(
            self.rows("""select u.canonical, p.article from crawlproj.page p
            join crawlproj.url u on u.id = p.url""")
        )


@pytest.fixture
def room(database: Database) -> Iterator[Newsroom]:
    copies = Copies(database)
    store = ArticleStore(database.new_connection(), copies.frontier.crawl_id, "w-0")
    yield Newsroom(copies, store)
    store.database.close()
    copies.close()


@pytest.mark.parametrize(
    "order", [list(PAGES), list(PAGES)[::-1], [AMP, PRINT, OTHER_SLUG, FIRST, SLUG]]
)
@pytest.mark.parametrize("at_once", [True, False])
def test_slugs_amp_and_print_of_an_article_are_one_row_with_all_addresses(
    room: Newsroom, order: list[str], at_once: bool
) -> None:
    room.read({f"{HOST}/world/3.html": news_article(3)})
    room.take()
    if at_once:
        room.read({url: PAGES[url] for url in order})
        room.take()
    else:
        for url in order:
            room.read({url: PAGES[url]})
            room.take()
    first, own = room.articles()
    assert first == f"{HOST}/world/3.html"
    assert own in PAGES
    page = room.copies.id(own)
    assert set(room.store.addresses(page)) == set(PAGES)
    exported = room.store.database.fetch_rows(
        "export_articles", crawl=room.copies.frontier.crawl_id, since=LONG_AGO, after=0, limit=10
    )
    # The address that the others name as canonical comes first, whichever was read first.
    assert exported[-1][-1] == [FIRST, *room.store.addresses(page)[1:]]
    states = room.states()
    assert [states[url] for url in PAGES].count("copy") == len(PAGES) - 1
    assert states[own] == "sent"
    assert room.waiting() == 0
    stored = room.store.get(page)
    assert stored is not None
    assert (stored.version, stored.title) == (1, TITLE)


def test_canonical_address_is_the_named_one_else_the_one_that_changed_else_the_shortest(
    room: Newsroom,
) -> None:
    def first_address() -> str:
        return room.store.addresses(room.copies.id(AMP))[0]

    room.read({AMP: PAGES[AMP].replace("canonical", "no-canonical")})
    room.take()
    assert first_address() == AMP
    room.read({SLUG: PAGES[SLUG], PRINT: PAGES[PRINT]})
    room.take()
    assert first_address() == AMP
    room.rows(
        f"update crawlproj.url set changes = 1, last_change = now() where canonical = '{SLUG}'"
    )
    assert first_address() == SLUG
    room.read(
        {
            OTHER_SLUG: PAGES[OTHER_SLUG].replace(
                "<head>", f"<head><link rel=canonical href={PRINT}>"
            )
        }
    )
    room.take()
    assert first_address() == PRINT
    room.rows(f"update crawlproj.url set state = 'gone' where canonical = '{PRINT}'")
    assert first_address() == SLUG


def test_addresses_that_were_held_back_are_addresses_of_the_article(room: Newsroom) -> None:
    """Also where it turns out later that a number names one article; none is fetched for it."""
    held = [
        f"{HOST}/world/1000001/{words}"
        for words in ("by-the-river", "in-the-north", "at-noon-again")
    ]
    own = held.pop(0)
    amp = f"{own}?amp=1"
    crawl = room.copies.crawl
    seen = SeenUrls(
        crawl, lambda _: True, 1000, addresses=ArticleAddresses(1000, partial(url_key, crawl))
    )
    front = room.copies.ticket(f"{HOST}/")
    kept = []

    def read_list(*urls: str) -> list[str]:
        links, fresh = seen.classify_links(front, [Link(url, "a") for url in urls])
        kept.extend(links.held)
        return [url.url for url in fresh]

    assert read_list(own, held[0], held[1], amp) == [own, held[0]]
    assert {address.url for address in kept} == {amp}
    for number in range(2, 2 + ENOUGH):
        other = f"{HOST}/world/100000{number}/by-the-other-river"
        read_list(other)
        links, _ = seen.classify_links(
            room.copies.ticket(other), [Link(other.replace("other-", ""), "canonical")]
        )
        kept += links.held
    more = f"{HOST}/world/1000001/and-yet-other-words"
    assert read_list(more) == []
    outcome = room.copies.outcome(f"{HOST}/", news_article(9))
    assert outcome.content is not None
    outcome = replace(outcome, content=replace(outcome.content, links=Links(held=tuple(kept))))
    room.copies.frontier.commit(Batch([outcome]), room.copies.worker)
    room.read({own: news_article(2)})
    room.take()
    page = room.copies.id(own)
    assert room.store.addresses(page) == [own, *sorted([amp, held[1], more])]
    # One that is fetched after all, and has another article, is none.
    room.read({held[1]: news_article(3)})
    room.take()
    assert room.store.addresses(page) == [own, *sorted([amp, more])]
    exported = room.store.database.fetch_rows(
        "export_articles", crawl=room.copies.frontier.crawl_id, since=LONG_AGO, after=0, limit=10
    )
    assert [own, *sorted([amp, more])] in [row[-1] for row in exported]


def test_articles_under_the_same_title_are_not_the_same(room: Newsroom) -> None:
    title = "The weather of the whole week for you"
    urls = [f"{HOST}/weather/{number}.html" for number in range(3)]
    room.read({url: news_article(n + 5, title=title) for n, url in enumerate(urls)})
    assert {stored.version for stored in room.take().values()} == {1}
    assert sorted(room.articles()) == urls


def test_the_same_article_of_another_site_is_another_one(room: Newsroom) -> None:
    other = "https://www.gazette.example/world/2.html"
    room.read({FIRST: PAGES[FIRST]})
    room.take()
    page = PAGES[SLUG].replace("Weekly", "Gazette").replace("rights", "wrongs")
    room.read({other: page.replace("<footer>", f"<div><p>{article(9, 1)[0]}</p></div><footer>")})
    (queued,) = room.store.take(10)
    new = room.article_of(queued)
    assert room.store.put(replace(new, site="gazette.example")) == Stored(version=1)
    assert room.store.addresses(room.copies.id(FIRST)) == [FIRST]


def test_another_text_is_a_new_version_and_the_same_is_none(room: Newsroom) -> None:
    page = room.copies.id(FIRST)
    room.read({FIRST: PAGES[FIRST]})
    assert room.take() == {FIRST: Stored(version=1)}
    room.read({FIRST: PAGES[FIRST].replace("All rights", "No rights")})
    assert room.take() == {FIRST: Stored()}
    assert room.states()[FIRST] == "sent"
    changed = news_article(2, paragraphs=[*article(2, 5), article(77, 1)[0]])
    room.read({FIRST: changed})
    assert room.take() == {FIRST: Stored(version=2)}
    stored = room.store.get(page)
    assert stored is not None and stored.modified
    assert stored.text.endswith(article(77, 1)[0])
    assert room.articles() == [FIRST]


def test_a_page_that_was_a_copy_may_become_an_article(room: Newsroom) -> None:
    room.read({FIRST: PAGES[FIRST]})
    room.take()
    room.read({PRINT: PAGES[PRINT]})
    assert room.take() in ({PRINT: Stored(same_as=room.copies.id(FIRST))}, {})
    room.read({PRINT: news_article(8)})
    assert room.take() == {PRINT: Stored(version=1)}
    assert room.store.addresses(room.copies.id(FIRST)) == [FIRST]
    assert room.articles() == [FIRST, PRINT]


def test_mends_replace_what_was_taken_and_are_no_version(room: Newsroom) -> None:
    page = room.copies.id(FIRST)
    room.read({FIRST: PAGES[FIRST]})
    (queued,) = room.store.take(10)
    new = room.article_of(queued)
    room.store.put(new)
    room.store.end([(queued, ArticleState.SENT)])
    better = replace(new, fields=replace(new.fields, title="A better title", section="Local"))
    assert room.store.put(better, mends=True) == Stored(version=1)
    stored = room.store.get(page)
    assert stored is not None
    assert (stored.version, stored.title, stored.fields["section"]) == (
        1,
        "A better title",
        "Local",
    )
    assert stored.modified == new.fields.modified
    older = queued._replace(at=queued.at - timedelta(hours=1))
    old = replace(new, queued=older, fields=replace(new.fields, title="An old title"))
    assert room.store.put(old, mends=True) == Stored()
    stored = room.store.get(page)
    assert stored is not None and stored.title == "A better title"
    assert room.states()[FIRST] == "sent"


def test_what_postgres_cannot_store_is_left_out(room: Newsroom) -> None:
    room.read({FIRST: PAGES[FIRST]})
    (queued,) = room.store.take(10)
    new = room.article_of(queued)
    bad = "A\0 bad \ud800 text " * 30
    fields = replace(
        new.fields, title=bad, text=bad, authors=(bad,), alarms=(bad,), origins={"title": bad}
    )
    assert room.store.put(replace(new, fields=fields, labels=(bad,))) == Stored(version=1)
    stored = room.store.get(queued.page)
    assert stored is not None
    assert stored.text.startswith("A bad ? text")
    assert stored.fields["authors"] == [stored.text]


def test_two_threads_never_take_the_same_page(room: Newsroom) -> None:
    urls = [f"{HOST}/world/{number}.html" for number in range(60)]
    room.read({url: news_article(number) for number, url in enumerate(urls)})
    taken: list[list[str]] = [[], []]
    start = threading.Barrier(2)

    def take(number: int) -> None:
        database = room.copies.database.new_connection()
        store = ArticleStore(database, room.copies.frontier.crawl_id, f"w-{number}")
        assert store.get(0) is None  # it is connected
        start.wait()
        while pages := store.take(2):
            taken[number] += [queued.url for queued in pages]
        database.close()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted([*taken[0], *taken[1]]) == sorted(urls)
    assert min(map(len, taken)) > 0
    assert room.waiting() == 60


def test_what_is_taken_comes_back_when_it_is_put_back_or_its_time_is_over(room: Newsroom) -> None:
    urls = [f"{HOST}/world/{number}.html" for number in range(4)]
    for number, url in enumerate(urls):
        room.read({url: news_article(number)})
    first, second, *_ = taken = room.store.take(10)
    assert [queued.url for queued in taken] == urls  # those that wait longest first
    assert room.store.take(10) == []
    room.store.free_own(but=[first.page])
    (again, *_) = back = room.store.take(10)
    assert len(back) == 3
    assert again.page == second.page
    room.store.free_dead(lambda worker: worker != "w-0")
    assert room.store.take(10) == []
    room.store.free_dead(lambda worker: worker == "w-0")
    assert len(room.store.take(10)) == 4
    room.rows("update crawlproj.article_queue set taken_until = now() - interval '1s' returning 1")
    assert len(room.store.take(10)) == 4


def test_a_page_that_is_read_again_while_it_is_taken_stays_in_the_queue(room: Newsroom) -> None:
    room.read({FIRST: PAGES[FIRST]})
    (queued,) = room.store.take(10)
    changed = news_article(2, paragraphs=article(55, 6))
    room.read({FIRST: changed})
    assert room.store.put(room.article_of(queued)) is None
    room.store.end([(queued, ArticleState.SENT)])
    assert room.waiting() == 1
    (later,) = room.store.take(10)
    assert later.at > queued.at and later.body is not None
    assert room.store.put(room.article_of(later)) == Stored(version=1)
    room.store.end([(later, ArticleState.SENT)])
    assert room.waiting() == 0
    assert room.states()[FIRST] == "sent"


def test_an_article_whose_item_was_not_sent_is_taken_again_without_its_body(
    room: Newsroom,
) -> None:
    room.read({FIRST: PAGES[FIRST]})
    (queued,) = room.store.take(10)
    room.store.put(room.article_of(queued))
    assert room.states()[FIRST] == "unsent"
    room.store.free_own()
    (unsent,) = room.store.take(10)
    assert (unsent.page, unsent.body) == (queued.page, None)
    assert room.store.get(unsent.page) is not None
    room.store.end([(unsent, ArticleState.SENT)])
    assert room.states()[FIRST] == "sent"


def test_two_threads_with_the_same_article_store_one(room: Newsroom) -> None:
    room.copies.frontier.judge = None  # or else it would know them for copies
    pages = {f"{HOST}/world/{n}.html": PAGES[FIRST] for n in range(10, 30)}
    room.read(pages)
    stored: list[Stored] = []
    start = threading.Barrier(4)
    jobs = [room.article_of(queued) for queued in room.store.take(100)]

    def put(number: int) -> None:
        database = room.copies.database.new_connection()
        store = ArticleStore(database, room.copies.frontier.crawl_id, "w-0")
        start.wait()
        for job in jobs[number::4]:
            one = store.put(job)
            assert one is not None
            stored.append(one)
        database.close()

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(stored) == 20
    assert sum(one.version for one in stored) == 1
    assert len({one.same_as for one in stored} - {None}) == 1
    assert len(room.articles()) == 1


def test_forgetting_takes_articles_and_queued_pages_away_and_nobody_brings_them_back(
    room: Newsroom,
) -> None:
    amp = "https://amp.weekly.example/2.html"
    copy = "https://amp.weekly.example/3.html"
    third = f"{HOST}/world/3.html"
    room.read({FIRST: PAGES[FIRST], third: news_article(3)})
    room.take()
    room.read({amp: PAGES[PRINT], copy: news_article(3)})
    room.take()
    assert {room.states()[amp], room.states()[copy]} == {"copy"}
    room.read({f"{HOST}/world/{n}.html": news_article(n) for n in range(10, 30)})
    held = room.store.take(2)
    other = "https://www.gazette.example/1.html"
    room.read({other: news_article(77)})
    takedown.store_rules(room.store.database, ["www.weekly.example"], "", barred=True)
    for rule in takedown.pending_rules(room.store.database).all:
        takedown.erase_rows(room.store.database, rule)
    assert [room.store.put(room.article_of(queued)) for queued in held] == [None, None]
    assert (room.articles(), room.waiting()) == ([], 1)
    assert [queued.url for queued in room.store.take(1)] == [other]
    room.store.free_own()
    # The same text stands on a host that was not forgotten.
    room.read({amp: PAGES[PRINT], copy: news_article(3)})
    assert {stored.version for stored in room.take().values()} == {1}
    assert sorted(room.articles()) == sorted([other, amp, copy])


def test_an_article_whose_item_was_never_sent_is_sent_whatever_its_page_becomes(
    room: Newsroom,
) -> None:
    same = PAGES[FIRST].replace("All rights", "No rights")
    room.read({FIRST: PAGES[FIRST]})
    (queued,) = room.store.take(10)
    assert room.put(queued) == Stored(version=1)
    room.store.free_own()  # it was killed before the item had passed the pipelines
    room.read({FIRST: same})
    (queued,) = room.store.take(10)
    assert room.put(queued) == Stored(must_send=True)
    assert room.states()[FIRST] == "unsent"
    room.store.end([(queued._replace(version=1), ArticleState.SENT)])
    room.read({FIRST: PAGES[FIRST]})
    assert room.take() == {FIRST: Stored()}
    # The archive knows an article that the crawl has not read yet.
    room.read({SLUG: news_article(8)})
    (queued,) = room.store.take(10)
    assert room.store.put(room.article_of(queued), mends=True) == Stored(version=1)
    assert room.put(queued) == Stored(must_send=True)


def test_copies_wait_until_it_is_known_whether_their_page_is_an_article(room: Newsroom) -> None:
    copy = f"{HOST}/copy.html"
    room.read({FIRST: PAGES[FIRST], copy: PAGES[FIRST]})
    first, second = room.store.take(10)
    original, other = (first, second) if second.is_copy else (second, first)
    assert other.is_copy and not original.is_copy
    assert not room.store.drop_copy(other)
    room.store.end([(original, ArticleState.FAILED)])
    assert room.put(other) == Stored(version=1)
    room.store.end([(other, ArticleState.SENT)])
    room.read({SLUG: news_article(8)})
    room.take()
    room.read({AMP: news_article(8)})
    assert room.waiting() == 0 and room.states()[AMP] == "copy"


def test_pages_that_forbid_to_be_listed_are_neither_exported_nor_taken(room: Newsroom) -> None:
    crawl = room.copies.frontier.crawl_id
    urls = [f"{HOST}/world/{number}.html" for number in range(3)]
    room.read({url: news_article(number) for number, url in enumerate(urls)})
    room.take()
    room.read({SLUG: news_article(8)})
    room.rows(
        f"""update crawlproj.page set noindex = true where url in ({room.copies.id(urls[0])},
        {room.copies.id(SLUG)}) returning 1"""
    )
    room.rows(
        f"""update crawlproj.url set expires = now() - interval '1s'
        where id = {room.copies.id(urls[1])} returning 1"""
    )
    assert [row["url"] for row in iterate_articles(room.store.database, crawl)] == urls[2:]
    (queued,) = room.store.take(10)
    assert queued.is_withdrawn
