"""The crawl's end of the archive, when pages are to be forgotten while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Original
from crawlproj.config import read_config
from crawlproj.fetch.wire import WireCapture
from crawlproj.frontier.base import Lane, Outcome, State, Ticket
from crawlproj.frontier.takedown import TakedownRule, TakedownRules
from crawlproj.items import Page, RobotsTicket
from crawlproj.scheduling.archiver import Archiver
from settings import base
from tests.support.archiving import PAGE, head

NOW = datetime.now(UTC)
A = "http://a.test/"
B = "http://b.test/"


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Archiver]:
    settings = Settings()
    settings.setmodule(base)
    settings.set("CRAWL_DIR", str(tmp_path))
    with Archiver(read_config(settings, "site"), "w", settings) as vault:
        yield vault


def page(url: str, original: Original | None = None, at: datetime = NOW) -> Page:
    ticket = Ticket(1, url, "a.test", 1, 1, 0, Lane.NEW, State.NEW, original=original)
    return Page(ticket, url, 200, at, wire=WireCapture(b"", head(), [PAGE], whole=True))


def failed(found: Page, noarchive: bool) -> Page:
    """The same, cut off when it was visited again."""
    assert isinstance(found.ticket, Ticket)
    return replace(
        found, ticket=replace(found.ticket, noarchive=noarchive), status=0, reason="cut off"
    )


def ended(found: Page) -> Outcome:
    return Outcome(1, 0, 1, 1, State.WAITING, NOW, 200, receipt=found.receipt)


def barred(url: str) -> TakedownRules:
    return TakedownRules([TakedownRule(1, url, "", True, NOW)])


def test_it_is_settled_when_all_ends_of_closed_files_are_stored(
    vault: Archiver, tmp_path: Path
) -> None:
    first = page(A)
    second = page(B)
    assert (vault.archive_page(first), vault.archive_page(second)) == ("exchanges", "exchanges")
    assert vault.all_stored, "nothing is closed yet"
    vault.apply_takedowns(TakedownRules())
    assert len(Archive(tmp_path / "warc").closed_files()) == 1
    assert not vault.all_stored
    vault.mark_stored([ended(first)])
    third = page(A)
    vault.archive_page(third)
    assert not vault.all_stored
    vault.mark_stored([ended(second)])
    assert vault.all_stored, "the third is in a file that is still open"
    vault.mark_stored([ended(third)])
    vault.apply_takedowns(TakedownRules())
    assert vault.all_stored


def test_robots_txt_and_failures_hold_nothing_up(vault: Archiver) -> None:
    robots = page(A)
    assert isinstance(robots.ticket, Ticket)
    robots.ticket = RobotsTicket(A, "a.test", 1, 1, robots.ticket)
    vault.archive_page(robots)
    vault.apply_takedowns(TakedownRules())
    assert vault.all_stored
    vault.mark_stored([Outcome(1, 0, 1, 1, State.RETRY, NOW)])
    assert vault.all_stored


def test_half_of_a_page_that_said_noarchive_is_not_kept(vault: Archiver) -> None:
    assert vault.archive_page(failed(page(A), noarchive=False)) == "exchanges"
    assert vault.archive_page(failed(page(A), noarchive=True)) == "noarchive"


def test_what_is_barred_is_neither_asked_nor_kept(vault: Archiver, tmp_path: Path) -> None:
    before = page(A)
    vault.archive_page(before)
    vault.apply_takedowns(barred("a.test"))
    assert vault.is_barred(A) and not vault.is_barred(B)
    assert (vault.archive_page(page(A)), vault.archive_page(page(B))) == ("forgotten", "exchanges")
    vault.apply_takedowns(TakedownRules())
    assert [path.url for path in Archive(tmp_path / "warc").captures()] == [A, B], (
        "what was written before is for others to remove"
    )


def test_an_answer_that_speaks_of_what_was_removed_is_not_kept(vault: Archiver) -> None:
    """Only the past goes; but who was handed out before may be told that nothing has
    changed since.
    """
    vault.apply_takedowns(TakedownRules([TakedownRule(1, A, "", False, NOW)]))
    assert not vault.is_barred(A)
    removed = Original(A, NOW - timedelta(days=1), "sha1:X")
    later = NOW + timedelta(seconds=1)
    assert vault.archive_page(page(A, removed, later)) == "forgotten"
    assert vault.archive_page(page(A, None, later)) == "exchanges"
    assert vault.archive_page(page(A, Original(A, later, "sha1:X"), later)) == "exchanges"
