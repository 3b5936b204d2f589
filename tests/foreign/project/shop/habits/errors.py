"""errback and status codes, as Scrapy's manual has them."""

import scrapy
from scrapy.spidermiddlewares.httperror import HttpError


class ErrorsSpider(scrapy.Spider):
    name = "errors"
    handle_httpstatus_list = [410]

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    async def start(self):
        for path, meta in (
            ("/item/1", {}),
            ("/missing", {}),
            ("/taken", {"handle_httpstatus_list": [404]}),
            ("/private/x", {}),
        ):
            yield scrapy.Request(
                self.base + path,
                callback=self.parse_page,
                errback=self.errback_page,
                meta=meta,
                dont_filter=True,
            )
        yield scrapy.Request(self.base + "/item/2", callback=lambda response: None)

    def parse_page(self, response):
        yield {"url": response.url, "status": response.status}

    def errback_page(self, failure):
        if failure.check(HttpError):
            response = failure.value.response
            yield {"url": response.url, "failed": response.status}
        else:
            self.logger.info("Not fetched: %s", failure.request.url)
