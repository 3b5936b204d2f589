"""As `scrapy startproject` makes it, with a pipeline and a middleware of the project's own. Tests
add the one line.
"""

BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
NEWSPIDER_MODULE = "shop.spiders"
ROBOTSTXT_OBEY = True
FEED_EXPORT_ENCODING = "utf-8"
ITEM_PIPELINES = {"shop.pipelines.PricePipeline": 300}
SPIDER_MIDDLEWARES = {"shop.middlewares.StampMiddleware": 543}
