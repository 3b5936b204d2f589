"""Documents that could not be read, by chance perhaps: they are read when they are
visited again.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.integration.test_documents import counted, crawl, reader_of, serve, site, start, ticks
from tests.integration.test_robots import Site
from tests.support import documents as make
from tests.support.crawling import Result, run_command
from tests.support.webs import make_due, rows

pytestmark = pytest.mark.proof

__all__ = ["site"]


def crawl_with_a_reader_that_hangs(
    site: Site, database_url: str, crawl_dir: Path, **more: object
) -> Result:
    """In the middle of a long document, however fast it is."""
    with start(site, database_url, crawl_dir, DOCUMENTS_TIMEOUT="3s", **more) as running:
        while running.process.poll() is None and ticks(running) < 30:
            time.sleep(0.01)
        if (reader := reader_of(running)) is not None:
            os.kill(reader, signal.SIGSTOP)
        result = running.wait(120)
    assert result.code == 0, result.stderr + result.log
    return result


def test_a_document_that_was_not_read_by_chance_is_read_at_the_next_visit(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """Also if its bytes are the same, if the server would say so, and if documents are not visited
    again otherwise; a few times.
    """
    to = site.url("papers", "/from-paper")
    body = make.long_pdf(
        80, "0 0 m 9 9 l S " * 100_000 + f"BT /F1 9 Tf 9 9 Td (see {to} now) Tj ET"
    )
    url = site.url("papers", "/paper")
    locked = site.url("papers", "/locked")
    settings = {"REVISIT_FILTER": ["html"], "FRONTIER_RETRIES": 2}
    serve(site, {"locked": make.locked_pdf()})
    assert counted(crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="600s", **settings)) == {
        "encrypted": 1
    }
    serve(site, {"paper": body, "locked": make.locked_pdf()})
    site.pages["/paper"] = 200, {"ETag": '"x"'}, body
    for tries in (1, 2):
        make_due(database_url)
        assert counted(
            crawl_with_a_reader_that_hangs(site, database_url, tmp_path, **settings)
        ) == {"timeout": 1}
        row = rows(database_url)[url]
        assert (row.state, row.tries, row.why) == ("waiting", tries, "document: timeout")
    assert (
        run_command(["push", url, "--crawl", "site"], tmp_path, {"DATABASE_URL": database_url}).code
        == 0
    )
    result = crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="600s", **settings)
    assert counted(result) == {"read": 1}
    assert (rows(database_url)[url].tries, rows(database_url)[url].changes) == (0, 0)
    assert site.paths()["/from-paper"] == 1
    assert (rows(database_url)[locked].visits, rows(database_url)[locked].why) == (
        1,
        "document: encrypted",
    )
    make_due(database_url)
    assert counted(crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="1s", **settings)) == {}
    assert site.paths()["/paper"] == 3


def test_a_document_that_is_never_read_is_tried_a_few_times_only(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    serve(site, {"slow": make.slow_pdf()})
    url = site.url("papers", "/slow")
    for tries in (1, 2, 2):
        crawl(
            site,
            database_url,
            tmp_path,
            DOCUMENTS_TIMEOUT="1s",
            REVISIT_FILTER=["html"],
            FRONTIER_RETRIES=1,
        )
        assert rows(database_url)[url].tries == tries
        make_due(database_url)
    assert site.paths()["/slow"] == 2
