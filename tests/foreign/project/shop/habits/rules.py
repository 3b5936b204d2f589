from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class ShopRulesSpider(CrawlSpider):
    name = "crawlrules"
    allowed_domains = ["crawlrules.test"]
    rules = (
        Rule(
            LinkExtractor(allow=r"/item/\d+", restrict_css="nav"),
            callback="parse_item",
            process_links="known_links",
        ),
        Rule(LinkExtractor(allow=("/private", "elsewhere")), callback="parse_item", follow=True),
    )

    def __init__(self, base=None, *args, **kwargs):
        self.start_urls = [base + "/"]
        super().__init__(*args, **kwargs)

    def known_links(self, links):
        return [link for link in links if not link.url.endswith("/2")]

    def parse_item(self, response):
        return {"title": response.css("h1::text").get(), "link": response.meta["link_text"]}
