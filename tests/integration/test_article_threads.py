"""The queue of articles and the threads that empty it: what is taken, tried again and given back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from benchmarks.fill import fill
from crawlproj.articles import store as store_module
from crawlproj.articles.store import ArticleStore, QueuedPage
from crawlproj.content.article_process import ArticleReadError
from crawlproj.content.articles import ArticleFields
from crawlproj.content.packed_text import pack_body
from crawlproj.database.connection import Database
from crawlproj.items import Article
from crawlproj.scheduling import article_threads
from crawlproj.scheduling.article_threads import ArticleThreads

PAGES = 30
QUEUE = """
delete from page;
insert into page (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, article)
select id, now(), '', '', '', '', 1, false, false, 1, 'due' from url;
insert into article_queue (page, crawl, at, charset, body)
select id, crawl, now() + make_interval(secs => row_number() over (order by id)), 'utf-8', null from url
"""


class StubReader:
    """Reads an article of any page, or whatever `read_page` does."""

    def __init__(self, read_page: Callable[[str], None]) -> None:
        self._read_page = read_page

    def read(
        self, body: bytes, url: str, charset: str, selectors: Mapping[str, str] | None
    ) -> ArticleFields:
        self._read_page(url)
        return ArticleFields(f"Title of {url}", f"The text of {url}. " * 20)

    def close_if_idle(self, idle_s: float) -> bool:
        return False

    def close(self) -> None: ...


class Rig:
    """The threads of one worker; items are kept, and sent at once unless they are `held`."""

    def __init__(
        self, database: Database, name: str, read_page: Callable[[str], None], threads: int = 1
    ) -> None:
        self.items: list[str] = []
        self.counts: Counter[str] = Counter()
        self.held = False
        self.waiting: list[QueuedPage] = []
        ((crawl,),) = database.run_script("select id from crawl")
        self.threads = ArticleThreads(
            [
                ArticleStore(database.new_connection(), crawl, f"{name}-{number}")
                for number in range(threads)
            ],
            site_of=lambda url: None,
            send=self._send,
            count=lambda name, number: self.counts.update({name: number}),
            on_idle=lambda: None,
            make_reader=lambda: StubReader(read_page),
        )

    def _send(self, queued: QueuedPage, item: Article) -> None:
        self.items.append(item.url)
        if self.held:
            self.waiting.append(queued)
        else:
            self.threads.note_sent(queued)

    def wait_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not done():
            assert time.monotonic() < deadline, (self.items, self.counts)
            time.sleep(0.01)


@contextmanager
def running(rig: Rig) -> Iterator[Rig]:
    rig.threads.start()
    try:
        yield rig
    finally:
        rig.threads.stop()


@pytest.fixture
def queue(database: Database, database_url: str) -> Database:
    """A database with pages in the queue."""
    fill(database_url, "crawl", PAGES, 3)
    database.run_script(QUEUE)
    packed = pack_body(b"<p>page").hex()
    database.run_script(f"update article_queue set body = '\\x{packed}'")
    return database


def states(database: Database) -> Counter[str]:
    return Counter(dict(database.run_script("select article, count(*) from page group by 1")))


def left(database: Database) -> int:
    ((number,),) = database.run_script("select count(*) from article_queue")
    return int(number)


def test_pages_are_not_given_up_because_workers_died_that_had_taken_them(queue: Database) -> None:
    ((crawl,),) = queue.run_script("select id from crawl")
    for number in range(10):
        dead = ArticleStore(queue, crawl, f"dead{number}")
        taken = dead.take(8)
        assert len(taken) == 8
        dead.free_own()
    with running(Rig(queue, "worker", lambda url: None)) as rig:
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert sorted(Counter(rig.items).values()) == [1] * PAGES
    assert states(queue) == {"sent": PAGES}


def test_page_on_which_the_process_always_crashes_is_given_up_and_the_others_are_not(
    queue: Database,
) -> None:
    read: Counter[str] = Counter()
    bad = queue.run_script("select u.canonical from url u join article_queue q on q.page = u.id")

    def crash(url: str) -> None:
        read[url] += 1
        if url == bad[5][0]:
            raise ArticleReadError("crashed")

    with running(Rig(queue, "worker", crash)) as rig:
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert read[bad[5][0]] == article_threads.MAX_TRIES
    assert states(queue) == {"sent": PAGES - 1, "failed": 1}


def test_process_that_cannot_run_costs_no_more_than_a_page(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_threads, "BROKEN_S", 0.5)
    mended = threading.Event()

    def crash(url: str) -> None:
        if not mended.is_set():
            raise ArticleReadError("crashed")

    with running(Rig(queue, "worker", crash)) as rig:
        rig.wait_until(lambda: rig.counts["articles/process_broken"] > 0)
        assert rig.threads.is_idle
        mended.set()
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert states(queue) == {"sent": PAGES - 1, "failed": 1}


def test_items_that_take_long_are_sent_by_no_other_worker(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "TAKEN_S", 1.0)
    for name, value in (("RENEW_S", 0.2), ("LOOK_S", 0.1)):
        monkeypatch.setattr(article_threads, name, value)
    slow = Rig(queue, "slow", lambda url: None)
    slow.held = True
    with running(slow), running(Rig(queue, "quick", lambda url: None)) as quick:
        slow.wait_until(lambda: len(slow.items) + len(quick.items) >= PAGES)
        assert slow.items
        time.sleep(2.5)
        assert left(queue) == len(slow.waiting)
        for queued in slow.waiting:
            slow.threads.note_sent(queued)
        slow.wait_until(lambda: left(queue) == 0)
    assert sorted(Counter(slow.items + quick.items).values()) == [1] * PAGES


def test_stop_amid_a_page_that_takes_long_sends_nothing_again(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_threads, "STOP_S", 0.3)
    go_on = threading.Event()
    read: list[str] = []

    def hang(url: str) -> None:
        read.append(url)
        if len(read) == 12:
            go_on.wait(30)

    first = Rig(queue, "first", hang)
    first.held = True
    first.threads.start()
    first.wait_until(lambda: len(read) == 12)
    for queued in first.waiting[:9]:
        first.threads.note_sent(queued)
    first.threads.stop()
    go_on.set()
    with running(Rig(queue, "second", lambda url: None)) as second:
        second.wait_until(lambda: second.threads.is_idle and left(queue) == 0)
    assert len(first.items) == 11
    assert set(first.items[:9]).isdisjoint(second.items)
    assert len(second.items) == PAGES - 9
    assert states(queue) == {"sent": PAGES}


def test_two_threads_and_two_workers_share_a_queue(queue: Database) -> None:
    rigs = [Rig(queue, name, lambda url: time.sleep(0.01), threads=2) for name in ("one", "two")]
    with running(rigs[0]), running(rigs[1]):
        for rig in rigs:
            rig.wait_until(lambda: left(queue) == 0)
    assert sorted(Counter(rigs[0].items + rigs[1].items).values()) == [1] * PAGES
    assert all(rig.items for rig in rigs)
