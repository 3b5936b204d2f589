"""Stopping a crawl that is asked to stop while it still starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def stop_if_missed(crawler: Crawler) -> None:
    """Stop the engine if a stop was asked for while it still started: Scrapy forgets that, and
    would never end.
    """
    engine = crawler.engine
    if not crawler.crawling and engine is not None and engine.running:
        asyncio.get_running_loop().create_task(engine.stop_async())
