import scrapy
from scrapy.spiders import CSVFeedSpider, XMLFeedSpider


class RssSpider(XMLFeedSpider):
    name = "rss"
    iterator = "iternodes"
    itertag = "item"

    def __init__(self, base=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [base + "/feed.xml"]

    def parse_node(self, response, node):
        yield {"headline": node.xpath("title/text()").get()}
        yield scrapy.Request(node.xpath("link/text()").get(), callback=self.parse_article)

    def parse_article(self, response):
        yield {"article": response.css("h1::text").get()}


class TableSpider(CSVFeedSpider):
    name = "table"
    delimiter = ";"

    def __init__(self, base=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [base + "/table.csv"]

    def parse_row(self, response, row):
        return {"id": int(row["id"]), "name": row["name"]}
