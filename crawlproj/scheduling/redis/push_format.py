"""What a push means: a URL, or JSON as scrapy-redis has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from scrapy import FormRequest, Request, Spider
from scrapy.settings import BaseSettings
from scrapy_redis.defaults import START_URLS_KEY  # type: ignore[import-untyped]
from scrapy_redis.spiders import RedisMixin  # type: ignore[import-untyped]


def requests_from_push(payload: bytes | str, spider: Spider) -> Iterator[Request]:
    """ValueError or TypeError if it makes no sense. A spider with a `make_request_from_data` of its
    own is asked.
    """
    make = getattr(spider, "make_request_from_data", None)
    if (
        make is None
        or getattr(type(spider), "make_request_from_data", None)
        is RedisMixin.make_request_from_data
    ):
        made = parse_push(
            payload
            if isinstance(payload, str)
            else payload.decode(getattr(spider, "redis_encoding", None) or "utf-8")
        )
    else:
        made = make(payload)
    for request in made if isinstance(made, Iterable) else [made] if made else []:
        yield simplify_request(request)


def parse_push(text: str) -> Request:
    """A bare URL, or {"url": ..., "method": ..., "meta": {...}}; what else is in it is
    form data.
    """
    try:
        fields: Any = json.loads(text)
    except ValueError:
        return Request(text.strip())
    if not isinstance(fields, dict) or not isinstance(fields.get("url"), str):
        raise ValueError("neither a URL nor a JSON object with one")
    url = fields.pop("url")
    method = str(fields.pop("method", "GET")).upper()
    meta = fields.pop("meta", None)
    return FormRequest(url, method=method, meta=meta, formdata=fields)


def simplify_request(request: Request) -> Request:
    """A form that has nothing of a form is a plain request."""
    return (
        request.replace(cls=Request)
        if type(request) is FormRequest and request.method == "GET" and not request.body
        else request
    )


def start_key(settings: BaseSettings, spider: Spider) -> str:
    """Where scrapy-redis looks for the URLs of this spider."""
    key = (
        getattr(spider, "redis_key", None) or settings.get("REDIS_START_URLS_KEY") or START_URLS_KEY
    )
    return str(key) % {"name": spider.name}


def stop_spider_polling(spider: Spider) -> None:
    """A spider of scrapy-redis's takes URLs from Redis itself when it is idle, into nothing but
    memory. The bus does it instead; how long the spider stays when it is idle (`max_idle_time`) is
    still its own.
    """
    if isinstance(spider, RedisMixin):
        spider.fetch_data = lambda key, count: []
        spider.count_size = lambda key: 0
