"""Spiders that end themselves."""

import scrapy
from scrapy.exceptions import CloseSpider


class LimitSpider(scrapy.Spider):
    name = "limit"
    custom_settings = {"CLOSESPIDER_ITEMCOUNT": 3, "CONCURRENT_REQUESTS": 1}

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/"]

    def parse(self, response):
        yield from response.follow_all(css="nav a", callback=self.parse_item)

    def parse_item(self, response):
        yield {"title": response.css("h1::text").get()}


class EnoughSpider(LimitSpider):
    name = "enough"
    custom_settings = {"CONCURRENT_REQUESTS": 1}

    def parse_item(self, response):
        if response.url.endswith("/4"):
            raise CloseSpider("enough_of_it")
        yield {"title": response.css("h1::text").get()}
