from __future__ import annotations

import json

import pytest
import scrapy
from scrapy import FormRequest, Request
from scrapy.http import JsonRequest

from crawlproj.fetch.requests import (
    detach_request,
    dump_request,
    is_plain,
    load_request,
    redirected_request,
    request_of,
)
from crawlproj.frontier.base import Lane, State, Ticket


class Spider(scrapy.Spider):
    name = "s"

    def other(self, response: object) -> None: ...

    def failed(self, failure: object) -> None: ...


SPIDER = Spider()
FULL = Request(
    "http://a.org/x?b=1",
    method="PUT",
    callback=SPIDER.other,
    errback=SPIDER.failed,
    headers={"X-A": ["1", "2"], "B": b"\xe9"},
    body=b"\x00\xff",
    cookies={"k": "v"},
    meta={"page": 3, "nested": {"a": [1]}},
    cb_kwargs={"n": 1},
    priority=5,
    flags=["f"],
)


@pytest.mark.parametrize(
    "request_",
    [
        FULL,
        JsonRequest("http://a.org/", data={"x": 1}),
        FormRequest("http://a.org/", formdata={"q": "ü"}),
    ],
)
def test_a_request_comes_back_from_json_as_it_was(request_: Request) -> None:
    again = load_request(json.loads(dump_request(request_, SPIDER)), SPIDER)
    assert again.to_dict(spider=SPIDER) == request_.to_dict(spider=SPIDER)
    assert again.headers == request_.headers
    assert type(again) is type(request_)


@pytest.mark.parametrize(
    "request_",
    [Request("http://a.org/", callback=lambda r: None), Request("http://a.org/", meta={"x": object()}),
     Request("http://a.org/", cb_kwargs={"x": Spider}), Request("http://a.org/", meta={"x": {"y": SPIDER}}),
     Request("http://a.org/", meta={"x": float("nan")}), Request("http://a.org/", meta={1: 2})],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(request_: Request) -> None:
    with pytest.raises((TypeError, ValueError)):
        dump_request(request_, SPIDER)


def test_plain_requests_need_nothing_but_their_url() -> None:
    assert is_plain(Request("http://a.org/"))
    assert is_plain(
        Request(
            "http://a.org/",
            meta={"depth": 1, "parent": 2, "is_start_request": True},
            dont_filter=True,
        )
    )
    assert not is_plain(FULL)
    assert not is_plain(Request("http://a.org/", meta={"playwright": True}))
    assert not is_plain(Request("http://a.org/", headers={"A": "b"}))


def test_a_ticket_becomes_a_request_that_scrapy_neither_follows_nor_repeats() -> None:
    ticket = Ticket(1, "http://a.org/%7Ex?b", "a.org", 1, 1, 0, Lane.NEW, State.NEW, depth=2)
    request = request_of(ticket, SPIDER)
    assert request.url == "http://a.org/%7Ex?b"
    assert request.meta["dont_redirect"] and request.meta["dont_retry"] and request.dont_filter
    assert request.meta["ticket"] is ticket


def test_a_request_whose_callback_is_gone_says_which() -> None:
    fields = json.loads(dump_request(FULL, SPIDER)) | {"callback": "parse_old"}
    with pytest.raises(ValueError, match="parse_old"):
        load_request(fields, SPIDER)


def test_a_redirect_of_a_post_becomes_a_get_unless_its_status_says_otherwise() -> None:
    fields = json.loads(
        dump_request(
            Request(
                "http://a.org/", method="POST", body=b"x", headers={"Content-Type": "a/b", "X": "y"}
            ),
            SPIDER,
        )
    )
    assert (
        load_request(redirected_request(fields, "http://b.org/", 302), SPIDER).to_dict() | {}
        == Request("http://b.org/", headers={"X": "y"}).to_dict()
    )
    again = load_request(redirected_request(fields, "http://b.org/", 307), SPIDER)
    assert (again.url, again.method, again.body) == ("http://b.org/", "POST", b"x")


def handed_out(request: Request | None) -> Request:
    fields = json.loads(dump_request(request, SPIDER)) if request is not None else None
    out = request_of(
        Ticket(1, "http://a.org/", "a.org", 1, 1, 0, Lane.NEW, State.NEW, depth=2, request=fields),
        SPIDER,
    )
    out.errback = lambda failure: None
    return out


def test_a_copy_of_what_was_handed_out_is_as_the_spider_made_it() -> None:
    copy = handed_out(FULL).replace(url="http://a.org/y")
    detach_request(copy, SPIDER)
    assert (copy.meta, copy.errback, copy.callback) == (FULL.meta, SPIDER.failed, SPIDER.other)
    dump_request(copy, SPIDER)
    plain = handed_out(None).copy()
    detach_request(plain, SPIDER)
    assert is_plain(plain)


def test_what_the_spider_said_itself_stays_in_copied_meta() -> None:
    first = Request("http://a.org/", callback=SPIDER.other, meta={"dont_redirect": True, "n": 1})
    request = Request(
        "http://a.org/z", callback=SPIDER.other, errback=SPIDER.failed, meta=handed_out(first).meta
    )
    detach_request(request, SPIDER)
    assert request.meta == {"dont_redirect": True, "n": 1}
    assert request.errback == SPIDER.failed
