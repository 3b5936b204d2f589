"""As scrapy-redis's manual has it."""

from scrapy_redis.spiders import RedisSpider


class LiveSpider(RedisSpider):
    name = "live"

    def parse(self, response):
        yield {"kind": "page", "url": response.url, "job": response.meta.get("job")}
