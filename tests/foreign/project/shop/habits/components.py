"""custom_settings with a component of every kind, as people collect them."""

import scrapy


class HeaderMiddleware:
    def process_request(self, request, spider):
        request.headers["X-Seen-By"] = spider.name

    def process_response(self, request, response, spider):
        spider.crawler.stats.inc_value("own/responses")
        return response


class MarkMiddleware:
    async def process_spider_output(self, response, result, spider):
        async for thing in result:
            if isinstance(thing, dict):
                thing["marked"] = True
            yield thing

    async def process_start(self, start):
        async for request in start:
            yield request


class CountPipeline:
    def open_spider(self, spider):
        self.number = 0

    def process_item(self, item, spider):
        self.number += 1
        item["counted"] = True
        return item

    def close_spider(self, spider):
        spider.crawler.stats.set_value("own/items", self.number)


class CountExtension:
    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        extension.stats = crawler.stats
        crawler.signals.connect(extension.item_scraped, signal=scrapy.signals.item_scraped)
        return extension

    def item_scraped(self, item, spider):
        if isinstance(item, dict):
            self.stats.inc_value("own/signals")


class ComponentsSpider(scrapy.Spider):
    name = "components"
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {
            "shop.habits.components.HeaderMiddleware": 543,
            "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
        },
        "SPIDER_MIDDLEWARES": {"shop.habits.components.MarkMiddleware": 543},
        "ITEM_PIPELINES": {"shop.habits.components.CountPipeline": 300},
        "EXTENSIONS": {
            "shop.habits.components.CountExtension": 500,
            "scrapy.extensions.telnet.TelnetConsole": None,
        },
        "CONCURRENT_REQUESTS": 1,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DEFAULT_REQUEST_HEADERS": {"Accept-Language": "en"},
        "RETRY_TIMES": 1,
        "AUTOTHROTTLE_ENABLED": True,
        "COOKIES_ENABLED": False,
        "DEPTH_LIMIT": 1,
    }

    def __init__(self, base=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + "/"]

    def parse(self, response):
        yield {"url": response.url, "seen": response.request.headers["X-Seen-By"].decode()}
        yield from response.follow_all(css="nav a.item", callback=self.parse)
