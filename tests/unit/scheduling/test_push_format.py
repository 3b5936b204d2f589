"""What a push means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy.settings import BaseSettings, Settings
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


class Limited(Spider):
    name = "limited"
    settings = Settings({"DOWNLOAD_MAXSIZE": 1000, "DOWNLOAD_TIMEOUT": 60})


@pytest.mark.parametrize(
    ("meta", "allowed"),
    [
        ({"job": 7, "tags": ["a"], "page_download": 1, "é": {"x": None}}, True),
        ({"handle_httpstatus_list": [404], "cookiejar": 1, "dont_merge_cookies": True}, True),
        ({"depth": 9, "ticket": 1, "download_slot": "x", "parent": 1, "wire": ""}, True),
        ({"download_maxsize": 1000, "download_timeout": 5}, True),
        ({"download_maxsize": 1001}, False),
        ({"download_maxsize": 0}, False),
        ({"download_maxsize": -1}, False),
        ({"download_maxsize": "9"}, False),
        ({"download_maxsize": True}, False),
        ({"download_timeout": 61}, False),
        *(
            ({key: "x"}, False)
            for key in (
                "proxy", "bindaddress", "read_at_most", "verbatim_url", "dont_obey_robotstxt",
                "dont_retry", "allow_offsite", "download_warnsize", "download_fail_on_dataloss",
                "max_retry_times", "retry_times", "redirect_urls", "http_user", "http_auth_domain",
                "ftp_user", "_auth_proxy", "_scheme_proxy", "dont_cache", "archived_at",
                "referrer_policy", "proxy_headers", "playwright", "handle_something_new",
            )
        ),
    ],
)  # fmt: skip
def test_pushes_set_no_meta_that_changes_how_a_request_goes_out(
    meta: dict[str, Any], allowed: bool
) -> None:
    push = json.dumps({"url": "http://a.test/", "meta": meta})
    if allowed:
        (request,) = made(push, Limited())
        assert request.meta == meta
    else:
        with pytest.raises(ValueError, match=next(iter(meta))):
            made(push, Limited())


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:", "", "\x1b[31m"])
def test_methods_are_those_of_browsers(method: str) -> None:
    with pytest.raises(ValueError, match="method"):
        made(json.dumps({"url": "http://a.test/", "method": method}))


def test_huge_pushes_are_refused() -> None:
    with pytest.raises(ValueError, match="characters"):
        made(json.dumps({"url": "http://a.test/", "meta": {"job": "x" * 1_000_001}}))


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
