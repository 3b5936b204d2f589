"""The Quillham Echo, of the demo web (`scrapy demo --serve`): a site of boxes in boxes.

Its dates are in JSON-LD and right. The headline and the author that stand there are not, and the
only `h1` of a page is that of a box.
"""

from crawlproj.news.spider import NewsSpider


class EchoSpider(NewsSpider):
    name = "echo"
    domains = ["echo.demo.test"]
    seeds = ["http://echo.demo.test:8780/"]
    sources = ["http://echo.demo.test:8780/feed.xml"]
    article = r"^/(city|stage)/.+\.html$"
    fields = {
        "title": ".hd .big::text",
        "authors": ".by b::text",
        "section": ".hd .kick::text",
    }
