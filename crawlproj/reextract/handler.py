"""Captures as Scrapy's responses; and the download handler that has nothing else to give."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DownloadFailedError
from scrapy.http import Headers, Request, Response
from scrapy.utils._download_handlers import make_response

from crawlproj.archive import Capture
from crawlproj.archive.post_keys import FORM, JSON, query_for
from crawlproj.http import heads
from crawlproj.http.status import REDIRECTS
from crawlproj.urls.canonical import join_href

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlproj.reextract.scheduler import ArchiveScheduler


def response_of(capture: Capture, url: str) -> Response:
    """As the network's end gave it to Scrapy: still packed, of the class that fits."""
    try:
        address = ip_address(capture.record.fields.get("warc-ip-address", ""))
    except ValueError:
        address = None
    return make_response(
        url=url,
        status=capture.status,
        headers=Headers(heads.parse_headers(capture.head)),
        body=capture.payload,
        ip_address=address,
        protocol=capture.head.partition(b" ")[0].decode("latin-1"),
    )


def redirect_target(capture: Capture, request: Request, spider: Any) -> str | None:
    """Where a redirect leads that the spider does not take itself."""
    meta = request.meta
    taken = meta.get(
        "handle_httpstatus_list", getattr(spider, "handle_httpstatus_list", None) or ()
    )
    if (
        capture.status not in REDIRECTS
        or meta.get("dont_redirect")
        or meta.get("handle_httpstatus_all")
        or capture.status in taken
    ):
        return None
    where = capture.header("Location")
    return join_href(request.url, where) if where else None


def redirected_request(request: Request, url: str, status: int) -> Request:
    """The request that follows a redirect: 307 and 308 repeat it, the others ask with GET."""
    if status in (307, 308) or (request.method == "HEAD" and status != 303):
        return request.replace(url=url)
    plain = request.replace(url=url, method="GET", body="")
    for name in ("Content-Type", "Content-Length", "Content-Encoding"):
        plain.headers.pop(name, None)
    return plain


def index_queries(request: Request) -> list[str]:
    """By which the index may know it: the content type may be another than it was sent with."""
    if request.method == "GET":
        return [""]
    said = (request.headers.get(b"Content-Type") or b"").decode("latin-1")
    return list(
        dict.fromkeys(
            query_for(request.method, kind, request.body) for kind in (said, FORM, JSON, "")
        )
    )


class ArchiveHandler:
    """For http and https. What the scheduler has handed out comes with its capture; whoever asks
    the downloader directly (a callback that waits for an answer, a pipeline for images) gets the
    last one.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        scheduler: ArchiveScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        found = scheduler.handed.pop(request, None)
        if found is not None:
            return response_of(found, request.url)
        found, url = scheduler.look_up(request)
        if found is None:
            raise DownloadFailedError(f"not in the archive: {request.url}")
        return response_of(found, url)

    async def close(self) -> None:
        """There is nothing to close."""
