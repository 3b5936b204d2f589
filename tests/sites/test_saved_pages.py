"""Each spider of a news site takes from the saved pages of its site what is expected.

`scrapy fixture` saves a page. This file knows no spider by name, and works in any project that has
joined.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.utils.project import get_project_settings

from crawlproj.news.saved_pages import (
    URL,
    SavedPage,
    check_page,
    missing_pages,
    news_spiders,
    saved_pages,
    site_rules,
)

FOLDER = Path(__file__).parent
SPIDERS = news_spiders(get_project_settings())
PAGES = {
    f"{name}/{page.name}": (name, page) for name in SPIDERS for page in saved_pages(name, FOLDER)
}


@pytest.mark.parametrize("name", SPIDERS)
def test_a_spider_has_saved_pages(name: str) -> None:
    lines = missing_pages([name], FOLDER)
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize(("name", "page"), PAGES.values(), ids=PAGES)
def test_a_saved_page_gives_what_is_expected(name: str, page: SavedPage) -> None:
    url = (page.expected or {}).get(URL, "")
    lines = check_page(page, site_rules(SPIDERS[name], url))
    if lines:
        pytest.fail("\n".join([f"spider {name}, {page.path}:", *lines]), pytrace=False)
