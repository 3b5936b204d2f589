"""`scrapy duplicates`, and what `status` and `explain` say of copies: as processes, on pages that
were judged on a real Postgres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlproj.database.connection import Database
from crawlproj.frontier.base import NewUrl
from crawlproj.reports import duplicates
from crawlproj.reports.duplicates import iterate_copies, iterate_similar
from tests.support.copies import Copies, article, html, paragraph
from tests.support.crawling import Result, run_command

FIRST = "http://a.test/first"
CAPITALS = "http://a.test/capitals"
NEAR = "http://b.test/near"
SAME = "http://b.test/same"
OTHER = "http://c.test/other"
EXCERPT = "http://d.test/excerpt"
ALONE = "http://e.test/alone"
HALF = "http://e.test/half"
HIDDEN = "http://e.test/hidden"
UNREAD = "http://e.test/unread"
ASK = Callable[..., Result]


@pytest.fixture
def copies(database: Database) -> Iterator[Copies]:
    """A cluster of four pages, one of two, and pages without any."""
    world = Copies(database)
    texts = article(1)
    world.read(FIRST, html(texts))
    world.read(CAPITALS, html([text.upper() for text in texts]))
    changed = [texts[0].replace(" ", " one ", 1), *texts[1:]]
    canonical = f"<link rel=canonical href='{NEAR}'>"
    world.read(NEAR, html(changed))
    world.read(SAME, html(texts, head=canonical))
    world.read(OTHER, html(article(2)))
    world.read(EXCERPT, html(article(2)[:4]))
    world.read(ALONE, html(article(3)))
    world.read(HALF, html([*article(3)[:4], *article(4)[:4]]))
    world.read(HIDDEN, html(texts), noindex=True)
    world.frontier.add([NewUrl(world.id(UNREAD), UNREAD, "e.test", 1)])
    yield world
    world.close()


@pytest.fixture
def ask(copies: Copies, database_url: str, tmp_path: Path) -> ASK:
    def run(*words: str) -> Result:
        return run_command(words, tmp_path, {"DATABASE_URL": database_url})

    return run


def test_all_copies_are_listed_with_original_kind_and_cluster(ask: ASK) -> None:
    result = ask("duplicates", "--json")
    assert result.code == 0, result.stderr
    found = {row["url"]: row for row in result.json}
    assert {url: (row["original"], row["kind"]) for url, row in found.items()} == {
        CAPITALS: (FIRST, "text"),
        NEAR: (FIRST, "near"),
        SAME: (FIRST, "text"),
        EXCERPT: (OTHER, "paragraph"),
    }
    assert len({found[url]["cluster"] for url in (CAPITALS, NEAR, SAME)}) == 1
    assert found[EXCERPT]["cluster"] != found[NEAR]["cluster"]
    assert 0.95 <= found[NEAR]["similarity"] < found[CAPITALS]["similarity"] == 1
    assert {url for url, row in found.items() if row["kept"]} == {NEAR}
    assert found[SAME]["kept_url"] == NEAR and found[EXCERPT]["kept_url"] == OTHER
    assert found[NEAR]["at"] and found[NEAR]["host"] == "b.test"

    biggest = ask("duplicates", "--limit", "1", "--json").json
    assert {row["url"] for row in biggest} == {CAPITALS, NEAR, SAME}
    of_kind = ask("duplicates", "--kind", "near", "--json").json
    assert [row["url"] for row in of_kind] == [NEAR]


def test_clusters_are_shown_the_biggest_first_with_counts_and_what_to_try_next(ask: ASK) -> None:
    text = ask("duplicates").stdout
    lines = text.splitlines()
    assert lines[0].split() == ["original", FIRST]
    assert lines[1].split() == ["text", "100", "%", CAPITALS]
    assert lines[2].startswith("near ") and lines[2].endswith(f"{NEAR}  (kept)")
    assert lines.index(f"original            {OTHER}  (kept)") > 3
    assert "4 copies in crawl copies: 2 text, 1 near, 1 paragraph." in lines
    assert "duplicates --similar 0.5 --crawl copies" in text
    one = ask("duplicates", "--limit", "1").stdout
    assert OTHER not in one and "The biggest clusters have 3 of them" in one


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (ALONE, "It is no copy of another page"),
        (HIDDEN, "It says noindex"),
        (UNREAD, "It was not read yet"),
    ],
)
def test_a_page_without_copies_is_told_why(ask: ASK, url: str, sentence: str) -> None:
    result = ask("duplicates", url)
    assert (result.code, ask("duplicates", url, "--json").json) == (0, [])
    assert result.stdout.startswith(f"{url}\n  {sentence}")


def test_any_member_leads_to_its_cluster(ask: ASK) -> None:
    by_original = ask("duplicates", FIRST).stdout
    assert by_original.splitlines()[0].split() == ["original", FIRST]
    assert ask("duplicates", NEAR).stdout == by_original
    assert {row["url"] for row in ask("duplicates", NEAR, "--json").json} == {
        CAPITALS,
        NEAR,
        SAME,
    }
    unknown = ask("duplicates", "http://a.test/nowhere")
    assert (unknown.code, "does not know it" in unknown.stdout) == (1, True)


def test_pages_made_of_known_paragraphs_are_found_with_these_and_where_they_stand(
    ask: ASK,
) -> None:
    found = {row["url"]: row for row in ask("duplicates", "--similar", "0.3", "--json").json}
    assert 0.4 < found[HALF]["known_share"] < 0.6
    assert found[HALF]["shares_with"] == [{"url": ALONE, "paragraphs": 4}]
    assert found[HALF]["paragraphs"][0] == paragraph(300)[:80]
    assert found[EXCERPT]["shares_with"] == [{"url": OTHER, "paragraphs": 4}]
    assert ALONE not in found and OTHER not in found
    high = ask("duplicates", "--similar", "0.9", "--json").json
    assert HALF not in [row["url"] for row in high] and EXCERPT in [row["url"] for row in high]
    text = ask("duplicates", "--similar", "0.3").stdout
    assert f"4 paragraphs also on {ALONE}" in text
    assert f'"{paragraph(300)[:80]}..."' in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--kind", "alike"], "--kind alike: one of exact, text, near, paragraph"),
        (["--similar", "0"], "--similar 0: a number above 0, up to 1"),
        (["--similar", "nan"], "--similar nan: a number above 0, up to 1"),
        (["--similar", "0.5", "--kind", "near"], "--similar goes with neither a URL nor --kind"),
        (["--limit", "-3"], "--limit"),
        (["ftp://a.test/"], "not a web address"),
        (["--crawl", "elsewhere"], "there is no crawl 'elsewhere'"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(
    database_url: str, tmp_path: Path, words: list[str], complaint: str
) -> None:
    result = run_command(["duplicates", *words], tmp_path, {"DATABASE_URL": database_url})
    assert result.code == 2
    assert complaint in result.stderr


def test_status_counts_copies_words_and_languages(ask: ASK, copies: Copies) -> None:
    copies.frontier.db.run_script("update crawlproj.page set language = 'en' where not noindex")
    crawl = ask("status", "--json").json["crawls"]["copies"]
    assert crawl["duplicates"] == {"exact": 0, "text": 2, "near": 1, "paragraph": 1}
    assert crawl["languages"] == {"en": 8}
    assert crawl["words"] > 8 * 250
    assert ", 4 copies of other pages;" in ask("status").stdout


def test_explain_says_of_what_a_page_is_a_copy_and_what_is_kept_of_its_text(ask: ASK) -> None:
    facts = ask("explain", NEAR, "--json").json
    assert (facts["duplicate_of"], facts["duplicate_kind"]) == (FIRST, "near")
    assert 0.95 <= facts["similarity"] < 1
    assert facts["text"]["blocks"] == 8 and facts["text"]["characters"] > 2000
    assert facts["words"] > 250 and facts["language"] is None
    assert f"of its text is the same as that of {FIRST}." in ask("explain", NEAR).stdout
    assert f"3 other pages are copies of it: scrapy duplicates {FIRST}" in (
        ask("explain", FIRST).stdout
    )
    unread = ask("explain", UNREAD, "--json").json
    assert (unread["duplicate_of"], unread["words"], unread["text"]) == (None, None, None)


def test_reading_in_pieces_gives_every_copy_and_page_once(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(iterate_copies(copies.frontier.db))
    similar = list(iterate_similar(copies.frontier.db, "copies", copies.rules, least=0.1, most=99))
    assert len(whole) == 4 and len(similar) > 2
    monkeypatch.setattr(duplicates, "CHUNK", 1)
    monkeypatch.setattr(duplicates, "SIMILAR_CHUNK", 1)
    assert list(iterate_copies(copies.frontier.db)) == whole
    assert list(iterate_copies(copies.frontier.db, most=3)) == whole[:3]
    pieces = iterate_similar(copies.frontier.db, "copies", copies.rules, least=0.1, most=99)
    assert list(pieces) == similar


def test_before_the_first_crawl_there_are_no_copies(tmp_path: Path) -> None:
    empty = run_command(["duplicates", "--json"], tmp_path)
    assert (empty.code, empty.json) == (0, [])
    assert run_command(["duplicates"], tmp_path).stdout.startswith("nothing was crawled yet")
    assert not (tmp_path / "pg").exists()
