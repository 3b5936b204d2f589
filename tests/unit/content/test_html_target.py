"""Readers are used again for page after page."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content import html as blocks
from crawlproj.content.document import Document
from crawlproj.content.html import parse_page

URL = "https://example.org/"
PAGE = (
    b"<html lang=en><title>T</title><body><p class=a>One <a "
    b"href=/1>two</a><script>x='/s/t/'</script><p>three"
)
UNENDED = (
    "<title>A",
    "<script>'/a/b.html'",
    "<a href=/x title=t rel=nofollow>y",
    "<svg>",
    "<main><p>text",
    "<p onclick=\"open('/c')\">",
    "",
    "\x01",
    "<base href=//other.org/>",
    "<meta name=robots content=noindex>",
    "<!-- ",
    "<p",
    "<a href='",
    "text",
)


def alone(body: bytes) -> Document:
    blocks._spare_targets.clear()
    return parse_page(body, URL)


@given(st.lists(st.sampled_from(UNENDED)).map("".join))
def test_a_page_leaves_nothing_behind_for_the_next(before: str) -> None:
    wanted = alone(PAGE)
    parse_page(before.encode(), "https://other.org/", agents=("robots", "me"))
    assert parse_page(PAGE, URL) == wanted
    assert parse_page(before.encode(), URL) == alone(before.encode())


def test_orders_to_one_robot_are_not_those_to_the_next() -> None:
    body = b"<meta name=me content=noindex><p>x"
    assert parse_page(body, URL, agents=("robots", "me")).robots.noindex
    assert not parse_page(body, URL).robots.noindex


def test_reading_pages_leaves_nothing_to_the_garbage_collector() -> None:
    """In a process of its own: threads of other tests may leave something at any moment."""
    code = f"""
import gc
from crawlproj.content.html import parse_page
parse_page({PAGE!r}, {URL!r})
gc.collect()
gc.disable()
for n in range(10):
    parse_page({PAGE!r} * n, {URL!r})
print(gc.collect())
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("size", [1, 400])
def test_pages_are_read_in_threads_at_the_same_time(size: int) -> None:
    pages = [f"<p>{n}</p><a href=/{n}>a{n}</a>".encode() * size for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda body: parse_page(body, URL), pages))
    assert found == [alone(body) for body in pages]
    assert len(blocks._spare_targets) <= blocks.MAX_SPARE
