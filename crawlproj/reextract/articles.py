"""Articles of archived pages, taken again with the selectors of today: they come out as items, and
what the database has of them is mended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.http import Response
from w3lib.encoding import http_content_type_encoding

from crawlproj.articles.store import ArticleStore, NewArticle, QueuedPage
from crawlproj.config import config_of
from crawlproj.content.article_process import ArticleReader, ArticleReadError
from crawlproj.content.feeds import sniff_kind
from crawlproj.content.html import parse_page
from crawlproj.content.page_kinds import PageKinds
from crawlproj.content.robots_directives import parse_robots_headers
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_frontier
from crawlproj.items import Article
from crawlproj.scheduling.article_items import item_of_fields, item_of_stored
from crawlproj.scheduling.spider import site_rules_of, wants_articles
from crawlproj.urls.canonical import canonical_url, host_of, url_key
from crawlproj.urls.domains import registered_domain

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

WORKER = "reextract"


class ArchivedArticles:
    """Spider middleware of a run on the archive: an article for each page that is one, if the
    spider wants them.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._name = config_of(crawler).spec.name
        self._agents = ("robots", config_of(crawler).robot_name.partition("/")[0].lower())
        self._kinds = PageKinds()
        self._reader = ArticleReader()
        self._thread = ThreadPoolExecutor(1)
        self._stack = ExitStack()
        self._store: ArticleStore | None = None
        crawler.signals.connect(self._open, signal=signals.spider_opened)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _open(self) -> None:
        if not wants_articles(self._crawler.spider):
            return
        config = config_of(self._crawler)
        with suppress(NoCrawlYet):
            database = self._stack.enter_context(open_for_reading(config))
            crawl = open_frontier(database, config, self._name).crawl_id
            own = database.new_connection()
            self._stack.callback(own.close)
            keeps_copies = config.duplicates.keep_all
            self._store = ArticleStore(own, crawl, WORKER, keeps_copies=keeps_copies)

    def _close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._reader.close()
        self._stack.close()

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """What the spider gives, and then the article."""
        async for output in result:
            yield output
        if wants_articles(self._crawler.spider) and response.status == 200:
            loop = asyncio.get_running_loop()
            item = await loop.run_in_executor(self._thread, self._article_of, response)
            if item is not None:
                yield item

    def _article_of(self, response: Response) -> Article | None:
        url = canonical_url(response.url) or response.url
        declared = (response.headers.get("Content-Type") or b"").decode("latin-1")
        if sniff_kind(response.body, declared) != "html":
            return None
        charset = http_content_type_encoding(declared)
        document = parse_page(response.body, url, charset, agents=self._agents)
        tags = [tag.decode("latin-1") for tag in response.headers.getlist("X-Robots-Tag")]
        if document.robots.noindex or parse_robots_headers(tags, self._agents).noindex:
            return None
        site = site_rules_of(self._crawler.spider, url)
        verdict = site.verdict(url) if site is not None else ""
        if verdict not in ("article", "listing"):
            verdict = self._kinds.judge(document, url)
        if verdict != "article":
            return None
        selectors = dict(site.fields) if site is not None else None
        try:
            fields = self._reader.read(response.body, url, document.charset, selectors)
        except ArticleReadError as error:
            self._crawler.stats.inc_value("articles/failed")
            log.info("No article (%s): %s", error, url)
            return None
        if not fields.text.strip():
            return None
        domain = registered_domain(host_of(url))
        name = site.name if site is not None else domain
        if self._store is None:
            return item_of_fields(url, fields, name)
        at = response.meta.get("archived_at") or datetime.now(UTC)
        page = url_key(self._name, url)
        queued = QueuedPage(page, url, at, document.charset, None, 0, "", None)
        return self._mend(self._store, NewArticle(queued, domain, name, fields))

    def _mend(self, store: ArticleStore, new: NewArticle) -> Article | None:
        """Store an article that was taken again; nothing comes out if it is another one's."""
        stored = store.get(new.queued.page)
        if stored is None:
            own = store.is_own_page(new.queued.page)
            if own is None:
                return item_of_fields(new.queued.url, new.fields, new.site_name)
            if not own and not store.keeps_copies:
                return None
        done = store.put(new, mends=True)
        if done is None or done.same_as is not None:
            return None
        self._crawler.stats.inc_value("articles/mended")
        stored = store.get(new.queued.page)
        if stored is None:
            return None
        url, *others = store.addresses(new.queued.page) or [new.queued.url]
        return item_of_stored(url, stored, "", others)
