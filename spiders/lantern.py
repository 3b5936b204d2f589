"""The Lantern, of the demo web (`scrapy demo --serve`): a site that says all of itself.

It has a feed, a sitemap and clean pages, so the general extractor finds every field.
"""

from crawlproj.news.spider import NewsSpider


class LanternSpider(NewsSpider):
    name = "lantern"
    domains = ["lantern.demo.test"]
    seeds = ["http://lantern.demo.test:8780/"]
    sources = ["http://lantern.demo.test:8780/feed.xml"]
    article = r"^/(town|coast)/.+-[0-9]+\.html$"
