"""Says of each page what a callback sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response, TextResponse


class PagesSpider(scrapy.Spider):
    name = "pages"

    def __init__(self, base: str = "", follow: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [base] if base else []
        self.follow = [url for url in follow.split(",") if url]

    def parse(self, response: Response, via: str = "") -> Iterator[Any]:
        text = response.css("p::text").get() if isinstance(response, TextResponse) else None
        yield {
            "url": response.url,
            "status": response.status,
            "text": text,
            "class": type(response).__name__,
            "via": via,
            "encoding": getattr(response, "encoding", None),
            "at": str(response.meta.get("archived_at", ""))[:19],
            "address": str(response.ip_address),
            "protocol": response.protocol,
            "chunked": response.headers.get("Transfer-Encoding", b"").decode(),
            "depth": response.meta.get("depth"),
        }
        if not via:
            yield from (
                scrapy.Request(url, cb_kwargs={"via": response.url}, dont_filter=True)
                for url in self.follow
            )

    def other(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "other": True}


class InlineSpider(scrapy.Spider):
    """Waits for answers inside a callback."""

    name = "inline"

    def __init__(self, base: str = "", more: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [base]
        self.more = more

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        try:
            found = await self.crawler.engine.download_async(scrapy.Request(self.more))
        except Exception as error:
            yield {"url": response.url, "more": type(error).__name__}
        else:
            yield {"url": response.url, "more": found.url, "size": len(found.body)}
