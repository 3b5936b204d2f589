"""The queue of pages that are articles, and the table of articles, on Postgres.

A page is queued by the commit that stores it. Whoever takes it has it for a while; its article is
stored in one transaction, then its item passes the pipelines, and only then does it leave the
queue: a worker that is killed loses none, and sends few again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from crawlproj.articles.same import is_same_article, site_number, text_key, title_key
from crawlproj.content.articles import ArticleFields
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.database.queries import Queries

ARCHIVE_STEP: Final = timedelta(seconds=1)
"""The archive tells captures apart by seconds."""
TAKEN_S: Final = 120.0
"""So long a worker has what it took; then another one may take it. What is being sent is renewed
between two tries of pages, and one with the start of a process may take 80 s.
"""
IN_FIELDS: Final = ("authors", "language", "section", "keywords", "place", "image", "canonical")
"""Fields that are stored together, and not in columns of their own."""


class ArticleState(StrEnum):
    """What came of a page that is an article; stored as `page.article`."""

    DUE = "due"
    UNSENT = "unsent"
    SENT = "sent"
    COPY = "copy"
    """The same article is known from another page."""
    FAILED = "failed"


class QueuedPage(NamedTuple):
    """A page that was taken from the queue. Without a body its article is stored, but not sent."""

    page: int
    url: str
    at: datetime
    charset: str
    body: bytes | None
    tries: int
    language: str
    canonical_page: int | None
    is_copy: bool = False
    """The page as a whole is a copy of another one."""
    is_withdrawn: bool = False
    """The page says by now that it is not to be listed, or not any more."""
    version: int = 0
    """Which version of its article is being sent; 0: none."""


class StoredArticle(NamedTuple):
    """A row of `article`. `sent`: the last version whose item has passed the pipelines."""

    page: int
    version: int
    title: str | None
    text: str
    date: str | None
    modified: str | None
    fields: dict[str, Any]
    site: str
    at: datetime
    sent: int


@dataclass(frozen=True, slots=True)
class NewArticle:
    """The article of a page that was taken from the queue, ready to be stored."""

    queued: QueuedPage
    site: str
    """Its registered domain: articles are told apart inside it."""
    site_name: str
    fields: ArticleFields
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """What came of it: an article to be sent (`version` 1 or higher), or the same as another one,
    or as before (`version` 0). `must_send`: as before, but its item was never sent.
    """

    version: int = 0
    same_as: int | None = None
    must_send: bool = False


class ArticleStore:
    """For one crawl, one worker and one thread; `database` is that thread's own connection.
    `keeps_copies`: the same article at another address is an article of its own.
    """

    def __init__(
        self, database: Database, crawl: int, worker: str, keeps_copies: bool = False
    ) -> None:
        self.database = database
        self.keeps_copies = keeps_copies
        self._crawl = crawl
        self._worker = worker

    def free_dead(self, is_dead: Any) -> None:
        """Put back what workers have taken that have died on this machine."""
        takers = [row[0] for row in self.database.fetch_rows("article_takers", crawl=self._crawl)]
        dead = [worker for worker in takers if is_dead(worker)]
        if dead:
            self.database.run(
                "free_articles",
                workers=array_literal(dead),
                but=array_literal([]),
                blameless=False,
            )

    def free_own(self, but: Sequence[int] = ()) -> None:
        """Put back what this worker has taken, but these pages. No try of them counts: whoever puts
        them back was not ended by one.
        """
        self.database.run(
            "free_articles",
            workers=array_literal([self._worker]),
            but=array_literal(but),
            blameless=True,
        )

    def take(self, number: int) -> list[QueuedPage]:
        """Take pages from the queue, those that wait longest first."""
        rows = self.database.fetch_rows(
            "take_articles",
            crawl=self._crawl,
            number=number,
            worker=self._worker,
            seconds=TAKEN_S,
        )
        return sorted((QueuedPage(*row) for row in rows), key=lambda row: (row.at, row.page))

    def drop_copy(self, queued: QueuedPage) -> bool:
        """Take a page out of the queue if it is a copy of one whose article is known by now."""
        if self.keeps_copies or not queued.is_copy:
            return False
        return self.database.run("drop_article_copies", pages=array_literal([queued.page])) > 0

    def begin(self, queued: QueuedPage) -> int | None:
        """Note that a page is read now: how many tries that makes. None: it is not ours any more,
        since it was fetched anew or somebody else has it.

        Only who reads a page counts as a try of it: whoever is killed had taken others, too.
        """
        tries: int | None = self.database.fetch_value(
            "begin_article",
            page=queued.page,
            at=queued.at,
            worker=self._worker,
            seconds=TAKEN_S,
        )
        return tries

    def renew(self, pages: Sequence[int]) -> None:
        """Keep articles for longer whose items are on their way through the pipelines."""
        self.database.run("renew_articles", pages=array_literal(pages), seconds=TAKEN_S)

    def put(self, article: NewArticle, mends: bool = False) -> Stored | None:
        """Store an article: a new one, another version, or another address of a known one. None:
        the page was fetched anew, taken by somebody else or forgotten meanwhile.

        `mends`: the page is from the archive and not in the queue; what was taken from it before
        is replaced, and that is no new version.
        """
        queued = article.queued
        fields = article.fields
        site = site_number(self._crawl, article.site)
        with self.database.transaction() as tx:
            tx.run("lock_site_articles", site=site)
            if not self._may_store(tx, queued, mends=mends):
                return None
            own = self.own_article(tx, queued.page)
            if own is not None and mends and own.at >= queued.at + ARCHIVE_STEP:
                return Stored()  # the archive has only older captures
            title = _storable(fields.title)
            text = _storable(fields.text) or ""
            if own is not None and (own.title, own.text) == (title, text) and not mends:
                if own.sent < own.version:
                    self._await_sending(tx, queued)
                    return Stored(must_send=True)
                self._end(tx, [(queued, ArticleState.SENT)])
                return Stored()
            keys = {
                "title_key": title_key(site, fields.title),
                "text_key": text_key(site, fields.text),
            }
            if own is None:
                same_as = self._same_article(tx, article, keys)
                if same_as is not None and tx.run(
                    "put_article_address", page=queued.page, article=same_as
                ):
                    self._end(tx, [(queued, ArticleState.COPY)])
                    return Stored(same_as=same_as)
                tx.run("drop_article_address", page=queued.page)
            version: int = tx.fetch_value(
                "put_article",
                page=queued.page,
                crawl=self._crawl,
                site=article.site_name,
                at=queued.at,
                title=title,
                text=text,
                date=fields.date,
                modified=_modified(fields, own, queued, mends=mends),
                step=0 if mends else 1,
                fields=_to_json(article),
                **keys,
            )
            if mends:
                tx.run("mark_mended", page=queued.page)
                return Stored(version=version)
            self._await_sending(tx, queued)
        return Stored(version=version)

    def _may_store(self, tx: Queries, queued: QueuedPage, mends: bool) -> bool:
        """Is the page still there and, unless it is from the archive, this worker's? It stays so
        until the transaction ends.
        """
        if mends:
            return tx.fetch_value("is_own_page", page=queued.page) is not None
        held = tx.fetch_value("hold_article", page=queued.page, at=queued.at, worker=self._worker)
        return held is not None

    def _await_sending(self, tx: Queries, queued: QueuedPage) -> None:
        tx.run("await_sending", page=queued.page, at=queued.at, seconds=TAKEN_S)

    def _same_article(
        self, tx: Queries, article: NewArticle, keys: dict[str, int | None]
    ) -> int | None:
        """The page of a known article that this one is, too."""
        if self.keeps_copies:
            return None
        queued = article.queued
        fields = article.fields
        rows = tx.fetch_rows(
            "like_articles", page=queued.page, canonical=queued.canonical_page, **keys
        )
        for page, title, text, named in rows:
            same_title = keys["title_key"] is not None and _same_words(title, fields.title)
            if is_same_article(fields.text, text, same_title=same_title, named=named):
                found: int = page
                return found
        return None

    def own_article(self, queries: Queries, page: int) -> StoredArticle | None:
        """The article that was taken from a page before."""
        row = queries.fetch_row("stored_article", page=page)
        return None if row is None else StoredArticle(*row)

    def get(self, page: int) -> StoredArticle | None:
        """The stored article of a page."""
        return self.own_article(self.database, page)

    def is_own_page(self, page: int) -> bool | None:
        """Is a page no copy of another one? None: it was not read by the crawl."""
        found: bool | None = self.database.fetch_value("is_own_page", page=page)
        return found

    def addresses(self, page: int) -> list[str]:
        """All addresses of the article of a page, the canonical one first; none if each copy is an
        article of its own.
        """
        if self.keeps_copies:
            return []
        return [row[0] for row in self.database.fetch_rows("article_addresses", page=page)]

    def end(self, ended: Iterable[tuple[QueuedPage, ArticleState]]) -> None:
        """Take pages out of the queue, unless they were read again meanwhile, and note which
        versions of their articles were sent.
        """
        self._end(self.database, list(ended))

    def _end(self, queries: Queries, ended: Sequence[tuple[QueuedPage, ArticleState]]) -> None:
        queries.run(
            "end_articles",
            page=array_literal([queued.page for queued, _ in ended]),
            at=array_literal([queued.at for queued, _ in ended]),
            state=array_literal([state.value for _, state in ended]),
            version=array_literal(
                [queued.version if state is ArticleState.SENT else 0 for queued, state in ended]
            ),
        )


def _modified(
    fields: ArticleFields, own: StoredArticle | None, queued: QueuedPage, *, mends: bool
) -> str | None:
    """When an article was modified: as its page says, else when another text was found."""
    if fields.modified is not None or own is None:
        return fields.modified
    return own.modified if mends else queued.at.isoformat()


def _same_words(title: str | None, other: str | None) -> bool:
    return title_key(0, title) == title_key(0, other)


def _to_json(article: NewArticle) -> str:
    fields = article.fields
    values: dict[str, object] = {name: getattr(fields, name) for name in IN_FIELDS}
    values |= {"labels": article.labels, "origins": dict(fields.origins)}
    if article.fields.alarms:
        values["alarms"] = fields.alarms
    return json.dumps(_storable(values), ensure_ascii=False)


def _storable(value: Any) -> Any:
    """The same without NULs and lone surrogates, which Postgres can't store."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value
