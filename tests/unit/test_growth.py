"""Whatever meets bytes from the web takes time in proportion to them: every pattern of ours, found
in the source, and every function that reads.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from w3lib.encoding import http_content_type_encoding

from crawlproj.archive import records
from crawlproj.archive.foreign import scanner, streams
from crawlproj.archive.surt import surt_key
from crawlproj.content import charset, entry_dates, feeds, robots_directives
from crawlproj.content.html import parse_page
from crawlproj.content.script_urls import find_handler_urls, find_script_urls
from crawlproj.content.text_urls import find_text_urls
from crawlproj.http import encodings, framing, heads
from crawlproj.http.limited_body import BodyDecompressor
from crawlproj.http.status import parse_retry_after
from crawlproj.news import opml
from crawlproj.politeness import robotstxt
from crawlproj.urls import feed_urls
from crawlproj.urls.canonical import canonical_url, join_href
from crawlproj.urls.domains import registered_domain
from crawlproj.urls.patterns import compile_pattern
from crawlproj.urls.scope import Scope, ScopeRules
from tests.support.growth import (
    LENGTH,
    Attack,
    FoundPattern,
    attacks_on,
    find_patterns,
    grows_too_fast,
)

ROOT = Path(__file__).resolve().parents[2]
OURS = ("crawlproj", "spiders", "middlewares", "pipelines")
MODULES = [path for name in OURS for path in sorted((ROOT / name).rglob("*.py"))]
PATTERNS, UNKNOWN = find_patterns(ROOT, [path for path in MODULES if "demo" not in path.parts])
MADE_AT_RUN_TIME = {"crawlproj/http/heads.py"}
"""Patterns that can't be read from the source; the function that has them is below."""
NOW = datetime(2026, 11, 1, tzinfo=UTC)
PAGE = "http://example.test/"


def slow_attacks(found: FoundPattern, length: int = LENGTH) -> Iterator[str]:
    for attack in attacks_on(found.pattern):
        wrong = grows_too_fast(found.call, attack, length)
        if wrong:
            yield f"{found.place} {found.method} {attack}: {wrong}"
            return


@pytest.mark.parametrize("room", sorted({found.place.rpartition("/")[0] for found in PATTERNS}))
def test_every_pattern_takes_linear_time(room: str) -> None:
    wrong = [
        text
        for found in PATTERNS
        if found.place.rpartition("/")[0] == room
        for text in slow_attacks(found)
    ]
    assert not wrong


def test_all_patterns_are_looked_at() -> None:
    assert len(PATTERNS) > 90
    assert {place.rpartition(":")[0] for place in UNKNOWN} == MADE_AT_RUN_TIME


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"\s*(?:\bUTC|\bGMT|Z)$", "sub"),  # was ours: 16,000 blanks took 12 s
        (r"[ \t]*:[ \t]*([^\r\n]*(?:\r\n[ \t]+[^\r\n]*)*)\r\n", "match"),
        (r"cfid=[^&]+&cftoken=", "search"),
        (r"<!--.*?-->", "findall"),
        (r"^(a+)+$", "search"),
        (r"(?:x|xx)+y", "match"),
        (r"^(\w+\s?)*$", "fullmatch"),
    ],
)
def test_slow_patterns_are_noticed(source: str, method: str) -> None:
    for pattern in (re.compile(source, re.I), re.compile(source.encode(), re.I)):
        # Longer than elsewhere: a quick machine is through with the usual length in no time.
        assert list(slow_attacks(FoundPattern("here", pattern, method), 4 * LENGTH))


# What reads the web. Each is tried with its own words behind its own beginnings.

LETTERS = (*" \t\n\ra1.,;:/\\'\"`()[]{}<>%?#&=@+-_*$|\0", "\xe9", "\u200b", "\udcff")
LINES = ("\r\n", "\r\n ", "\n ", "a\r\n", "a: b\r\n", " a\r\n", "Content-Length: 1\r\n")
TAGS = (
    "<a href=x>t", "<div>", "</div>", "<p>", "<b>", "<table>", "<select><option>", "<svg>", "<script>", "<!--", "<!",
    "<?", "</", "&amp;", "&#", "<title>", "<base href=x>", "<meta name=robots content=noindex>", "<a href='", "<p a=1 ",
    "<img srcset='a, b'>", "<a onclick=\"location='x'\">", "<textarea>", "<iframe src=x>", "<![CDATA[", "<form>", "<h1>",
)  # fmt: skip
XML = (
    "<item>", "<item><link>http://a/</link></item>", "<url><loc>x</loc></url>", "<entry><link href='x'/></entry>", "<a>",
    "<a b='1'/>", "&x;", "&#1;", "<!ENTITY a 'b'>", "<![CDATA[", "<a xmlns:b='c'/>", "<p><entry><link href='x'/></entry></p>",
)  # fmt: skip
URLS = (
    "%25",
    "25",
    "../",
    "./",
    "a/",
    "a=b&",
    ";sid=a",
    "/(S(",
    "xn--a.",
    "cfid=",
    "&cftoken=",
    "//",
)
DATES = (
    "unavailable_after:",
    "unavailable_after: x,",
    "noindex,",
    "robots:",
    "Mon, ",
    "00:",
    "a:b,",
)
CODE = ('"/a/', "'/a.html'", '"http://a.b/', "location=", "open('", "http://", "http://a ")
ROBOTS = (
    "a\n",
    "User-agent: *\n",
    "Disallow: /a\n",
    "Disallow: /*a\n",
    "Crawl-delay: 1\n",
    "Sitemap: x\n",
)

STARTS_OF_URLS = (
    "",
    PAGE,
    f"{PAGE}?",
    "http://",
    "//",
    "http://a:",
    "http://a/%",
    "http://a/?x&cftoken=a&",
)
STARTS_OF_HEADS = (
    "",
    "HTTP/1.1 200 ",
    "HTTP/1.1 200 OK\r\nA:",
    "HTTP/1.1 200 OK\r\nContent-Type: ",
)
RULE = "User-agent: *\nDisallow: /"


def utf8(read: Callable[[bytes], object]) -> Callable[[str], object]:
    return lambda text: read(text.encode("utf-8", "replace"))


def latin1(read: Callable[[bytes], object]) -> Callable[[str], object]:
    return lambda text: read(text.encode("latin-1", "replace"))


def page(text: str) -> object:
    return parse_page(text.encode("utf-8", "replace"), PAGE)


def plain_text(text: str) -> object:
    return parse_page(text.encode("utf-8", "replace"), PAGE, content_type="text/plain")


def entries(text: str) -> object:
    return feeds.parse_entries(text.encode("utf-8", "replace"), PAGE)


def robots(text: str) -> object:
    return robotstxt.rules_for(robotstxt.decode_robots(text.encode("utf-8", "replace")), "bot")


def rule(text: str) -> object:
    return robotstxt.rules_for(text, "bot").allows(PAGE + "a" * 500)


def scope(text: str) -> object:
    wants = Scope(ScopeRules(include="(x+)+y"))
    wants.add_seeds([PAGE])
    return wants(PAGE + text), wants(f"http://{text.replace('/', 'a')}/")


STARTS_OF_PAGES = ("", "<title>", "<a href='", "<meta name=robots content='unavailable_after: x")
STARTS_OF_FEEDS = (
    "<rss>",
    "<rss a='",
    "<!DOCTYPE a [",
    '{"items":[',
    "http://a/",
    f"<feed xml:base='{PAGE}",
    "<rss><item>&<title><![CDATA[",
    "<urlset>&<url><loc>http://a/",
    "<feed>&<entry><link href='",
)
STARTS_OF_ROBOTS = (
    "",
    "User-agent: ",
    RULE,
    "User-agent: *\nCrawl-delay: 1",
    "User-agent: *\nRequest-rate: 1",
)
ARC = "\nhttp://a 1.1.1.1 20200101000000 "
BOTH = ("", "x")
HEAD_ENDS = ("", "\r\n\r\n")
READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "page": (page, STARTS_OF_PAGES, LETTERS + TAGS, ("", "x'>")),
    "plain text": (plain_text, ("", "http://a"), LETTERS + CODE, ("",)),
    "kind": (utf8(feeds.sniff_kind), ("", "<", "<!--", "<?xml"), LETTERS + TAGS, ("",)),
    "feed": (entries, STARTS_OF_FEEDS, LETTERS + XML, ("",)),
    "JSON feed": (
        entries, ('{"items":[', '{,"items":[{"url":"'), ("[", '{"a":', '{"url":"http://a/"},', "1", '"a",', '"\\', "/*", "/*a*", "//"),
        ("",),
    ),
    "OPML": (utf8(opml.read_opml), ("", "<outline ", "<outline xmlUrl='"), LETTERS + XML, ("", "'/>")),
    "date of an entry": (
        lambda text: entry_dates.parse_entry_date(text, NOW), ("", "2026-11-19T", "19 Nov 2026 "), LETTERS + DATES, BOTH,
    ),
    "address of a feed": (lambda text: feed_urls.looks_like_feed(text, PAGE), STARTS_OF_URLS, LETTERS + URLS, ("",)),
    "charset": (utf8(charset.to_utf8), ("", "<meta ", "<!--"), LETTERS + TAGS, ("",)),
    "bad bytes": (latin1(charset.to_utf8), ("\xff",), ("\xff", "a\xff", "\xe9a"), ("",)),
    "label": (charset.find_charset.__wrapped__, ("",), LETTERS, ("",)),
    "Content-Type": (http_content_type_encoding, ("text/html; charset=", "a"), LETTERS, BOTH),
    "directives": (
        lambda text: robots_directives.parse_robots_meta(text).expires,
        ("", "unavailable_after: x"), LETTERS + DATES, (*BOTH, " UTC"),
    ),
    "X-Robots-Tag": (
        lambda text: robots_directives.parse_robots_headers([text]).expires,
        ("", "a", "unavailable_after: x"), LETTERS + DATES, (*BOTH, ":"),
    ),
    "many X-Robots-Tag": (
        lambda text: robots_directives.parse_robots_headers(text.split("|")),
        ("",), ("unavailable_after: 1 Jan 2020|", "a:b|"), ("",),
    ),
    "date": (robots_directives.parse_date, ("", "1 Jan 2020"), LETTERS + DATES, (*BOTH, " UTC")),
    "Retry-After": (
        lambda text: parse_retry_after(text, NOW), ("", "1", "1 Jan 2020 00:00:"), LETTERS + DATES, BOTH
    ),
    "script": (find_script_urls, ("", '"/', '"http://'), LETTERS + CODE, ("", '"')),
    "handler": (find_handler_urls, ("", "location='", "open("), LETTERS + CODE, ("",)),
    "URLs in text": (find_text_urls, ("", "http://"), LETTERS + CODE, ("",)),
    "URL": (canonical_url, STARTS_OF_URLS, LETTERS + URLS, ("",)),
    "link": (lambda text: join_href(PAGE, text), STARTS_OF_URLS, LETTERS + URLS, ("",)),
    "scope": (scope, ("",), (*URLS, "a.", "x", "xn--"), ("",)),
    "include": (compile_pattern(r"(\w+-?)+/$|(a*)*b", "include"), ("",), LETTERS, ("",)),
    "domain": (registered_domain, ("",), ("a.", "a", "1.", "xn--a.", "com.", ":"), ("",)),
    "SURT": (surt_key, STARTS_OF_URLS, LETTERS + URLS, ("",)),
    "robots.txt": (robots, STARTS_OF_ROBOTS, LETTERS + ROBOTS, BOTH),
    "bad bytes of robots.txt": (latin1(robotstxt.decode_robots), ("",), ("\xff", "a\xe9"), ("",)),
    "rule": (rule, (RULE, "User-agent: *\n"), ("*", "*a", "**b", "$", "Disallow: /*a\n"), (*BOTH, "$")),
    "sitemaps": (lambda text: robotstxt.parse_sitemaps(text, PAGE), ("",), ROBOTS, ("",)),
    "response head": (utf8(heads.storable_response), STARTS_OF_HEADS, LETTERS + LINES, HEAD_ENDS),
    "headers": (utf8(heads.parse_headers), STARTS_OF_HEADS, LETTERS + LINES, HEAD_ENDS),
    "header": (utf8(lambda head: heads.get_header(head, "Content-Type")), STARTS_OF_HEADS, LETTERS + LINES, ("",)),
    "MIME type": (utf8(records.mime_type), STARTS_OF_HEADS, LETTERS, HEAD_ENDS),
    "end of head": (utf8(heads.split_head), STARTS_OF_HEADS, LETTERS + LINES, ("",)),
    "framing": (utf8(framing.parse_framing), STARTS_OF_HEADS, LETTERS + LINES, HEAD_ENDS),
    "Content-Encoding": (lambda text: encodings.decode_body(b"a", text), ("",), ("gzip,", ",", " "), ("",)),
    "encodings of robots.txt": (BodyDecompressor.from_header, ("",), ("gzip,", ",", "a"), ("",)),
    "start of a foreign record": (utf8(streams.starts_record), ("", ARC[1:]), (*LETTERS, "- 20200101000000 "), ("", "1\n")),
    "next foreign record": (utf8(scanner._next_arc), ("", ARC), (*LETTERS, ARC, "- 20200101000000 "), ("", "1\n")),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_every_reader_takes_linear_time(name: str) -> None:
    read, starts, words, ends = READERS[name]
    for start, word, end in product(starts, words, ends):
        attack = Attack(start, word, end)
        wrong = grows_too_fast(read, attack)
        assert not wrong, f"{attack}: {wrong}"


MANY: dict[str, Callable[[int], object]] = {
    "attributes": lambda n: page("<p " + " ".join(f"a{i}=1" for i in range(n)) + ">"),
    "links": lambda n: page("".join(f"<a href='./{i}'>t</a>" for i in range(n))),
    "links below a long base": lambda n: page(
        f"<base href='{PAGE}{'a' * 1900}'>" + "".join(f"<a href='{i}'>t</a>" for i in range(n))
    ),
    "names of XML": lambda n: entries("<rss " + " ".join(f"xmlns:a{i}='u{i}'" for i in range(n)) + "><item/></rss>"),
    "entries below a long base": lambda n: entries(
        f"<feed xml:base='{PAGE}{'a' * 200 * n}'>" + "<entry><link href='x'/></entry>" * n + "</feed>"
    ),
    "languages": lambda n: entries(
        "<urlset xmlns:x='http://www.w3.org/1999/xhtml'><url>"
        + "".join(f"<x:link rel='alternate' href='/{i}'/>" for i in range(n))
        + "</url></urlset>"
    ),
    "robots": lambda n: robots("".join(f"User-agent: a{i}\n" for i in range(n)) + "Disallow: /\n"),
    "folded lines": lambda n: heads.storable_request(b"GET / HTTP/1.1\r\na: b" + b"\r\n b" * n * 20),
    "gzip members": lambda n: encodings.decode_body(gzip.compress(b"") * n, "gzip"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_many_different_things_take_linear_time(name: str) -> None:
    wrong = grows_too_fast(lambda text: MANY[name](len(text)), Attack("", "x"), LENGTH // 2)
    assert not wrong


def test_a_feed_whose_titles_are_nested_lists_is_read() -> None:
    deep = "[" * 900 + "]" * 900
    found = feeds.parse_entries(f'{{"items":[{{"url":"{PAGE}","title":{deep}}}]}}'.encode(), PAGE)
    assert [(entry.url, entry.title) for entry in found] == [(PAGE, "")]
