"""The download handler of single pages: each request waits for the turn of its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.fetch.handler import GuardedHandler
from crawlproj.oneoff.polite_hosts import polite_hosts_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class PoliteHandler(GuardedHandler):
    """The guarded handler of crawls, which waits here: no middleware leads around the clocks.

    It is made when first used: the shell makes its engine outside of the event loop.
    """

    lazy = True

    async def download_request(self, request: Request) -> Response:
        async with polite_hosts_of(self._crawler).wait_for_turn(request.url):
            return await super().download_request(request)
