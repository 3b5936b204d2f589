"""The special collections that a host can have, by name: redirects, copies, traps, directives for
robots, oddities, faults.

Each function fills the host's `Extra`: links for the box on its front page, and the pages behind
them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable
from functools import partial

from crawlproj.demo import broken, oddities, render
from crawlproj.demo.model import DemoPage
from crawlproj.demo.site import LONG_AGO, Maker, Site, fixed_page

MIRRORED = 8
"""Articles that a mirror has of another host."""


def redirect_page(status: int, to: str) -> Maker:
    note = f'<!DOCTYPE html><title>Moved</title><p>This page is now <a href="{to}">here</a>.</p>\n'
    return fixed_page(DemoPage("redirect", LONG_AGO, body=note.encode, status=status, location=to))


def add_redirects(site: Site) -> None:
    """One hop, a chain of three to a page linked nowhere else, loops, and one to another host."""

    def url(path: str) -> str:
        return site.world.url(site.spec.name, path)

    away = url("/")
    if site.spec.partners:
        away = site.world.url(site.spec.partners[0])
    hops = {
        "/go/about": (301, url("/about.html")),
        "/go/chain": (302, url("/go/chain/2")),
        "/go/chain/2": (307, url("/go/chain/3")),
        "/go/chain/3": (301, url("/special/end-of-chain.html")),
        "/go/loop": (302, url("/go/loop/2")),
        "/go/loop/2": (302, url("/go/loop")),
        "/go/self": (301, url("/go/self")),
        "/go/lost": (308, url("/archive/lost.html")),
        "/go/away": (302, away),
    }
    site.extra.pages |= {path: redirect_page(*hop) for path, hop in hops.items()}
    site.extra.pages["/special/end-of-chain.html"] = fixed_page(
        site.plain_page("The end of the chain")
    )
    starts = ("about", "chain", "loop", "self", "lost", "away")
    site.extra.entries += [site.make_link(f"/go/{name}", f"Moved: {name}") for name in starts]


def add_dead_links(site: Site) -> None:
    """Links to pages that were never there (404) and to one that is gone (410)."""
    site.extra.pages["/special/closed.html"] = fixed_page(
        DemoPage("gone", LONG_AGO, status=410, body=lambda: b"Gone.\n")
    )
    site.extra.entries += [
        site.make_link(path, "Old link")
        for path in ("/special/closed.html", "/special/missing.html")
    ]


def add_copies(site: Site) -> None:
    """Exact copies of three own articles under another URL, and slightly different reprints of
    three, one of them the same.
    """
    for number in range(min(5, site.spec.articles)):
        path = site.articles.get(number).path
        if number < 3:
            site.extra.pages[f"/copy{path}"] = partial(_exact_copy, site, number)
            site.extra.entries.append(site.make_link(f"/copy{path}", "Again"))
        if number not in (0, 2):
            site.extra.pages[f"/print{path}"] = partial(_reprint, site, site, number)
            site.extra.entries.append(site.make_link(f"/print{path}", "Print version"))


def add_mirror(site: Site) -> None:
    """Articles of another host (`copies_of`) that never change, each copied in another way."""
    source = site.sites[site.spec.copies_of]
    lasting = [n for n in reversed(range(source.spec.articles)) if source.articles.is_lasting(n)]
    ways = itertools.cycle(
        (_in_capitals, _in_other_bytes, _word_changed, _in_other_frame, _reprint)
    )
    for number, copy in zip(lasting[:MIRRORED], ways, strict=False):
        path = f"/agency/{number}.html"
        site.extra.pages[path] = partial(copy, site, source, number)
        site.extra.entries.append(site.make_link(path, source.articles.get(number).title))


def _exact_copy(site: Site, number: int, age: float) -> DemoPage:
    page = site.article_page(number, age)
    return dataclasses.replace(page, copy_of=site.article_url(number), copy_kind="exact")


def _in_capitals(site: Site, source: Site, number: int, age: float) -> DemoPage:
    """The text in capital letters; what is in tags and styles stays."""

    def change(html: str) -> str:
        head, body = html.split("</style>", 1)
        return f"{head}</style>" + re.sub(
            ">[^<]+", lambda found: found[0].upper(), body, flags=re.ASCII
        )

    return _mirrored(source, number, age, kind="text", change=change)


def _in_other_bytes(site: Site, source: Site, number: int, age: float) -> DemoPage:
    def change(html: str) -> str:
        return html.replace("<body>", f"<!-- taken over by {site.spec.title} -->\n<body>")

    return _mirrored(source, number, age, kind="text", change=change)


def _word_changed(site: Site, source: Site, number: int, age: float) -> DemoPage:
    def change(html: str) -> str:
        head, text = html.split("</figure>", 1)
        return f"{head}</figure>" + text.replace(" the ", " this ", 1)

    return _mirrored(source, number, age, kind="near", change=change)


def _mirrored(
    source: Site, number: int, age: float, *, kind: str, change: Callable[[str], str]
) -> DemoPage:
    """An article with the frame of its own host, whose links lead there."""
    page = source.article_page(number, age)
    root = source.world.url(source.spec.name).removesuffix("/")

    def body() -> bytes:
        html = re.sub('(href|src)="/', rf'\1="{root}/', page.body().decode())
        return change(html).encode()

    return dataclasses.replace(
        page,
        kind="copy",
        links=tuple(dataclasses.replace(link, href="") for link in page.links),
        body=body,
        copy_of=source.article_url(number),
        copy_kind=kind,
    )


def _in_other_frame(site: Site, source: Site, number: int, age: float) -> DemoPage:
    """All paragraphs, but the last comes first, with a notice and in the frame of this host."""
    notice = f"From our archive of older reports, with thanks to all readers of {site.spec.title}."
    page = _reprinted(
        site,
        source,
        number,
        age,
        lambda paragraphs: [notice, *reversed(paragraphs)],
    )
    return dataclasses.replace(page, copy_kind="paragraph")


def _reprint(site: Site, source: Site, number: int, age: float) -> DemoPage:
    """All paragraphs in the frame of this host."""
    return _reprinted(
        site,
        source,
        number,
        age,
        lambda paragraphs: [*paragraphs, "Reprinted with kind permission."],
    )


def _reprinted(
    site: Site,
    source: Site,
    number: int,
    age: float,
    change: Callable[[tuple[str, ...]], list[str]],
) -> DemoPage:
    version, changed = source.articles.version_at(number, age)
    item = source.articles.get(number)

    def body() -> bytes:
        text = render.paragraphs_html(change(source.articles.version_paragraphs(number, version)))
        return site.render_html(item.title, f"<article><h1>{item.title}</h1>{text}</article>")

    return dataclasses.replace(
        site.plain_page(item.title),
        kind="copy",
        changed=changed,
        version=version,
        body=body,
        copy_of=source.article_url(number),
        copy_kind="near",
    )


def add_calendar(site: Site) -> None:
    """A trap: each month links the next one, for ever, at the same depth of the path."""

    def month(key: str, age: float) -> DemoPage | None:
        year, _, name = key.removeprefix("/calendar/").partition("/")
        if not (year.isascii() and year.isdigit() and name.isascii() and name.isdigit()):
            return None
        year_after, month_after = divmod(int(year) * 12 + int(name), 12)
        after = site.make_link(f"/calendar/{year_after}/{month_after + 1:02d}", "Next month")
        return site.plain_page(f"Events of {name}/{year}", (after,), paragraphs=1)

    site.extra.families["/calendar/"] = month
    site.extra.entries.append(site.make_link("/calendar/2026/01", "Calendar of events"))


def add_endless_folders(site: Site) -> None:
    """A trap: every page links one that lies a folder deeper, for ever."""

    def level(key: str, age: float) -> DemoPage | None:
        names = key.removeprefix("/more/").split("/")
        if set(names) - {"and", "on", ""}:
            return None
        step = "on"
        if len(names) % 2 == 0:
            step = "and"
        deeper = site.make_link(f"{key}{step}/", "Deeper")
        return site.plain_page(f"Level {len(names)}", (deeper,), paragraphs=1)

    site.extra.families["/more/"] = level
    site.extra.entries.append(site.make_link("/more/on/", "More and more"))


def add_robots_directives(site: Site) -> None:
    """Pages with directives for robots: noindex, nofollow, by meta, by header, on one link."""
    after = site.make_link("/notes/after-noindex.html", "Go on")
    hidden = site.make_link("/notes/hidden.html", "Hidden")
    noindex = site.plain_page(
        "Please do not index", (after,), meta='<meta name="robots" content="noindex">'
    )
    nofollow = site.plain_page(
        "Please do not follow", (hidden,), meta='<meta name="robots" content="nofollow">'
    )
    header = dataclasses.replace(
        site.plain_page("By header"), headers=(("X-Robots-Tag", "noindex"),), noindex=True
    )
    pages = {
        "/notes/noindex.html": dataclasses.replace(noindex, noindex=True),
        "/notes/nofollow.html": dataclasses.replace(nofollow, nofollow=True),
        "/notes/header.html": header,
        "/notes/after-noindex.html": site.plain_page("Linked by a page without index"),
        "/notes/hidden.html": site.plain_page("Linked only where nobody may follow"),
        "/notes/sponsored.html": site.plain_page("Linked only with rel=nofollow"),
    }
    site.extra.pages |= {path: fixed_page(page) for path, page in pages.items()}
    site.extra.entries += [
        site.make_link(f"/notes/{name}.html", f"Note: {name}")
        for name in ("noindex", "nofollow", "header")
    ]
    site.extra.entries.append(site.make_link("/notes/sponsored.html", "Sponsored", nofollow=True))


def add_private_pages(site: Site) -> None:
    """Pages that exist, but that the host's robots.txt forbids (the profile has the rules)."""
    inner = site.make_link("/private/inner.html", "Further in")
    site.extra.pages["/private/report.html"] = fixed_page(
        site.plain_page("Not for robots", (inner,))
    )
    site.extra.pages["/private/inner.html"] = fixed_page(site.plain_page("Still not for robots"))
    site.extra.pages["/private/open.html"] = fixed_page(site.plain_page("Open after all"))
    site.extra.pages["/search?q=harbour"] = fixed_page(site.plain_page("Search results"))
    paths = ("/private/report.html", "/private/open.html", "/search?q=harbour")
    site.extra.entries += [site.make_link(path, path) for path in paths]


EXTRAS: dict[str, Callable[[Site], None]] = {
    "redirects": add_redirects,
    "dead": add_dead_links,
    "copies": add_copies,
    "mirror": add_mirror,
    "calendar": add_calendar,
    "deeper": add_endless_folders,
    "orders": add_robots_directives,
    "private": add_private_pages,
    "charsets": oddities.add_charsets,
    "variants": oddities.add_url_variants,
    "scripts": oddities.add_script_links,
    "documents": oddities.add_documents,
    "broken": broken.add_faults,
    "fault_index": broken.add_fault_index,
}
