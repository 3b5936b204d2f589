"""As scrapy-redis's manual has it."""

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import Rule
from scrapy_redis.spiders import RedisCrawlSpider, RedisSpider


class LiveSpider(RedisSpider):
    name = "live"

    def parse(self, response):
        yield {"kind": "page", "url": response.url, "job": response.meta.get("job")}


class EagerSpider(LiveSpider):
    """As people do since Scrapy does not call start_requests any more."""

    name = "eager"
    redis_key = "live:start_urls"

    async def start(self):
        for request in self.start_requests():
            yield request


class LiveRulesSpider(RedisCrawlSpider):
    name = "liverules"
    redis_key = "rules:in"
    rules = (Rule(LinkExtractor(allow="/item/"), callback="parse_item", follow=True),)

    def parse_item(self, response):
        yield {"kind": "page", "url": response.url}
