"""The figures of articles and of a crawl's history are what the crawl really did."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from crawlproj.commands.status import history_as_text
from crawlproj.database.connection import Database
from crawlproj.reports.history import COLUMNS, crawl_history
from crawlproj.scheduling.crawl_stats import read_figures
from tests.integration.test_articles import PAGES, crawl
from tests.support.crawling import Result, run_command
from tests.support.news_web import news_article, serve_news

DERIVED = {"freshness", "age_s", "weight", "weight_changed", "delays"}
FIGURES = [name for name in COLUMNS[1:] if name not in DERIVED]
HEAD = ["from", "fetched", "failed", "new", "changed", "unchanged", "copies", "articles"]
HEAD += ["versions", "bytes"]
GOOD_HEAD = "from useful half within 95 % within fresh age change ratio wasted"


def status(database_url: str, folder: Path, *words: str) -> Result:
    return run_command(["status", *words], folder, {"DATABASE_URL": database_url})


def sums(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in FIGURES}


def test_status_and_history_tell_what_two_runs_did(database_url: str, tmp_path: Path) -> None:
    with serve_news(PAGES) as web:
        first, _ = crawl(web, database_url, tmp_path)
        asked_first = web.asked.total()
        web.pages["/world/3.html"] = news_article(3).replace("village", "township")
        second, _ = crawl(web, database_url, tmp_path, REVISIT_WEIGHTS='{"article": 3}')
        asked = web.asked.total()
        seen_again = web.paths[asked_first:]
    done = read_figures(first.stats) + read_figures(second.stats)
    assert (done["articles"], done["article_versions"], done["useful"]) == (5, 1, 6)
    assert done["fetches"] == asked
    assert re.search(
        rf"Articles +5  5 new, .*; {5 / asked_first:.0%} of all responses brought one", first.stdout
    )
    assert re.search(
        r"Articles +1  1 new version; \d+% of all responses brought one", second.stdout
    )

    # An article counts three times, also when it has not changed and so is not read again.
    weight, changed = (second.stats[f"revisit/{name}"] for name in ("weight", "weight_changed"))
    assert changed == 1000 * second.stats["pages/changed"] + 2000
    revisits = second.stats["pages/changed"] + read_figures(second.stats)["unchanged"]
    database = Database(database_url)
    rows = database.run_script("""
        select u.canonical from crawlproj.url u join crawlproj.page p on p.url = u.id
        where p.kind = 'article'""")
    articles = {url.removeprefix(web.base) for (url,) in rows}
    assert weight == 1000 * revisits + 2000 * sum(path in articles for path in seen_again)
    told = status(database_url, tmp_path, "--history", "--json").json["crawls"]["site"]
    assert told["wasted"] == done["unchanged"]
    assert told["change_ratio"] == round(done["weight_changed"] / done["weight"], 4)
    assert (told["articles"], told["articles_per_day"], told["useful_per_day"]) == (5, 5, 6)
    assert told["useful_share"] == round(6 / asked, 4)
    assert told["articles_waiting"] == 0
    found = told["history"]
    assert found["unit"] == "minute"
    assert sums(found["rows"]) == {name: done[name] for name in FIGURES}
    assert all(0.9 < row["freshness"] <= 1 for row in found["rows"] if row["freshness"])
    assert any(row["freshness"] for row in found["rows"])
    assert found["rows"] == sorted(found["rows"], key=lambda row: row["at"], reverse=True)

    now = database.fetch_value("now")
    for age, unit in (("3 hours", "hour"), ("5 days", "day"), ("300 days", "day")):
        database.run_script(f"""
            update crawlproj.crawl_stat set at = date_trunc('minute', now() - interval '{age}')
            where at = (select min(at) from crawlproj.crawl_stat)""")
        older = crawl_history(database, "site", now)
        assert older["unit"] == unit
        assert sums(older["rows"]) == sums(found["rows"])
        lines = history_as_text("site", older, now)
        assert (lines[1], lines[2].split()) == (f"site by {unit}:", HEAD)
        second = lines.index(f"site by {unit}, how good it was:")
        assert " ".join(lines[second + 1].split()) == GOOD_HEAD
        assert second - 4 == len(lines[second + 2 :]) == len(older["rows"])
        assert max(map(len, lines)) <= 100
    # What is older than a day does not count any more.
    database.run_script("update crawlproj.crawl_stat set at = at - interval '1 day'")
    database.run_script(
        "update crawlproj.article set found_at = found_at - interval '1 day' where version = 2"
    )
    database.close()
    text = status(database_url, tmp_path, "--history")
    assert text.code == 0
    assert "5 articles (4 of them in the last 24 hours)" in text.stdout
    assert "site by day:" in text.stdout


def test_history_refuses_nonsense_and_has_words_for_nothing(
    database_url: str, tmp_path: Path
) -> None:
    nothing = status(database_url, tmp_path, "--history")
    assert (nothing.code, nothing.stderr) == (0, "")
    assert "Nothing was crawled yet" in nothing.stdout
    assert status(database_url, tmp_path, "--history", "site").code == 2
    database = Database(database_url)
    database.run_script(
        "insert into crawlproj.crawl (name, ordering, max_depth) values ('site', 'breadth', 9)"
    )
    database.close()
    assert "nothing was fetched since its history is kept" in (
        status(database_url, tmp_path, "--history").stdout
    )
