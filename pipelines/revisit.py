"""900: the one end of everything. Each Page that gets here, is dropped, or fails on the way, ends
its ticket once; crawlproj/scheduling/visits.py says what that means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals

from crawlproj.fetch.pages import error_text
from crawlproj.items import Page
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure


class RevisitPipeline:
    wants_pages = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.item_dropped, signal=signals.item_dropped)
        crawler.signals.connect(self.item_error, signal=signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and not item.ended:
            worker_of(self._crawler).end_visit(item)
        return item

    def item_dropped(self, item: Any, exception: Exception) -> None:
        """End the visit of a page that another pipeline dropped: it was visited all the same."""
        if isinstance(item, Page) and not item.ended:
            item.content = None
            item.error = f"dropped: {exception}"
            worker_of(self._crawler).end_visit(item)

    def item_error(self, item: Any, failure: Failure) -> None:
        """Let a page be tried again that was fetched, but could not be kept."""
        if isinstance(item, Page) and not item.ended:
            item.content = None
            worker_of(self._crawler).end_visit(item, failed=f"pipeline: {error_text(failure)}")
