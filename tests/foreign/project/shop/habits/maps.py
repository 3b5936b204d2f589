from scrapy.spiders import SitemapSpider


class ShopMapSpider(SitemapSpider):
    name = "maps"
    sitemap_rules = [(r"/item/", "parse_item")]

    def __init__(self, base=None, *args, **kwargs):
        self.sitemap_urls = [base + "/sitemap.xml"]
        super().__init__(*args, **kwargs)

    def parse_item(self, response):
        yield {"title": response.css("h1::text").get()}
