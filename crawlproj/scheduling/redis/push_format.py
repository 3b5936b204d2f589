"""Pushes as requests: a push is a URL, or JSON as scrapy-redis has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from scrapy import FormRequest, Request, Spider
from scrapy.settings import BaseSettings
from scrapy_redis.defaults import START_URLS_KEY  # type: ignore[import-untyped]
from scrapy_redis.spiders import RedisMixin  # type: ignore[import-untyped]


def requests_from_push(payload: bytes | str, spider: Spider) -> Iterator[Request]:
    """The requests of a push, made by the spider's own `make_request_from_data` if it has one.

    ValueError or TypeError if the push makes no sense.
    """
    make = getattr(spider, "make_request_from_data", None)
    inherited = getattr(type(spider), "make_request_from_data", None)
    if make is not None and inherited is not RedisMixin.make_request_from_data:
        made = make(payload)
    elif isinstance(payload, str):
        made = parse_push(payload)
    else:
        encoding = getattr(spider, "redis_encoding", None) or "utf-8"
        made = parse_push(payload.decode(encoding))
    if isinstance(made, Iterable):
        for request in made:
            yield simplify_request(request)
    elif made:
        yield simplify_request(made)


def parse_push(text: str) -> Request:
    """A bare URL, or {"url": ..., "method": ..., "meta": {...}}; all other keys are form data."""
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
