"""Documents that could not be read, by chance perhaps: they are read when they are visited again."""

from __future__ import annotations

from pathlib import Path

from tests import documents as make
from tests.crawling import run_command
from tests.integration.test_documents import counted, crawl, serve, site
from tests.integration.test_robots import Site
from tests.webs import make_due, rows

__all__ = ["site"]


def test_a_document_that_was_not_read_by_chance_is_read_at_the_next_visit(site: Site, database_url: str, tmp_path: Path) -> None:
    """Also if its bytes are the same, if the server would say so, and if documents are not visited again otherwise; a few times."""
    to = site.url("papers", "/from-paper")
    body = make.long_pdf(80, "0 0 m 9 9 l S " * 100_000 + f"BT /F1 9 Tf 9 9 Td (see {to} now) Tj ET")
    serve(site, {"paper": body, "locked": make.locked_pdf()})
    site.pages["/paper"] = 200, {"ETag": '"x"'}, body
    url, locked = site.url("papers", "/paper"), site.url("papers", "/locked")
    settings = {"REVISIT_FILTER": ["html"], "FRONTIER_RETRIES": 2}
    for tries in (1, 2):
        if tries == 2:
            make_due(database_url)
        assert counted(crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="1s", **settings))["timeout"] == 1
        row = rows(database_url)[url]
        assert (row.state, row.tries, row.why) == ("waiting", tries, "document: timeout")
    assert run_command(["push", url, "--crawl", "site"], tmp_path, {"DATABASE_URL": database_url}).code == 0
    result = crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="60s", **settings)
    assert counted(result) == {"read": 1}
    assert (rows(database_url)[url].tries, rows(database_url)[url].changes) == (0, 0)
    assert site.paths()["/from-paper"] == 1
    assert (rows(database_url)[locked].visits, rows(database_url)[locked].why) == (1, "document: encrypted")
    make_due(database_url)
    assert counted(crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="1s", **settings)) == {}
    assert site.paths()["/paper"] == 3


def test_a_document_that_is_never_read_is_tried_a_few_times_only(site: Site, database_url: str, tmp_path: Path) -> None:
    serve(site, {"slow": make.slow_pdf()})
    url = site.url("papers", "/slow")
    for tries in (1, 2, 2):
        crawl(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="1s", REVISIT_FILTER=["html"], FRONTIER_RETRIES=1)
        assert rows(database_url)[url].tries == tries
        make_due(database_url)
    assert site.paths()["/slow"] == 2
