"""A stop that Scrapy would forget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def stop_if_missed(crawler: Crawler) -> None:
    """A stop that is asked for while the engine still starts is forgotten by Scrapy, which then
    never ends.
    """
    engine = crawler.engine
    if not crawler.crawling and engine is not None and engine.running:
        asyncio.get_running_loop().create_task(engine.stop_async())
