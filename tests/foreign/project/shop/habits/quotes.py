"""As Scrapy's tutorial has it, with a half-filled item passed on in meta."""

import scrapy

from shop.items import QuoteItem


class QuotesSpider(scrapy.Spider):
    name = "quotes"
    allowed_domains = ["quotes.test"]

    def __init__(self, base=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [f"{base}/page/1"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            item = QuoteItem(text=quote.css("span::text").get())
            item["author"] = quote.css("small::text").get()
            yield response.follow(
                quote.css("a::attr(href)").get(), self.parse_author, meta={"item": item}
            )
        yield scrapy.Request("http://elsewhere.test/page/1")
        next_page = response.css("a.next::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, callback=self.parse)

    def parse_author(self, response):
        item = response.meta["item"]
        item["born"] = response.css("em::text").get()
        yield item
