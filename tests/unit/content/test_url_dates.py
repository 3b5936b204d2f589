"""Days, months, years and page numbers in URLs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.url_dates import read_page_number, read_url_date


@pytest.mark.parametrize(
    ("path", "start", "end", "exact"),
    [
        ("/2026/11/05/a-headline.html", "2026-11-05", "2026-11-06", True),
        ("/2026/nov/5/a", "2026-11-05", "2026-11-06", True),
        ("/news/2024-02-29-leap", "2024-02-29", "2024-03-01", True),
        ("/a-20191231.html", "2019-12-31", "2020-01-01", True),
        ("/a_20191231120000", "2019-12-31", "2020-01-01", True),
        ("/2019/12/", "2019-12-01", "2020-01-01", False),
        ("/archive/2019-02", "2019-02-01", "2019-03-01", False),
        ("/2019/march/a", "2019-03-01", "2019-04-01", False),
        ("/archive/2019/", "2019-01-01", "2020-01-01", False),
        ("/archive/2019.html", "2019-01-01", "2020-01-01", False),
    ],
)
def test_dates_of_paths(path: str, start: str, end: str, exact: bool) -> None:
    found = read_url_date(f"https://www.a.example{path}?page=2#x")
    assert found is not None
    assert (found.start.date().isoformat(), found.end.date().isoformat()) == (start, end)
    assert (found.exact, found.start.tzinfo) == (exact, UTC)


@pytest.mark.parametrize(
    "path",
    ["/", "/p/2019-models/x", "/1234567", "/id-20231399", "/2101/01/01/", "/x?d=2019-01-01",
     "/12019/11/051", "/a/2019/b"],
)  # fmt: skip
def test_what_is_no_date(path: str) -> None:
    assert read_url_date(f"https://a.example{path}") is None


@pytest.mark.parametrize(
    ("url", "number"),
    [
        ("/news?page=7", 7),
        ("/news?sort=new&paged=12#top", 12),
        ("/archive/page/3", 3),
        ("/archive/page/3/", 3),
        ("/archive/seite-4.html", 4),
        ("/page2", 2),
        ("/news?page=", None),
        ("/news?homepage=3", None),
        ("/step/3", None),
        ("/pages/3/a", None),
    ],
)
def test_numbers_of_pages(url: str, number: int | None) -> None:
    assert read_page_number(f"https://a.example{url}") == number


@given(st.text(max_size=60) | st.from_regex(r"/\d{1,8}[/-]\d{1,4}[/-]\d{1,4}/?", fullmatch=True))
def test_any_url_is_read(path: str) -> None:
    found = read_url_date(f"https://a.example/{path}")
    read_page_number(f"https://a.example/{path}")
    if found is not None:
        assert datetime(1990, 1, 1, tzinfo=UTC) <= found.start < found.end
