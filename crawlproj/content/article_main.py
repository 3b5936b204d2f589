"""The article process: pages in, their articles out, as frames over its two pipes.

A request is a line of JSON (`url`, `charset`, `selectors`) and then the body; a reply is JSON: the
fields of the article, or `error`, and `rss`, the memory of the process. `article_process` starts
it. It imports nothing of Scrapy.

It runs behind the same bars as the process that reads documents: once everything is loaded it can
open no file. Libraries that load something later would fail without a word, therefore `warm_up`
makes them load it all; a test compares what comes out with and without the bars.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any, Final

from crawlproj.content.child_process import receive_frame, send_frame, take_pipes

READY: Final = b"{}"
"""The first reply, when everything is loaded."""
AHEAD: Final = timedelta(days=60)
"""Magazines date their issues so much ahead; what is later is no date."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

_WARM_PAGES: Final = (
    """<html><head><title>A page</title></head><body><article><h1>A page</h1><p>{text}</p>
    <aside>More</aside></article></body></html>""",
    """<html><body><div class="author">By A. Writer</div><p class="date">19. November 2019</p>
    <p>{text}</p><table><tr><td>{text}</td></tr></table></body></html>""",
    "<html><body><p>Short.</p><form>{text}</form><figure>{text}</figure></body></html>",
    """<html><body><div><p>Released on the 3rd of Foomber 2019</p><span>{text}</span></div>
    </body></html>""",
)
_WARM_DATES: Final = (
    "19 Tachwedd 2019",
    "19 Xyzzy 2019 x",
    "2019 m. lapkričio 19 d.",
    "x 1.2.19 y",
)
"""Dates that are tried in every language there is."""


def warm_up() -> None:
    """Have everything loaded that any page may need."""
    from crawlproj.content.article_fields import parse_date
    from crawlproj.content.articles import extract_article
    from crawlproj.content.charset import load_codecs, to_utf8

    load_codecs()
    to_utf8("Ein Satz, der zu erraten ist: ä ö ü ß".encode("cp1252"))
    datetime.strptime("19 Nov 2019 08:57 +0100", "%d %b %Y %H:%M %z")  # loads its module

    text = "This is a sentence of a page that is read to load what reads it. " * 5
    selectors = {"title": "h1::text", "text": "//p", "date": "p"}
    for page in _WARM_PAGES:
        body = page.replace("{text}", text).encode()
        extract_article(body, "https://www.example.org/2019/page.html", selectors=selectors)
    for text in _WARM_DATES:
        parse_date(text, None)


def answer_request(request: bytes, latest: date) -> dict[str, Any]:
    """The reply to a request."""
    from crawlproj.content.articles import extract_article

    head, _, body = request.partition(b"\n")
    try:
        asked = json.loads(head)
        fields = extract_article(
            body,
            asked["url"],
            charset=asked["charset"],
            selectors=asked["selectors"],
            latest=latest,
        )
        return asdict(fields)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main(memory: int, timeout_s: int, cpu_s: int, parent: int) -> None:
    """Answer one request after the other, until the pipe ends."""
    from crawlproj.content.documents import sandbox  # the crawl imports this module's constants

    sandbox.die_with_parent(parent)
    incoming, outgoing = take_pipes()
    memory_file = os.open("/proc/self/statm", os.O_RDONLY)
    warm_up()
    gc.collect()
    gc.freeze()
    sandbox.limit_resources(memory, cpu_s)
    sandbox.restrict_syscalls()
    send_frame(outgoing, READY)
    while True:
        request = receive_frame(incoming)
        # CPU time, not wall time: SIGPROF ends the process if it takes more.
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        reply = answer_request(request, date.today() + AHEAD)
        reply["rss"] = _read_memory(memory_file)
        body = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")
        signal.setitimer(signal.ITIMER_PROF, 0)
        send_frame(outgoing, body)


def _read_memory(file: int) -> int:
    """The memory of this process: the file is open, since none can be opened any more."""
    try:
        os.lseek(file, 0, os.SEEK_SET)
        return int(os.read(file, 200).split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
