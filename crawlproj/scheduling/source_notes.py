"""What a visit has shown of a source, as it is stored in the table `source`. Pure."""

from __future__ import annotations

from typing import Final

from crawlproj.fetch.requests import may_be_sitemap
from crawlproj.frontier.base import Outcome, SourceNote, State, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.sources import (
    FORMER_HUB,
    HUB,
    SOURCE_KINDS,
    brought_articles,
    is_broken_list,
    is_host_root,
    is_seed,
    was_hub,
)
from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain

MAX_TITLE: Final = 200


def note_source(page: Page, ticket: Ticket, outcome: Outcome) -> SourceNote | None:
    """What is to be noted; None: it is no source, and was none."""
    too_big = page.reason == "too big" and may_be_sitemap(ticket)
    if not (outcome.source or ticket.source or too_big):
        return None
    if outcome.state is State.MOVED and not ticket.source_kind:
        return None
    site = registered_domain(ticket.named_by or host_of(ticket.url))
    is_there = outcome.state in (State.WAITING, State.RETIRED) and not outcome.set_aside
    if not is_there:
        kind = _kind_by_url(ticket)
        if too_big and not ticket.source_kind:
            kind = "sitemap"
        return SourceNote(kind, site, problem=outcome.why)
    if is_broken_list(page, ticket):
        # What that page links to is no news, so that it falls silent.
        return SourceNote("", site, problem=f"no longer a {ticket.source_kind}")
    kind = _kind_of(page, ticket, outcome)
    note = SourceNote(kind, site, problem=_problem(page, ticket, outcome))
    document = page.document
    if document is None or not kind:
        return note
    verdict = page.verdict
    new_links = page.fresh_links
    if verdict is not None and verdict.new_links is not None:
        new_links = verdict.new_links
        if page.kind == "html" and verdict.new_articles is not None:
            new_links = verdict.new_articles
    if kind == HUB:
        new_links = brought_articles(page)
    return SourceNote(
        kind,
        site,
        document.title[:MAX_TITLE],
        len(document.links),
        document.newest,
        new_links=new_links,
        problem=note.problem,
    )


def _kind_of(page: Page, ticket: Ticket, outcome: Outcome) -> str:
    """What kind of source it is now; empty if this visit does not say."""
    if not outcome.source:
        return FORMER_HUB if was_hub(ticket) else ""
    document = page.document
    if document is None:
        return _kind_by_url(ticket)
    if page.kind in SOURCE_KINDS:
        return document.list_kind or page.kind
    if is_host_root(ticket.url):
        return "front page"
    if is_seed(ticket):
        return "seed"
    return HUB


def _kind_by_url(ticket: Ticket) -> str:
    """What is known of a source that was not read, unless it has been noted before."""
    if ticket.source_kind:
        return ""
    if is_host_root(ticket.url):
        return "front page"
    return "seed" if is_seed(ticket) else ""


def _problem(page: Page, ticket: Ticket, outcome: Outcome) -> str:
    if not outcome.source:
        return "" if was_hub(ticket) else f"no longer a {ticket.source_kind or 'source'}"
    document = page.document
    if document is None:
        return outcome.why
    if page.kind in SOURCE_KINDS and not document.links:
        return "no entries"
    if document.cut or document.too_many_links:
        return "longer than is read"
    return ""
