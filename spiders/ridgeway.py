"""The Ridgeway Times, of the demo web (`scrapy demo --serve`): a site that lists its articles.

It has no feed and no sitemap: its articles are found through the lists of its sections, which are
therefore visited often. Date and author stand at the end of the text, in words.
"""

from crawlproj.news.spider import NewsSpider


class RidgewaySpider(NewsSpider):
    name = "ridgeway"
    domains = ["ridgeway.demo.test"]
    seeds = ["http://ridgeway.demo.test:8780/"]
    listing = r"^/(hills|valley)(\?page=[0-9]+)?$"
    article = r"^/(hills|valley)/.+\.html$"
    fields = {
        "date": ".sign i::text",
        "authors": ".sign b::text",
        "text": ".story > p:not(.sign):not(.mended)",
    }
