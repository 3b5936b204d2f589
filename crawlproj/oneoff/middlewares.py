"""Downloader middlewares of single pages: guard and robots.txt, and redirects as Scrapy has them.

Scrapy's Retry middleware is not among them: a server in trouble is not asked again on the spot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.redirect import (
    BaseRedirectMiddleware,
    MetaRefreshMiddleware,
    RedirectMiddleware,
)
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request
from scrapy.spidermiddlewares.referer import RefererMiddleware

from crawlproj.fetch.pages import RefusedError, reason_of
from crawlproj.oneoff.mode import AT_SETTING
from crawlproj.oneoff.polite_hosts import polite_hosts_of
from crawlproj.politeness.guard import bad_port
from crawlproj.politeness.robotstxt import MAX_BYTES
from crawlproj.urls.canonical import MAX_URL, canonical_url, origin_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

IS_ROBOTS = "robots_txt"
"""Key of `meta` of requests for a robots.txt."""
MAX_HOPS = 5
"""Redirects of a robots.txt that are followed."""
OF_THE_NETWORK = ("guard", "dns", "refused", "unreachable", "ssl", "timeout", "resting")
"""Reasons why nothing of a host can be fetched, robots.txt or not."""


class OneOffMiddleware:
    """What may not be asked gets no further; why something was not fetched is noted."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._hosts = polite_hosts_of(crawler)
        self._archived = crawler.settings.get(AT_SETTING) is not None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if self._archived or not request.url.startswith(("http://", "https://")):
            return
        url = canonical_url(request.url)
        if url is None:
            raise RefusedError("bad url")
        if len(url) > MAX_URL:
            raise RefusedError("bad url: too long")
        port = bad_port(url)
        if port is not None:
            raise RefusedError(f"port: {port} is not for the web")
        if not request.meta.get(IS_ROBOTS):
            await self._check_robots(url)

    def process_response(self, request: Request, response: Response) -> Response:
        if not request.meta.get(IS_ROBOTS):
            self._hosts.note_status(response.status)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if not request.meta.get(IS_ROBOTS):
            self._hosts.note_failure(request.url, reason_of(exception))

    async def _check_robots(self, url: str) -> None:
        """Raise RefusedError unless robots.txt, which is fetched first, allows the URL."""
        origin = origin_of(url)
        if url == f"{origin}/robots.txt":
            return
        async with self._hosts.robots_lock(origin):
            if not self._hosts.knows_robots(url):
                await self._fetch_robots(origin)
        refusal = self._hosts.robots_refusal(url)
        if refusal:
            raise RefusedError(refusal)

    async def _fetch_robots(self, origin: str) -> None:
        request = Request(
            f"{origin}/robots.txt",
            headers={"Accept-Encoding": "gzip"},
            meta={
                IS_ROBOTS: True,
                "read_at_most": MAX_BYTES + 1,
                "redirect_ttl": MAX_HOPS,
                "dont_merge_cookies": True,
                "dont_cache": True,
                "allow_offsite": True,
                "verbatim_url": True,
            },
        )
        try:
            response = await self._crawler.engine.download_async(request)
        except RefusedError:
            raise
        except IgnoreRequest:  # too many redirects: there is none
            self._hosts.add_robots(origin, 404, b"", headers={})
            return
        except Exception as error:
            reason = reason_of(error)
            if reason.partition(":")[0] in OF_THE_NETWORK:
                raise RefusedError(reason) from error
            self._hosts.add_robots(origin, 0, b"", headers={})
            return
        headers = {
            str(name).lower(): str(value)
            for name, value in response.headers.to_unicode_dict().items()
        }
        self._hosts.add_robots(origin, response.status, response.body, headers=headers)


class _QuietRedirects(BaseRedirectMiddleware):
    """Without Scrapy's warning that there is no middleware for the header Referer."""

    def _engine_started(self) -> None:
        self._referer_spider_middleware = self.crawler.get_spider_middleware(RefererMiddleware)


class Redirects(_QuietRedirects, RedirectMiddleware):
    """Follows redirects by status."""


class MetaRefreshes(_QuietRedirects, MetaRefreshMiddleware):
    """Follows redirects by a meta element."""
