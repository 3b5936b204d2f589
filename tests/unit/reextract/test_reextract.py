"""Parts of a run on the archive: what is chosen, what was done already, what a response
looks like.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse, Response, XmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider, Spider

from crawlproj.archive import Archive, Capture
from crawlproj.archive.exchange import Exchange, Original, Truncated
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.records import compute_digest
from crawlproj.archive.writer import WarcWriter, WriterOptions
from crawlproj.content.probe import probe_path
from crawlproj.http import heads
from crawlproj.reextract.callbacks import default_request, spider_wants
from crawlproj.reextract.captures import CaptureSelector, ReextractOptions
from crawlproj.reextract.done_set import NumberSet
from crawlproj.reextract.handler import (
    index_queries,
    redirect_target,
    redirected_request,
    response_of,
)
from crawlproj.upkeep.imported_history import _pages as iterate_pages
from tests.support.archiving import PAGE, REQUEST, START, exchange, head, write

DAY = timedelta(days=1)
URL = "https://example.org/page/0"


def chosen(
    folder: Path, url: str = URL, method: str = "GET", body: bytes = b"", **options: Any
) -> tuple[list[Capture], Counter[str]]:
    counts: Counter[str] = Counter()
    choice = CaptureSelector(
        Archive(folder), "test", ReextractOptions(**options), lambda name: counts.update([name])
    )
    return list(
        choice.matching_captures(
            choice.find_entries(url, index_queries(Request(url, method=method, body=body))),
            method,
            body,
        )
    ), counts


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)))
def test_marks_are_a_set(numbers: list[int]) -> None:
    marks = NumberSet(size=4)
    seen = set[int]()
    for number in numbers:
        expected = (number or 1) not in seen
        assert (number in marks) is not expected
        assert marks.add(number) is expected
        seen.add(number or 1)
    assert len(marks) == len(seen)


def test_marks_take_little_room() -> None:
    marks = NumberSet()
    for number in range(100_000):
        marks.add(number * 2_654_435_761)
    assert len(marks._slots) * 8 < 4_000_000


def test_the_last_page_is_chosen_and_an_error_only_if_there_was_never_a_page(
    tmp_path: Path,
) -> None:
    gone = exchange(0, b"gone", head(status="404 Not Found"), at=START + 2 * DAY)
    write(
        tmp_path,
        [
            (exchange(0), None),
            (exchange(0, b"<p>new</p>", at=START + DAY), None),
            (gone, None),
            (exchange(1, b"", head(status="410 Gone")), None),
        ],
    )
    assert [capture.payload for capture in chosen(tmp_path)[0]] == [b"<p>new</p>"]
    assert [capture.status for capture in chosen(tmp_path, "https://example.org/page/1")[0]] == [
        410
    ]
    assert [capture.status for capture in chosen(tmp_path, versions="all")[0]] == [200, 200, 404]
    assert [capture.status for capture in chosen(tmp_path, since=START + 2 * DAY)[0]] == [404]
    assert not chosen(tmp_path, since=START + 3 * DAY)[0]


def test_a_page_that_has_not_changed_is_one_version(tmp_path: Path) -> None:
    same = (exchange(0, at=START + DAY), Original(URL, START, compute_digest(PAGE)))
    write(
        tmp_path,
        [
            (exchange(0), None),
            same,
            (exchange(0, b"x", at=START + 2 * DAY), None),
            (exchange(0, at=START + 3 * DAY), None),
        ],
    )
    assert [capture.payload for capture in chosen(tmp_path, versions="all")[0]] == [
        PAGE,
        b"x",
        PAGE,
    ]
    (last,) = chosen(tmp_path, since=START + DAY, versions="last")[0]
    assert (last.payload, last.at) == (PAGE, START + 3 * DAY)


def test_the_answer_to_a_form_is_not_that_to_a_get(tmp_path: Path) -> None:
    posts = [
        exchange(
            0,
            b"<p>%d</p>" % n,
            request=REQUEST.replace(b"GET", b"POST"),
            request_body=b"n=%d" % n,
            at=START + n * DAY,
        )
        for n in (1, 2)
    ]
    write(tmp_path, [(exchange(0), None), *((post, None) for post in posts)])
    assert [capture.payload for capture in chosen(tmp_path)[0]] == [PAGE]
    assert [capture.payload for capture in chosen(tmp_path, method="POST", body=b"n=1")[0]] == [
        b"<p>1</p>"
    ]
    assert not chosen(tmp_path, method="POST", body=b"n=3")[0]
    long = b"x" * 100_000
    write(
        tmp_path,
        [(exchange(5, b"long", request=REQUEST.replace(b"GET", b"POST"), request_body=long), None)],
    )
    assert [
        capture.payload
        for capture in chosen(tmp_path, "https://example.org/page/5", "POST", long)[0]
    ] == [b"long"]


def test_what_was_not_whole_and_what_is_damaged_is_left_out_and_counted(tmp_path: Path) -> None:
    cut = exchange(0, PAGE[:50], truncated=Truncated.LENGTH, at=START + DAY)
    bare = exchange(0, b"no head", b"", at=START + 2 * DAY)
    lost = (exchange(1), Original("https://example.org/nowhere", START, compute_digest(PAGE)))
    write(tmp_path, [(exchange(0), None), (cut, None), (bare, None), lost])
    captures, counts = chosen(tmp_path, versions="all")
    assert [capture.payload for capture in captures] == [PAGE]
    assert counts == {"reextract/not_whole": 2}
    assert chosen(tmp_path, "https://example.org/page/1") == ([], {"reextract/unreadable": 1})


def test_captures_belong_to_the_crawl_that_made_them_and_imports_to_all(tmp_path: Path) -> None:
    for number, (prefix, info) in enumerate(
        {"test": {"isPartOf": "test"}, "other": {"isPartOf": "other"}, "import": {}}.items()
    ):
        writer = WarcWriter(tmp_path, prefix, "w", info, WriterOptions())
        writer.put(exchange(number))
        writer.flush().result(60)
        writer.close()
    choice = CaptureSelector(Archive(tmp_path), "test", ReextractOptions(), lambda name: None)
    pages = dict(choice.captured_pages())
    assert list(pages) == ["https://example.org/page/0", "https://example.org/page/2"]
    assert [choice.any_imported(entries) for entries in pages.values()] == [False, True]
    assert not choice.find_entries("https://example.org/page/1")


class AllKeys(set[int]):
    """Of an import that brought everything."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: object) -> bool:
        return True


def test_answers_to_paths_that_nobody_has_are_no_pages(tmp_path: Path) -> None:
    """Not for a spider, and not for a crawl that they are imported into."""
    probe = f"https://example.org{probe_path('example.org', 24311)}"
    near = "https://example.org/no-such-page-at-all"
    asked = [
        (exchange(0), None),
        (exchange(1, url=probe), None),
        (exchange(2, url=near), None),
    ]
    write(tmp_path, asked)
    archive = Archive(tmp_path)
    choice = CaptureSelector(archive, "test", ReextractOptions(), lambda name: None)
    left = {"https://example.org/page/0", near}
    assert set(dict(choice.captured_pages())) == left
    assert {url for url, _ in iterate_pages(archive, AllKeys())} == left


@pytest.mark.parametrize("merged", [0, 1, 2])
def test_all_entries_come_once_and_in_order_however_many_indexes_there_are(
    merged: int, tmp_path: Path
) -> None:
    for turn in range(3):
        write(
            tmp_path,
            [
                (exchange(number, at=START + turn * DAY + timedelta(seconds=number)), None)
                for number in range(20)
            ],
        )
        if turn < merged:
            merge_indexes(tmp_path)
    found = list(Archive(tmp_path).iter_entries())
    assert len(found) == len(set(found)) == 60
    assert [(entry.key, entry.timestamp) for entry in found] == sorted(
        (entry.key, entry.timestamp) for entry in found
    )


def test_a_url_is_found_in_other_spellings_of_the_same_page(tmp_path: Path) -> None:
    there = "https://example.org/a?b=1&a=2"
    other = "http://example.org/a?a=2&b=1"
    write(tmp_path, [(exchange(0, url=there), None), (exchange(1, url=other), None)])
    for url in (
        there,
        "https://example.org/a?a=2&b=1#part",
        "https://example.org/a?utm_source=x&a=2&b=1",
    ):
        assert [capture.url for capture in chosen(tmp_path, url)[0]] == [there]


def captured(tmp_path: Path, top: bytes, body: bytes = PAGE) -> Capture:
    write(tmp_path, [(exchange(0, body, top), None)])
    (capture,) = chosen(tmp_path)[0]
    return capture


def test_a_response_has_the_class_headers_and_status_of_the_answer(tmp_path: Path) -> None:
    top = (
        b"HTTP/1.0 203 Odd\r\nContent-Type: text/html; charset=windows-1251\r\nSet-Cookie: "
        b"a=1\r\nSet-Cookie: b=2\r\n"
    )
    top += b"Transfer-Encoding: chunked\r\nX-Long: a\r\n  b\r\n\r\n"
    response = response_of(captured(tmp_path, top, "<p>Привет</p>".encode("windows-1251")), URL)
    assert isinstance(response, HtmlResponse)
    assert response.css("p::text").get() == "Привет"
    assert (response.status, response.protocol, str(response.ip_address)) == (
        203,
        "HTTP/1.0",
        "192.0.2.7",
    )
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    assert response.headers["Transfer-Encoding"] == b"chunked"
    assert response.headers["X-Long"].split() == [b"a", b"b"]
    assert not any(name.lower().startswith(b"x-crawler") for name in response.headers)


@pytest.mark.parametrize(
    ("kind", "wanted"), [("application/rss+xml", XmlResponse), ("image/png", Response)]
)
def test_other_kinds_have_other_classes(kind: str, wanted: type[Response], tmp_path: Path) -> None:
    assert (
        type(
            response_of(
                captured(tmp_path, head(kind=kind), b"\x89PNG\r\n\x1a\n" + bytes(range(256))), URL
            )
        )
        is wanted
    )


def test_headers_are_read_as_they_were_sent() -> None:
    exchanged = Exchange(URL, START, b"HTTP/1.1 200 OK\nA : b\nnonsense\nC:\td \n\n", b"")
    assert heads.parse_headers(heads.storable_response(exchanged.head)) == [
        (b"A", b"b"),
        (b"C", b"d"),
    ]
    assert heads.parse_headers(b"HTTP/1.1 200 OK\r\n\r\n") == []


def test_redirects_are_followed_as_scrapy_does(tmp_path: Path) -> None:
    capture = captured(tmp_path, head("Location: ../there?x", status="302 Found"), b"")
    spider = SimpleNamespace()
    post = Request(URL, method="POST", body="a=b", headers={"Content-Type": "x", "A": "b"})
    assert redirect_target(capture, post, spider) == "https://example.org/there?x"
    for meta in (
        {"dont_redirect": True},
        {"handle_httpstatus_all": True},
        {"handle_httpstatus_list": [302]},
    ):
        assert redirect_target(capture, Request(URL, meta=meta), spider) is None
    assert (
        redirect_target(capture, Request(URL), SimpleNamespace(handle_httpstatus_list=[302]))
        is None
    )
    found = redirected_request(post, "https://example.org/there", 302)
    assert (found.method, found.body, dict(found.headers)) == ("GET", b"", {b"A": [b"b"]})
    again = redirected_request(post, "https://example.org/there", 307)
    assert (again.method, again.body) == ("POST", b"a=b")


class Rules(CrawlSpider):
    name = "rules"
    rules = (
        Rule(LinkExtractor(allow="/item/"), callback="parse_item"),
        Rule(LinkExtractor(allow="/list/")),
    )

    def parse_item(self, response: Response) -> None:
        """Nothing."""


class Map(SitemapSpider):
    name = "map"
    sitemap_rules = (("/item/", "parse_item"),)

    def parse_item(self, response: Response) -> None:
        """Nothing."""


class Plain(Spider):
    name = "plain"
    allowed_domains = ("example.org",)

    def parse(self, response: Response) -> None:
        """Nothing."""


def test_each_kind_of_spider_has_its_own_default() -> None:
    item = "https://example.org/item/1"
    page = "https://example.org/other"
    rules = Rules()
    assert (found := default_request(rules, item)) is not None
    assert (found.callback, found.meta["rule"]) == (rules._callback, 0)
    assert (found := default_request(rules, page)) is not None and found.callback is None
    sitemaps = Map()
    assert (
        found := default_request(sitemaps, item)
    ) is not None and found.callback == sitemaps.parse_item
    assert default_request(sitemaps, page) is None
    assert (found := default_request(Plain(), page)) is not None and found.callback is None
    assert default_request(Spider("nothing"), page) is None
    assert (
        found := default_request(sitemaps, page, "parse_item")
    ) is not None and found.callback == sitemaps.parse_item


def test_a_page_from_elsewhere_is_for_a_spider_of_its_domain() -> None:
    assert spider_wants(Plain(), "https://www.example.org/")
    assert not spider_wants(Plain(), "https://example.com/")
    assert spider_wants(Rules(), "https://example.com/")
