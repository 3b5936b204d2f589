"""Pushes as requests: a push is a URL, or JSON as scrapy-redis has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scrapy import FormRequest, Request, Spider
from scrapy.settings import BaseSettings
from scrapy_redis.defaults import START_URLS_KEY  # type: ignore[import-untyped]
from scrapy_redis.spiders import RedisMixin  # type: ignore[import-untyped]

from crawlproj.fetch.requests import TICKET_META

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MAX_PUSH = 1_000_000
"""Characters of a push."""
SETTABLE_META = frozenset({
    "cookiejar", "dont_merge_cookies", "dont_redirect", "handle_httpstatus_all",
    "handle_httpstatus_list",
})  # fmt: skip
"""Keys with a meaning for Scrapy that a push may set: they change what the spider sees."""
RESERVED_META = frozenset({
    "archived_at", "autothrottle_dont_adjust_delay", "cache_timestamp", "depth_reset",
    "give_up_log_level", "is_secure", "priority_adjust", "read_at_most", "referrer_policy", "rule",
    "verbatim_url",
})  # fmt: skip
"""Keys with a meaning for Scrapy or for us that a push may not set: they change how a request goes
out.
"""
RESERVED_STARTS = (
    "_", "allow_", "bind", "cached", "dns_", "dont_", "download_", "ftp_", "handle_", "http_",
    "max_retry", "playwright", "proxy", "redirect_", "retry_", "splash", "zyte",
)  # fmt: skip
"""... and families of such keys, also of Scrapy's to come and of well-known plugins."""
LIMITS = {"download_maxsize": "DOWNLOAD_MAXSIZE", "download_timeout": "DOWNLOAD_TIMEOUT"}
"""Limits that a push may lower; the settings that say how high they are."""


def requests_from_push(payload: bytes | str, spider: Spider) -> Iterator[Request]:
    """The requests of a push, made by the spider's own `make_request_from_data` if it has one.

    ValueError or TypeError if the push makes no sense.
    """
    make = getattr(spider, "make_request_from_data", None)
    inherited = getattr(type(spider), "make_request_from_data", None)
    if make is not None and inherited is not RedisMixin.make_request_from_data:
        made = make(payload)
    else:
        if not isinstance(payload, str):
            payload = payload.decode(getattr(spider, "redis_encoding", None) or "utf-8")
        made = parse_push(payload)
        check_meta(made.meta, getattr(spider, "settings", {}))
    if isinstance(made, Iterable):
        for request in made:
            yield simplify_request(request)
    elif made:
        yield simplify_request(made)


def parse_push(text: str) -> Request:
    """A bare URL, or {"url": ..., "method": ..., "meta": {...}}; all other keys are form data."""
    if len(text) > MAX_PUSH:
        raise ValueError(f"more than {MAX_PUSH:,} characters")
    try:
        fields: Any = json.loads(text)
    except ValueError:
        return Request(text.strip())
    if not isinstance(fields, dict) or not isinstance(fields.get("url"), str):
        raise ValueError("neither a URL nor a JSON object with one")
    url = fields.pop("url")
    method = str(fields.pop("method", "GET")).upper()
    if method not in METHODS:
        raise ValueError(f"the method is none of {', '.join(sorted(METHODS))}")
    meta = fields.pop("meta", None)
    return FormRequest(url, method=method, meta=meta, formdata=fields)


def check_meta(meta: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """ValueError if a push sets a key of `meta` that is not its to set.

    Keys that mean nothing to Scrapy or to us are data for the spider's callbacks, and free. Those
    that belong to one ticket (`TICKET_META`) are dropped later: who pushes what a response of
    Scrapy's had in its `meta` has them too.
    """
    for key, value in meta.items():
        if key in LIMITS:
            _check_limit(key, value, settings.get(LIMITS[key]))
        elif key in SETTABLE_META or key in TICKET_META:
            continue
        elif key in RESERVED_META or key.startswith(RESERVED_STARTS):
            raise ValueError(f"a push may not set {key!r} in meta")


def _check_limit(key: str, value: object, limit: Any) -> None:
    """A limit may be lowered, and never be raised or lifted (0)."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value > 0:  # type: ignore[operator]
        raise ValueError(f"{key} in meta must be a number, more than 0")
    if float(limit or 0) and value > float(limit):  # type: ignore[operator]
        raise ValueError(f"{key} in meta is more than {LIMITS[key]} = {limit}")


def simplify_request(request: Request) -> Request:
    """The request; a FormRequest without a form becomes a plain one."""
    if type(request) is FormRequest and request.method == "GET" and not request.body:
        return request.replace(cls=Request)
    return request


def start_key(settings: BaseSettings, spider: Spider) -> str:
    """The key where scrapy-redis looks for the URLs of this spider."""
    spider_key = getattr(spider, "redis_key", None)
    key = spider_key or settings.get("REDIS_START_URLS_KEY") or START_URLS_KEY
    return str(key) % {"name": spider.name}


def stop_spider_polling(spider: Spider) -> None:
    """Keep a spider of scrapy-redis from taking URLs out of Redis itself.

    It would do so when it is idle, and keep them in memory only; our thread takes them instead. How
    long the spider stays when it is idle (`max_idle_time`) is still its own.
    """
    if isinstance(spider, RedisMixin):
        spider.fetch_data = lambda key, count: []
        spider.count_size = lambda key: 0
