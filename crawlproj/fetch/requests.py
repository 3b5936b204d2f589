"""Ordinary Scrapy requests as JSON, and tickets as Scrapy requests.

A spider may yield any Request: it lives in the same table as the URLs, in a JSON column. What can't
be stored is refused.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from scrapy import Request, Spider
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.request import request_from_dict
from twisted.python.failure import Failure

from crawlproj.content.feeds import MAX_SITEMAP
from crawlproj.fetch.stored_values import dump_value, load_value
from crawlproj.frontier.base import Found, Ticket
from crawlproj.http.status import REDIRECTS
from crawlproj.items import RobotsTicket
from crawlproj.politeness.robotstxt import MAX_BYTES

TICKET_META = frozenset({
    "ticket", "depth", "parent", "from_source", "started", "ended", "answered", "retry_after_s",
    "took_s", "wire", "download_slot", "download_latency", "download_timeout", "is_start_request",
    "stored_seed",
})  # fmt: skip
"""Keys of `meta` that belong to one ticket, not to the request."""
SCRAPY_META = frozenset({"dont_redirect", "dont_retry", "verbatim_url", "download_maxsize"})
"""Keys of `meta` that we set for Scrapy's own components."""
_SITEMAP_KINDS = frozenset({"sitemap", "news sitemap", "sitemap index"})
_NAMES_SITEMAPS = frozenset({Found.SITEMAP, Found.SEED, Found.REDIRECT})


def is_plain(request: Request) -> bool:
    """Is it a GET that needs nothing but its URL, to be parsed by the spider's `parse`?

    A Referer is set by Scrapy for whatever a callback yields, and is not needed.
    """
    return (
        request.method == "GET"
        and type(request) is Request
        and not request.body
        and request.callback is None
        and request.errback is None
        and not request._cb_kwargs
        and (not request._headers or set(request.headers) == {b"Referer"})
        and not request._cookies
        and not request._flags
        and not set(request.meta) - TICKET_META
    )


def dump_request(request: Request, spider: Spider) -> str:
    """A request as JSON. ValueError or TypeError if there is something in it that can't be stored,
    such as a lambda as callback.
    """
    fields = request.to_dict(spider=spider)
    meta = {key: value for key, value in request.meta.items() if key not in TICKET_META}
    fields["meta"] = _dump_values("meta", meta)
    fields["cb_kwargs"] = _dump_values("cb_kwargs", request.cb_kwargs)
    fields["body"] = b64encode(request.body).decode()
    fields["headers"] = {
        _text(name): [_text(value) for value in values] for name, values in request.headers.items()
    }
    text = json.dumps(fields, allow_nan=False)
    if json.loads(text) != fields:
        raise TypeError("it holds something that JSON gives back differently")
    return text


def _dump_values(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Each value as it is stored; the keys are read by others, and stay as they are."""
    stored = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {key!r}, which is no text")
        try:
            stored[key] = dump_value(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}[{key!r}]: {error}") from None
    return stored


def load_request(fields: dict[str, Any], spider: Spider) -> Request:
    """The request that `dump_request` made these fields of. ValueError if the spider has changed
    since, and has no such callback or item any more.
    """
    data = dict(fields)
    project = type(spider).__module__.partition(".")[0]
    for name in ("meta", "cb_kwargs"):
        values: dict[str, Any] = fields.get(name) or {}
        data[name] = {key: load_value(value, project) for key, value in values.items()}
    data["body"] = b64decode(fields["body"] or "")
    data["headers"] = {
        name.encode("latin-1"): [value.encode("latin-1") for value in values]
        for name, values in fields["headers"].items()
    }
    return request_from_dict(data, spider=spider)


def detach_request(request: Request, spider: Spider) -> None:
    """Take from a request what belongs to the ticket of another: a spider made it out of one that
    was handed out, by copying it, or its meta. What the first request had itself stays.
    """
    ticket = request.meta["ticket"]
    first: dict[str, Any] = getattr(ticket, "request", None) or {"meta": {}, "errback": None}
    for name in (TICKET_META | SCRAPY_META) - first["meta"].keys():
        request.meta.pop(name, None)
    if request.errback is not None and getattr(request.errback, "__self__", None) is not spider:
        request.errback = None
        if first["errback"]:
            request.errback = getattr(spider, first["errback"])


def meta_of(ticket: Ticket | RobotsTicket) -> dict[str, Any]:
    """What every request of ours says to Scrapy's own components."""
    return {
        "ticket": ticket,
        "dont_redirect": True,
        "dont_retry": True,
        "download_slot": ticket.host,
    }


def may_be_sitemap(ticket: Ticket) -> bool:
    """Is it one, by its last visit, by what names it, or by its URL? It may be as long as sitemaps
    may be: one with as many entries as is usual has more than 10 MB.
    """
    if ticket.source_kind in _SITEMAP_KINDS or ticket.found is Found.ROBOTS:
        return True
    path = ticket.url.partition("?")[0].lower()
    if "sitemap" in path:
        return True
    return ticket.found in _NAMES_SITEMAPS and path.endswith((".xml", ".xml.gz"))


def request_of(ticket: Ticket, spider: Spider) -> Request:
    """The request that Scrapy is given for a ticket. It must not follow, retry or filter it: the
    frontier does.
    """
    meta = {"depth": ticket.depth, **meta_of(ticket)}
    if ticket.request is None:
        if may_be_sitemap(ticket):
            meta["download_maxsize"] = MAX_SITEMAP
        return Request(ticket.url, meta=meta | {"verbatim_url": True}, dont_filter=True)
    request = load_request(ticket.request, spider)
    request.meta.update(meta)
    request.dont_filter = True
    return request


def robots_request(ticket: RobotsTicket, callback: Any, errback: Any) -> Request:
    """The request for a robots.txt: for one byte more than is used, so that a file which is longer
    is known to be.
    """
    meta = {
        "handle_httpstatus_all": True,
        "verbatim_url": True,
        "read_at_most": MAX_BYTES + 1,
        **meta_of(ticket),
        "dont_merge_cookies": True,
        "allow_offsite": True,
    }
    headers = {"Accept-Encoding": "gzip"}
    return Request(
        ticket.url, callback=callback, errback=errback, headers=headers, meta=meta, dont_filter=True
    )


def redirected_request(fields: dict[str, Any], url: str, status: int) -> dict[str, Any]:
    """The request that follows a redirect: 307 and 308 repeat it, the others ask with GET."""
    if status in (307, 308) or (fields["method"] == "HEAD" and status != 303):
        return {**fields, "url": url}
    headers = {
        name: value
        for name, value in fields["headers"].items()
        if not name.lower().startswith("content-")
    }
    return {**fields, "url": url, "method": "GET", "body": "", "headers": headers}


def is_followed_redirect(failure: Failure) -> bool:
    """Is it a redirect that is followed? Scrapy's spiders never hear of those."""
    error = failure.value
    if not isinstance(error, HttpError):
        return False
    response = error.response
    if response.status not in REDIRECTS or "Location" not in response.headers:
        return False
    request = getattr(response.meta.get("ticket"), "request", None)
    return request is None or not request["meta"].get("dont_redirect")


def is_unchanged(failure: Failure) -> bool:
    """Is it the 304 that we have asked for? Spiders did not, and don't hear of it."""
    error = failure.value
    if not isinstance(error, HttpError) or error.response.status != 304:
        return False
    ticket = error.response.meta.get("ticket")
    return getattr(ticket, "block_digest", None) is not None


def _text(value: bytes | str | None) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value or ""
