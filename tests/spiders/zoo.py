"""Spiders of every kind that people have, as the manuals write them; see tests/support/zoo.py for
the web that they read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from itemloaders.processors import MapCompose, TakeFirst  # type: ignore[import-untyped]
from scrapy.http import FormRequest, Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.selector import Selector
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider
from twisted.python.failure import Failure

from spiders.site import SiteSpider


class BasedSpider(scrapy.Spider):
    """Of a web whose address is an argument. Abstract: without a name it is no spider."""

    base: str

    def shown(self, response: Response, **more: Any) -> dict[str, Any]:
        text = response.css("p::text").get() if isinstance(response, TextResponse) else None
        path = response.url.removeprefix(self.base)
        return {
            "path": path,
            "status": response.status,
            "text": text,
            "kind": type(response).__name__,
            "depth": response.meta["depth"],
            **more,
        }


class RuledSpider(BasedSpider, CrawlSpider):
    name = "ruled"
    rules = (
        Rule(LinkExtractor(allow="/item/"), callback="parse_item", cb_kwargs={"via": "item"}),
        Rule(LinkExtractor(allow="/list/"), follow=True, process_request="mark"),
        Rule(LinkExtractor(allow="/old"), callback="parse_item", cb_kwargs={"via": "old"}),
    )

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.base + "/")

    def parse_start_url(self, response: Response, **kwargs: Any) -> Any:
        return [self.shown(response, via="start")]

    def mark(self, request: scrapy.Request, response: Response) -> scrapy.Request:
        return request.replace(priority=10)

    def parse_item(self, response: Response, via: str) -> Iterator[Any]:
        yield self.shown(response, via=via, link=response.meta["link_text"])


class MappedSpider(BasedSpider, SitemapSpider):
    name = "mapped"
    sitemap_rules = [("/item/[0-3]", "parse_item"), ("/item/", "parse_other")]  # noqa: RUF012

    def __init__(self, base: str, **kwargs: Any) -> None:
        self.sitemap_urls = [base + "/sitemaps.xml"]
        super().__init__(base=base, **kwargs)

    def parse_item(self, response: Response) -> Iterator[Any]:
        yield self.shown(response, by="item")

    def parse_other(self, response: Response) -> Iterator[Any]:
        yield self.shown(response, by="other")


class FedSpider(BasedSpider, XMLFeedSpider):
    name = "fed"
    itertag = "item"

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.base + "/feed.xml")

    def parse_node(self, response: Response, selector: Selector) -> Iterator[Any]:
        yield {"id": selector.xpath("id/text()").get(), "name": selector.xpath("name/text()").get()}


class TabledSpider(BasedSpider, CSVFeedSpider):
    name = "tabled"

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.base + "/table.csv")

    def parse_row(self, response: Response, row: dict[str, str]) -> Iterator[Any]:
        yield dict(row)


class Thing(scrapy.Item):
    path = scrapy.Field()
    text = scrapy.Field()
    tags = scrapy.Field()


class ThingLoader(ItemLoader):
    default_item_class = Thing
    default_output_processor = TakeFirst()
    text_in = MapCompose(str.strip, str.upper)


class ChainedSpider(BasedSpider):
    """Callbacks that hand things on, forms, errbacks, errors that are wanted, an item loader, a
    callback that breaks.
    """

    name = "chained"

    async def start(self) -> AsyncIterator[Any]:
        yield {"path": "an item of the start"}
        yield scrapy.Request(
            self.base + "/list/0", self.listed, cb_kwargs={"depth": 0}, meta={"trail": ["start"]}
        )
        for word in ("one", "two"):
            yield FormRequest(
                self.base + "/search",
                formdata={"q": word},
                callback=self.found,
                cb_kwargs={"word": word},
            )
        yield scrapy.Request(self.base + "/search?q=three", self.found, cb_kwargs={"word": "three"})
        for status in (404, 500):
            yield scrapy.Request(
                f"{self.base}/error/{status}",
                self.found,
                errback=self.failed,
                cb_kwargs={"word": str(status)},
            )
        wanted = {"handle_httpstatus_list": [404, 410]}
        yield scrapy.Request(
            self.base + "/error/410", self.found, meta=wanted, cb_kwargs={"word": "wanted"}
        )
        yield scrapy.Request(self.base + "/data.json", self.told)
        yield scrapy.Request(self.base + "/item/5", self.breaks)
        yield scrapy.Request(self.base + "/item/4", self.headed, method="HEAD")
        for path in ("/old", "/moved"):
            yield scrapy.Request(self.base + path, self.found, cb_kwargs={"word": path})

    def listed(self, response: Response, depth: int) -> Iterator[Any]:
        trail = [*response.meta["trail"], depth]
        for link in response.css("a::attr(href)").getall():
            if "/item/" in link:
                yield response.follow(link, self.loaded, cb_kwargs={"tags": [*trail, link]})
            elif depth < 2:
                yield response.follow(
                    link, self.listed, cb_kwargs={"depth": depth + 1}, meta={"trail": trail}
                )

    def loaded(self, response: Response, tags: list[Any]) -> Iterator[Any]:
        loader = ThingLoader(response=response)
        loader.add_css("text", "p::text")
        loader.add_value("path", response.url.removeprefix(self.base))
        loader.add_value("tags", " ".join(map(str, tags)))
        yield loader.load_item()

    def found(self, response: Response, word: str) -> Iterator[Any]:
        yield self.shown(response, word=word)

    def told(self, response: TextResponse) -> Iterator[Any]:
        yield {"n": response.json()["n"]}
        meta = {"dont_redirect": True, "handle_httpstatus_list": [303]}
        yield response.follow(
            "/moved", self.found, meta=meta, cb_kwargs={"word": "not followed"}, dont_filter=True
        )
        yield response.follow(
            response.json()["next"], self.found, cb_kwargs={"word": "told"}, dont_filter=True
        )

    def headed(self, response: Response) -> Iterator[Any]:
        yield self.shown(response, length=response.headers["Content-Length"].decode())

    def breaks(self, response: Response) -> Iterator[Any]:
        yield self.shown(response, word="before it broke")
        raise ValueError("as spiders do")

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield self.shown(failure.value.response, word="failed")  # type: ignore[attr-defined]


class OddSpider(BasedSpider):
    """Charsets, packings, answers that were cut off, a circle, errors that all callbacks take."""

    name = "odd"
    handle_httpstatus_list = [404]  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        packed = ("gzip", "deflate", "raw", "br", "zstd")
        charsets = ("header-1251", "meta-sjis", "bom-utf16", "latin", "gb18030")
        paths = [*(f"packed/{name}" for name in packed), *(f"charset/{name}" for name in charsets)]
        for path in [*paths, "error/404", "error/500", "cut", "circle", "item/0"]:
            yield scrapy.Request(f"{self.base}/{path}")

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.shown(response, encoding=getattr(response, "encoding", None))


class TitlesSpider(SiteSpider):
    """What people make of the general spider."""

    name = "titles"

    def __init__(self, base: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base = base

    def parse(self, response: Response) -> Iterator[Any]:  # type: ignore[override]
        text = response.css("p::text").get() if isinstance(response, TextResponse) else None
        yield {
            "path": response.url.removeprefix(self.base),
            "text": text,
            "depth": response.meta["depth"],
        }
