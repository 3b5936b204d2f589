"""Which pages are judged as copies, on a real Postgres."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from crawlproj.content.packed_text import full_text, unpack_blocks
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.duplicates import postgres as judge_module
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Batch, DuplicateKind, State
from crawlproj.politeness.guard import StaticNames
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.messages import ToDatabase
from tests.support.copies import Copies, article, html, paragraph, sentence

A = "http://a.test/"
B = "http://b.test/"
NAVIGATION = "<nav>" + "".join(f"<a href='/{n}'>Section {n}</a> " for n in range(9)) + "</nav>"
ABOUT = f"<p>{sentence(7000, 20)}</p>"
"""A paragraph of about a fourteenth of a short article."""


@pytest.fixture
def copies(database: Database) -> Iterator[Copies]:
    world = Copies(database)
    yield world
    world.close()


def test_the_same_bytes_at_another_url_are_an_exact_copy(copies: Copies) -> None:
    page = html(article(1))
    assert copies.read(f"{A}one", page) is None
    verdict = copies.read(f"{B}two", page)
    assert verdict is not None
    assert (verdict.original, verdict.kind) == (copies.id(f"{A}one"), DuplicateKind.EXACT)
    assert copies.stored() == {f"{B}two": (f"{A}one", "exact")}


@pytest.mark.parametrize(
    "texts",
    [
        article(2),
        ["Die Straße führt an Weiß und Groß vorbei, sagte die Größte der Gruppe am Fluß."] * 3,
        ["Ο Οδυσσέας και οι σύντροφοί του έφτασαν στο νησί όλος ο λαός τους περίμενε ως τέλος."],
    ],
    ids=["English", "German", "Greek"],
)
def test_caps_mode_all_upper_case_is_the_same_text(copies: Copies, texts: list[str]) -> None:
    """Published as ?caps_mode=1."""
    copies.read(f"{A}page", html(texts))
    verdict = copies.read(f"{A}page?caps_mode=1", html([text.upper() for text in texts]))
    assert verdict is not None and verdict.kind is DuplicateKind.TEXT


def test_bold_mode_other_markup_is_the_same_text(copies: Copies) -> None:
    """Published as ?bold_mode=0."""
    texts = article(3)
    bold = [text.replace("da", "<b>da</b>").replace("ma", "<i>ma</i>") for text in texts]
    copies.read(f"{A}page", html(bold))
    verdict = copies.read(f"{A}page?bold_mode=0", html(texts))
    assert verdict is not None and verdict.kind is DuplicateKind.TEXT


def test_a_page_with_a_few_other_words_is_a_near_copy(copies: Copies) -> None:
    texts = article(4)
    copies.read(f"{A}page", html(texts))
    words = texts[3].split()
    words[10] = "entirely"
    texts[3] = " ".join(words)
    verdict = copies.read(f"{B}page", html(texts))
    assert verdict is not None and verdict.kind is DuplicateKind.NEAR
    assert 0.95 <= verdict.similarity < 1


def test_other_content_in_the_same_frame_is_no_copy(copies: Copies) -> None:
    """Notices make most of both pages; what differs is their content."""
    notices = "".join(f"<p>{text}</p>" for text in article(5, 30))
    for number in range(6):
        own = " ".join(sentence(900 + number * 10 + n) for n in range(3))
        assert copies.read(f"{A}{number}", html([own], f"No. {number}", frame=notices)) is None
    assert copies.stored() == {}


def test_pages_without_text_are_judged_by_their_bytes(copies: Copies) -> None:
    assert copies.read(f"{A}1", "<html><body><img src=a></body></html>") is None
    assert copies.read(f"{A}2", "<html><body><img src=b></body></html>") is None
    verdict = copies.read(f"{B}1", "<html><body><img src=a></body></html>")
    assert verdict is not None and verdict.kind is DuplicateKind.EXACT


class TestParagraphs:
    """The three known cases, and what guards them."""

    def test_a_page_with_short_paragraphs_only_is_judged_by_its_text(self, copies: Copies) -> None:
        short = [f"Line {n} of it" for n in range(30)]
        copies.read(f"{A}short", html(short))
        assert copies.read(f"{B}short", html(short, frame="<p>A line more</p>")) is None
        verdict = copies.read(f"{B}same", html(short).replace("Line", "LINE"))
        assert verdict is not None and verdict.kind is DuplicateKind.TEXT
        assert copies.count("paragraph") == 0

    def test_long_paragraphs_in_another_frame_are_a_copy(self, copies: Copies) -> None:
        texts = article(6, 4)
        copies.read(f"{A}story", html(texts))
        verdict = copies.read(f"{B}reprint", html(texts, "Reprint", frame=NAVIGATION + ABOUT))
        assert verdict is not None and verdict.kind is DuplicateKind.PARAGRAPH
        assert verdict.original == copies.id(f"{A}story")
        assert 0.9 < verdict.similarity < 0.95

    def test_a_cookie_notice_as_the_only_long_paragraph_makes_no_copies(
        self, copies: Copies
    ) -> None:
        notice = paragraph(8)
        for number in range(8):
            lines = [sentence(8000 + number * 10 + n, 6) for n in range(4)]
            assert copies.read(f"{A}{number}", html([*lines, notice])) is None

    @pytest.mark.parametrize("place", ["first", "between", "last"])
    @pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
    def test_neither_a_notice_nor_a_frame_makes_copies_on_other_hosts(
        self, copies: Copies, place: str, at_once: bool
    ) -> None:
        notice, frame = [paragraph(8)], article(14, 30)
        pages = {}
        for number in range(3):
            lines = [sentence(8100 + number * 10 + n, 6) for n in range(4)]
            body = [sentence(8200 + number * 10 + n, 15) for n in range(3)]
            for name, shared, own in (("notice", notice, lines), ("frame", frame, body)):
                texts = {
                    "first": [*shared, *own],
                    "between": [*own[:2], *shared, *own[2:]],
                    "last": [*own, *shared],
                }
                if name == "frame" and place == "between":
                    texts[place] = [*shared[:15], *own, *shared[15:]]
                pages[f"http://{name}{number}.test/"] = html(texts[place], f"About {number}")
        groups = [pages] if at_once else [{url: page} for url, page in pages.items()]
        for group in groups:
            assert copies.read_all(group) == {}

    @pytest.mark.parametrize("main", [True, False])
    def test_the_same_article_in_the_frame_of_another_host_is_a_copy(
        self, copies: Copies, main: bool
    ) -> None:
        """Also with another headline, its paragraphs in another order, and menus as long."""
        texts = article(15, 8)
        for number, order in enumerate((texts, texts[4:] + texts[:4], texts)):
            menu = "".join(f"<li><a href='/{n}'>{sentence(n, 3)}" for n in range(number, 30, 3))
            lines = [sentence(8300 + number * 10 + n, 7) for n in range(6)]
            body = "".join(f"<p>{text}</p>" for text in [lines[0], *order])
            if main:
                body = f"<main>{body}</main>"
            page = (
                f"<html><body><ul>{menu}</ul><p>{lines[1]}</p><p>{lines[2]}</p><h1>{lines[3]}</h1>"
                f"{body}<footer><p>{lines[4]}</p><p>{lines[5]}</p></footer></body></html>"
            )
            verdict = copies.read(f"http://paper{number}.test/{main}", page)
            assert (verdict is not None) == (number > 0)
            assert verdict is None or verdict.original == copies.id(f"http://paper0.test/{main}")

    def test_half_of_the_paragraphs_is_not_enough_but_is_known(self, copies: Copies) -> None:
        texts = article(9, 4)
        copies.read(f"{A}story", html(texts))
        assert copies.read(f"{B}part", html(texts[:2] + article(10, 2))) is None
        ((share,),) = copies.frontier.db.run_script(
            f"select known_share from crawlproj.page where url = {copies.id(f'{B}part')}"
        )
        assert 0.4 < share < 0.6

    def test_an_agency_text_on_many_hosts_stays_a_copy(self, copies: Copies) -> None:
        """What stands on many pages of one host is boilerplate; on many hosts it is not."""
        texts = article(11, 3)
        for number in range(9):
            frame = f"<p>{sentence(number * 100, 15)}</p>"
            verdict = copies.read(f"http://h{number}.test/", html(texts, frame=frame))
            assert (verdict is not None) == (number > 0)
            assert verdict is None or verdict.kind is DuplicateKind.PARAGRAPH

    def test_a_page_fetched_again_does_not_count_its_paragraphs_twice(self, copies: Copies) -> None:
        texts = article(12, 3)
        copies.read(f"{A}first", html(texts))
        for number in range(8):
            copies.read(f"{A}second", html([*texts[:2], paragraph(5000 + number)]))
        ((most,),) = copies.frontier.db.run_script("select max(number) from crawlproj.paragraph")
        assert most == 2


class TestAgain:
    """Pages that are fetched again, and their copies."""

    def test_a_page_never_finds_itself(self, copies: Copies) -> None:
        texts = article(20)
        copies.read(f"{A}page", html(texts))
        assert copies.read(f"{A}page", html(texts, "another title")) is None
        texts[0] = texts[0].replace("the", "a")
        assert copies.read(f"{A}page", html([*texts, sentence(1)])) is None
        assert copies.stored() == {}
        assert copies.count("exact") == copies.count("band") == 1

    def test_copies_of_a_page_that_changes_are_judged_anew(self, copies: Copies) -> None:
        page = html(article(21))
        copies.read(f"{A}page", page)
        copies.read(f"{B}1", page)
        copies.read(f"{B}2", html(article(21), "other bytes"))
        copies.read(f"{A}page", html(article(22)))
        assert copies.stored() in (
            {f"{B}2": (f"{B}1", "near")},
            {f"{B}1": (f"{B}2", "near")},
        )
        assert copies.count("exact") == 2

    def test_copies_whose_bytes_are_forgotten_are_judged_anew(self, copies: Copies) -> None:
        """After an import, or when a rewritten file of the archive has lost them."""
        copies.read(f"{A}page", html(article(21)))
        for number in range(3):
            copies.read(f"{B}{number}", html(article(21), f"Title {number}"))
        copies.frontier.db.run_script("update crawlproj.url set body_digest = null")
        copies.read(f"{A}page", html(article(22)))
        found = copies.stored()
        assert len(found) == 2 and {kind for _, kind in found.values()} == {"near"}
        assert f"{A}page" not in found and copies.count("exact") == 2

    def test_more_copies_than_fit_into_a_commit_are_judged_at_the_next_ones(
        self, copies: Copies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By any worker: nothing is lost if this one is killed."""
        monkeypatch.setattr(judge_module, "ORPHANS", 4)
        page = html(article(21))
        copies.read(f"{A}page", page)
        copies.read_all({f"{B}{number}": page for number in range(11)})
        copies.read(f"{A}page", html(article(22)))
        assert copies.count("unjudged") == 7
        other = Copies(copies.database, worker="w2")
        for number in range(2):
            other.read(f"http://c.test/{number}", html(article(200 + number)))
        other.close()
        assert copies.count("unjudged") == 0
        found = copies.stored()
        assert len(found) == 10 and f"{A}page" not in {original for original, _ in found.values()}
        assert copies.count("exact") == 4

    def test_copies_of_a_page_that_is_taken_down_are_found_by_others(self, copies: Copies) -> None:
        page = html(article(26))
        for url in (f"{A}page", f"{B}copy", f"{B}copy-2"):
            copies.read(url, page)
        ids = array_literal([copies.id(f"{A}page")])
        copies.frontier.db.run("takedown_pages", ids=ids, until=copies.frontier.now())
        assert copies.stored() == {}
        other = Copies(copies.database, worker="w2")
        other.read("http://c.test/something", html(article(27)))
        ((original, kind),) = copies.stored().values()
        assert kind == "exact"
        verdict = other.read("http://c.test/", page)
        assert verdict is not None and verdict.original == copies.id(original)
        other.close()

    def test_a_copy_that_changes_is_an_original(self, copies: Copies) -> None:
        copies.read(f"{A}page", html(article(23)))
        copies.read(f"{B}page", html(article(23)))
        assert copies.read(f"{B}page", html(article(24))) is None
        assert copies.stored() == {}
        verdict = copies.read("http://c.test/", html(article(24)))
        assert verdict is not None and verdict.original == copies.id(f"{B}page")

    def test_noindex_pages_are_no_originals_and_no_copies(self, copies: Copies) -> None:
        page = html(article(25))
        copies.read(f"{A}hidden", page, noindex=True)
        assert copies.read(f"{B}page", page) is None
        assert copies.read(f"{A}late", page, noindex=True) is None
        copies.read(f"{A}copy", page)
        assert copies.read(f"{B}page", html(article(25), "new"), noindex=True) is None
        assert copies.stored() == {}
        verdict = copies.read("http://c.test/", page)
        assert verdict is not None and verdict.original == copies.id(f"{A}copy")


class TestClusters:
    def test_the_page_that_a_copy_names_stands_for_all(self, copies: Copies) -> None:
        texts = article(30)
        named = f"{A}the-long-address-that-is-meant"
        head = f'<link rel="canonical" href="{named}">'
        copies.read(f"{A}x?print=1", html(texts, head=head))
        copies.read(named, html(texts))
        assert copies.kept() == {f"{A}x?print=1": named}
        copies.read(f"{A}y", html(texts))
        assert copies.kept() == {f"{A}x?print=1": named}

    def test_else_the_shortest_address_does(self, copies: Copies) -> None:
        for name in ("middle", "longest-of-all", "y"):
            copies.read(f"{A}{name}", html(article(31)))
        assert copies.kept() == {f"{A}middle": f"{A}y"}

    @pytest.mark.parametrize("end", ["other text", "noindex", "gone"])
    def test_a_page_that_is_no_member_any_more_stands_for_nobody(
        self, copies: Copies, end: str
    ) -> None:
        for name in ("middle", "longest-of-all", "y"):
            copies.read(f"{A}{name}", html(article(32)))
        assert copies.kept() == {f"{A}middle": f"{A}y"}
        if end == "gone":
            outcome = copies.outcome(f"{A}y", "")
            gone = replace(outcome, state=State.RETIRED, content=None, next_visit=None)
            copies.frontier.commit(Batch([gone]), copies.worker)
        else:
            copies.read(f"{A}y", html(article(33)), noindex=end == "noindex")
        assert copies.kept() == {f"{A}middle": f"{A}middle"}
        copies.read(f"{A}m", html(article(32)))
        assert copies.kept() == {f"{A}middle": f"{A}m"}


class TestScopes:
    def test_site_compares_pages_of_one_registered_domain(self, database: Database) -> None:
        world = Copies(database, DuplicateRules(scope="site"))
        page = html(article(40))
        assert world.read("http://www.one.example/", page) is None
        assert world.read("http://www.two.example/", page) is None
        assert world.read("http://m.one.example/", page) is not None
        world.close()

    def test_crawls_meet_only_if_all_pages_are_compared(self, database: Database) -> None:
        page = html(article(41))
        for scope, meet in (("crawl", False), ("all", True)):
            first, second = (
                Copies(database, DuplicateRules(scope=scope), f"{scope}{n}") for n in range(2)
            )
            assert first.read(f"http://{scope}0.test/", page) is None
            assert (second.read(f"http://{scope}1.test/", page) is not None) is meet
            first.close()
            second.close()


def test_pages_of_one_commit_are_copies_of_each_other(copies: Copies) -> None:
    texts = article(50)
    near = [*texts[:-1], texts[-1].replace("a", "o", 1)]
    verdicts = copies.read_all(
        {
            f"{A}1": html(texts),
            f"{A}2": html(texts),
            f"{A}3": html(near),
            f"{B}4": html(texts[:4], frame=ABOUT),
            f"{B}5": html(article(51)),
        }
    )
    assert {url: (v.original, v.kind.value) for url, v in verdicts.items()} == {
        f"{A}2": (copies.id(f"{A}1"), "exact"),
        f"{A}3": (copies.id(f"{A}1"), "near"),
        f"{B}4": (copies.id(f"{A}1"), "paragraph"),
    }


@pytest.mark.parametrize(
    ("off", "tables"),
    [
        ({"near": False}, {"band"}),
        ({"paragraphs": False}, {"paragraph"}),
    ],
    ids=["near", "paragraphs"],
)
def test_a_check_that_is_off_stores_nothing(
    database: Database, off: dict[str, bool], tables: set[str]
) -> None:
    world = Copies(database, DuplicateRules(**off))
    world.read(A, html(article(60)))
    for table in ("exact", "band", "paragraph"):
        assert (world.count(table) == 0) is (table in tables)
    world.close()


class Torture(NamedTuple):
    """A page that is hard to read, a part of the text that is stored of it, and how many characters
    are at least.
    """

    page: str
    part: str
    length: int


TORTURE = {
    "nothing": Torture("", "", 0),
    "no text": Torture("<html><body><br></body></html>", "", 0),
    "one paragraph of 10 MB": Torture(
        f"<p>{'word upon word ' * 650_000}</p>", "word upon word word", 5_000_000
    ),
    # A page of so many tags is cut (content/html.py).
    "a million tiny paragraphs": Torture("<p>a" * 1_000_000, "a\na\na", 100_000),
    "right to left": Torture(
        f"<p>{'الطائر يطير فوق النهر. ' * 40}</p><p>{'הציפור עפה מעל הנהר. ' * 40}</p>",
        "النهر.\nהציפור עפה",
        1_700,
    ),
    "Chinese": Torture(f"<p>{'鸟飞过河流和山脉。' * 60}</p>", "鸟飞过河流和山脉。鸟", 540),
    "zero width": Torture(
        "<p>" + "\u200bword\u200d\u2060 \ufeffupon\xad word " * 60 + "</p>", "upon word", 800
    ),
    "combining": Torture("<p>" + ("a" + "\u0301" * 50 + " ") * 200 + "</p>", "\u0301" * 49, 10_000),
    "NULs": Torture(
        f"<p>{sentence(1, 30)}</p>" + "<p>a\0b upon a word" * 60, "\nab upon a word", 900
    ),
    # More than one byte in twenty of the first KB is no text: this is taken for a binary file.
    "nothing but NULs": Torture("<p>" + "a\0b upon \0\0 word " * 60 + "</p>", "", 0),
    "surrogates": Torture(
        "<p>" + "&#xD800; word &#x1F600; upon &#0; word " * 60 + "</p>",
        "word \U0001f600 upon",
        1_000,
    ),
}


@pytest.mark.parametrize("hard", TORTURE.values(), ids=TORTURE)
def test_any_page_is_stored_and_its_copy_is_known(copies: Copies, hard: Torture) -> None:
    assert copies.read(f"{A}1", hard.page) is None
    verdict = copies.read(f"{B}1", hard.page)
    assert verdict is not None and verdict.kind is DuplicateKind.EXACT
    copies.read(f"{B}2", hard.page + "<p>and a line more</p>")
    rows = copies.frontier.db.run_script("select url, blocks from crawlproj.page_text")
    texts = {id_: full_text(unpack_blocks(packed)) for id_, packed in rows}
    assert len(texts) == 3
    text = texts[copies.id(f"{A}1")]
    assert hard.part in text and len(text) >= hard.length
    assert bool(text) == bool(hard.part)


def rounds_of_two_workers(database: Database, rounds: int, near: bool) -> int:
    """How many rounds ended with other than one original, when two workers bring the same text, or
    almost the same, at the same moment.
    """
    workers = [Copies(database, worker=f"w{n}") for n in range(2)]
    wrong = 0
    for number in range(rounds):
        texts = article(10_000 + number)
        outcomes = []
        for position, worker in enumerate(workers):
            if near and position:
                texts = [*texts[:-1], texts[-1].replace("a", "o", 1)]
            outcomes.append(worker.outcome(f"http://w{position}.test/{near}/{number}", html(texts)))
        barrier = threading.Barrier(2)

        def commit(position: int, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            workers[position].frontier.commit(
                Batch([outcomes[position]]),  # noqa: B023 - joined below
                workers[position].worker,
            )

        threads = [threading.Thread(target=commit, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ids = [outcome.id for outcome in outcomes]
        rows = database.run_script(
            f"select url, duplicate_of from crawlproj.page where url in ({ids[0]}, {ids[1]})"
        )
        found = dict(rows)
        pairs = {(None, ids[0]), (ids[1], None)}
        wrong += (found[ids[0]], found[ids[1]]) not in pairs
    for worker in workers:
        worker.close()
    return wrong


def test_items_that_wait_see_what_is_stored_in_the_same_turn_and_each_other(
    copies: Copies,
) -> None:
    """Else two copies that come one after the other in the same second would both be originals."""
    resolver = Resolver(StaticNames({}))
    news: list[Any] = []
    thread = DatabaseThread(
        copies.frontier, copies.worker, resolver, 1.0, list, news.append, lambda error: None
    )
    texts = article(80)
    stored = copies.outcome(f"{A}stored", html(texts))
    waiting = [
        copies.outcome(f"{B}copy", html(texts)),
        copies.outcome(f"{B}reprint", html(texts[:6], frame=ABOUT)),
        copies.outcome(f"{B}other", html(article(81))),
        copies.outcome(f"{B}other-copy", html(article(81), "Other title")),
    ]

    def fill(message: ToDatabase) -> None:
        message.outcomes.append(stored)
        message.previews += waiting

    thread.fill_message(fill)
    thread.run_once(thread._message)
    resolver.close()
    told = news[-1].previews
    found = {
        id_: (preview[0], preview[1].kind.value) if preview else None
        for id_, preview in told.items()
    }
    assert found == {
        copies.id(f"{B}copy"): (f"{A}stored", "exact"),
        copies.id(f"{B}reprint"): (f"{A}stored", "paragraph"),
        copies.id(f"{B}other"): None,
        copies.id(f"{B}other-copy"): (f"{B}other", "near"),
    }
    assert copies.count("exact") == 1, "nothing is written of those that wait"
    assert copies.count("paragraph") == 8


def test_a_damaged_text_stops_neither_items_nor_commits(copies: Copies) -> None:
    """Its page is like no other, and all the others are judged."""
    resolver = Resolver(StaticNames({}))
    news: list[Any] = []
    thread = DatabaseThread(
        copies.frontier, copies.worker, resolver, 1.0, list, news.append, lambda error: None
    )
    texts = article(82)
    copies.read(f"{A}damaged", html(texts))
    copies.read(f"{A}whole", html(article(83)))
    copies.frontier.db.run_script(
        f"update crawlproj.page_text set blocks = 'rubbish' where url = {copies.id(f'{A}damaged')}"
    )
    near = [*texts[:-1], texts[-1].replace("a", "o", 1)]
    waiting = [
        copies.outcome(f"{B}near", html(near)),
        copies.outcome(f"{B}copy", html(article(83))),
    ]
    thread.fill_message(lambda message: message.previews.extend(waiting))
    thread.run_once(thread._message)
    resolver.close()
    told = news[-1].previews
    assert told[copies.id(f"{B}near")] is None
    assert told[copies.id(f"{B}copy")][0] == f"{A}whole"
    assert copies.read(f"{B}near", html(near)) is None
    assert copies.read(f"{A}damaged", html(article(84))) is None


def test_a_commit_says_how_long_it_waited_for_the_verdicts_of_another(
    copies: Copies, database: Database
) -> None:
    """The stat duplicates/lock_ms is made of it."""
    outcome = copies.outcome(f"{A}page", html(article(70)))
    other = database.new_connection()
    results = []

    def commit() -> None:
        results.append(copies.frontier.commit(Batch([outcome]), copies.worker))

    thread = threading.Thread(target=commit)
    with other.transaction() as tx:
        tx.run("lock_duplicates", scope=copies.frontier.crawl_id)
        thread.start()
        thread.join(0.5)
        assert not results
    thread.join()
    other.close()
    assert results[0].lock_s >= 0.2
    alone = copies.outcome(f"{B}page", html(article(71)))
    assert copies.frontier.commit(Batch([alone]), copies.worker).lock_s < 0.2


@pytest.mark.parametrize("near", [False, True], ids=["exact", "near"])
def test_two_workers_with_one_text_agree_on_one_original(database: Database, near: bool) -> None:
    assert rounds_of_two_workers(database, 15, near) == 0


@pytest.mark.proof
@pytest.mark.parametrize("near", [False, True], ids=["exact", "near"])
def test_two_workers_agree_in_200_rounds(database: Database, near: bool) -> None:
    assert rounds_of_two_workers(database, 200, near) == 0
