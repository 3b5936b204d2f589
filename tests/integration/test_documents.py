"""Documents in a real crawl: their links are followed, bad ones harm nobody, and the process that
reads them never stays behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.database.connection import Database
from crawlproj.demo.files import make_docx, make_pdf
from tests.integration.test_robots import Site
from tests.support import compound
from tests.support import documents as make
from tests.support.crawling import Crawl, Result, start_crawl
from tests.support.webs import make_due, rows

SETTINGS = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "REVISIT_INTERVAL": "1h",
    "DNS_HOSTS": {"*.test": "127.0.0.1"},
    "REVISIT_FILTER": ["html", "document"],
}


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    for server in (site.server, site.second):
        server.shutdown()
        server.server_close()


def start(site: Site, database_url: str, crawl_dir: Path, **more: object) -> Crawl:
    """One host has the documents, another one ordinary pages."""
    seeds = ",".join((site.url("papers"), site.url("other", "/other/1")))
    return start_crawl(
        ["site", "-a", f"seeds={seeds}"],
        {**SETTINGS, "DATABASE_URL": database_url, **more},
        crawl_dir,
    )


def crawl(site: Site, database_url: str, crawl_dir: Path, **more: object) -> Result:
    with start(site, database_url, crawl_dir, **more) as running:
        result = running.wait(120)
    assert result.code == 0, result.stderr + result.log
    return result


def serve(site: Site, documents: dict[str, bytes], kind: str = "application/octet-stream") -> None:
    """A page that links all of them, and a chain of ordinary pages."""
    site.pages["/"] = (
        200,
        {},
        "".join(f"<a href='/{name}'>{name}</a>" for name in documents).encode(),
    )
    site.pages |= {
        f"/{name}": (200, {"Content-Type": kind}, body) for name, body in documents.items()
    }
    site.pages |= {
        f"/other/{n}": (200, {}, f"<a href='/other/{n + 1}'>next</a>".encode())
        for n in range(1, 20)
    }
    site.pages["/other/20"] = 200, {}, b"<p>The end.</p>"


def titles(database_url: str) -> dict[str, tuple[str, str]]:
    database = Database(database_url)
    found = database.run_script(
        "select canonical, title, declared_language from crawlproj.page p join crawlproj.url u on u.id = "
        "p.url"
    )
    database.close()
    return {url.rpartition("/")[2]: (title, language) for url, title, language in found}


def counted(result: Result) -> dict[str, int]:
    return {
        name.partition("/")[2]: number
        for name, number in result.stats.items()
        if name.startswith("documents/")
    }


def reader_of(crawl: Crawl) -> int | None:
    """The process that reads for this crawl, by what the system says."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if (
                int(parent) == crawl.process.pid
                and b"crawlproj.content.documents.reader_main" in (folder / "cmdline").read_bytes()
            ):
                return int(folder.name)
        except (OSError, IndexError):
            continue
    return None


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    assert what()


def ticks(crawl: Crawl) -> int:
    """How long the process that reads has worked, in hundredths of a second; 0 if there is none."""
    try:
        return int(
            Path(f"/proc/{reader_of(crawl)}/stat").read_text().rpartition(")")[2].split()[11]
        )
    except OSError:
        return 0


def busy(crawl: Crawl) -> int:
    """Wait until it has read for a while."""
    wait_for(lambda: ticks(crawl) > 100)
    number = reader_of(crawl)
    assert number is not None
    return number


def is_gone(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_links_of_documents_are_followed(site: Site, database_url: str, tmp_path: Path) -> None:
    port = site.server.server_port
    bodies = {
        name: body for name, body in make.GOOD.items() if name not in ("pdf", "docx", "printed")
    }
    to = {name: site.url("papers", f"/from-{name}") for name in ("pdf", "docx", "text")}
    bodies |= {
        "pdf": make_pdf("A paper", "Some words", to["pdf"]),
        "docx": make_docx("Another", "Other words", to["docx"]),
    }
    serve(site, bodies)
    site.pages["/wrong"] = (
        200,
        {"Content-Type": "text/html"},
        make_pdf("Sent as HTML", "Words", site.url("papers", "/from-wrong")),
    )
    site.pages["/text"] = 200, {"Content-Type": "text/plain"}, f"See {to['text']}.".encode()
    site.pages["/from-docx"] = 200, {}, b"<a href='/wrong'>x</a><a href='/text'>x</a>"
    result = crawl(site, database_url, tmp_path)
    assert counted(result) == {"read": len(bodies) + 1}
    assert all(site.paths()[f"/from-{name}"] == 1 for name in ("pdf", "docx", "text", "wrong"))
    found = rows(database_url)
    assert found[f"http://papers.test:{port}/from-pdf"].depth == 2
    assert {name: titles(database_url)[name] for name in ("pdf", "docx", "odt")} == {
        "pdf": ("A paper", "en"), "docx": ("Another", "en"), "odt": ("A title", "fr-FR"),
    }  # fmt: skip
    assert Archive(tmp_path / "warc").get(site.url("papers", "/pdf")).content == bodies["pdf"]  # type: ignore[union-attr]


def test_bad_documents_harm_nobody(site: Site, database_url: str, tmp_path: Path) -> None:
    bomb = make.word(f"<w:p><w:r><w:t>{'ab ' * 50_000_000}</w:t></w:r></w:p>")
    hostile = {
        "slow": make.slow_pdf(),
        "locked": make.locked_pdf(),
        "nothing": b"",
        "no-pdf": b"%PDF-1.7\n",
        "cut": make.PRINTED[:9000],
        "cut-zip": make.xlsx()[:-99],
        "bomb": bomb,
        "many-pages": make.long_pdf(100_000),
        "old": compound.xls(version=0x500),
        "entities": make.word("<w:p><w:r><w:t>&k;</w:t></w:r></w:p>", make.BOMB + "]>"),
        "noise": b"%PDF-1.4" + os.urandom(50_000),
        "huge": b"%PDF-1.4" + bytes(2_000_001),
    }
    serve(
        site,
        hostile | {"good": make_pdf("A paper", "Some words", site.url("papers", "/from-good"))},
        "application/pdf",
    )
    limits = {"DOCUMENTS_TIMEOUT": "3s", "DOCUMENTS_MEMORY": "250MB", "DOCUMENTS_MAX_SIZE": "2MB"}
    result = crawl(site, database_url, tmp_path, **limits)
    done = counted(result)
    assert done.pop("crashed", 0) + done.pop("memory", 0) + done.pop("timeout") == 2
    assert done == {"read": 3, "encrypted": 1, "broken": 4, "old": 1, "too_big": 1}
    assert result.log.count("Document not read") == 9
    found = {
        url.partition(".test:")[2].partition("/")[2]: row.state
        for url, row in rows(database_url).items()
    }
    assert {found[name] for name in hostile} == {"waiting"}, "each of them ends as any page"
    assert site.paths()["/from-good"] == site.paths()["/other/20"] == 1


def test_the_reader_is_killed_in_the_middle(site: Site, database_url: str, tmp_path: Path) -> None:
    serve(
        site,
        {
            "slow": make.slow_pdf(),
            "good": make_pdf("A paper", "Some words", site.url("papers", "/from-good")),
        },
    )
    with start(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="300s") as running:
        first = busy(running)
        wait_for(lambda: site.paths()["/other/20"])
        assert not is_gone(first), "other hosts were crawled while it was read"
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: reader_of(running) not in (None, first))
        second = busy(running)
        assert second != first, "it is tried a second time, by a new process"
        os.kill(second, signal.SIGKILL)
        result = running.wait(120)
    assert result.code == 0, result.log
    assert counted(result) == {"read": 1, "crashed": 1}
    assert site.paths()["/from-good"] == 1
    assert rows(database_url)[site.url("papers", "/slow")].why == "document: crashed"


def test_a_stop_does_not_wait_and_the_document_stays_due(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    serve(site, {"slow": make.slow_pdf()})
    with start(
        site, database_url, tmp_path, DOCUMENTS_TIMEOUT="300s", CRAWL_SHUTDOWN="0.5s"
    ) as running:
        reader = busy(running)
        running.stop()
        running.wait(100)
    assert is_gone(reader)
    assert rows(database_url)[site.url("papers", "/slow")].state == "new"


def test_the_reader_ends_with_a_crawl_that_is_killed(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    serve(site, {"slow": make.slow_pdf()})
    with start(site, database_url, tmp_path, DOCUMENTS_TIMEOUT="300s") as running:
        reader = busy(running)
        running.stop(signal.SIGKILL)
        wait_for(lambda: is_gone(reader))
        assert running.wait().code == -signal.SIGKILL


def test_an_unchanged_document_is_not_read_again(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    to = site.url("papers", "/from-paper")
    serve(
        site,
        {
            "paper": make_pdf("A paper", "Some words", to),
            "other": make_pdf("Other", "Some words", to),
            "same": make.GOOD["rtf"],
        },
    )
    assert counted(crawl(site, database_url, tmp_path)) == {"read": 3}
    make_due(database_url)
    site.pages["/paper"] = 200, {}, make_pdf("Another title", "Some words", to)
    site.pages["/other"] = 200, {}, make_pdf("Other", "New words", to)
    result = crawl(site, database_url, tmp_path)
    assert counted(result) == {"read": 2}
    assert (result.stats["pages/same_text"], result.stats["pages/changed"]) == (1, 1)
    assert rows(database_url)[site.url("papers", "/other")].changes == 1


def test_documents_can_be_left_alone(site: Site, database_url: str, tmp_path: Path) -> None:
    serve(site, {"paper": make_pdf("A paper", "Some words", site.url("papers", "/from-paper"))})
    result = crawl(site, database_url, tmp_path, DOCUMENTS_ENABLED=False)
    assert counted(result) == {}
    assert (
        site.paths()["/from-paper"] == 0
        and rows(database_url)[site.url("papers", "/paper")].state == "waiting"
    )


def test_a_document_is_read_also_if_the_callback_fails(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    url = site.url("papers", "/paper?end=callback")
    site.pages["/paper?end=callback"] = 200, {}, make_pdf("A paper", "Some words", url)
    settings = {**SETTINGS, "DATABASE_URL": database_url, "SPIDER_MODULES": "tests.spiders"}
    with start_crawl(["ends", "-a", f"urls={url}"], settings, tmp_path) as running:
        result = running.wait(100)
    assert counted(result) == {"read": 1}
    assert titles(database_url) == {"paper?end=callback": ("A paper", "en")}
    assert rows(database_url, "ends")[url].why.startswith("callback: ValueError")
