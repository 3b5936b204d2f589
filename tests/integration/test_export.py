"""`scrapy export`: articles leave in a file, however many there are."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from benchmarks.fill import fill
from crawlproj.database.connection import Database
from crawlproj.items import Article
from crawlproj.reports.export import iterate_articles
from tests.support.crawling import ROOT, Result, run_command

ARTICLES = 3_000
TEXT = 20_000
ROWS = f"""
delete from page;
insert into page (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, language, article)
select id, now(), '', '', '', '', 1, false, false, 1, 'de', 'sent' from url;
insert into article (page, crawl, site, version, at, found_at, changed_at, title, text, date, fields, title_key, text_key)
select id, crawl, 'The Weekly', 1, now(), now(), timestamptz '2026-11-01 00:00 UTC' + make_interval(mins => (n / 10)::int),
    'Title, "' || n || '"', repeat('Zwölf Boxkämpfer; ', {TEXT // 18}), '2026-11-18',
    '{{"authors": ["Vera Marsh", "Anna Ost"], "keywords": [], "section": "World"}}', n, n
from (select *, row_number() over (order by id) as n from url) u;
insert into article_address select max(id), min(id) from url;
delete from article where page = (select max(id) from url)
"""


@pytest.fixture
def articles(database: Database, database_url: str) -> Database:
    """A database with many articles, ten that changed at the same moment each time."""
    fill(database_url, "site", ARTICLES + 1, 5)
    database.run_script(ROWS)
    return database


def export(database_url: str, folder: Path, *words: str) -> Result:
    return run_command(["export", *words], folder, {"DATABASE_URL": database_url})


def test_articles_are_read_piece_by_piece(articles: Database) -> None:
    ((crawl,),) = articles.run_script("select id from crawl")
    tracemalloc.start()
    try:
        urls = [article["url"] for article in iterate_articles(articles, crawl)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(urls) == len(set(urls)) == ARTICLES
    assert peak < ARTICLES * TEXT / 5


def test_formats_have_the_same_articles(
    articles: Database, database_url: str, tmp_path: Path
) -> None:
    articles.run_script("delete from article where title_key > 1205")
    lines = tmp_path / "articles.jsonl"
    lines.write_text("older")
    done = export(database_url, tmp_path, "--what", "articles", "-o", str(lines))
    assert (done.code, done.stdout) == (0, "")
    assert f"1,205 articles in {lines}" in done.stderr
    items = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [item["title"] for item in items[:10:9]] == ['Title, "1"', 'Title, "10"']
    assert len({item["url"] for item in items}) == 1205
    first = Article(**items[0])
    assert (first.authors, first.section, first.language) == (
        ["Vera Marsh", "Anna Ost"],
        "World",
        "de",
    )
    assert (first.site, first.date, len(first.addresses)) == ("The Weekly", "2026-11-18", 1)
    assert list(tmp_path.glob("*.part")) == []

    table = export(
        database_url,
        tmp_path,
        "--what",
        "articles",
        "--format",
        "csv",
        "--since",
        "2026-11-01T02:00",
    )
    assert table.code == 0
    rows = list(csv.DictReader(io.StringIO(table.stdout)))
    assert rows[0].keys() == items[0].keys()
    assert [row["url"] for row in rows] == [item["url"] for item in items[1199:]]
    assert (rows[0]["authors"], rows[0]["text"]) == ("Vera Marsh; Anna Ost", items[0]["text"])

    reader = subprocess.run(
        f"{sys.executable} -m scrapy export --what articles -s DATABASE_URL='{database_url}' "
        f"-s CRAWL_DIR={tmp_path} | head -c 100; exit ${{PIPESTATUS[0]}}",
        cwd=ROOT,
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert (reader.returncode, reader.stderr, len(reader.stdout.encode())) == (0, "", 100)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--what is missing: one of articles"),
        (["--what", "pages"], "--what pages: one of articles"),
        (["--what", "articles", "--format", "xml"], "--format xml: one of jsonl, csv"),
        (["--what", "articles", "--since", "yesterday"], "yesterday"),
        (["--what", "articles", "-o", "."], "this is a folder"),
        (["--what", "articles", "articles.jsonl"], "usage: scrapy export"),
    ],
)
def test_bad_arguments_are_refused(
    words: list[str], told: str, database_url: str, tmp_path: Path
) -> None:
    refused = export(database_url, tmp_path, *words)
    assert refused.code == 2
    assert told in refused.stderr
    assert refused.stdout == ""
