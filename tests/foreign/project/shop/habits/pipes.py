"""Own pipelines: one that drops, one that waits, one that writes a file of its own."""

import asyncio
import json

import scrapy
from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem

from shop.items import QuoteItem


class DuplicatesPipeline:
    def __init__(self):
        self.seen = set()

    def process_item(self, item, spider):
        adapter = ItemAdapter(item)
        if adapter["text"] in self.seen:
            raise DropItem(f"Duplicate item found: {item!r}")
        self.seen.add(adapter["text"])
        return item


class WaitingPipeline:
    async def process_item(self, item, spider):
        await asyncio.sleep(0.01)
        item["author"] = "somebody"
        return item


class JsonWriterPipeline:
    @classmethod
    def from_crawler(cls, crawler):
        pipeline = cls()
        pipeline.path = crawler.settings.get("OWN_FILE")
        return pipeline

    def open_spider(self, spider):
        self.file = open(self.path, "a")  # noqa: PTH123, SIM115

    def close_spider(self, spider):
        self.file.close()

    def process_item(self, item, spider):
        self.file.write(json.dumps(ItemAdapter(item).asdict()) + "\n")
        return item


class PipesSpider(scrapy.Spider):
    name = "pipes"
    custom_settings = {
        "ITEM_PIPELINES": {
            "shop.habits.pipes.DuplicatesPipeline": 100,
            WaitingPipeline: 200,
            "shop.habits.pipes.JsonWriterPipeline": 800,
        },
    }

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/"]

    def parse(self, response):
        for link in response.css("nav a.item"):
            yield QuoteItem(text=link.css("::text").get())
        yield QuoteItem(text="item 1")
        yield response.follow("/item/1", self.parse_item)

    async def parse_item(self, response):
        await asyncio.sleep(0.01)
        yield QuoteItem(text=response.css("h1::text").get())
