"""What a push means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy.settings import BaseSettings
from scrapy_redis.spiders import RedisSpider

from crawlproj.fetch.requests import is_plain
from crawlproj.scheduling.redis.push_format import (
    parse_push,
    requests_from_push,
    start_key,
    stop_spider_polling,
)


class Plain(Spider):
    name = "plain"


class Own(Spider):
    """Makes its requests itself, as spiders of scrapy-redis may."""

    name = "own"

    def make_request_from_data(self, data: bytes) -> Any:
        word = data.decode()
        return (
            None
            if word == "none"
            else [Request(f"http://a.test/{part}") for part in word.split(",")]
        )


class Live(RedisSpider):
    name = "live"
    redis_encoding = "latin-1"


def made(payload: bytes | str, spider: Spider | None = None) -> list[Request]:
    return list(requests_from_push(payload, spider or Plain()))


@pytest.mark.parametrize(
    "payload", [b"http://a.test/x", " http://a.test/x\n", b'{"url": "http://a.test/x"}']
)
def test_a_url_alone_is_a_plain_request(payload: bytes | str) -> None:
    (request,) = made(payload)
    assert request.url == "http://a.test/x"
    assert is_plain(request)


def test_json_has_meta_method_and_form_data() -> None:
    fields = {
        "url": "http://a.test/",
        "meta": {"job": 1},
        "method": "post",
        "q": "a b",
        "many": ["1", "2"],
    }
    (request,) = made(json.dumps(fields))
    assert (request.method, request.meta, request.body) == (
        "POST",
        {"job": 1},
        b"q=a+b&many=1&many=2",
    )
    (request,) = made(json.dumps({**fields, "method": "GET"}))
    assert (request.method, request.url) == ("GET", "http://a.test/?q=a+b&many=1&many=2")
    assert type(request) is Request


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rubbish",
        "[1]",
        "1",
        "null",
        '"http://a.test/"',
        "{}",
        '{"url": 1}',
        '{"url": "http://a.test/", "meta": 3}',
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        made(text)


@given(
    st.text()
    | st.dictionaries(
        st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())
    ).map(json.dumps)
)
def test_whatever_is_pushed_is_a_request_or_an_error_that_is_caught(text: str) -> None:
    try:
        found = parse_push(text)
    except (ValueError, TypeError, AttributeError):
        return
    assert isinstance(found, Request)


def test_a_spider_with_a_way_of_its_own_is_asked() -> None:
    assert [request.url for request in made(b"1,2", Own())] == [
        "http://a.test/1",
        "http://a.test/2",
    ]
    assert made(b"none", Own()) == []


def test_a_spider_of_scrapy_redis_is_read_in_its_encoding_and_takes_nothing_itself() -> None:
    spider = Live()
    assert made("http://a.test/\xe9".encode("latin-1"), spider)[0].url == "http://a.test/%C3%A9"
    stop_spider_polling(spider)
    assert list(spider.next_requests()) == [] if hasattr(spider, "redis_batch_size") else False
    assert spider.count_size("key") == 0


def test_the_key_is_scrapy_redis_s() -> None:
    assert start_key(BaseSettings(), Plain()) == "plain:start_urls"
    assert start_key(BaseSettings({"REDIS_START_URLS_KEY": "to:%(name)s"}), Plain()) == "to:plain"
    spider = Live()
    spider.redis_key = "mine"
    assert start_key(BaseSettings({"REDIS_START_URLS_KEY": "to:%(name)s"}), spider) == "mine"


def test_a_form_with_a_body_stays_a_form() -> None:
    (request,) = made(json.dumps({"url": "http://a.test/", "method": "POST", "a": "b"}))
    assert type(request) is FormRequest
