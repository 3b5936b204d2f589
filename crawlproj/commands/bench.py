"""`scrapy bench`: Scrapy's own, on a server that it starts itself, without a crawl."""

from __future__ import annotations

from scrapy.commands import bench

from crawlproj.cli.oneoff import OneOffCommand


class Command(OneOffCommand, bench.Command):
    """One request at a time, as for every server."""

    reads_archive = False
