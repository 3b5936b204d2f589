"""A spider for whole sites whose callback fails for some pages."""

from __future__ import annotations

from scrapy.http import Response

from spiders.site import SiteSpider


class FailingSiteSpider(SiteSpider):
    name = "failing_site"

    def parse(self, response: Response) -> None:
        if "//tags." in response.url:
            raise ValueError("broken callback")
