"""Articles are taken from pages beside the crawl, and handed to the pipelines.

Each thread has a process that reads pages (content/article_process.py) and a connection of its own.
It takes pages from the queue in the database, stores their articles, and gives each article to the
event loop, where its item passes the pipelines; when that is done the page leaves the queue. So
nothing holds a page, a host or the database thread.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from crawlproj.articles.store import (
    ArticleState,
    ArticleStore,
    NewArticle,
    QueuedPage,
    StoredArticle,
)
from crawlproj.content.article_process import ArticleReader, ArticleReadError
from crawlproj.content.articles import ArticleFields
from crawlproj.content.packed_text import unpack_body
from crawlproj.errors import DatabaseError
from crawlproj.frontier.batches import blames_content
from crawlproj.items import Article
from crawlproj.scheduling.article_items import item_of_fields, item_of_stored
from crawlproj.scheduling.worker import is_dead
from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain
from crawlproj.urls.rules import SiteRules

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""So many pages a thread takes from the queue at a time."""
MAX_SENDING: Final = 200
"""So many items may be on their way through the pipelines before no more pages are taken."""
LOOK_S: Final = 5.0
"""How often the queue is looked at for what other workers have left."""
IDLE_S: Final = 30.0
"""After so long without a page the process of a thread is ended."""
MAX_TRIES: Final = 3
RENEW_S: Final = 20.0
"""How often the database is told that articles are still on their way through the pipelines."""
BROKEN_S: Final = 60.0
"""So long no page is taken when it is the process that fails, and not the pages."""
MAX_ALARMS: Final = 1_000
AWAY_S: Final = 1.0
"""So long the database is left alone when it is away; twice as long each time."""
MAX_AWAY_S: Final = 30.0
MAX_ERRORS: Final = 5
"""After so many errors in a row that have nothing to do with a page a thread ends."""
STOP_S: Final = 5.0
"""So long a page may take to be read to its end when the crawl has ended."""
PROBE: Final = (
    b"<html><body><article><h1>The old bridge is open again</h1><p>The bridge over the river was "
    b"closed for two years, and is open again since Monday, said the mayor.</p></article></body>"
)
PROBE_URL: Final = "https://www.example.org/bridge.html"
"""A page that any process can read that works at all."""
_NO_KIND: Final = re.compile(r"""['"0-9].*""", re.DOTALL)
"""What differs from one alarm of a kind to the next: values and numbers."""

Labels: TypeAlias = Callable[[Article], Iterable[str]]
SiteOf: TypeAlias = Callable[[str], SiteRules | None]


class ProcessBrokenError(Exception):
    """It is not a page that can't be read, but the process that can't run."""


class Reader(Protocol):
    """What takes an article from a page: content.article_process.ArticleReader."""

    def read(
        self, body: bytes, url: str, charset: str, selectors: Mapping[str, str] | None
    ) -> ArticleFields: ...

    def close_if_idle(self, idle_s: float) -> bool: ...

    def close(self) -> None: ...


class ArticleThreads:
    """The threads of one worker. `wake`, `note_sent` and `is_idle` are for the event loop."""

    def __init__(
        self,
        stores: Sequence[ArticleStore],
        *,
        site_of: SiteOf,
        send: Callable[[QueuedPage, Article], None],
        count: Callable[[str, int], None],
        on_idle: Callable[[], None],
        labels: Labels | None = None,
        make_reader: Callable[[], Reader] = ArticleReader,
    ) -> None:
        """A store for each thread. `send`, `count` and `on_idle` are called in these threads; who
        is sent an article says `note_sent` when its item has passed the pipelines.
        """
        self._stores = stores
        self._site_of = site_of
        self._send = send
        self._count = count
        self._on_idle = on_idle
        self._labels = labels
        self._make_reader = make_reader
        self._lock = threading.Lock()
        self._bell = threading.Condition(self._lock)
        self._wanted = 1
        """Raised by each call of `wake`: what is left from earlier runs counts as one."""
        self._empty_at = [0] * len(stores)
        """Of each thread how often it was woken before it last found the queue empty."""
        self._sending: dict[int, QueuedPage] = {}
        self._sent: list[QueuedPage] = []
        self._stopping = False
        self._renewed_at = time.monotonic()
        self._broken: set[int] = set()
        """Threads that have ended with an error."""
        self.alarms: Counter[tuple[str, str, str]] = Counter()
        """Of each site and field what kind of thing is odd about it, and how often it was."""
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"articles-{number}")
            for number in range(len(stores))
        ]
        for thread in self._threads:
            thread.daemon = True

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Say that there are pages in the queue."""
        with self._bell:
            self._wanted += 1
            self._bell.notify_all()

    def note_sent(self, queued: QueuedPage) -> None:
        """Say that the item of an article has passed the pipelines."""
        with self._bell:
            if self._sending.pop(queued.page, None) is not None:
                self._sent.append(queued)
            self._bell.notify_all()

    @property
    def is_idle(self) -> bool:
        """Is all done that this worker can do?"""
        with self._lock:
            if self._sending:
                return False
            if len(self._broken) == len(self._threads):
                return True
            if self._sent:
                return False
            return all(number >= self._wanted for number in self._empty_at)

    def stop(self, wait_s: float | None = None) -> None:
        """End the threads, all of them in so long. What is under way stays in the queue, for
        whoever comes next.
        """
        with self._bell:
            if self._stopping:
                return
            self._stopping = True
            self._bell.notify_all()
        until = time.monotonic() + (STOP_S if wait_s is None else min(wait_s, STOP_S))
        for thread, store in zip(self._threads, self._stores, strict=True):
            if thread.ident is None:
                continue
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                log.info("An article that takes long is left to the next run")
                self._give_back(store)

    # In the threads.

    def _run(self, number: int) -> None:
        store = self._stores[number]
        reader = self._make_reader()
        is_first = number == 0
        must_free = False
        pause_s = 0.0
        errors = 0
        try:
            while not self._stopping and errors < MAX_ERRORS:
                try:
                    if is_first:
                        store.free_dead(is_dead)
                        is_first = False
                    if must_free:
                        self._free_taken(store)
                        must_free = False
                    self._turn(number, store, reader)
                    pause_s = 0.0
                    errors = 0
                except Exception as error:
                    if _is_away(error):
                        self._note_away(error, is_first=not pause_s)
                    else:
                        log.exception("An error in the thread that takes articles")
                        errors += 1
                    must_free = True
                    pause_s = min(2 * pause_s or AWAY_S, MAX_AWAY_S)
                    self._pause(pause_s)
        finally:
            reader.close()
            self._give_back(store)
            if not self._stopping:
                self._note_broken(number)

    def _note_away(self, error: Exception, is_first: bool) -> None:
        """Say once that the database is away. Its own thread finds out, too, and ends the crawl if
        it stays away.
        """
        if is_first:
            log.info("Articles wait for the database: %s", error)
            self._count("articles/database_away", 1)

    def _note_broken(self, number: int) -> None:
        log.error("Articles are not taken any more; those that are left wait for the next run")
        self._count("articles/broken", 1)
        with self._bell:
            self._broken.add(number)
            self._empty_at[number] = 1 << 62
        self._on_idle()

    def _pause(self, seconds: float) -> None:
        """Wait so long whatever there is to do, unless the threads are to end."""
        until = time.monotonic() + seconds
        with self._bell:
            while not self._stopping and time.monotonic() < until:
                self._bell.wait(until - time.monotonic())

    def _free_taken(self, store: ArticleStore) -> None:
        """Put back what was taken when the database went away, but not what is being sent."""
        with self._lock:
            sending = [*self._sending, *(queued.page for queued in self._sent)]
        store.free_own(but=sending)

    def _give_back(self, store: ArticleStore) -> None:
        try:
            self._end_sent(store)
            store.free_own()
        except Exception as error:
            log.debug("What was taken from the queue of articles is free later: %r", error)
        store.database.close()

    def _turn(self, number: int, store: ArticleStore, reader: Reader) -> None:
        """Store that items were sent, then take some pages, or wait."""
        self._end_sent(store)
        self._renew_sending(store)
        with self._lock:
            wanted = self._wanted
            has_room = len(self._sending) < MAX_SENDING
        if not has_room:
            self._wait(LOOK_S)
            return
        pages = store.take(AT_ONCE)
        if pages:
            with self._lock:
                self._empty_at[number] = 0
        for place, queued in enumerate(pages):
            if self._stopping:
                return
            if place:
                self._end_sent(store)
                self._renew_sending(store)
            try:
                self._try_page(store, reader, queued)
            except ProcessBrokenError:
                self._wait_for_process(number, store)
                return
        if pages:
            return
        with self._lock:
            was_idle = self._empty_at[number] == wanted
            self._empty_at[number] = wanted
        if not was_idle:
            self._on_idle()
        reader.close_if_idle(IDLE_S)
        self._wait(LOOK_S, wanted)

    def _wait(self, seconds: float, wanted: int | None = None) -> None:
        """Wait until there is something to do, at most so long."""
        with self._bell:
            if self._stopping or self._sent or wanted not in (None, self._wanted):
                return
            self._bell.wait(seconds)

    def _end_sent(self, store: ArticleStore) -> None:
        with self._lock:
            sent = self._sent
            self._sent = []
        if not sent:
            return
        try:
            store.end((queued, ArticleState.SENT) for queued in sent)
        except BaseException:
            with self._lock:
                self._sent += sent
            raise
        if self._is_drained:
            self._on_idle()

    def _renew_sending(self, store: ArticleStore) -> None:
        """Let no other worker send what is being sent."""
        with self._lock:
            sending = list(self._sending)
        if sending and time.monotonic() - self._renewed_at >= RENEW_S:
            self._renewed_at = time.monotonic()
            store.renew(sending)

    @property
    def _is_drained(self) -> bool:
        with self._lock:
            return not self._sending and not self._sent

    def _try_page(self, store: ArticleStore, reader: Reader, queued: QueuedPage) -> None:
        """Take the article of a page; whatever it does to us, only this page is set aside."""
        try:
            self._take_article(store, reader, queued)
        except ProcessBrokenError:
            raise
        except Exception as error:
            if _is_away(error):
                raise
            log.exception("An error over the article of %s", queued.url)
            self._count("articles/failed/error", 1)
            with self._lock:
                self._sending.pop(queued.page, None)
            store.end([(queued, ArticleState.FAILED)])

    def _take_article(self, store: ArticleStore, reader: Reader, queued: QueuedPage) -> None:
        """Store the article of a page and send it, or say why there is none."""
        if queued.page in self._sending:
            # It takes the pipelines so long that it came up again.
            return
        if queued.is_withdrawn:
            self._fail(store, queued, "withdrawn")
            return
        if store.drop_copy(queued):
            self._count("articles/copies", 1)
            return
        if queued.body is None:
            stored = store.get(queued.page)
            if stored is None:
                self._fail(store, queued, "forgotten")
            else:
                self._hand_over(store, queued, stored)
            return
        tries = store.begin(queued)
        if tries is None:
            return
        if tries > MAX_TRIES:
            self._fail(store, queued, "given_up")
            return
        self._read_article(store, reader, queued, tries)

    def _read_article(
        self, store: ArticleStore, reader: Reader, queued: QueuedPage, tries: int
    ) -> None:
        site = self._site_of(queued.url)
        try:
            fields = self._read_fields(store, reader, queued, site=site, tries=tries)
        except ArticleReadError as error:
            if self._stopping:
                return
            if error.reason == "crashed" and not _can_run(reader):
                raise ProcessBrokenError from error
            self._fail(store, queued, error.reason)
            return
        if self._stopping:
            # It may have been given back already, and somebody else may have it.
            return
        self._note_alarms(queued, site, fields)
        if not fields.text.strip():
            self._fail(store, queued, "no_text")
            return
        self._store(store, queued, site, fields=fields)

    def _read_fields(
        self,
        store: ArticleStore,
        reader: Reader,
        queued: QueuedPage,
        site: SiteRules | None,
        tries: int,
    ) -> ArticleFields:
        """What the process finds in a page. One on which it crashes is tried again, and so is one
        that takes too long by the clock: others may have had the processor.
        """
        assert queued.body is not None
        body = unpack_body(queued.body)
        selectors = site.fields if site is not None else None
        may_be_late = True
        while True:
            started = time.monotonic()
            try:
                return reader.read(body, queued.url, queued.charset, selectors)
            except ArticleReadError as error:
                if self._stopping:
                    raise
                if error.reason == "late" and may_be_late:
                    may_be_late = False
                elif error.reason == "crashed" and tries < MAX_TRIES:
                    tries += 1
                else:
                    raise
                self._count("articles/tried_again", 1)
                self._renew_sending(store)
            finally:
                self._count("articles/ms", round(1000 * (time.monotonic() - started)))

    def _wait_for_process(self, number: int, store: ArticleStore) -> None:
        """Leave all pages in the queue for a while, that of the last crash too, as it is not to
        blame; a crawl that has nothing else to do ends.
        """
        log.warning("The process that takes articles crashes; it is tried again in a minute")
        self._count("articles/process_broken", 1)
        self._free_taken(store)
        until = time.monotonic() + BROKEN_S
        while not self._stopping and time.monotonic() < until:
            self._end_sent(store)
            self._renew_sending(store)
            with self._lock:
                wanted = self._wanted
                self._empty_at[number] = wanted
            self._on_idle()
            self._wait(min(until - time.monotonic(), RENEW_S), wanted)

    def _store(
        self,
        store: ArticleStore,
        queued: QueuedPage,
        site: SiteRules | None,
        fields: ArticleFields,
    ) -> None:
        domain = registered_domain(host_of(queued.url))
        name = site.name if site is not None else domain
        new = NewArticle(queued, domain, name, fields)
        if self._labels is not None:
            new = NewArticle(queued, domain, name, fields, labels=self._labels_of(new))
        try:
            result = store.put(new)
        except DatabaseError as error:
            if not blames_content(error):
                raise
            log.warning("The database refuses the article of %s: %s", queued.url, error)
            self._fail(store, queued, "refused")
            return
        if result is None:
            return
        if result.same_as is not None:
            self._count("articles/same", 1)
        elif not result.version:
            self._count("articles/as_before", 1)
        else:
            self._count("articles/versions" if result.version > 1 else "articles/new", 1)
        if result.version or result.must_send:
            stored = store.get(queued.page)
            if stored is not None:
                self._hand_over(store, queued, stored)

    def _labels_of(self, new: NewArticle) -> tuple[str, ...]:
        """What the user's own classifier says of an article."""
        assert self._labels is not None
        queued = new.queued
        item = item_of_fields(queued.url, new.fields, new.site_name, queued.language)
        try:
            return tuple(str(label) for label in self._labels(item))
        except Exception as error:
            self._count("articles/labels_failed", 1)
            log.warning("ARTICLE_LABELS failed for %s: %r", new.queued.url, error)
            return ()

    def _hand_over(self, store: ArticleStore, queued: QueuedPage, stored: StoredArticle) -> None:
        url, *others = store.addresses(queued.page) or [queued.url]
        item = item_of_stored(url, stored, queued.language, others)
        queued = queued._replace(version=stored.version)
        with self._lock:
            self._sending[queued.page] = queued
        self._send(queued, item)

    def _fail(self, store: ArticleStore, queued: QueuedPage, reason: str) -> None:
        name = reason.partition(":")[0].replace(" ", "_")
        self._count(f"articles/failed/{name}", 1)
        log.info("No article (%s): %s", reason, queued.url)
        stored = None if queued.is_withdrawn else store.get(queued.page)
        if stored is not None and stored.sent < stored.version:
            # What an earlier visit brought was not sent yet.
            self._hand_over(store, queued, stored)
            return
        store.end([(queued, ArticleState.FAILED)])

    def _note_alarms(
        self, queued: QueuedPage, site: SiteRules | None, fields: ArticleFields
    ) -> None:
        """Log each kind of alarm of a field of a site once; all are counted."""
        if site is None:
            return
        for alarm in fields.alarms:
            self._count("articles/alarms", 1)
            field, _, text = alarm.partition(": ")
            kind = text.removeprefix(f"the selector {site.fields.get(field)!r} ")
            key = (site.name, field, _NO_KIND.sub("", kind))
            if key not in self.alarms and len(self.alarms) >= MAX_ALARMS:
                continue
            self.alarms[key] += 1
            if self.alarms[key] == 1:
                log.warning("%s: %s (first on %s)", site.name, alarm, queued.url)


def _is_away(error: Exception) -> bool:
    """Is it the database that has failed, and not what it was asked?"""
    return isinstance(error, DatabaseError) and not blames_content(error)


def _can_run(reader: Reader) -> bool:
    """Can the process read anything? Else no page is to blame for it: memory may be short."""
    try:
        reader.read(PROBE, PROBE_URL, "utf-8", None)
    except ArticleReadError as error:
        return error.reason not in ("crashed", "late")
    return True
