"""Which links go ahead, and which wait in backfill."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawlproj.content.document import Document
from crawlproj.content.link_state import hash_link
from crawlproj.fetch.pages import document_of
from crawlproj.frontier.base import Found, Lane, State, Ticket
from crawlproj.frontier.seen import Level, Place
from crawlproj.items import ChangeVerdict, Page
from crawlproj.scheduling.link_places import (
    LinkPlacer,
    PlaceRules,
    Sign,
    article_sign,
    count_articles,
    hot_score,
)
from crawlproj.scheduling.server_hints import listed_changes

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
BASE = "https://a.example"
RULES = PlaceRules(30 * DAY)
STORY = "/the-mayor-opened-the-new-bridge"


def placer(
    listed: dict[str, str] | None = None,
    list_kind: str = "",
    url: str = "/",
    rules: PlaceRules = RULES,
    new: tuple[str, ...] = (),
    **ticket: Any,
) -> LinkPlacer:
    known = {"block_digest": b"x", "last_read": NOW - timedelta(hours=2)} if new else {}
    own = Ticket(
        1, BASE + url, "a.example", 1, 1, 1, Lane.NEW, State.NEW, found=Found.LINK, depth=2
    )
    page = Page(replace(own, **known, **ticket), BASE + url, 200, NOW, kind="html")
    page.document = Document(BASE + url)
    if list_kind:
        page.kind = list_kind.rpartition(" ")[2]
        page.document.list_kind = list_kind
    page.document.listed = {BASE + path: date for path, date in (listed or {}).items()}
    if list_kind == "news sitemap":
        page.document.published = page.document.listed
    if new:
        page.verdict = ChangeVerdict(
            True, new_links=1, new_hashes=frozenset(hash_link(BASE + path) for path in new)
        )
    assert isinstance(page.ticket, Ticket)
    return LinkPlacer(page, page.ticket, rules)


def place(given: LinkPlacer, path: str, kind: str = "a", depth: int = 1) -> Place:
    return given.place(BASE + path, kind, depth)


def test_what_a_feed_lists_goes_ahead_newest_first_and_what_is_old_behind() -> None:
    feed = placer(
        {"/new": "2026-11-20T10:00:00Z", "/week": "Fri, 13 Nov 2026 10:00:00 +0100",
         "/old": "2026-10-01", "/older": "2019-10-01"}, "feed",
    )  # fmt: skip
    new, week, bare, old, older = (
        place(feed, path, "feed") for path in ("/new", "/week", "/bare", "/old", "/older")
    )
    assert [new.level, week.level, bare.level] == [Level.HOT] * 3
    assert 2 >= new.score > week.score > 1
    assert [old.level, older.level] == [Level.OLD] * 2
    assert 0.1 > old.score > older.score > 0
    assert new.published == NOW - timedelta(hours=2)
    assert (older.published, bare.published) == (datetime(2019, 10, 1, tzinfo=UTC), None)


def test_no_more_than_some_entries_without_a_date_go_ahead() -> None:
    feed = placer({}, "feed")
    levels = [place(feed, f"/{n}", "feed").level for n in range(300)]
    assert 50 < levels.count(Level.HOT) < 120


def test_a_sitemap_puts_what_is_old_behind_and_nothing_ahead_unless_it_is_of_news() -> None:
    dates = {"/new": "2026-11-20", "/old": "2021-11-20"}
    plain = placer(dates, "sitemap")
    assert place(plain, "/new", "sitemap").level is Level.PLAIN
    assert place(plain, "/old", "sitemap").level is Level.OLD
    assert place(plain, "/new", "sitemap").published is None, "lastmod is of a change"
    news = place(placer(dates, "news sitemap"), "/new", "sitemap")
    assert (news.level, news.published) == (Level.HOT, datetime(2026, 11, 20, tzinfo=UTC))


ATOM = f"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{BASE}/edited"/>
<updated>2026-11-20T11:00:00Z</updated><published>2024-03-01T09:00:00Z</published></entry>
<entry><link href="{BASE}/week"/><updated>2026-11-20T11:00:00Z</updated>
<published>2026-11-13T12:00:00Z</published></entry></feed>"""
JSON_FEED = f"""{{"version": "https://jsonfeed.org/version/1.1", "items": [
{{"url": "{BASE}/edited", "date_modified": "2026-11-20T11:00:00Z", "date_published": "2024-03-01T09:00:00Z"}},
{{"url": "{BASE}/week", "date_modified": "2026-11-20T11:00:00Z", "date_published": "2026-11-13T12:00:00Z"}}]}}"""
NEWS = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">{}</urlset>""".format(
    "".join(
        f"<url><loc>{BASE}/{name}</loc><lastmod>2026-11-20T11:00:00Z</lastmod><news:news>"
        f"<news:publication_date>{date}</news:publication_date></news:news></url>"
        for name, date in (
            ("edited", "2024-03-01T09:00:00Z"),
            ("week", "2026-11-13T12:00:00Z"),
        )
    )
)


@pytest.mark.parametrize("body", [ATOM, JSON_FEED, NEWS])
def test_an_old_article_that_was_edited_just_now_is_old(body: str) -> None:
    """Its age is that of its publication; the edit is a hint to visit it again."""
    known = Ticket(1, BASE + "/feed", "a.example", 1, 1, 1, Lane.NEW, State.NEW, depth=2)
    page = Page(known, BASE + "/feed", 200, NOW, body=body.encode())
    page.kind = "sitemap" if body is NEWS else "feed"
    page.document = document_of(page, page.body, ("robots",))
    assert page.document is not None
    given = LinkPlacer(page, known, RULES)
    edited, week = (place(given, path, page.kind) for path in ("/edited", "/week"))
    assert (edited.level, edited.published) == (Level.OLD, datetime(2024, 3, 1, 9, tzinfo=UTC))
    assert (week.level, week.published) == (Level.HOT, NOW - 7 * DAY)
    assert week.score < hot_score(timedelta(0))
    assert page.document.newest == NOW - 7 * DAY
    hints = listed_changes(page.document.listed, NOW - DAY, NOW)
    assert hints == dict.fromkeys((BASE + "/edited", BASE + "/week"), NOW - timedelta(hours=1))


def test_dates_in_urls_are_hints() -> None:
    front = placer()
    assert place(front, f"/2026/11/19{STORY}").level is Level.PLAIN
    assert place(front, f"/2026/11/19{STORY}").published == datetime(2026, 11, 19, tzinfo=UTC)
    assert place(front, f"/2026/12/19{STORY}").published is None
    old, older = place(front, f"/2026/09/19{STORY}"), place(front, f"/2016/09/19{STORY}")
    assert (old.level, older.level, old.score > older.score) == (Level.OLD, Level.OLD, True)
    assert place(front, "/archive/2026/10/").level is Level.PLAIN, "its last day is not old"
    assert place(front, "/archive/2026/09/").level is Level.OLD


def test_pages_of_lists_from_the_third_on_wait_in_order_and_those_of_forums_elsewhere() -> None:
    front = placer()
    assert place(front, "/news?page=2").level is Level.PLAIN
    third, ninth = place(front, "/news?page=3"), place(front, "/news?page=9")
    assert (third.level, ninth.level, third.score > ninth.score) == (Level.OLD, Level.OLD, True)
    for bait in (
        "/forum/bridge?page=30",
        "/calendar/2019/03/",
        "/forum/2019/03/05/a-thread-of-ours",
    ):
        assert place(front, bait).level is Level.PLAIN
    assert place(front, "/forum/bridge?page=30").score < 0.1


def test_what_an_old_page_links_to_is_old() -> None:
    archive = placer(url="/news?page=5")
    assert place(archive, STORY).level is Level.OLD
    assert place(archive, f"/2026/11/20{STORY}").level is Level.PLAIN
    assert place(archive, "/feed", "feed").level is Level.PLAIN
    assert place(placer(url="/news?page=2"), STORY).level is Level.PLAIN
    behind = placer(url="/some-page", lane=Lane.BACKFILL)
    assert place(behind, STORY).level is Level.OLD
    assert place(placer(url="/some-page"), STORY).level is Level.PLAIN


def test_new_articles_of_a_hub_go_ahead_but_not_at_its_first_visit() -> None:
    hub = {"source": True, "source_kind": "hub", "url": "/world"}
    known = placer(new=(STORY, "/forum/x", "/2019/01/01" + STORY), **hub)
    assert place(known, STORY).level is Level.HOT
    assert place(known, STORY + "-again").level is Level.PLAIN, "the page had it before"
    assert place(known, "/forum/x").level is Level.PLAIN
    assert place(known, "/2019/01/01" + STORY).level is Level.OLD
    assert place(placer(**hub), STORY).level is Level.PLAIN
    assert placer(new=(STORY,), url="/world").best is Level.PLAIN, "it is no source"


@pytest.mark.parametrize("rules", [PlaceRules(None), PlaceRules(30 * DAY, moves=False)])
def test_nothing_is_old_if_it_is_not_wanted(rules: PlaceRules) -> None:
    feed = placer({"/old": "2019-10-01", "/new": "2026-11-20"}, "feed", rules=rules)
    assert place(feed, "/old", "feed").level is not Level.OLD
    assert place(feed, "/old", "feed").published == datetime(2019, 10, 1, tzinfo=UTC)
    wanted = Level.HOT if rules.moves else Level.PLAIN
    assert place(feed, "/new", "feed").level is wanted
    assert place(placer(url="/?page=9", rules=rules), "/?page=12").level is Level.PLAIN


def test_what_looks_like_an_article_counts_where_articles_do() -> None:
    stories = [f"{BASE}{STORY}-{n}" for n in range(5)]
    bare = [f"{BASE}/w/{n}" for n in range(5)]
    bait = [f"{BASE}/forum/thread-of-people-{n}" for n in range(5)]
    none = lambda url: ""  # noqa: E731
    assert count_articles([*stories[:2], *bare, *bait], [*stories, *bare, *bait], none) == 2
    assert count_articles([*bare, *bait], [*bare, *bait], none) == 5
    assert article_sign(bare[0], "article") is Sign.LIKELY
    assert article_sign(stories[0], "listing") is Sign.NO
