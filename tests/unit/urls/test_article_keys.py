"""Which addresses may be the same article: pairs as they are on the web."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.urls.article_keys import article_key, viewed_urls

SLUG = "council-opens-new-bridge"
SAME_NUMBER = [
    (f"/world/{SLUG}-1234567.html", "/sport/bridge-is-open-now-1234567.html"),
    (f"/{SLUG}-1234567", "/bridge-is-open-now-1234567"),
    (f"/1234567/{SLUG}.html", "/1234567/bridge-is-open-now.html"),
    (f"/news/1234567/{SLUG}", "/news/1234567/the-bridge-is-open"),
    ("/article/1234567", f"/article/1234567/{SLUG}"),
    ("/de/artikel/1234567", f"/de/artikel/1234567/{SLUG}"),
    (f"/news/{SLUG}/1234567", "/news/the-bridge-is-open/1234567"),
    (f"/news/{SLUG}/1234567/", "/news/the-bridge-is-open/1234567"),
    (f"/a/1234567-{SLUG}.html", "/b/1234567-the-bridge-is-open.html"),
    (f"/politik/{SLUG}-a-12345678.html", "/politik/neue-bruecke-ist-da-a-12345678.html"),
    (f"/news/{SLUG}.1234567.html", "/news/bridge-is-open-now.1234567.html"),
    (f"/world/{SLUG}_12345678.html", "/world/the_bridge_is_open_12345678.html"),
    (f"/world/{SLUG}-1234567.html", f"/world/europe/{SLUG}-1234567.html"),
    (f"/{SLUG},1234567.html", "/the-bridge-is-open,1234567.html"),
    ("/sport/40-runs-in-an-hour-1234567.html", "/sport/runs-in-an-hour-1234567.html"),
    (f"/de/{SLUG}-1234567.html", "/de/the-bridge-is-open-1234567.html"),
    (f"/x/{SLUG}-1234567.php", "/x/the-bridge-is-open-1234567.php"),
    ("/x/stra%C3%9Fe-wird-breiter-1234567", "/x/neue-stra%C3%9Fe-ist-da-1234567"),
]
OTHER_NUMBER = [
    (f"/world/{SLUG}-1234567.html", f"/world/{SLUG}-1234568.html"),
    (f"/de/{SLUG}-1234567.html", f"/fr/{SLUG}-1234567.html"),
    (f"/world/{SLUG}-1234567.html", f"/world/{SLUG}-1234567.php"),
    (f"/world/{SLUG}-1234567", f"/1234567/{SLUG}"),
]
NO_NUMBER = [
    f"/2026/01/05/{SLUG}/",
    f"/2026/01/05/{SLUG}-12/",
    f"/{SLUG}-20260105.html",
    f"/{SLUG}-202601.html",
    f"/20260105/{SLUG}.html",
    f"/{SLUG}-202601051230.html",
    f"/{SLUG}-12345.html",
    f"/world/{SLUG}-1234567-2.html",
    f"/world/{SLUG}-1234567.html?page=2",
    f"/world/{SLUG}-1234567/comments",
    f"/world/{SLUG}-1234567/2",
    f"/1234567/{SLUG}/photo-2-of-7654321",
    f"/gallery/1234567/{SLUG}",
    f"/forum/1234567/{SLUG}",
    f"/tag/{SLUG}-1234567",
    "/author/anna-maria-smith-1234567",
    f"/shop/{SLUG}-1234567.html",
    f"/calendar/1234567/{SLUG}",
    "/news/1234567",
    "/1234567/",
    "/1234567/amp.html",
    "/world/bridge-1234567.html",
    "/world/",
    "/",
    f"/{SLUG}-1234567890123456.html",
]
VIEWS = [
    (f"/2026/01/05/{SLUG}/amp/", f"/2026/01/05/{SLUG}/"),
    (f"/2026/01/05/{SLUG}/amp", f"/2026/01/05/{SLUG}"),
    (f"/amp/world/{SLUG}", f"/world/{SLUG}"),
    (f"/world/{SLUG}?outputType=amp", f"/world/{SLUG}"),
    (f"/world/{SLUG}?amp=1", f"/world/{SLUG}"),
    (f"/world/{SLUG}?amp", f"/world/{SLUG}"),
    (f"/world/{SLUG}.amp.html", f"/world/{SLUG}.html"),
    (f"/world/{SLUG}.amp", f"/world/{SLUG}"),
    (f"/world/{SLUG}?print=1", f"/world/{SLUG}"),
    (f"/world/{SLUG}?a=2&view=print", f"/world/{SLUG}?a=2"),
    (f"/world/{SLUG}/print/", f"/world/{SLUG}/"),
    (f"/print/world/{SLUG}", f"/world/{SLUG}"),
    ("/article/1234567/amp", "/article/1234567"),
    ("/story.php?id=1234567&print=1", ""),
]
NO_VIEWS = [
    "/amp/",
    "/shop/amp/",
    "/tag/amp",
    "/print/",
    "/imprint/",
    "/world/lamp-prices-rise-again",
    "/world/amp-and-print-in-2026",
    f"/forum/{SLUG}/print",
    "/print/world",
    "/camp/print-the-legend-today/x",
    "/world?amp=1",
    f"/world/{SLUG}?amplitude=1",
]


@pytest.mark.parametrize("pair", SAME_NUMBER)
def test_other_words_beside_the_same_number_are_the_same_key(pair: tuple[str, str]) -> None:
    keys = [article_key(f"http://in.test{path}") for path in pair]
    assert keys[0] is not None and keys[0] == keys[1]
    assert article_key(f"http://other.test{pair[0]}") != keys[0]


_PATHS = st.builds(
    str.format,
    st.sampled_from(
        [
            "/world/{1}-{0}.html",
            "/{0}/{1}.html",
            "/news/{1}/{0}",
            "/article/{0}",
            "/article/{0}/{1}",
        ]
    ),
    st.integers(10**5, 10**12 - 1),
    st.sampled_from([SLUG, "the-bridge-is-open", "4-of-7-bridges-open"]),
)


@given(_PATHS, _PATHS)
def test_two_numbers_never_share_a_key(one: str, other: str) -> None:
    keys = [article_key(f"http://in.test{path}") for path in (one, other)]
    numbers = [max(re.findall(r"\d+", path), key=len) for path in (one, other)]
    if numbers[0] != numbers[1]:
        assert keys[0] is None or keys[0] != keys[1]


@pytest.mark.parametrize("pair", OTHER_NUMBER)
def test_another_number_language_or_form_is_another_key(pair: tuple[str, str]) -> None:
    keys = [article_key(f"http://in.test{path}") for path in pair]
    assert None not in keys and keys[0] != keys[1]


@pytest.mark.parametrize("path", NO_NUMBER)
def test_what_need_not_be_an_article_has_no_key(path: str) -> None:
    assert article_key(f"http://in.test{path}") is None


@pytest.mark.parametrize(("view", "path"), VIEWS)
def test_a_view_is_of_the_article(view: str, path: str) -> None:
    found = viewed_urls(f"http://in.test{view}")
    assert (f"http://in.test{path}" in found) == bool(path)


def test_a_host_for_amp_shows_the_articles_of_the_other() -> None:
    found = viewed_urls(f"http://amp.in.test:81/{SLUG}")
    assert found == (f"http://in.test:81/{SLUG}", f"http://www.in.test:81/{SLUG}")


@pytest.mark.parametrize("path", NO_VIEWS)
def test_sections_tags_and_words_are_no_views(path: str) -> None:
    assert viewed_urls(f"http://in.test{path}") == ()


@pytest.mark.parametrize("part", ["a-", "a_", "%C3", "1-", "a.", "-", "1234567-", "/a-b-c", "amp"])
def test_long_addresses_are_read_in_no_time(part: str) -> None:
    url = "http://in.test/" + part * (1990 // len(part))
    began = time.process_time()
    for end in ("-1234567!", "/amp", "?print=1"):
        article_key(url + end)
        viewed_urls(url + end)
    assert time.process_time() - began < 0.1
