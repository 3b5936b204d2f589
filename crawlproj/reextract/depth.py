"""Spider middleware that sets the depth of requests, as middlewares/pages.py does in a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.http import Response


class ReextractDepthMiddleware:
    """Sets `meta["depth"]` of each request that a callback yields to one more than its page's."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        depth = response.meta.get("depth", 0) + 1
        async for output in result:
            if isinstance(output, Request):
                output.meta["depth"] = depth
            yield output
