"""What Scrapy loads by a dotted path in the settings, besides middlewares and pipelines. `panel`
shows the crawl on the screen; `closespider`, `feedexport` and `logformatter` are Scrapy's own with
what our Pages and robots.txt need different; `overrides` are parts of Scrapy's engine with the same
results for less CPU. They know Scrapy, and read the running scheduler; none opens the database. All
of it runs on the event loop.
"""
