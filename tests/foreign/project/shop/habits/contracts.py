"""Contracts in docstrings, for `scrapy check`."""

import scrapy


class ContractsSpider(scrapy.Spider):
    name = "contracts"

    def parse(self, response):
        """A page with items.

        @url http://contracts.test:PORT/
        @returns items 1 1
        @returns requests 6 8
        @scrapes url
        """
        yield {"url": response.url}
        yield from response.follow_all(css="nav a", callback=self.parse_item)

    def parse_item(self, response):
        """A contract that is broken.

        @url http://contracts.test:PORT/item/1
        @scrapes price
        """
        yield {"title": response.css("h1::text").get()}
