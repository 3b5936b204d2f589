"""200: the text of a page that is new is packed for the store, and the numbers are made by which
the page is compared with all others: digests, MinHash signature, paragraphs.

The comparison itself is made where the page is stored (crawlproj/duplicates/postgres.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem, NotConfigured

from crawlproj.config import config_of
from crawlproj.items import Page, verdict_of
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class DedupPipeline:
    wants_pages = True

    def __init__(self, crawler: Crawler) -> None:
        config = config_of(crawler)
        if not config.text and not config.duplicates.exact:
            raise NotConfigured
        self._crawler = crawler
        self._drops_items = config.duplicates.drop_items

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        """Return the item; of a page with a very long text, a coroutine that does."""
        if isinstance(item, Page):
            if not worker_of(self._crawler).marking.mark(item):
                return self._mark_apart(item)
        elif self._drops_items:
            verdict = verdict_of(item)
            if verdict is not None:
                self._crawler.stats.inc_value("duplicates/items_dropped")
                raise DropItem(f"its page is a copy ({verdict.duplicate_kind})")
        return item

    async def _mark_apart(self, page: Page) -> Page:
        await worker_of(self._crawler).marking.mark_apart(page)
        return page
