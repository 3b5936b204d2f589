"""Captures as Scrapy's responses, and the download handler that gives out nothing else."""

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
    """A capture as the response that Scrapy got from the network: still compressed."""
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
    """The URL of a redirect that is to be followed; None if the spider takes the capture itself."""
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
    location = capture.header("Location")
    if not location:
        return None
    return join_href(request.url, location)


def redirected_request(request: Request, url: str, status: int) -> Request:
    """The request that follows a redirect: 307 and 308 repeat it, the others become a GET."""
    if status in (307, 308) or (request.method == "HEAD" and status != 303):
        return request.replace(url=url)
    plain = request.replace(url=url, method="GET", body="")
    for name in ("Content-Type", "Content-Length", "Content-Encoding"):
        plain.headers.pop(name, None)
    return plain


def index_queries(request: Request) -> list[str]:
    """What the index may have added to the key of this request; nothing for a GET.

    Several, as the content type may have been another one when the page was fetched.
    """
    if request.method == "GET":
        return [""]
    content_type = (request.headers.get(b"Content-Type") or b"").decode("latin-1")
    types = (content_type, FORM, JSON, "")
    queries = (query_for(request.method, each, request.body) for each in types)
    return list(dict.fromkeys(queries))


class ArchiveHandler:
    """Download handler for http and https that reads captures.

    What the scheduler has handed out comes with its capture. Who asks the downloader directly (a
    callback that awaits a response, a pipeline for images) gets the last capture.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        scheduler: ArchiveScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        capture = scheduler.pending_captures.pop(request, None)
        if capture is not None:
            return response_of(capture, request.url)
        capture, url = scheduler.last_capture(request)
        if capture is None:
            raise DownloadFailedError(f"not in the archive: {request.url}")
        return response_of(capture, url)

    async def close(self) -> None:
        """There is nothing to close."""
