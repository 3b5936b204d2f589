from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import DEFAULT_LIMITS
from crawlproj.content.feeds import FeedEntry, parse_entries, sniff_kind
from crawlproj.urls import canonical

URL = "https://example.org/feeds/all.xml"
RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><link>https://example.org/</link><title>C</title>
<item><title>A &amp; B</title><link> /a?utm_source=rss </link><pubDate>Mon, 06 Jul 2026 10:00:00 GMT</pubDate></item>
<item><title><![CDATA[C <b>]]></title><guid>https://example.org/c</guid></item><item><guid>no url</guid></item>
<item><link>/a</link></item></channel></rss>"""
RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><item><title>A</title><link>http://example.org/a</link>
<dc:date>2026-07-06</dc:date></item></rdf:RDF>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://o.org/d/"><link rel="self" href="/self"/>
<entry><title>A</title><link rel="edit" href="/e"/><link href="a"/><published>2026-07-01</published>
<updated>2026-07-06T10:00:00Z</updated><id>urn:1</id></entry></feed>"""
SITEMAP = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"
xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><url><loc>https://example.org/a</loc><lastmod>2026-07-06</lastmod>
<xhtml:link rel="alternate" hreflang="de" href="https://example.org/de/a"/></url><url><loc>https://example.org/n</loc>
<news:news><news:publication_date>2026-07-05</news:publication_date><news:title>N</news:title></news:news></url></urlset>"""
INDEX = b"<sitemapindex><sitemap><loc>https://example.org/s1.xml.gz</loc><lastmod>2026</lastmod></sitemap></sitemapindex>"
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [
            {"url": "/j", "title": "J", "date_published": "2026-07-06"},
            {"id": 1},
            7,
            {"url": 5},
        ],
    }
).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            RSS,
            [
                FeedEntry(
                    "https://example.org/a",
                    "feed",
                    "A & B",
                    "Mon, 06 Jul 2026 10:00:00 GMT",
                    published="Mon, 06 Jul 2026 10:00:00 GMT",
                ),
                FeedEntry("https://example.org/c", "feed", "C"),
            ],
        ),
        (RDF, [FeedEntry("http://example.org/a", "feed", "A", "2026-07-06", False, "2026-07-06")]),
        (
            ATOM,
            [
                FeedEntry(
                    "https://o.org/d/a", "feed", "A", "2026-07-06T10:00:00Z", False, "2026-07-01"
                )
            ],
        ),
        (
            SITEMAP,
            [
                FeedEntry("https://example.org/a", "sitemap", "", "2026-07-06"),
                FeedEntry("https://example.org/de/a", "alternate"),
                FeedEntry(
                    "https://example.org/n", "sitemap", "N", "2026-07-05", True, "2026-07-05"
                ),
            ],
        ),
        (INDEX, [FeedEntry("https://example.org/s1.xml.gz", "sitemapindex", "", "2026")]),
        (
            JSON,
            [FeedEntry("https://example.org/j", "feed", "J", "2026-07-06", False, "2026-07-06")],
        ),
        (
            b"https://example.org/x\r\nnonsense\nhttps://example.org/y\n",
            [
                FeedEntry("https://example.org/x", "sitemap"),
                FeedEntry("https://example.org/y", "sitemap"),
            ],
        ),
    ],
    ids=["rss", "rdf", "atom", "sitemap", "index", "json", "lines"],
)
def test_entries_of_each_format_are_read(body: bytes, expected: list[FeedEntry]) -> None:
    assert parse_entries(body, URL) == expected


def test_broken_xml_gives_what_can_be_read() -> None:
    found = parse_entries(
        b"<rss><item><title>a & b</title><link>/a</link></item><item><link>/b", URL
    )
    assert [entry.url for entry in found] == ["https://example.org/a", "https://example.org/b"]


def test_entities_and_files_are_never_expanded() -> None:
    bomb = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 12))
    body = (
        b'<!DOCTYPE r [<!ENTITY e0 "boom"><!ENTITY f SYSTEM "file:///etc/hostname">' + bomb + b"]>"
    )
    body += b"<rss><item><link>/a</link><title>&e11;&f;</title></item></rss>"
    assert [entry.title for entry in parse_entries(body, URL)] in ([], [""], ["&e11;&f;"])


def test_deep_xml_and_deep_json_are_harmless() -> None:
    assert parse_entries(b"<rss>" + b"<item>" * 100_000, URL) == []
    assert parse_entries(b'{"items":' + b"[" * 100_000, URL) == []


def test_a_list_is_cut_at_the_limit() -> None:
    body = b"".join(b"https://example.org/%d\n" % n for n in range(DEFAULT_LIMITS.links + 10))
    assert len(parse_entries(body, URL)) == DEFAULT_LIMITS.links


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (RSS, "text/plain", "feed"),
        (RSS, "text/html", "feed"),
        (RDF, "", "feed"),
        (b"<?xml version='1.0'?><!-- x --><?s href='x'?>\n" + ATOM, "application/xml", "feed"),
        (JSON, "application/json", "feed"),
        (SITEMAP, "application/xml", "sitemap"),
        (INDEX, "text/plain", "sitemap"),
        (b"\xef\xbb\xbf  <!DOCTYPE html><p>x", "text/plain", "html"),
        (b"<html><body>x", "application/octet-stream", "html"),
        (b"just words", "text/html; charset=x", "html"),
        (b"just words", "text/plain", "text"),
        ("<html>x".encode("utf-16"), "text/plain", "html"),
        (b"%PDF-1.4", "text/html", "document"),
        (b"\n\n%PDF-1.4 a few words", "application/pdf", "document"),
        (b"{\\rtf1 Hello}", "text/plain", "document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "text/plain", "document"),
        (
            b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml" + bytes(600),
            "application/zip",
            "document",
        ),
        (
            b"PK\x03\x04"
            + bytes(26)
            + b"mimetypeapplication/vnd.oasis.opendocument.text"
            + bytes(600),
            "",
            "document",
        ),
        (b"PK\x03\x04" + bytes(26) + b"photo.jpg" + bytes(600), "application/zip", "binary"),
        (b'{"a": 1}', "application/json", "other"),
        (b"a{}", "text/css", "other"),
        (b"", "", "other"),
    ],
)
def test_content_type_is_told_by_looking(body: bytes, content_type: str, kind: str) -> None:
    assert sniff_kind(body, content_type) == kind


@given(
    st.binary()
    | st.sampled_from([RSS, ATOM, SITEMAP, JSON]).flatmap(
        lambda body: st.integers(0, len(body)).map(lambda n: body[:n])
    )
)
def test_any_bytes_give_a_list_of_canonical_entries(body: bytes) -> None:
    assert sniff_kind(body) in ("html", "feed", "sitemap", "text", "document", "binary", "other")
    for entry in parse_entries(body, URL):
        assert canonical.canonical_url(entry.url) == entry.url
