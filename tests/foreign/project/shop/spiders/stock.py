"""Spiders as the manuals have them."""

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider


class RulesSpider(CrawlSpider):
    name = "rules"
    rules = (
        Rule(LinkExtractor(allow=r"/item/"), callback="parse_item", cb_kwargs={"via": "rule"}),
        Rule(LinkExtractor(allow=r"/list/")),
    )

    def __init__(self, base, start="/start", domain="127.0.0.1", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [base + start]
        self.allowed_domains = [domain]

    def parse_item(self, response, via):
        yield {
            "kind": "item",
            "path": response.url.partition("/item/")[2],
            "title": response.css("h1::text").get(),
            "via": via,
        }


class MapSpider(SitemapSpider):
    name = "map"
    sitemap_rules = [("/item/", "parse_item")]

    def __init__(self, base, **kwargs):
        self.sitemap_urls = [base + "/robots.txt"]
        super().__init__(**kwargs)

    def parse_item(self, response):
        yield {
            "kind": "item",
            "path": response.url.partition("/item/")[2],
            "title": response.css("h1::text").get(),
        }


class LoginSpider(scrapy.Spider):
    """POST, cookies, cb_kwargs, copied meta, a copied request, a redirect, an error page, a
    duplicate.
    """

    name = "login"
    allowed_domains = ["127.0.0.1"]

    def __init__(self, base, **kwargs):
        super().__init__(**kwargs)
        self.base = base

    async def start(self):
        form = {"user": "ann"}
        yield scrapy.FormRequest(
            self.base + "/login", formdata=form, callback=self.welcome, cb_kwargs={"who": "ann"}
        )

    def welcome(self, response, who):
        yield {"kind": "welcome", "who": who, "path": response.url.removeprefix(self.base)}
        for n in (1, 2):
            meta = {"n": n, "cookiejar": None}
            yield scrapy.Request(
                f"{self.base}/account?n={n}", self.account, meta=meta, cb_kwargs={"n": n}
            )
        yield scrapy.Request(self.base + "/account?n=1", self.account, cb_kwargs={"n": 1})
        own = {"cookies": {"own": "yes"}, "meta": {"cookiejar": "own"}}
        yield scrapy.Request(self.base + "/account?own=1", self.account, cb_kwargs={"n": 3}, **own)
        yield response.follow("/old", self.moved, headers={"X-Word": "hello"})
        yield response.follow("/off", self.moved)
        yield response.follow("/away", self.moved, meta={"handle_httpstatus_list": [302]})
        yield response.follow("/missing", self.account, errback=self.failed)
        yield {"kind": "junk"}

    def account(self, response, n):
        yield {
            "kind": "account",
            "n": n,
            "cookie": response.headers["X-Cookie"].decode(),
            "meta": response.meta.get("n"),
        }
        if n == 2:
            yield scrapy.Request(
                self.base + "/account?copied=meta",
                self.account,
                meta=response.meta,
                cb_kwargs={"n": 4},
            )
            yield response.request.replace(
                url=self.base + "/account?copied=request", cb_kwargs={"n": 5}
            )

    def moved(self, response):
        yield {
            "kind": "moved",
            "path": response.url.removeprefix(self.base),
            "status": response.status,
            "word": response.text[:5],
        }

    def failed(self, failure):
        yield {"kind": "failed", "status": failure.value.response.status}
