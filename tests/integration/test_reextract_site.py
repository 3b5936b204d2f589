"""scrapy reextract with the general spider, and with what people make of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.integration.test_reextract_spiders import SETTINGS, run, web
from tests.support import zoo
from tests.support.crawling import run_command, start_crawl
from tests.support.webs import make_due

pytestmark = pytest.mark.proof

__all__ = ["web"]


def test_the_general_spider_and_what_people_make_of_it(
    web: type[zoo.Zoo], database_url: str, tmp_path: Path
) -> None:
    """Two visits by two workers, one after the other: a page that changes, one that is known by
    revisit records.
    """
    settings = {"DATABASE_URL": database_url, "REVISIT_INTERVAL": "1h"}
    words = ("-a", f"seeds={web.base}/")
    first, _ = run("crawl", "titles", web, tmp_path, *words, **settings)
    between = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    time.sleep(1.1)  # captures are told apart by seconds
    web.version = 1
    make_due(database_url)
    second, _ = run("crawl", "titles", web, tmp_path, *words, **settings)
    assert len(first) == len(second) == 11 and first != second
    assert len(list((tmp_path / "warc").glob("*.warc.gz"))) == 2
    for words in ((), ("--since", between[:8]), ("--versions", "last")):
        assert run("reextract", "titles", web, tmp_path, *words, **settings)[0] == second
    unknown = [{**item, "depth": 0} for item in second]
    assert run("reextract", "titles", web, tmp_path)[0] == unknown, "the files are enough"
    assert run("reextract", "titles", web, tmp_path, "--until", between, **settings)[0] == first
    every, result = run("reextract", "titles", web, tmp_path, "--versions", "all", **settings)
    assert len(every) == 12 and {json.dumps(item) for item in every} == {
        json.dumps(item) for item in first + second
    }
    assert result.stats["reextract/captures"] >= 12


def test_site_itself_has_no_items_and_says_how_much_was_read(
    web: type[zoo.Zoo], database_url: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "SPIDER_MODULES": "spiders", "DATABASE_URL": database_url}
    assert run_command(["crawl", "site", "-a", f"seeds={web.base}/"], tmp_path, settings).code == 0
    asked = dict(web.asked)
    result = run_command(["reextract", "site"], tmp_path, settings)
    assert (result.code, dict(web.asked)) == (0, asked)
    assert "12 captures read, 0 items" in result.stdout, result.stdout


def test_files_that_are_still_written_are_named_in_one_line(
    web: type[zoo.Zoo], database_url: str, tmp_path: Path
) -> None:
    run("crawl", "titles", web, tmp_path, "-a", f"seeds={web.base}/", DATABASE_URL=database_url)
    settings = {**SETTINGS, "DATABASE_URL": database_url, "CRAWL_CONTINUOUS": True}
    with start_crawl(
        ["titles", "-a", f"base={web.base}", "-a", f"seeds={web.base}/other"], settings, tmp_path
    ) as running:
        while not list((tmp_path / "warc").glob("*.open")):
            assert running.process.poll() is None
            time.sleep(0.05)
        items, result = run("reextract", "titles", web, tmp_path, DATABASE_URL=database_url)
        assert result.stdout.count("1 file still being written") == 1
        assert len(items) == 11
        running.stop()
        running.wait()
    assert (
        "still being written"
        not in run("reextract", "titles", web, tmp_path, DATABASE_URL=database_url)[1].stdout
    )
