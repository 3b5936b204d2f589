"""Articles come out of a crawl: taken from their pages, stored, sent through the pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from tests.support.copies import article
from tests.support.crawling import Result, run_command, run_crawl
from tests.support.news_web import NewsWeb, listing, news_article, serve_news

SETTINGS: dict[str, object] = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "REVISIT_POLICY": "uniform",
    "REVISIT_INTERVAL": "1s",
    "REVISIT_MIN": "1s",
    "SOURCE_INTERVAL": "1s",
    "SOURCE_MIN": "1s",
}
TITLE = "Gardeners of village {} rebuilt their old bridge"
PAGES = {
    "/": listing({f"/world/{n}.html": TITLE.format(n) for n in range(1, 6)})
    + "<a href=/about.html>About</a><a href=/world/2-slug.html>2</a><a href=/amp/2.html>2</a>"
    + "<a href=/print/2.html>2</a><a href=/hidden.html>hidden</a>",
    "/about.html": "<html><body><h1>About us</h1><p>We are the Weekly. Call us.</p></body></html>",
    **{f"/world/{n}.html": news_article(n) for n in range(1, 6)},
    "/world/2-slug.html": news_article(2, links="<p><a href=/>Other words around it</a></p>"),
    "/amp/2.html": news_article(2, canonical="{base}/world/2.html", json_ld=False)
    .replace("<html", "<html amp")
    .replace(
        "</footer>", "<p>This is the quick version of our page, made for telephones.</p></footer>"
    ),
    "/print/2.html": "<html><head><title>Print: " + TITLE.format(2) + "</title>"
    '<meta property="og:type" content="article"></head><body><h1>'
    + TITLE.format(2)
    + "</h1>"
    + "".join(f"<p>{text}</p>" for text in article(2, 6))
    + "<p>Printed from the Weekly.</p></body></html>",
    "/hidden.html": news_article(9, head='<meta name="robots" content="noindex">'),
}


def crawl(
    web: NewsWeb, database_url: str, folder: Path, **settings: Any
) -> tuple[Result, list[Any]]:
    out = folder / "articles.jsonl"
    out.unlink(missing_ok=True)
    arguments = ["site", "-a", f"seeds={web.base}/", "-a", "articles=1", "-o", str(out)]
    result = run_crawl(arguments, {**SETTINGS, "DATABASE_URL": database_url, **settings}, folder)
    assert result.code == 0, result.stderr + result.log
    return result, [json.loads(line) for line in out.read_text().splitlines()]


def states(database_url: str) -> dict[str, str | None]:
    database = Database(database_url)
    rows = database.run_script("""
        select u.path, p.article from (select id, regexp_replace(canonical, '^https?://[^/]+', '') as path from crawlproj.url) u
        join crawlproj.page p on p.url = u.id""")
    waiting = database.run_script("select count(*) from crawlproj.article_queue")[0][0]
    database.close()
    assert waiting == 0
    return dict(rows)


def test_each_article_comes_out_once_with_its_fields(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        result, items = crawl(web, database_url, tmp_path)
    assert sorted(item["title"] for item in items) == [TITLE.format(n) for n in range(1, 6)]
    by_title = {item["title"]: item for item in items}
    first = by_title[TITLE.format(1)]
    assert first["url"] == f"{web.base}/world/1.html"
    assert first["text"].split("\n")[-6:] == article(1, 6)
    assert first["date"] == "2026-11-02T08:30:00+01:00"
    assert (first["authors"], first["section"]) == (["Vera Marsh 1"], "World")
    assert (first["version"], first["site"]) == (1, "127.0.0.1")
    told = states(database_url)
    assert {path for path, state in told.items() if state == "sent"} >= {
        f"/world/{n}.html" for n in (1, 3, 4, 5)
    }
    second = {"/world/2.html", "/world/2-slug.html", "/amp/2.html", "/print/2.html"}
    assert [told[path] for path in second].count("sent") == 1
    assert "due" not in told.values()
    assert [told[path] for path in ("/", "/about.html", "/hidden.html")] == [None, None, None]
    assert result.stats["articles/sent"] == 5
    exported = run_command(
        ["export", "--what", "articles", "--crawl", "site"],
        tmp_path,
        {"DATABASE_URL": database_url},
    )
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    assert {row["title"]: row["text"] for row in rows} == {
        item["title"]: item["text"] for item in items
    }
    copies = next(row for row in rows if row["title"] == TITLE.format(2))
    assert {copies["url"], *copies["addresses"]} == {web.base + path for path in second}
    status = run_command(["status", "--json"], tmp_path, {"DATABASE_URL": database_url}).json
    assert status["crawls"]["site"]["articles"] == 5
    assert status["crawls"]["site"]["articles_waiting"] == 0
    assert "Articles" in result.stdout


def test_with_all_copies_kept_each_address_has_an_article_of_its_own(
    database_url: str, tmp_path: Path
) -> None:
    with serve_news(PAGES) as web:
        result, items = crawl(web, database_url, tmp_path, DUPLICATE_KEEP="all")
    second = ["/print/2.html", "/world/2-slug.html", "/world/2.html"]
    paths = sorted(item["url"].removeprefix(web.base) for item in items)
    assert paths == sorted([*second, *(f"/world/{n}.html" for n in (1, 3, 4, 5))])
    assert result.stats["articles/new"] == result.stats["articles/sent"] == 7
    assert "articles/copies" not in result.stats
    told = states(database_url)
    assert {told[path] for path in second} == {"sent"}


def test_a_changed_article_is_a_new_version(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        crawl(web, database_url, tmp_path)
        paragraphs = [
            *article(3, 6)[:5],
            "The mayor said on Friday that all of it was wrong, and that nothing was built.",
        ]
        web.pages["/world/3.html"] = news_article(3, paragraphs=paragraphs)
        result, items = crawl(web, database_url, tmp_path)
    assert [(item["url"], item["version"]) for item in items] == [(f"{web.base}/world/3.html", 2)]
    assert items[0]["modified"]
    assert paragraphs[-1] in items[0]["text"]
    assert result.stats["articles/versions"] == 1


def test_no_article_is_taken_unless_that_is_wanted(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        result = run_crawl(
            ["site", "-a", f"seeds={web.base}/"],
            {**SETTINGS, "DATABASE_URL": database_url},
            tmp_path,
        )
    assert result.code == 0
    assert not any(name.startswith("articles/") for name in result.stats)
    assert set(states(database_url).values()) == {None}


def label(item: Any) -> list[str]:
    """For ARTICLE_LABELS."""
    if "village 4" in item.title:
        raise ValueError("a classifier may fail")
    return ["bridges"] if "bridge" in item.title else []


def test_a_classifier_labels_articles(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        result, items = crawl(
            web, database_url, tmp_path, ARTICLE_LABELS="tests.integration.test_articles.label"
        )
    labels = {item["title"]: item["labels"] for item in items}
    assert labels.pop(TITLE.format(4)) == []
    assert set(map(tuple, labels.values())) == {("bridges",)}
    assert result.stats["articles/labels_failed"] == 1


def test_selectors_that_were_changed_mend_the_past(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        crawl(web, database_url, tmp_path)
    out = tmp_path / "again.jsonl"
    settings = {**SETTINGS, "DATABASE_URL": database_url, "SPIDER_MODULES": "tests.spiders"}
    settings |= {"CRAWL_NAME": "site"}
    again = run_command(["reextract", "mended", "-o", str(out)], tmp_path, settings)
    assert again.code == 0, again.stderr + again.log
    items = [json.loads(line) for line in out.read_text().splitlines()]
    sections = {item["title"]: item["section"] for item in items}
    sections.pop(TITLE.format(2))  # of which page it was taken is not said
    assert set(sections.values()) == {"Sections: WorldSport"}
    assert {item["version"] for item in items} == {1}
    assert len(items) == 5
    exported = run_command(
        ["export", "--what", "articles", "--crawl", "site"],
        tmp_path,
        {"DATABASE_URL": database_url},
    )
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    assert {row["title"]: row["section"] for row in rows} == {
        item["title"]: item["section"] for item in items
    }
