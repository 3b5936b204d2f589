"""What Scrapy loads by a dotted path in the settings besides middlewares and pipelines."""
