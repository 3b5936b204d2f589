"""Feeds and sitemaps as they come: cut, mislabelled, written by hand, mixed with something else.

Each case says what a person would read out of it.
"""

from __future__ import annotations

import gzip
import json
import time
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import DEFAULT_LIMITS
from crawlproj.content.feeds import (
    MAX_ENTRIES,
    FeedEntries,
    FeedEntry,
    parse_entries,
    parse_entries_in_slices,
    sniff_kind,
)
from crawlproj.content.slices import run_at_once
from crawlproj.fetch.pages import decompress_in_slices
from crawlproj.urls.canonical import canonical_url

URL: Final = "https://example.org/feeds/all.xml"
A: Final = "https://example.org/a"
B: Final = "https://example.org/b"
AB: Final = ((A, "A"), (B, "B"))
ITEM_A: Final = "<item><title>A</title><link>https://example.org/a</link></item>"
ITEM_B: Final = "<item><title>B</title><link>https://example.org/b</link></item>"
ATOM_NS: Final = 'xmlns="http://www.w3.org/2005/Atom"'
SITEMAP_NS: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'


class Damage(NamedTuple):
    """A body, and the URLs and titles that a person would read from it."""

    body: bytes
    expected: tuple[tuple[str, str], ...]
    content_type: str = "application/xml"
    url: str = URL


def rss(*items: str, head: str = DECLARATION, root: str = '<rss version="2.0">') -> str:
    site = "<title>Site</title><link>https://example.org/</link>"
    return f"{head}\n{root}<channel>{site}{''.join(items)}</channel></rss>"


def item(inside: str) -> str:
    return f"<item>{inside}</item>"


def atom(*entries: str, root: str = f"<feed {ATOM_NS}>") -> str:
    site = '<title>Site</title><link href="https://example.org/"/><id>urn:site</id>'
    return f"{DECLARATION}{root}{site}{''.join(entries)}</feed>"


def entry(inside: str) -> str:
    return f"<entry>{inside}</entry>"


def sitemap(*locs: str, root: str = f"<urlset {SITEMAP_NS}>") -> str:
    urls = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return f"{DECLARATION}{root}{urls}</urlset>"


def json_feed(**first: object) -> dict[str, object]:
    items = [
        {"id": "1", "url": A, "title": "A", **first},
        {"id": "2", "url": B, "title": "B"},
    ]
    return {"version": "https://jsonfeed.org/version/1.1", "title": "Site", "items": items}


def one(url: str = A, title: str = "A") -> tuple[tuple[str, str], ...]:
    return ((url, title),)


def with_text(
    text: str, expected: tuple[tuple[str, str], ...], content_type: str = "application/xml"
) -> Damage:
    return Damage(text.encode(), expected, content_type)


def with_link(link: str, expected: str = A, **options: str) -> Damage:
    body = rss(item(f"<title>A</title>{link}")).encode()
    return Damage(body, ((expected, "A"),), **options)


def with_title(title: str, expected: str) -> Damage:
    body = rss(item(f"<title>{title}</title><link>{A}</link>"), ITEM_B).encode()
    return Damage(body, ((A, expected), (B, "B")))


FEEDS: Final[dict[str, Damage]] = {
    # cut
    "cut within an item": with_text(rss(ITEM_A, ITEM_B)[:-30], AB),
    "cut within a title": with_text(
        rss(ITEM_A, item(f"<link>{B}</link><title>B").removesuffix("</item>"))[:-16], AB
    ),
    "cut within a tag": with_text(rss(ITEM_A, ITEM_B).rpartition("</item>")[0] + "</it", AB),
    "cut within a declaration of CDATA": with_text(
        rss(ITEM_A, ITEM_B, "<item><title><![CD").rpartition("</channel>")[0], AB
    ),
    "cut within CDATA": with_text(
        rss(ITEM_A, f"<item><link>{B}</link><title><![CDATA[B").rpartition("</channel>")[0], AB
    ),
    "atom, cut": with_text(
        atom(
            entry(f'<title>A</title><link href="{A}"/>'),
            entry(f'<title>B</title><link href="{B}"/><summary>and so'),
        ).rpartition("</entry>")[0],
        AB,
    ),
    # charsets
    "latin-1 that says utf-8": Damage(
        rss(
            item(f"<title>Caf\u00e9 \u00e0 Paris, d\u00e9j\u00e0 vu</title><link>{A}</link>")
        ).encode("latin-1"),
        one(title="Caf\u00e9 \u00e0 Paris, d\u00e9j\u00e0 vu"),
    ),
    "utf-8 that says latin-1": Damage(
        rss(
            item(f"<title>Caf\u00e9</title><link>{A}</link>"),
            head='<?xml version="1.0" encoding="iso-8859-1"?>',
        ).encode(),
        one(title="Caf\u00e9"),
    ),
    "utf-8 by the document, latin-1 by the header": Damage(
        rss(item(f"<title>Caf\u00e9</title><link>{A}</link>")).encode(),
        one(title="Caf\u00e9"),
        "text/xml; charset=iso-8859-1",
    ),
    "utf-8 that says us-ascii": Damage(
        rss(item(f"<title>Caf\u00e9</title><link>{A}</link>")).encode(),
        one(title="Caf\u00e9"),
        "text/xml; charset=us-ascii",
    ),
    "windows-1251 by the header alone": Damage(
        rss(
            item(f"<title>\u041d\u043e\u0432\u043e\u0441\u0442\u0438</title><link>{A}</link>"),
            head="",
        ).encode("cp1251"),
        one(title="\u041d\u043e\u0432\u043e\u0441\u0442\u0438"),
        "application/rss+xml; charset=windows-1251",
    ),
    "windows-1252 quotes in latin-1": Damage(
        rss(
            item(f"<title>\u201cA\u201d \u2013 B</title><link>{A}</link>"),
            head='<?xml version="1.0" encoding="iso-8859-1"?>',
        ).encode("cp1252"),
        one(title="\u201cA\u201d \u2013 B"),
    ),
    "unknown charset": Damage(
        rss(ITEM_A, ITEM_B, head='<?xml version="1.0" encoding="utf-9"?>').encode(), AB
    ),
    "utf-16 with a mark": Damage(
        rss(ITEM_A, ITEM_B, head='<?xml version="1.0" encoding="utf-16"?>').encode("utf-16"), AB
    ),
    "utf-16 without a mark": Damage(rss(ITEM_A, ITEM_B).encode("utf-16-le"), AB),
    "utf-8 that says utf-16": Damage(
        rss(ITEM_A, ITEM_B, head='<?xml version="1.0" encoding="utf-16"?>').encode(), AB
    ),
    "a byte order mark": Damage(b"\xef\xbb\xbf" + rss(ITEM_A, ITEM_B).encode(), AB),
    "two byte order marks": Damage(b"\xef\xbb\xbf" * 2 + rss(ITEM_A, ITEM_B).encode(), AB),
    "a byte order mark after blanks": Damage(b"\n\xef\xbb\xbf" + rss(ITEM_A, ITEM_B).encode(), AB),
    "one bad byte": Damage(
        rss(item(f"<title>Caf\u00e9 \u00e9t\u00e9 XX</title><link>{A}</link>"), ITEM_B)
        .encode()
        .replace(b"XX", b"\xff"),
        ((A, "Caf\u00e9 \u00e9t\u00e9 \ufffd"), (B, "B")),
    ),
    # characters and entities
    "HTML entities": with_title(
        "Caf&eacute;&nbsp;&ndash; &laquo;A&raquo;", "Caf\u00e9 \u2013 \u00abA\u00bb"
    ),
    "an unknown entity": with_title("A &foo; B", "A &foo; B"),
    "an unescaped &": with_title("AT&T & Co", "AT&T & Co"),
    "an & at the end": with_title("A &", "A &"),
    "an & in a link": with_link(
        "<link>https://example.org/?a=1&b=2</link>", "https://example.org/?a=1&b=2"
    ),
    "an & that looks like an entity in a link": with_link(
        "<link>https://example.org/?a=1&copy=2&lt=3</link>", "https://example.org/?a=1&copy=2&lt=3"
    ),
    "an & escaped twice in a link": with_link(
        "<link>https://example.org/?a=1&amp;amp;b=2</link>", "https://example.org/?a=1&b=2"
    ),
    "an & escaped in CDATA in a link": with_link(
        "<link><![CDATA[https://example.org/?a=1&amp;b=2]]></link>", "https://example.org/?a=1&b=2"
    ),
    "a title escaped twice": with_title("A &amp;amp; B", "A & B"),
    "a number escaped twice": with_title("It&amp;#8217;s A", "It\u2019s A"),
    "an unescaped <": with_title("5 < 6", "5 < 6"),
    "a heart": with_title("I <3 A", "I <3 A"),
    "markup in a title": with_title("<b>A</b> and <i>B</i>", "A and B"),
    "escaped markup in a title": with_title("&lt;b&gt;A&lt;/b&gt; and B", "A and B"),
    "markup in CDATA": with_title("<![CDATA[<em>A</em> &amp; B]]>", "A & B"),
    "control characters": with_title("A\x08\x0b B\x1f", "A B"),
    "a control character as a number": with_title("A &#8; B", "A B"),
    "NULs": Damage(rss(ITEM_A, ITEM_B).replace("A</title>", "A\0</title>").encode(), AB),
    "a number beyond Unicode": with_title("A &#99999999999; B", "A &#99999999999; B"),
    "HTML that is not escaped in a description": with_text(
        rss(
            item(
                f"<title>A</title><description>x<br>y<p>z <img src=i></description><link>{A}</link>"
            ),
            ITEM_B,
        ),
        AB,
    ),
    "a page in the content": with_text(
        rss(
            item(
                f"<title>A</title><link>{A}</link><content:encoded><html><head><title>No</title>"
                "<link rel=canonical href=/no></head><p>x</html></content:encoded>"
            ),
            ITEM_B,
        ),
        AB,
    ),
    # CDATA and comments
    "CDATA that is not closed": with_text(
        rss(item(f"<link>{A}</link><title><![CDATA[A</title>"), ITEM_B), AB
    ),
    "CDATA that ends twice": with_title("<![CDATA[A]]>]]>", "A"),
    "CDATA in CDATA": with_title("<![CDATA[<![CDATA[A]]>", "A"),
    "CDATA that is escaped": with_title("&lt;![CDATA[A]]&gt;", "A"),
    "CDATA beside text": with_title("A <![CDATA[& B]]> C", "A & B C"),
    "two hyphens in a comment": with_text(
        rss("<!-- a -- b -->", ITEM_A, "<!--- c --->", ITEM_B), AB
    ),
    "an item in a comment": with_text(
        rss(ITEM_A, "<!-- <item><link>/no</link></item> -->", ITEM_B), AB
    ),
    "a comment that is not closed": with_text(rss(ITEM_A, "<!-- no end ", ITEM_B), AB),
    # tags
    "no end of an item": with_text(rss(ITEM_A.removesuffix("</item>"), ITEM_B), AB),
    "no end of a title": with_text(rss(ITEM_A.replace("</title>", ""), ITEM_B), AB),
    "no end of a link": with_text(rss(ITEM_A.replace("</link>", ""), ITEM_B), AB),
    "ends that cross": with_text(rss(item(f"<title>A<link></title>{A}</link>"), ITEM_B), AB),
    "one end too many": with_text(rss(ITEM_A, "</item></p>", ITEM_B), AB),
    "capital letters": with_text(
        f"<RSS VERSION='2.0'><CHANNEL><ITEM><TITLE>A</TITLE><LINK>{A}</LINK></ITEM>"
        f"<ITEM><TITLE>B</TITLE><LINK>{B}</LINK></ITEM></CHANNEL></RSS>",
        AB,
    ),
    "capital letters here and there": with_text(
        rss(f"<Item><Title>A</title><Link>{A}</Link></Item>", ITEM_B), AB
    ),
    "attributes without quotes": with_text(
        atom(entry(f"<title type=text>A</title><link rel=alternate href={A} />")), one()
    ),
    "attributes with one quote": with_text(
        atom(
            entry(
                f'<title>A</title><link href="{A} rel="alternate"/>'.replace(" rel", '" rel')
            ).replace('type="', "type=")
        ),
        one(),
    ),
    "the same attribute twice": with_text(
        atom(entry(f'<title>A</title><link href="{A}" href="/no"/>')), one()
    ),
    "two roots": with_text(rss(ITEM_A) + rss(ITEM_B), AB),
    "no root": with_text(f"<channel>{ITEM_A}{ITEM_B}</channel>", AB, "application/rss+xml"),
    "items behind the channel": with_text(
        rss(root='<rss version="0.9">').replace("</rss>", ITEM_A + ITEM_B + "</rss>"), AB
    ),
    # around it
    "blanks before the declaration": with_text("\n\n  " + rss(ITEM_A, ITEM_B), AB),
    "a warning of PHP before": with_text(
        "<br />\n<b>Warning</b>:  Undefined variable $x in <b>/srv/feed.php</b> on line <b>3</b>"
        "<br />\n" + rss(ITEM_A, ITEM_B),
        AB,
        "text/html",
    ),
    "a notice before": with_text(
        "Notice: Undefined index: q in /srv/feed.php on line 12\n" + rss(ITEM_A, ITEM_B), AB
    ),
    "a warning of PHP within": with_text(
        rss(ITEM_A, "<br />\n<b>Warning</b>: x & y in <b>/srv/f.php</b><br />", ITEM_B), AB
    ),
    "a statistic behind": with_text(
        rss(ITEM_A, ITEM_B) + "\n<!-- 0.2 s --><script>count()</script> & so on", AB
    ),
    "two declarations": with_text(DECLARATION + rss(ITEM_A, ITEM_B), AB),
    "a style sheet and an old DTD": with_text(
        rss(
            ITEM_A,
            ITEM_B,
            head='<?xml version="1.0"?><?xml-stylesheet href="s.xsl"?><!DOCTYPE rss PUBLIC '
            '"-//Netscape Communications//DTD RSS 0.91//EN" '
            '"http://my.netscape.com/publish/formats/rss-0.91.dtd">',
        ),
        AB,
    ),
    "declared as HTML": with_text(rss(ITEM_A, ITEM_B), AB, "text/html; charset=utf-8"),
    "declared as a picture": with_text(rss(ITEM_A, ITEM_B), AB, "image/png"),
    # namespaces
    "prefixes that are not bound": with_text(
        rss(
            item(
                f"<title>A</title><link>{A}</link><dc:creator>x</dc:creator><media:thumbnail url='t'/>"
            ),
            ITEM_B,
        ),
        AB,
    ),
    "a namespace of RSS": with_text(
        rss(ITEM_A, ITEM_B, root='<rss xmlns="http://backend.userland.com/rss2">'), AB
    ),
    "Atom without its namespace": with_text(
        atom(entry(f'<title>A</title><link href="{A}"/>'), root="<feed>"), one()
    ),
    "Atom 0.3": with_text(
        atom(
            entry(f'<title>A</title><link rel="alternate" type="text/html" href="{A}"/>'),
            root='<feed version="0.3" xmlns="http://purl.org/atom/ns#">',
        ),
        one(),
    ),
    "Atom with a prefix": with_text(
        '<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:title>A</a:title>'
        f'<a:link href="{A}"/></a:entry></a:feed>',
        one(),
    ),
    "RSS 1.0 without its namespaces": with_text(
        f'<rdf:RDF><channel rdf:about="/"/><item rdf:about="{A}"><title>A</title></item></rdf:RDF>',
        one(),
    ),
    "a title of another namespace first": with_text(
        rss(
            item(f"<media:title>No</media:title><title>A</title><link>{A}</link>"),
            root='<rss xmlns:media="http://search.yahoo.com/mrss/">',
        ),
        one(),
    ),
    "titles of a source and of a picture": with_text(
        rss(
            item(
                f"<source url='/s'><title>No</title><link>/no</link></source><image><title>No</title>"
                f"<url>/i.png</url><link>/no</link></image><title>A</title><link>{A}</link>&"
            )
        ),
        one(),
    ),
    # links
    "relative": with_link("<link>/a</link>"),
    "relative, the feed being elsewhere": with_link(
        "<link>/a</link>", url="https://feeds.example.net/1234"
    ),
    "xml:base": with_text(
        atom(
            entry('<title>A</title><link href="a"/>'),
            root=f'<feed {ATOM_NS} xml:base="https://example.org/">',
        ),
        one(),
    ),
    "xml:base in what is broken": with_text(
        atom(
            entry('<title>A & A</title><link href="a"/>'),
            root=f'<feed {ATOM_NS} xml:base="https://example.org/">',
        ),
        one(title="A & A"),
    ),
    "blanks and lines around a link": with_link(f"<link>\n\t  {A}\n  </link>"),
    "a line end within a link": with_link("<link>https://example.org/\n    a</link>"),
    "a blank within a link": with_link(
        "<link>https://example.org/a b</link>", "https://example.org/a%20b"
    ),
    "letters beyond ASCII in a link": with_link(
        "<link>https://example.org/\u00e9</link>", "https://example.org/%C3%A9"
    ),
    "a link in quotes": with_link(f'<link>"{A}"</link>'),
    "a link without scheme": with_link(
        "<link>www.example.org/a</link>", "http://www.example.org/a"
    ),
    "a link with half a scheme": with_link("<link>//example.org/a</link>"),
    "a link in CDATA": with_link(f"<link><![CDATA[ {A} ]]></link>"),
    "a link as attribute in RSS": with_link(f'<link href="{A}"/>'),
    "a link of Atom in RSS": with_link(f'<atom:link rel="alternate" href="{A}"/>'),
    "a link of Atom beside that of RSS": with_text(
        rss(
            item(f'<atom:link href="/comments"/><title>A</title><link>{A}</link>'),
            root='<rss xmlns:atom="http://www.w3.org/2005/Atom">',
        ),
        one(),
    ),
    "a link as text in Atom": with_text(atom(entry(f"<title>A</title><link>{A}</link>")), one()),
    "the link of a program first": with_text(
        atom(
            entry(
                '<title>A</title><link type="application/json" href="/a.json"/>'
                f'<link rel="alternate" type="text/html" href="{A}"/>'
            )
        ),
        one(),
    ),
    "only an edit link and an id": with_text(
        atom(entry(f'<title>A</title><link rel="edit" href="/edit/1"/><id>{A}</id>')), one()
    ),
    "guid instead of a link": with_link(f"<guid>{A}</guid>"),
    "guid that is said to be none": with_link(f'<guid isPermaLink="false">{A}</guid>'),
    "guid beside an empty link": with_link(f"<link></link><guid>{A}</guid>"),
    "guid beside a closed link": with_link(f"<link/><guid>{A}</guid>"),
    "guid beside the link of the site": with_link(
        f"<link>https://example.org/</link><guid>{A}</guid>"
    ),
    "guid that is none": Damage(
        rss(item("<title>A</title><guid>1234</guid>"), ITEM_B).encode(), ((B, "B"),)
    ),
    "a link that is a script": Damage(
        rss(item("<title>A</title><link>javascript:void(0)</link>"), ITEM_B).encode(), ((B, "B"),)
    ),
    "entries twice": with_text(rss(ITEM_A, ITEM_A, ITEM_B, ITEM_A), AB),
    "no title": with_text(rss(item(f"<link>{A}</link>")), one(title="")),
    "XHTML as a title": with_text(
        atom(
            entry(
                f'<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>&amp;</b> B</div>'
                f'</title><link href="{A}"/>'
            )
        ),
        one(title="A & B"),
    ),
    "no entries": with_text(rss(), ()),
    # packed
    "gzip as a file": Damage(gzip.compress(rss(ITEM_A, ITEM_B).encode()), AB),
    # bombs
    "a billion laughs": with_text(
        rss(
            item(f"<title>A</title><link>{A}</link>"),
            head='<!DOCTYPE r [<!ENTITY a "boom">'
            + "".join(
                f'<!ENTITY {b} "{f"&{a};" * 10}">'
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            )
            + "]>",
        ),
        one(),
    ),
}
"""What feedparser reads, too."""

OTHERS: Final[dict[str, Damage]] = {
    "gzip twice": Damage(gzip.compress(gzip.compress(rss(ITEM_A, ITEM_B).encode())), AB),
    "gzip that is cut": Damage(gzip.compress(rss(ITEM_A, ITEM_B, " " * 99).encode(), 0)[:-40], AB),
    "gzip with something behind": Damage(gzip.compress(rss(ITEM_A, ITEM_B).encode()) + b"junk", AB),
    "HTML instead": with_text(
        f"<!DOCTYPE html><html><head><title>404</title></head><body><a href='{A}'>A</a></body></html>",
        (),
        "application/rss+xml",
    ),
    "HTML with a feed in a script": with_text(
        f"<html><script>var x = '<rss><item><link>{A}</link></item></rss>'</script><p>A</p>", ()
    ),
    "JSON": with_text(json.dumps(json_feed()), AB, "application/json"),
    "JSON with a mark": with_text("\ufeff" + json.dumps(json_feed()), AB, "application/json"),
    "JSON with escaped slashes": with_text(
        json.dumps(json_feed()).replace("/", "\\/"), AB, "application/json"
    ),
    "JSON with commas too many": with_text(
        json.dumps(json_feed()).replace("}", ", }").replace("]", ",\n]"), AB, "application/json"
    ),
    "JSON with commas at the start": with_text(
        json.dumps(json_feed()).replace("[", "[, ").replace("},", "},,"), AB, "application/json"
    ),
    "JSON with comments": with_text(
        "{/* a feed, */ // of mine\n" + json.dumps(json_feed())[1:], AB, "application/feed+json"
    ),
    "JSON with line ends in strings": with_text(
        json.dumps(json_feed(title="A\n B")).replace("\\n", "\n"),
        ((A, "A B"), (B, "B")),
        "application/json",
    ),
    "JSON that is cut": with_text(
        json.dumps(json_feed())[:-25].removesuffix(B), one(), "application/json"
    ),
    "JSON as a callback": with_text(
        f"/**/show({json.dumps(json_feed())});", AB, "application/javascript"
    ),
    "JSON declared as HTML": with_text(json.dumps(json_feed()), AB, "text/html"),
    "JSON without a version": with_text(
        json.dumps({"items": json_feed()["items"]}), AB, "application/feed+json"
    ),
    "JSON with an id for a URL": with_text(
        json.dumps(json_feed(url=None, id=A)), AB, "application/json"
    ),
    "JSON of a link elsewhere": with_text(
        json.dumps(json_feed(url="", external_url=A)), AB, "application/json"
    ),
    "JSON with a relative URL": with_text(json.dumps(json_feed(url="/a")), AB, "application/json"),
    "JSON with values of wrong types": with_text(
        json.dumps(json_feed(title=["x"], date_published={"y": 1})),
        ((A, ""), (B, "B")),
        "application/json",
    ),
    "JSON of something else": with_text('{"items": [{"url": "/a"}]}', (), "application/json"),
    "sitemap": with_text(sitemap(A, B), ((A, ""), (B, ""))),
    "sitemap without namespace": with_text(sitemap(A, root="<urlset>"), one(title="")),
    "sitemap of another namespace": with_text(
        sitemap(A, root='<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">'),
        one(title=""),
    ),
    "sitemap with an & in a link": with_text(
        sitemap("https://example.org/?a=1&b=2", B), (("https://example.org/?a=1&b=2", ""), (B, ""))
    ),
    "sitemap that is cut": with_text(sitemap(A, B)[:-20], ((A, ""), (B, ""))),
    "sitemap that is cut within a link": with_text(
        sitemap(A, "https://example.org/long").removesuffix("</loc></url></urlset>"),
        ((A, ""), ("https://example.org/long", "")),
    ),
    "sitemap with blanks and a warning before": with_text(
        "\n <br /><b>Deprecated</b>: strftime()" + sitemap(A, B), ((A, ""), (B, "")), "text/html"
    ),
    "sitemap of pictures without prefixes bound": with_text(
        sitemap(f"{A}</loc><image:image><image:loc>/i.png</image:loc></image:image><loc>", B),
        ((A, ""), (B, "")),
    ),
    "sitemap of news, broken": with_text(
        sitemap(
            f"{A}</loc><news:news><news:publication><news:name>N</news:name></news:publication>"
            "<news:title>A & A</news:title></news:news><loc>"
        ),
        one(title="A & A"),
    ),
    "sitemap with relative links": with_text(sitemap("/a", " /b "), ((A, ""), (B, ""))),
    "sitemap index among URLs": with_text(
        sitemap(A).replace("</urlset>", f"<sitemap><loc>{B}</loc></sitemap></urlset>"),
        ((A, ""), (B, "")),
    ),
    "sitemap index, broken": with_text(
        f"<sitemapindex {SITEMAP_NS}><sitemap><loc>{A}</loc><lastmod>x<y</lastmod></sitemap>"
        f"<sitemap><loc>{B}</loc></sitemaps>",
        ((A, ""), (B, "")),
    ),
    "lines": with_text(f"{A}\n{B}\n", ((A, ""), (B, "")), "text/plain"),
    "lines with a mark, blanks and DOS ends": with_text(
        f"\ufeff  {A}\r\n\r\n\t{B}  \r\n", ((A, ""), (B, "")), "text/plain"
    ),
    "lines of an old Macintosh": with_text(f"{A}\r{B}\r", ((A, ""), (B, "")), "text/plain"),
    "lines that are prose": with_text(f"See {A}\n{B}\n", (), "text/plain"),
}
"""What feedparser does not know."""

CASES: Final = FEEDS | OTHERS


def read_damage(case: Damage) -> list[FeedEntry]:
    """As a page is read: unpacked, looked at, then read if it is a list."""
    body = run_at_once(decompress_in_slices(case.body))
    if sniff_kind(body, case.content_type) not in ("feed", "sitemap"):
        return []
    charset = case.content_type.partition("charset=")[2] or None
    return parse_entries(body, case.url, charset)


@pytest.mark.parametrize("name", CASES)
def test_damaged_feed_is_read_as_a_person_would(name: str) -> None:
    case = CASES[name]
    assert tuple((entry.url, entry.title) for entry in read_damage(case)) == case.expected


def test_there_are_many_kinds_of_damage() -> None:
    assert len(CASES) > 120


def test_feed_of_200_megabytes_is_read_up_to_the_limit_in_short_slices() -> None:
    items = b"".join(
        b"<item><link>/%d</link><title>A &amp; B</title></item>" % n for n in range(9_000)
    )
    body = b"<rss><channel>" + items * (200_000_000 // len(items))
    longest_s = 0.0
    slices = parse_entries_in_slices(body, URL, None, DEFAULT_LIMITS)
    started_s = before_s = time.process_time()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            found: FeedEntries = end.value
            break
        now_s = time.process_time()
        longest_s = max(longest_s, now_s - before_s)
        before_s = now_s
    assert (len(found.entries), found.cut) == (9_000, True)
    assert found.entries[-1].title == "A & B"
    assert longest_s < 0.5  # 0.02
    assert time.process_time() - started_s < 15  # 1.5


def test_sitemap_of_50_000_is_read_whole_and_broken_ones_too() -> None:
    urls = [f"https://example.org/{number}" for number in range(MAX_ENTRIES)]
    limits = DEFAULT_LIMITS._replace(links=MAX_ENTRIES)
    for body in (sitemap(*urls), sitemap(*urls).removesuffix("</urlset>")):
        assert [entry.url for entry in parse_entries(body.encode(), URL, limits=limits)] == urls


@given(
    st.sampled_from([name for name in CASES if CASES[name].expected]),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 9), st.binary(max_size=6)), max_size=4),
)
def test_more_damage_never_raises(name: str, cuts: list[tuple[int, int, bytes]]) -> None:
    case = CASES[name]
    body = case.body
    for start, length, inserted in cuts:
        body = body[:start] + inserted + body[start + length :]
    for found in read_damage(case._replace(body=body)):
        assert canonical_url(found.url) == found.url
