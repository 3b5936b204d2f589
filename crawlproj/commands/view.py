"""`scrapy view`: Scrapy's own, politely and without a crawl, or from the archive."""

from __future__ import annotations

from scrapy.commands import view

from crawlproj.commands.fetch import Command as FetchCommand


class Command(FetchCommand, view.Command):
    def long_desc(self) -> str:
        return (
            "Fetch a URL as scrapy fetch does, and show it in a browser. Exit codes: 0 fine, 1 "
            "could not run, 2 bad usage or settings, 3 not fetched."
        )
