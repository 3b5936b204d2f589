"""FEEDS in custom_settings, two of them."""

import scrapy


class ExportSpider(scrapy.Spider):
    name = "export"
    custom_settings = {
        "FEEDS": {
            "export.csv": {"format": "csv", "fields": ["name", "price"], "overwrite": True},
            "export-%(name)s.jsonl": {"format": "jsonlines", "overwrite": False},
        },
    }

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/item/1", base + "/item/2"]

    def parse(self, response):
        yield {
            "name": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
            "extra": None,
        }
