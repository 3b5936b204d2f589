"""Spider middleware: how deep a request is, as middlewares/pages.py says it in a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.http import Response


class ReextractDepthMiddleware:
    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        depth = response.meta.get("depth", 0) + 1
        async for output in result:
            if isinstance(output, Request):
                output.meta["depth"] = depth
            yield output
