"""The article process: what it gives is what the library gives, and it is watched and replaced."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from crawlproj.content import article_process
from crawlproj.content.article_main import AHEAD, answer_request
from crawlproj.content.article_process import MAX_BODY, ArticleReader, ArticleReadError
from crawlproj.content.articles import ArticleFields, extract_article
from tests.support.news_web import news_article

URL = "https://www.weekly.example/world/1.html"
PAGE = news_article(1).encode()
START = (
    "import os, sys, struct, time; write = lambda text: os.write(1, struct.pack('<Q', len(text)) "
    "+ text); write(b'{}'); "
)
"""How a stand-in for the process begins: it says that it is ready."""
ANSWER = "os.read(0, 1 << 20); "


@pytest.fixture(scope="module")
def reader() -> Iterator[ArticleReader]:
    reader = ArticleReader(page_cpu_s=2)
    yield reader
    reader.close()


def pid(reader: ArticleReader) -> int:
    assert reader._process is not None
    return reader._process.pid


def is_gone(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    assert what()


def read(reader: ArticleReader, body: bytes = PAGE, **selectors: str) -> ArticleFields:
    return reader.read(body, URL, "", selectors)


def reason(reader: ArticleReader, body: bytes = PAGE, **selectors: str) -> str:
    with pytest.raises(ArticleReadError) as caught:
        read(reader, body, **selectors)
    return caught.value.reason


ODD_PAGES = {
    "an article": PAGE,
    "no JSON-LD": news_article(2, json_ld=False).encode(),
    "nothing": b"",
    "binary": b"\x7fELF\0\0\0",
    "a date to be guessed": b"<html><body><h1>Llyfr</h1><p class=date>19 Tachwedd 2025</p>"
    + b"<p>A sentence of a page, and some more of it. </p>" * 20,
    "another charset": "<p>Größe und Übermut tun selten gut. ".encode("cp1252") * 30,
    "Japanese": "<p>これは記事の本文です。橋は昨日再建されました。".encode("shift_jis") * 30,
    "selectors to fail": news_article(3)
    .encode()
    .replace(b"<h1>", b"<h1><i>")
    .replace(b"p>", b"b>"),
    "a table": b"<table><tr><td>" + b"Cells of a table hold text as well. " * 40 + b"</table>",
    "surrogates": news_article(4).replace("Vera", "\\ud800 Vera\\u0000").encode(),
}


CHARSETS = {
    "cp949": "다리는 어제 다시 지어졌습니다. 마을 사람들이 기뻐했다. ",
    "big5hkscs": "橋樑昨天重建完成了，村民們都很高興。",
    "gb18030": "桥梁昨天重建完成了，村民们都很高兴。",
    "euc_jp": "これは記事の本文です。橋は昨日再建されました。",
    "iso2022_jp": "これは記事の本文です。橋は昨日再建されました。",
    "cp874": "ยังไม่มีข่าวเกี่ยวกับสะพาน ",
    "koi8-r": "Мост вчера был восстановлен, жители деревни рады этому. ",
    "iso8859-5": "Мост вчера был восстановлен, жители деревни рады этому. ",
    "cp866": "Мост вчера был восстановлен, жители деревни рады этому. ",
    "cp1253": "Η γέφυρα ξαναχτίστηκε χθες στο χωριό μας. ",
    "cp1255": "הגשר נבנה מחדש אתמול בכפר שלנו. ",
    "cp1256": "أعيد بناء الجسر أمس في قريتنا. ",
    "cp1250": "Most včera znovu postavili, žluťoučký kůň pěl. ",
    "iso8859-9": "Köprü dün köyümüzde yeniden inşa edildi, çok güzel. ",
    "utf-16": "The bridge was rebuilt yesterday. ",
}


@pytest.mark.parametrize("kind", ODD_PAGES)
def test_the_process_gives_what_the_library_gives(reader: ArticleReader, kind: str) -> None:
    """It may open no file: what a library loads late would fail without a word."""
    selectors = {"title": "h1", "date": ".date", "text": "article p"}
    body = ODD_PAGES[kind]
    latest = datetime.now(UTC).date() + AHEAD
    for given in ({}, selectors):
        expected = extract_article(body, URL, selectors=given, latest=latest)
        assert asdict(reader.read(body, URL, "", given)) == asdict(expected)


def test_a_page_that_is_too_big_is_refused_and_starts_nothing() -> None:
    reader = ArticleReader()
    assert reason(reader, b"x" * (MAX_BODY + 1)) == "too_big"
    assert (reader.processes_started, reader.failures) == (0, 1)
    reader.close()
    assert reason(reader) == "crashed"
    assert reader.processes_started == 0


def test_pages_in_all_charsets_are_read_as_the_library_reads_them(reader: ArticleReader) -> None:
    for codec, text in CHARSETS.items():
        body = f"<html><body><p>{text * 20}</p></body></html>".encode(codec)
        found = reader.read(body, URL, "", {})
        assert asdict(found) == asdict(extract_article(body, URL)), codec


def test_a_process_that_is_killed_is_replaced(reader: ArticleReader) -> None:
    found = read(reader)
    first = pid(reader)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: is_gone(first))
    assert read(reader) == found
    assert pid(reader) != first


def test_a_process_is_replaced_after_so_many_pages_and_when_it_has_grown(
    reader: ArticleReader,
) -> None:
    read(reader)
    first = pid(reader)
    reader._left = 2
    read(reader)
    assert not is_gone(first)
    read(reader)
    assert is_gone(first)
    reader._max_rss = reader.rss_bytes() + 1_000_000
    read(reader)
    assert reader._process is None
    reader._max_rss = article_process.MAX_RSS


def test_a_page_that_takes_too_long_ends_the_process_alone(reader: ArticleReader) -> None:
    links = "".join(f"<a href='/{n}'>l {n}</a> w " for n in range(70_000))
    slow = news_article(1).replace("</article>", f"<p>{links}</p></article>")[:1_990_000].encode()
    started = time.monotonic()
    assert reason(reader, slow) == "timeout"
    assert time.monotonic() - started < article_process.START_S
    assert reader._process is None
    assert not reader.close_if_idle(0)
    assert read(reader).title
    first = pid(reader)
    assert not reader.close_if_idle(60)
    assert reader.close_if_idle(0)
    assert is_gone(first)
    assert reader.rss_bytes() == 0


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sys.exit(3)", "crashed"),
        (ANSWER + "os.kill(os.getpid(), 11)", "crashed"),
        (ANSWER + "os.kill(os.getpid(), 27)", "timeout"),
        (ANSWER + "write(b'[]')", "garbage"),
        (ANSWER + "write(b'no json')", "garbage"),
        (ANSWER + "write(b'[' * 100000)", "garbage"),
        (ANSWER + "os.write(1, struct.pack('<Q', 1 << 60))", "garbage"),
        (ANSWER + "write(b'{\"nose\": 1}')", "garbage"),
        (ANSWER + "write(b'{\"text\": null}')", "garbage"),
        (ANSWER + "write(b'{\"title\": 5}')", "garbage"),
        (ANSWER + 'write(b\'{"authors": "Vera"}\')', "garbage"),
        (ANSWER + "write(b'{\"origins\": []}')", "garbage"),
        (ANSWER + 'write(b\'{"error": "KeyError: x"}\'); time.sleep(60)', "error: KeyError: x"),
        (ANSWER + "os.write(1, struct.pack('<Q', 9) + b'half'); time.sleep(60)", "late"),
        ("time.sleep(60)", "late"),
    ],
)
def test_whatever_the_process_does_the_call_ends_and_says_why(
    monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    monkeypatch.setattr(article_process, "_CODE", START + code)
    reader = ArticleReader(page_s=1 if told == "late" else 20)
    assert reason(reader) == told
    assert reader._process is None or told.startswith("error")
    reader.close()


def test_a_process_that_never_starts_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(article_process, "_CODE", "raise SystemExit(1)")
    reader = ArticleReader()
    for _ in range(6):
        assert reason(reader) == "crashed"
    assert reader.processes_started == article_process.MAX_FAILURES
    monkeypatch.setattr(article_process, "FORGET_S", 0.0)
    monkeypatch.setattr(article_process, "_CODE", START + ANSWER + "write(b'{}')")
    assert read(reader) == ArticleFields()
    reader.close()


def test_a_request_that_is_none_is_an_error_and_no_end() -> None:
    for request in (
        b"",
        b"{",
        b"[]\n",
        b"{}\n<p>x",
        b'{"url": 5, "charset": 5, "selectors": 5}\nx',
    ):
        assert set(answer_request(request, date(2026, 1, 1))) == {"error"}
