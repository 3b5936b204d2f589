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
from crawlproj.errors import DatabaseError
from crawlproj.items import Article
from crawlproj.scheduling import article_threads
from crawlproj.scheduling.article_threads import ArticleThreads
from crawlproj.urls.rules import SiteRules

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

    def __init__(self, read_page: Callable[[str], None], rig: Rig) -> None:
        self._read_page = read_page
        self._rig = rig

    def read(
        self, body: bytes, url: str, charset: str, selectors: Mapping[str, str] | None
    ) -> ArticleFields:
        self._read_page(url)
        text = f"The text of {url}. " * 20
        return ArticleFields(f"Title of {url}", text, alarms=self._rig.alarms(url))

    def close_if_idle(self, idle_s: float) -> bool:
        return False

    def close(self) -> None: ...


class Rig:
    """The threads of one worker; items are kept, and sent at once unless they are `held`."""

    def __init__(
        self,
        database: Database,
        name: str,
        read_page: Callable[[str], None],
        threads: int = 1,
        site_of: Callable[[str], SiteRules | None] = lambda url: None,
    ) -> None:
        self.alarms: Callable[[str], tuple[str, ...]] = lambda url: ()
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
            site_of=site_of,
            send=self._send,
            count=lambda name, number: self.counts.update({name: number}),
            on_idle=lambda: None,
            make_reader=lambda: StubReader(read_page, self),
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
    with stopping(rig):
        yield rig


@contextmanager
def stopping(rig: Rig) -> Iterator[Rig]:
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


def test_process_that_cannot_run_costs_no_page(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_threads, "BROKEN_S", 0.1)
    mended = threading.Event()

    def crash(url: str) -> None:
        if not mended.is_set():
            raise ArticleReadError("crashed")

    with running(Rig(queue, "worker", crash)) as rig:
        rig.wait_until(
            lambda: rig.counts["articles/process_broken"] > 2 * article_threads.MAX_TRIES
        )
        assert rig.threads.is_idle
        assert (states(queue), left(queue)) == ({"due": PAGES}, PAGES)
        mended.set()
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert states(queue) == {"sent": PAGES}


def test_page_that_takes_too_long_by_the_clock_is_tried_once_more(queue: Database) -> None:
    read: Counter[str] = Counter()
    urls = [url for (url,) in queue.run_script("select canonical from url order by id")]

    def be_late(url: str) -> None:
        read[url] += 1
        if url == urls[3] or (url == urls[7] and read[url] == 1):
            raise ArticleReadError("late")

    with running(Rig(queue, "worker", be_late)) as rig:
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert (read[urls[3]], read[urls[7]]) == (2, 2)
    assert states(queue) == {"sent": PAGES - 1, "failed": 1}
    assert rig.counts["articles/failed/late"] == 1


def test_page_over_which_anything_fails_is_set_aside_and_the_others_are_not(
    queue: Database,
) -> None:
    urls = [url for (url,) in queue.run_script("select canonical from url order by id")]
    queue.run_script(
        f"update article_queue set body = 'x' from url u where u.id = page and u.canonical = '{urls[4]}'"
    )

    def fail(url: str) -> None:
        if url == urls[9]:
            raise KeyError(url)

    def site_of(url: str) -> SiteRules | None:
        if url == urls[11]:
            raise RecursionError(url)
        return None

    with running(Rig(queue, "worker", fail, site_of=site_of)) as rig:
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert states(queue) == {"sent": PAGES - 3, "failed": 3}
    assert rig.counts["articles/failed/error"] == 3
    assert set(urls) - set(rig.items) == {urls[4], urls[9], urls[11]}


def test_thread_that_can_do_nothing_ends_and_lets_the_crawl_end(
    queue: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_threads, "AWAY_S", 0.01)
    rig = Rig(queue, "worker", lambda url: None)
    rig.held = True
    with running(rig):
        rig.wait_until(lambda: len(rig.items) == PAGES)

        def fail(*arguments: object) -> None:
            raise ValueError("an error of ours")

        monkeypatch.setattr(ArticleStore, "end", fail)
        for queued in rig.waiting:
            rig.threads.note_sent(queued)
        rig.wait_until(lambda: rig.threads.is_idle)
        assert rig.counts["articles/broken"] == 1
    assert left(queue) == PAGES  # they are sent again rather than not at all


def test_threads_wait_quietly_while_the_database_is_away(
    queue: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(article_threads, "AWAY_S", 0.1)
    caplog.set_level("INFO", article_threads.__name__)
    away = threading.Event()
    calls = 0

    def find_connection(database: Database) -> None:
        nonlocal calls
        if away.is_set():
            calls += 1
            raise DatabaseError("cannot reach Postgres")
        connect(database)

    connect = Database.connect
    rig = Rig(queue, "worker", lambda url: None)
    rig.held = True
    with running(rig):
        rig.wait_until(lambda: len(rig.items) == PAGES)
        monkeypatch.setattr(Database, "connect", find_connection)
        away.set()
        for queued in rig.waiting:
            rig.threads.note_sent(queued)
        time.sleep(1.5)
        assert 2 <= calls <= 5
        assert rig.counts["articles/database_away"] == 1
        assert len([line for line in caplog.messages if "wait for the database" in line]) == 1
        away.clear()
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert states(queue) == {"sent": PAGES}


def test_each_kind_of_alarm_of_a_field_is_logged_once(
    queue: Database, caplog: pytest.LogCaptureFixture
) -> None:
    site = SiteRules("The Weekly", (), fields={"text": "p", "date": ".d"})
    rig = Rig(queue, "worker", lambda url: None, site_of=lambda url: site)
    rig.alarms = lambda url: (
        f"text: the selector 'p' finds {len(url)} characters, the general recipe finds {hash(url)}",
        f"date: the selector '.d' finds {url!r}, which is none",
        "date: the selector '.d' finds nothing",
    )
    with running(rig):
        rig.wait_until(lambda: rig.threads.is_idle and left(queue) == 0)
    assert rig.counts["articles/alarms"] == 3 * PAGES
    assert len([line for line in caplog.messages if "the selector" in line]) == 3


@pytest.mark.parametrize("page_s", [0, 0.6])
def test_items_that_take_long_are_sent_by_no_other_worker(
    queue: Database, monkeypatch: pytest.MonkeyPatch, page_s: float
) -> None:
    monkeypatch.setattr(store_module, "TAKEN_S", 1.0)
    for name, value in (("RENEW_S", 0.2), ("LOOK_S", 0.1)):
        monkeypatch.setattr(article_threads, name, value)
    slow = Rig(queue, "slow", lambda url: time.sleep(page_s if slow.items else 0))
    slow.held = True
    slow.threads.start()
    slow.wait_until(lambda: bool(slow.items))
    with stopping(slow), running(Rig(queue, "quick", lambda url: None)) as quick:
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
