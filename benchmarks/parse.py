"""CPU time of reading a page, part by part: `python benchmarks/parse.py [ADDRESS]`.

Pages come from ADDRESS and its links, else from the shared articles, else one is made up. Prints
microseconds per page (best of several runs per page), and for the articles the share of their words
that is found.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from gzip import decompress
from pathlib import Path
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content import charset, html
from crawlproj.urls import canonical as urls

ARTICLES = Path(__file__).resolve().parents[2] / "shared/data/articles"
RUNS = 15
Pages = list[tuple[str, bytes]]


def served(address: str, count: int = 40) -> Pages:
    found: dict[str, bytes] = {}
    todo = [address]
    while todo and len(found) < count:
        url = todo.pop(0)
        if url not in found:
            with urlopen(url) as response:
                found[url] = response.read()
            links = html.parse_page(found[url], url).links
            todo += [
                link.url for link in links if link.kind == "a" and link.url.startswith(address)
            ]
    return list(found.items())


def made() -> Pages:
    row = (
        '<li class="item"><a class="l" href="/news/2026/07/06/some-words-{0}.html#x">Words '
        "{0}</a> <b>more</b></li>\n"
    )
    text = "".join(
        f"<p class='text'>{'All work and no play makes Jack a dull boy. ' * 9}{n}</p>\n"
        for n in range(60)
    )
    rows = "".join(map(row.format, range(100)))
    body = f"<html><title>T</title><nav><ul>{rows}</ul></nav><main>{text}</main>"
    return [("https://example.org/", body.encode())]


def cost_us(pages: Pages, work: Callable[[str, bytes], object]) -> float:
    total = 0.0
    for url, body in pages:
        best = float("inf")
        for _ in range(RUNS):
            start = time.perf_counter()
            work(url, body)
            best = min(best, time.perf_counter() - start)
        total += best
    return total / len(pages) * 1e6


def coverage() -> float:
    words = re.compile(r"\w+").findall
    wanted = found = 0
    for name, truth in json.loads((ARTICLES / "ground-truth.json").read_text("utf-8")).items():
        page = html.parse_page(
            decompress((ARTICLES / f"html/{name}.html.gz").read_bytes()), truth["url"]
        )
        want = Counter(words(truth["articleBody"].lower()))
        wanted += want.total()
        found += (want & Counter(words(page.text.lower()))).total()
    return found / wanted


def articles() -> Pages:
    truth = json.loads((ARTICLES / "ground-truth.json").read_text("utf-8"))
    return [
        (truth[name]["url"], decompress((ARTICLES / f"html/{name}.html.gz").read_bytes()))
        for name in list(truth)[:40]
    ]


def report(pages: Pages) -> None:
    read = {url: html._parse_html(charset.to_utf8(body)[0], ("robots",)) for url, body in pages}
    links = {url: [link.url for link in html.parse_page(body, url).links] for url, body in pages}
    parts: dict[str, Callable[[str, bytes], object]] = {
        "lxml tree alone, to compare": lambda url, body: etree.fromstring(
            body, etree.HTMLParser(encoding="utf-8")
        ),
        "charset": lambda url, body: (charset.looks_binary(body), charset.to_utf8(body)),
        "read (parser and reader)": lambda url, body: html._parse_html(body, ("robots",)),
        "links, canonical": lambda url, body: html.resolve_links(read[url].links, urls.Joiner(url)),
        "blocks": lambda url, body: html.clean_blocks(read[url].blocks),
        "parse and digest, all together": lambda url, body: html.parse_page(body, url).block_digest,
        "keys of the links, besides": lambda url, body: [
            urls.url_key("bench", link) for link in links[url]
        ],
    }
    size = sum(len(body) for _, body in pages) / len(pages)
    count = sum(map(len, links.values())) / len(pages)
    print(f"{len(pages)} pages of {size / 1000:.0f} KB with {count:.0f} links")
    for name, work in parts.items():
        print(f"{cost_us(pages, work):9.0f} us  {name}")


def main() -> None:
    if len(sys.argv) > 1:
        report(served(sys.argv[1]))
    elif ARTICLES.exists():
        report(articles())
    else:
        print("the shared articles are absent: one made page")
        report(made())
    if ARTICLES.exists():
        print(f"{coverage():.4%} of the words of the articles are found")


if __name__ == "__main__":
    main()
