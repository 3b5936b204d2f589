from __future__ import annotations

import pytest
from lxml import html
from scrapy.settings import Settings

from crawlproj.config import Config, read_config
from crawlproj.errors import ConfigError
from crawlproj.reports.robot_page import robot_page, spell_duration
from settings import base

OURS = {
    name: getattr(base, name) for name in [*base.OURS, "DOWNLOAD_TIMEOUT", "REDIRECT_MAX_TIMES"]
}


def config(**more: object) -> Config:
    return read_config(
        Settings({**OURS, "ROBOT_CONTACT": "mailto:robot@example.org", **more}), "site"
    )


def text(page: str) -> str:
    return " ".join(html.document_fromstring(page).text_content().split())


def test_the_page_says_who_how_fast_and_how_to_stop_it() -> None:
    page = robot_page(
        config(ROBOT_NAME="Finder/2.1", POLITENESS_DELAY=7, ROBOTS_TTL="12h"), 0.5, 500, 300
    )
    words = text(page)
    assert "Finder/2.1 (+mailto:robot@example.org)" in words
    assert "User-agent: Finder Disallow: /" in words
    assert '<meta name="finder" content="noindex, nofollow">' in words
    assert "at least 7 seconds from the start of one" in words
    assert "at least 0.5 seconds between two requests to the server" in words
    assert "A rest of 5 minutes after 500 requests to a host." in words
    assert "again after 12 hours" in words
    assert "$" not in words


def test_rules_that_are_off_are_not_promised() -> None:
    words = text(robot_page(config(POLITENESS_SLOWDOWN=0, FOLLOW_NOFOLLOW=True)))
    assert "between two requests to the server" not in words
    assert "A rest of" not in words
    assert "When your server is slow" not in words
    assert "rel=nofollow" not in words


@pytest.mark.parametrize(
    ("contact", "href"),
    [
        ("mailto:a@b.org", "mailto:a@b.org"),
        ("a@b.org", "mailto:a@b.org"),
        ("https://b.org/bot?a=1&b=2", "https://b.org/bot?a=1&b=2"),
        ("javascript:alert(1)//a@b.org", None),
        ("call +1 555 0100", None),
        ('"><script>alert(1)</script>', None),
    ],
)
def test_the_contact_is_a_link_only_if_it_leads_to_somebody_and_never_markup(
    contact: str, href: str | None
) -> None:
    tree = html.document_fromstring(robot_page(config(ROBOT_CONTACT=contact)))
    assert tree.xpath("//script") == []
    assert {link.get("href") for link in tree.xpath("//a")} == ({href} if href else set())
    assert contact.removeprefix("mailto:") in tree.text_content()


def test_without_contact_there_is_no_page() -> None:
    with pytest.raises(ConfigError, match="ROBOT_CONTACT"):
        robot_page(config(ROBOT_CONTACT=" "))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (90, "1 minute 30 seconds"), (86_400, "1 day"), (0.5, "0.5 seconds")],
)
def test_times_are_spelled_in_full(seconds: float, words: str) -> None:
    assert spell_duration(seconds) == words
