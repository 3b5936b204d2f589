"""What hostile hosts send, as data: a name, what it tries, and the bytes.

Bytes are made once, before anything is served. What has no end is sent piece by piece, as fast as
the other side reads.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Literal

import brotli  # type: ignore[import-untyped]

from crawlproj.demo.faults import gzip_bomb
from crawlproj.demo.files import make_zip
from crawlproj.http.encodings import zstd
from tests.support.documents import BOMB, TYPES, WORD, locked_pdf, long_pdf, slow_pdf, word

MB = 1_000_000
BIG = 10 * MB
"""As much as a crawler takes of one page (DOWNLOAD_MAXSIZE is a little more)."""
PIECE = 256 * 1024
RULES = b"User-agent: *\nDisallow: /private/\n"
SMALL = b"<!doctype html><title>Small</title><p>A page of some words, which nobody minds.</p>"
HTML = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
XML = "application/xml"


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes of a response, with pauses between them, and how it ends.

    `status` is the one on the wire; 0: there is none.
    """

    chunks: Callable[[], Iterable[bytes]]
    status: int = 200
    end: Literal["keep", "close", "reset", "hang"] = "close"
    pause_s: float = 0.0
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """The host that an answer is made for."""

    host: str
    port: int


Attack = Callable[[Site, str], Answer]
"""Host and path -> what it answers with."""


def small_robots(site: Site, path: str) -> Answer:
    return page(RULES, type=PLAIN)


def front_page(pages: int) -> Attack:
    def attack(site: Site, path: str) -> Answer:
        links = "".join(f'<li><a href="/a{n}">page {n}</a>' for n in range(1, pages + 1))
        text = f"<title>Welcome</title><p>Read on.<ul>{links}</ul><a href=/private/x>Secret</a>"
        return page(text.encode())

    return attack


@dataclass(frozen=True, slots=True)
class Kind:
    """A hostile host: `attack` is what all its pages are but the front page, which links to so many
    of them. `forbids`: its robots.txt has rules that can be read, so that /private/ is forbidden.
    """

    name: str
    attack: Attack
    pages: int = 3
    robots: Attack = field(default=small_robots)
    forbids: bool = True

    @property
    def host(self) -> str:
        return f"{self.name}.test"

    def respond(self, site: Site, path: str) -> Answer:
        if path == "/robots.txt":
            return self.robots(site, path)
        if path == "/" or not site.host.startswith(self.name):
            return front_page(self.pages)(site, path)
        return self.attack(site, path)


# --- How bytes are made ---


def head(*lines: str, status: str = "200 OK", type: str = HTML) -> bytes:
    """A head; it is latin-1, so that any byte can be in it."""
    all_lines = (f"HTTP/1.1 {status}", f"Content-Type: {type}", *lines, "", "")
    return "\r\n".join(all_lines).encode("latin-1")


def cut(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), PIECE):
        yield data[at : at + PIECE]


def page(
    body: bytes, *lines: str, status: str = "200 OK", type: str = HTML, retry_after_s: float = 0.0
) -> Answer:
    """A whole response."""
    data = head(*lines, f"Content-Length: {len(body)}", status=status, type=type) + body
    return Answer(lambda: cut(data), int(status[:3]), end="keep", retry_after_s=retry_after_s)


def raw(*chunks: bytes, **more: object) -> Answer:
    return Answer(lambda: chunks, **more)  # type: ignore[arg-type]


def once(make: Callable[[], Answer]) -> Attack:
    """The same answer for all pages of a host."""
    made: list[Answer] = []

    def attack(site: Site, path: str) -> Answer:
        if not made:
            made.append(make())
        return made[0]

    return attack


def body(text: str | bytes | Callable[[], str | bytes], *lines: str, **more: str) -> Attack:
    """A page whose body is this, or what this gives when it is first needed."""

    def make() -> Answer:
        made = text() if callable(text) else text
        return page(made if isinstance(made, bytes) else made.encode(), *lines, **more)

    return once(make)


def fill(piece: str, size: int = BIG, before: str = "", after: str = "") -> Attack:
    """A page that says the same again and again."""
    times = (size - len(before) - len(after)) // len(piece)
    return once(lambda: page((before + piece * times + after).encode()))


def numbered(form: str, times: int, before: str = "", **more: str) -> Attack:
    """A page of so many pieces, each with its number."""

    def make() -> Answer:
        text = before + "".join([form % number for number in range(times)])
        return page(text.encode(), **more)

    return once(make)


def per_site(make: Callable[[Site], bytes], **more: str) -> Attack:
    """A page that needs to know its host, made once."""
    made: dict[str, Answer] = {}

    def attack(site: Site, path: str) -> Answer:
        if site.host not in made:
            made[site.host] = page(make(site), **more)
        return made[site.host]

    return attack


def packed(make: Callable[[], bytes], encoding: str, type: str = HTML) -> Attack:
    return once(lambda: page(make(), f"Content-Encoding: {encoding}", type=type))


def endless(first: bytes, piece: bytes | Callable[[int], bytes], **more: object) -> Attack:
    """No end: the same piece again and again, or one made for each number."""

    def chunks() -> Iterator[bytes]:
        yield first
        if isinstance(piece, bytes):
            yield from repeat(piece)
        else:
            for number in count():
                yield piece(number)

    return lambda site, path: Answer(chunks, **more)  # type: ignore[arg-type]


CHUNKED = head("Transfer-Encoding: chunked")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# --- Patterns and loops that may take quadratic time ---

BLANKS = " " * 16_000


def many_robots_metas() -> Answer:
    piece = '<meta name=robots content="unavailable_after: Mon, 1 Jan 2300 10:00:00 UTC">'
    return page((piece * (BIG // len(piece))).encode())


QUADRATIC = (
    Kind("blanks-meta", body(f'<meta name=robots content="unavailable_after: 1 Jan{BLANKS}x">')),
    Kind(
        "blanks-meta-1mb",
        body(lambda: f'<meta name=robots content="unavailable_after: 1 Jan{BLANKS * 60}x">'),
    ),
    Kind("blanks-header", body(SMALL, f"X-Robots-Tag: unavailable_after: 1 Jan{BLANKS * 3}x")),
    Kind("blanks-robot-name", body(SMALL, *[f"X-Robots-Tag: {BLANKS * 3}x"] * 200)),
    Kind("tabs-refresh", fill("\t ;", MB, '<meta http-equiv=refresh content="0;', "url=/x'\">")),
    Kind("commas-directives", fill("unavailable_after,x,", 3 * MB, "<meta name=robots content='")),
    Kind("robots-metas", once(many_robots_metas), pages=2),
    Kind("commas-srcset", fill(", ", 5 * MB, "<img srcset='/a.png 1x", "'>"), pages=2),
    Kind("srcsets", fill("<img srcset=', , , ,'>"), pages=2),
    Kind("blanks-charset", body(SMALL, type="text/html;" + BLANKS * 3 + "charset" + BLANKS)),
    Kind("metas-charset", body(lambda: ("<meta " * 160 + "charset" + " " * 200).encode() * 100)),
    Kind(
        "attributes-30000", body(lambda: "<p " + " ".join(f"a{n}=1" for n in range(30_000)) + ">x")
    ),
    Kind("attributes-1mb-name", body(lambda: "<p " + "n" * MB + "=1>x")),
    Kind("attributes-same", fill("a=1 ", 4 * MB, "<p ", ">"), pages=2),
    Kind("handlers", fill('<i onclick="location = open( \'x">'), pages=2),
    Kind("handler-long", body(lambda: f'<p onclick="{"location =" * 400_000}">x')),
    Kind("script-slashes", fill('"/a/', 5 * MB, "<script>"), pages=2),
    Kind("scripts", fill('<script>"/a/b/"</script>'), pages=2),
    Kind("brackets", fill("http://a.test/" + ")" * 1900 + " ", 5 * MB, "<p>"), pages=2),
    Kind("text-urls", once(lambda: page(b"http://a.test/))))))))) " * 400_000, type=PLAIN))),
    Kind("prolog", once(lambda: page(b"<?x>" * 1000 + b"<!--" * 2_000_000, type=XML)), pages=2),
    Kind("anchor-blocks", fill("<p>x", 5 * MB, "<a href=/x>"), pages=2),
    Kind("dots", body(lambda: "<a href='" + "../" * 300_000 + "x'>x</a>")),
    Kind("dots-links", fill("<a href='" + "x/../" * 390 + "'>x</a>", 5 * MB), pages=2),
    Kind("title-blanks", fill(" \t", MB, "<title>a", "</title><p>x")),
)

# --- Huge pages ---

CLASSES = "".join(f"<div class={'c' * 59}{n % 10}>" for n in range(63))
HUGE = (
    Kind("tags-b", fill("<b></b>"), pages=2),
    Kind("tags-p", fill("<p>x"), pages=2),
    Kind("tags-br", fill("<br>"), pages=2),
    Kind("tags-cells", fill("<tr class=a><td id=b>1<td>2"), pages=2),
    Kind("tags-unknown", numbered("<t%d>", 900_000), pages=2),
    Kind("tags-closing", fill("</p></b>"), pages=2),
    Kind("tags-gzip", packed(lambda: gzip.compress(b"<i>x</i>" * 1_250_000), "gzip"), pages=2),
    Kind("classes", fill("<p>x", 4 * MB, CLASSES), pages=2),
    Kind("links-650000", numbered("<a href=%d>x", 650_000), pages=2),
    Kind("links-queries", numbered("<a href=?q=%d&b=2&a=1>", 400_000), pages=2),
    Kind(
        "links-gzip",
        packed(
            lambda: gzip.compress(b"".join(b"<a href=/%d>" % n for n in range(640_000))), "gzip"
        ),
        pages=2,
    ),
    Kind(
        "links-hosts",
        per_site(
            lambda site: "".join(
                f"<a href=//h{n}.{site.host}:{site.port}/>" for n in range(250_000)
            ).encode()
        ),
        pages=2,
    ),
    Kind("links-elsewhere", numbered("<a href=http://e%d.test/>", 360_000), pages=2),
    Kind(
        "links-base",
        per_site(
            lambda site: (
                f"<base href='http://{site.host}:{site.port}/{'b' * 1900}/'>"
                + "".join([f"<a href={n}>" for n in range(600_000)])
            ).encode()
        ),
        pages=2,
    ),
    Kind("links-long", numbered(f"<a href=/{'l' * 1990}%d>x", 4_900), pages=2),
    Kind("links-media", numbered("<img src=/%d.png alt=x>", 350_000), pages=2),
    Kind("links-nofollow", numbered("<a rel=nofollow href=/n%d>", 350_000), pages=2),
    Kind("attribute-10mb", fill("x", BIG, "<a href='/", "'>x</a>")),
    Kind("comment-10mb", fill("-", BIG, "<!--", "-->")),
    Kind("comments", fill("<!---->"), pages=2),
    Kind("script-10mb", fill("x='/a';", BIG, "<script>", "</script>")),
    Kind("text-10mb", fill("word ", BIG, "<p>")),
    Kind("text-lines", once(lambda: page(b"x\n\n" * 3_300_000, type=PLAIN)), pages=2),
    Kind("title-1mb", fill("t", MB, "<title>", "</title><p>x")),
    Kind("cdata-10mb", fill("]]", BIG, "<![CDATA[")),
    Kind("nested-div", fill("<div>", 5 * MB), pages=2),
    Kind("nested-font", fill("<font>", 3 * MB), pages=2),
    Kind("nested-table", fill("<table><td>", 5 * MB), pages=2),
    Kind("nested-shallow", fill("<div>" * 500 + "x" + "</div>" * 500, BIG), pages=2),
    Kind("nested-few", body("<b>" * 19_000 + "x" + "</b>" * 900)),
    Kind("entities-amp", fill("&amp;"), pages=2),
    Kind("entities-number", fill("&#65;"), pages=2),
    Kind("entities-unknown", fill("&nosuch;"), pages=2),
    Kind("entities-open", fill("&"), pages=2),
)

# --- XML, feeds, robots.txt ---


def sitemap(urls: int, site: Site) -> bytes:
    locs = "".join(
        [f"<url><loc>http://{site.host}:{site.port}/s{n}</loc></url>" for n in range(urls)]
    )
    return f"<?xml version='1.0'?><urlset>{locs}</urlset>".encode()


def sitemap_index(site: Site, path: str) -> Answer:
    maps = "".join(
        f"<sitemap><loc>http://{site.host}:{site.port}{path}/{n}</loc></sitemap>"
        for n in range(2_000)
    )
    return page(f"<sitemapindex>{maps}</sitemapindex>".encode(), type=XML)


LAUGHS = f"{BOMB}]><urlset><url><loc>&k;</loc></url></urlset>".replace(
    "<!DOCTYPE x", "<!DOCTYPE urlset"
)
FEEDS = (
    Kind("sitemap-huge", per_site(lambda site: sitemap(170_000, site), type=XML), pages=2),
    Kind("sitemap-index", sitemap_index),
    Kind(
        "sitemap-gzip",
        per_site(lambda site: gzip.compress(sitemap(400_000, site)), type="application/gzip"),
        pages=2,
    ),
    Kind("sitemap-bomb-file", once(lambda: page(gzip_bomb(), type="application/gzip"))),
    Kind(
        "sitemap-empty-urls",
        once(lambda: page(b"<urlset>" + b"<url/>" * 1_600_000, type=XML)),
        pages=2,
    ),
    Kind("xml-laughs", body(LAUGHS, type=XML)),
    Kind(
        "xml-quadratic",
        body(
            lambda: (
                f'<!DOCTYPE urlset [<!ENTITY a "{"a" * 50_000}">]><urlset><url><loc>'
                + "&a;" * 50_000
                + "</loc></url></urlset>"
            ),
            type=XML,
        ),
    ),
    Kind("xml-deep", once(lambda: page(b"<rss>" + b"<item>" * 1_500_000, type=XML)), pages=2),
    Kind(
        "xml-attributes",
        body(
            lambda: "<rss " + " ".join(f"a{n}='1'" for n in range(100_000)) + "><item/></rss>",
            type=XML,
        ),
    ),
    Kind(
        "rss-huge",
        numbered("<item><link>/i%d</link><title>t</title></item>", 190_000, "<rss>", type=XML),
        pages=2,
    ),
    Kind(
        "json-deep",
        body(
            lambda: b'{"version":"https://jsonfeed.org/version/1.1","items":' + b"[" * MB,
            type="application/json",
        ),
    ),
    Kind(
        "json-huge",
        once(
            lambda: page(
                json.dumps(
                    {
                        "version": "https://jsonfeed.org/version/1.1",
                        "items": [{"url": f"/j{n}"} for n in range(400_000)],
                    }
                ).encode(),
                type="application/json",
            )
        ),
        pages=2,
    ),
)


def robots(make: Callable[[], bytes]) -> Attack:
    return body(make, type=PLAIN)


def redirect_on(site: Site, path: str) -> Answer:
    number = int(path.rpartition("-")[2].partition(".")[0]) + 1 if "-" in path else 1
    return page(b"", f"Location: /robots-{number}.txt", status="302 Found")


PLAIN_PAGE = body(SMALL)
ROBOTS = (
    Kind(
        "robots-10mb",
        PLAIN_PAGE,
        robots=robots(lambda: RULES + b"Disallow: /forbidden/a\n" * 430_000),
    ),
    Kind(
        "robots-rules",
        PLAIN_PAGE,
        robots=robots(lambda: RULES + b"".join(b"Disallow: /%d*x\n" % n for n in range(40_000))),
        pages=40,
    ),
    Kind(
        "robots-stars",
        body(lambda: "".join(f"<a href=/{'a' * 1900}{n}>x" for n in range(200))),
        robots=robots(
            lambda: (
                RULES + b"".join(b"Disallow: /*" + b"a*" * 900 + b"b%d$\n" % n for n in range(250))
            )
        ),
        pages=20,
    ),
    Kind(
        "robots-garbage",
        PLAIN_PAGE,
        robots=robots(lambda: bytes(range(256)) * 30_000),
        forbids=False,
    ),
    Kind(
        "robots-line",
        PLAIN_PAGE,
        robots=robots(lambda: RULES + b"Disallow:" + b" " * 490_000 + b"x"),
    ),
    Kind(
        "robots-bomb",
        PLAIN_PAGE,
        robots=once(lambda: page(gzip_bomb(), "Content-Encoding: gzip", type=PLAIN)),
        forbids=False,
    ),
    Kind("robots-forever", PLAIN_PAGE, robots=redirect_on, forbids=False),
    Kind(
        "robots-endless",
        PLAIN_PAGE,
        robots=endless(CHUNKED + chunk(RULES), chunk(b"# more\n" * 9000)),
    ),
    Kind(
        "robots-sitemaps",
        PLAIN_PAGE,
        robots=robots(
            lambda: RULES + b"".join(b"Sitemap: /map-%d.xml\n" % n for n in range(20_000))
        ),
    ),
    Kind(
        "robots-delays",
        PLAIN_PAGE,
        robots=robots(
            lambda: (
                RULES
                + b"Crawl-delay: nan\nCrawl-delay: -1\nRequest-rate: 1/0\nCrawl-delay: 1e-999\n"
                * 200
            )
        ),
    ),
    Kind("robots-groups", PLAIN_PAGE, robots=robots(lambda: b"User-agent: *\n" * 34_000 + RULES)),
    Kind(
        "robots-drip",
        PLAIN_PAGE,
        robots=lambda site, path: raw(
            *(bytes([b]) for b in head(type=PLAIN) + RULES), pause_s=0.05
        ),
    ),
)

# --- Documents ---


def rtf_bomb(text: bytes) -> Callable[[], bytes]:
    return lambda: gzip.compress(b"{\\rtf1 " + text * (9_900_000 // len(text)) + b"}")


RTFS = tuple(
    Kind(f"rtf-{number}", packed(rtf_bomb(text), "gzip", "application/rtf"))
    for number, text in enumerate(
        (b"a\\par ", b"{", b"\\u8364?", b"{\\field{\\*\\fldinst HYPERLINK \"http://a.test/\"}}",
         b"\\'e9", b"{\\b x}", b"\\par\\par ", b"{\\footnote x}", b"\\f1 \\f2 ", b"x", b"\\bin1 x",
         b"{\\*\\x }")
    )
)  # fmt: skip
WORDS = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
DOCUMENTS = (
    *RTFS,
    Kind("docx-bomb", once(lambda: page(word(WORDS * 3_000_000), type="application/zip"))),
    Kind("docx-laughs", once(lambda: page(word("<w:p><w:r><w:t>&k;</w:t></w:r></w:p>", BOMB + "]>"), type="application/zip"))),
    Kind("docx-parts", once(lambda: page(make_zip({**TYPES, **{f"word/{n}.xml": f'<w:document xmlns:w="{WORD}"/>' for n in range(20_000)}}), type="application/zip"))),
    Kind("pdf-slow", once(lambda: page(slow_pdf(), type="application/pdf"))),
    Kind("pdf-long", once(lambda: page(long_pdf(200_000), type="application/pdf"))),
    Kind("pdf-locked", once(lambda: page(locked_pdf(), type="application/pdf"))),
    Kind("pdf-garbage", once(lambda: page(b"%PDF-1.7\n" + b"1 0 obj<</A[" * 700_000, type="application/pdf"))),
    Kind("ole-garbage", once(lambda: page(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 9_000_000, type="application/msword"))),
)  # fmt: skip

# --- Encodings ---


def layers(compress: Callable[[bytes], bytes], number: int) -> bytes:
    data = SMALL
    for _ in range(number):
        data = compress(data)
    return data


def gzip_fast(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def brotli_bomb() -> bytes:
    return brotli.compress(b"<p>" + b" " * (400 * MB), quality=1)


ENCODINGS = (
    Kind("layers-gzip", packed(lambda: layers(gzip_fast, 2_000), ", ".join(["gzip"] * 2_000))),
    Kind(
        "layers-deflate",
        packed(lambda: layers(zlib.compress, 2_000), ", ".join(["deflate"] * 2_000)),
    ),
    Kind("layers-br", packed(lambda: layers(brotli.compress, 300), ",".join(["br"] * 300))),
    Kind("layers-false", packed(lambda: SMALL * 100_000, ",".join(["gzip"] * 9_000))),
    Kind(
        "layers-lines",
        once(lambda: page(layers(gzip_fast, 900), *["Content-Encoding: gzip"] * 900)),
    ),
    Kind("layers-unknown", packed(lambda: SMALL, ",".join(["x"] * 20_000))),
    Kind("bomb-gzip", packed(gzip_bomb, "gzip")),
    Kind("bomb-twice", packed(lambda: gzip.compress(gzip_bomb()), "gzip, gzip")),
    Kind("bomb-deflate", packed(lambda: zlib.compress(b" " * 200 * MB), "deflate")),
    Kind("bomb-br", packed(brotli_bomb, "br")),
    Kind("bomb-zstd", packed(lambda: zstd.compress(b" " * 200 * MB), "zstd")),
    Kind("bomb-exact", packed(lambda: gzip.compress(b"<p>x" * 2_600_000), "gzip"), pages=2),
    Kind("gzip-members", packed(lambda: gzip.compress(b"", mtime=0) * 300_000, "gzip")),
)

# --- The wire ---

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
WIRE = (
    Kind("icy-flood", endless(b"", b"ICY 100 x\r\n\r\n" * 5_000, status=0)),
    Kind("icy-400000", once(lambda: raw(*cut(b"ICY 100\r\n\r\n" * 400_000), *cut(head() + SMALL)))),
    Kind("continue-flood", endless(b"", INTERIM * 2_000, status=0)),
    Kind("continue-100000", once(lambda: raw(*cut(INTERIM * 100_000 + head() + SMALL)))),
    Kind("hints-big", endless(b"", b"HTTP/1.1 103 Hints\r\nLink: " + b"x" * 50_000 + b"\r\n\r\n", status=0)),
    Kind("interim-body", once(lambda: raw(b"HTTP/1.1 102 P\r\nContent-Length: 5\r\n\r\nhello" + head() + SMALL))),
    Kind("chunk-extensions", endless(CHUNKED, b"1;" + b"e" * 60_000 + b"\r\nx\r\n")),
    Kind("chunk-extension-endless", endless(CHUNKED + b"1;", b"e" * 60_000)),
    Kind("chunk-zeros", endless(CHUNKED, b"0" * 60_000)),
    Kind("chunk-bytes", once(lambda: raw(CHUNKED, *cut(b"1\r\nx\r\n" * 1_000_000), b"0\r\n\r\n"))),
    Kind("chunk-bytes-endless", endless(CHUNKED, b"1\r\n<\r\n" * 10_000)),
    Kind("chunk-pieces", endless(CHUNKED, b"1\r\nx\r\n", pause_s=0.002)),
    Kind("trailers-endless", endless(CHUNKED + chunk(SMALL) + b"0\r\n", b"X-T: 1\r\n" * 5_000)),
    Kind("trailer-long", endless(CHUNKED + chunk(SMALL) + b"0\r\nX-T: ", b"t" * 60_000)),
    Kind("headers-endless", endless(b"HTTP/1.1 200 OK\r\n", lambda n: b"X-%d: 1\r\n" % n * 1_000)),
    Kind("header-endless", endless(b"HTTP/1.1 200 OK\r\nX: ", b"h" * 60_000)),
    Kind("headers-60mb", once(lambda: raw(b"HTTP/1.1 200 OK\r\n", *[b"X-%d: %b\r\n" % (n, b"h" * 60_000) for n in range(990)], b"\r\n" + SMALL))),
    Kind("status-endless", endless(b"HTTP/1.1 200 ", b"OK" * 30_000)),
    Kind("status-line-digits", endless(b"HTTP/1.1 ", b"2" * 60_000, status=0)),
    Kind("lines-endless", endless(b"", b"\r\n" * 30_000, status=0)),
    Kind("body-endless", endless(head(), b"<p>endless " * 6_000)),
    Kind("body-endless-chunks", endless(CHUNKED, chunk(b"<b></b>" * 9_000))),
    Kind("body-drip", endless(head("Content-Length: 1000000"), b"<p>", pause_s=0.3)),
    Kind("head-drip", endless(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x", pause_s=0.3)),
    Kind("body-hang", lambda site, path: raw(head("Content-Length: 9999") + SMALL, end="hang")),
    Kind("head-hang", lambda site, path: raw(b"HTTP/1.1 200 OK\r\nContent-Ty", end="hang")),
    Kind("silence", lambda site, path: raw(status=0, end="hang")),
    Kind("reset-at-once", lambda site, path: raw(status=0, end="reset")),
    Kind("reset-body", lambda site, path: raw(head("Content-Length: 9999") + SMALL, end="reset")),
    Kind("close-at-once", lambda site, path: raw(status=0)),
    Kind("length-wrong", lambda site, path: raw(head("Content-Length: 99999") + SMALL)),
    Kind("length-negative", lambda site, path: raw(head("Content-Length: -5") + SMALL)),
    Kind("length-huge", endless(head("Content-Length: " + "9" * 40), b"<p>x" * 10_000)),
    Kind("length-twice", lambda site, path: raw(head("Content-Length: 5", "Content-Length: 7") + SMALL)),
    Kind("http-0-9", lambda site, path: raw(SMALL, status=0)),
    Kind("http-none", endless(b"", bytes(range(1, 256)) * 250, status=0)),
    Kind("second-answer", once(lambda: raw(page_bytes() + page_bytes() * 3, end="keep"))),
)  # fmt: skip


def page_bytes() -> bytes:
    return head(f"Content-Length: {len(SMALL)}") + SMALL


# --- Statuses and headers ---


def busy(retry_after: str, status: str = "503 Busy", asks_s: float = 0.0) -> Attack:
    return lambda site, path: page(
        SMALL, f"Retry-After: {retry_after}", status=status, retry_after_s=asks_s
    )


def moved(location: str, status: str = "302 Found") -> Attack:
    return lambda site, path: page(b"", f"Location: {location}", status=status)


def moved_on(site: Site, path: str) -> Answer:
    return page(b"", f"Location: {path}x", status="301 Moved")


HEADERS = (
    Kind("retry-overflow", busy("Fri, 31 Dec 9999 23:59:59 -2359"), pages=20),
    Kind("retry-year-one", busy("Mon, 01 Jan 0001 00:00:00 +2359", "429 Many"), pages=20),
    Kind("retry-99999", busy("Fri, 31 Dec 99999 23:59:59 GMT"), pages=20),
    Kind("retry-digits", busy("9" * 5_000), pages=20),
    Kind("retry-negative", busy("-30"), pages=20),
    Kind("retry-nan", busy("nan", "429 Many"), pages=20),
    Kind("retry-infinity", busy("1e999"), pages=20),
    Kind("retry-two", busy("2", asks_s=2.0), pages=20),
    Kind("retry-zone", busy("Sun, 06 Nov 1994 08:49:37 +99999999999999"), pages=20),
    Kind("retry-blanks", busy("1" + BLANKS * 3 + "x"), pages=20),
    Kind("redirect-self", lambda site, path: page(b"", f"Location: {path}", status="301 Moved")),
    Kind("redirect-on", moved_on),
    Kind("redirect-long", moved("/" + "l" * 60_000)),
    Kind("redirect-control", moved("/\x01\x02\x1b[31m\x7f\x80\xff%00%0d%0aX: y")),
    Kind("redirect-dots", moved("../" * 20_000)),
    Kind("redirect-inner", moved("http://169.254.169.254/latest/")),
    Kind("redirect-names", moved("http://" + "a." * 10_000 + "test/")),
    Kind("redirect-none", lambda site, path: page(SMALL, status="302 Found")),
    Kind("refresh-header", body(SMALL, "Refresh: 0;" + BLANKS * 3 + "url=/x")),
    Kind("cookies", body(SMALL, *[f"Set-Cookie: c{n}={'v' * 4_000}; Max-Age=99" for n in range(900)])),
    Kind("etag-long", body(SMALL, "ETag: \"" + "e" * 60_000 + '"', "Last-Modified: " + "m" * 60_000)),
    Kind("etag-1mb", body(SMALL, "ETag: " + "e" * MB)),
    Kind("modified-odd", body(SMALL, "Last-Modified: Fri, 31 Dec 9999 23:59:59 -2359", "ETag: \xff\xfe")),
    Kind("type-long", body(SMALL, type="text/html;" + "a=b;" * 15_000)),
    Kind("link-header", body(SMALL, *["Link: </x>; rel=\"next\"" + ", </y>; rel=next" * 3_000] * 20)),
    Kind("language", body(lambda: "<html lang=" + "l" * MB + "><p>x", "Content-Language: " + "l" * 60_000)),
    Kind("status-999", body(SMALL, status="999 Odd")),
    Kind("status-206", body(SMALL, "Content-Range: bytes 0-9/99999999999", status="206 Partial")),
    Kind("status-304", lambda site, path: raw(b"HTTP/1.1 304 Same\r\n\r\n", status=304)),
    Kind("status-101", lambda site, path: raw(b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n" + b"x" * 90_000, status=101)),
    Kind("status-204", lambda site, path: raw(head(status="204 None") + b"x" * 90_000, status=204)),
)  # fmt: skip

# --- Traps, and what letters can do ---


def calendar(site: Site, path: str) -> Answer:
    day = int(path.rpartition("-")[2]) if "-" in path else 0
    links = "".join(f"<a href=/day-{day + n}>day {day + n}</a> " for n in range(1, 30))
    return page(f"<title>Day {day}</title>{links}".encode())


def sessions(site: Site, path: str) -> Answer:
    session = zlib.crc32(path.encode())
    links = "".join(f"<a href=/a{n}?sid={session:08x}{n}>x</a>" for n in range(40))
    return page(f"<title>Session</title>{links}".encode())


def deeper(site: Site, path: str) -> Answer:
    links = "".join(f"<a href={path}/{name}>x</a>" for name in ("a", "b", "c", "d"))
    return page(links.encode())


IDN = "".join(chr(0x3042 + n % 80) for n in range(60_000))
LETTERS = (
    Kind("trap-calendar", calendar),
    Kind("trap-sessions", sessions),
    Kind("trap-paths", deeper),
    Kind("nul", body(lambda: b"<p>a\0b" * 1_500_000), pages=2),
    Kind("nul-only", body(lambda: b"<p>" + b"x" * 1_100 + b"\0" * 9_000_000)),
    Kind("surrogates", body(lambda: b"<a href='/\xed\xa0\x80'>\xed\xb0\x80</a>" * 200_000), pages=2),
    Kind("utf8-broken", body(lambda: b"<p>\xff\xfe\xc0" * 1_600_000), pages=2),
    Kind("utf16", once(lambda: page(("<p>x" * 1_200_000).encode("utf-16"))), pages=2),
    Kind("utf7", body(lambda: "+ADw-p+AD4-" * 500_000, type="text/html; charset=utf-7")),
    Kind("codec-odd", body("x" * 100_000, type="text/html; charset=unicode_escape")),
    Kind("codec-idna", body(IDN, type="text/html; charset=idna")),
    Kind("iso2022", body(lambda: b"\x1b$B" * 3_000_000, type="text/html; charset=iso-2022-jp"), pages=2),
    Kind("gb18030", body(lambda: b"\x81\x30\x81\x30" * 2_400_000, type="text/html; charset=gb18030"), pages=2),
    Kind("links-odd", body(lambda: "<a href='/\x00\x1b[2J\x07\x9b%00%1b]0;x\x07'>\x1b[31m</a>" * 20_000)),
    Kind("links-names", numbered("<a href=http://xn--%d---.-a.test/>", 200_000), pages=2),
    Kind("links-idn", body(lambda: f"<a href='http://{IDN}.test/'>x</a>" * 20)),
    Kind("links-idn-many", numbered("<a href='http://\u3042%d.\u3044.test/'>x", 150_000), pages=2),
    Kind("links-percent", fill("<a href='/" + "%zz%e3" * 300 + "'>x"), pages=2),
    Kind("links-ports", numbered("<a href='//links-ports.test:%d/'>x", 65_000), pages=2),
    Kind("links-numbers", numbered("<a href='http://%d/'>x", 300_000), pages=2),
    Kind("invisible", fill("<p>\u200b\u200bx\u2060", 5 * MB), pages=2),
    Kind("right-to-left", fill("<p>\u202e\u05d0\u0301", 5 * MB), pages=2),
)  # fmt: skip

CROWD = tuple(
    Kind(f"crowd-{number}", lambda site, path: raw(head() + SMALL, end="hang"), pages=9)
    for number in range(150)
)
"""More hosts than may be asked at a time, and all let us wait."""

KINDS = {
    kind.name: kind
    for kind in (
        *QUADRATIC, *HUGE, *FEEDS, *ROBOTS, *DOCUMENTS, *ENCODINGS, *WIRE, *HEADERS, *LETTERS, *CROWD,
    )
}  # fmt: skip


def split_names(text: str) -> list[str]:
    return text.split()


CAMPAIGN = split_names("""
    blanks-meta blanks-meta-1mb blanks-header blanks-robot-name tabs-refresh commas-directives
    robots-metas commas-srcset blanks-charset attributes-30000 attributes-1mb-name handlers
    script-slashes brackets text-urls anchor-blocks dots title-blanks

    tags-b tags-p tags-cells tags-gzip classes links-650000 links-gzip links-hosts links-elsewhere
    links-base links-long attribute-10mb comment-10mb script-10mb text-10mb title-1mb nested-div
    nested-shallow entities-amp entities-unknown

    sitemap-huge sitemap-index sitemap-bomb-file xml-laughs xml-deep rss-huge json-deep

    robots-10mb robots-stars robots-garbage robots-bomb robots-forever robots-endless robots-sitemaps
    robots-drip

    rtf-0 rtf-1 rtf-2 rtf-3 rtf-4 rtf-5 rtf-6 rtf-7 rtf-8 rtf-9 rtf-10 rtf-11 docx-bomb docx-laughs
    pdf-slow pdf-garbage

    layers-gzip layers-br layers-false bomb-gzip bomb-twice bomb-deflate bomb-br bomb-exact

    icy-flood continue-100000 hints-big chunk-extensions chunk-bytes chunk-zeros trailers-endless
    headers-endless header-endless headers-60mb body-endless body-drip head-drip body-hang
    reset-at-once reset-body close-at-once length-wrong length-negative http-0-9 second-answer

    retry-overflow retry-99999 retry-digits retry-negative retry-nan retry-two redirect-self
    redirect-on redirect-long redirect-control cookies etag-long etag-1mb status-999 status-206
    status-304 interim-body

    trap-calendar trap-sessions nul utf8-broken utf16 utf7 surrogates links-odd links-names
    links-idn
""")
"""Those of the proof; the others are for runs by hand."""
