"""A pause as an attribute of the spider, and a page that is slow."""

import scrapy


class PatientSpider(scrapy.Spider):
    name = "patient"
    download_delay = 0.3
    max_concurrent_requests = 4

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/slow", base + "/item/1", base + "/item/2"]

    def parse(self, response):
        yield {"url": response.url, "text": response.css("h1::text, p::text").get()}
