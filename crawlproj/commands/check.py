"""`scrapy check`: Scrapy's own, politely and without a crawl."""

from __future__ import annotations

from scrapy.commands import check

from crawlproj.cli.oneoff import OneOffCommand


class Command(OneOffCommand, check.Command):
    """Each contract's page is fetched as by `scrapy fetch`."""

    reads_archive = False

    def first_url(self, args: list[str]) -> str:
        """None is known before the contracts are read; the guard asks for ROBOT_CONTACT then."""
        return ""
