"""As `scrapy startproject` makes it. Tests add the line that joins it."""

BOT_NAME = "shop"
SPIDER_MODULES = ["shop.habits"]
NEWSPIDER_MODULE = "shop.habits"
ROBOTSTXT_OBEY = True
FEED_EXPORT_ENCODING = "utf-8"
