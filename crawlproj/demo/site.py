"""One host of the demo web: its page under a path at an age, the links of it, its HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode

from crawlproj.demo import render, sources
from crawlproj.demo.articles import Articles, DemoArticle, combined_version
from crawlproj.demo.markups import MARKUPS, ArticleParts
from crawlproj.demo.model import DemoLink, DemoPage, HostSpec, World
from crawlproj.demo.words import RandomText

LONG_AGO = -30 * 86_400.0
TRACKING = re.compile(r"utm_\w+|gclid|fbclid|PHPSESSID")

Maker = Callable[[float], DemoPage]
PathMaker = Callable[[str, float], "DemoPage | None"]


@dataclass(slots=True)
class Extra:
    """A special collection: links on the front page, fixed pages, and families of pages under a
    prefix.
    """

    entries: list[DemoLink] = field(default_factory=list)
    pages: dict[str, Maker] = field(default_factory=dict)
    families: dict[str, PathMaker] = field(default_factory=dict)


def canonical_target(target: str) -> str:
    """Path and query as the model names them: no fragment, no tracking, the rest sorted."""
    path, _, query = target.partition("#")[0].partition("?")
    kept = sorted(
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True)
        if not TRACKING.fullmatch(name)
    )
    if not kept:
        return path
    return f"{path}?{urlencode(kept)}"


def fixed_page(page: DemoPage) -> Maker:
    """The maker of a page that is the same at every age."""
    return lambda age: page


class Site:
    """A host. `sites` are all hosts of the web by name, for redirects and copies."""

    def __init__(self, spec: HostSpec, world: World, sites: dict[str, Site]) -> None:
        self.spec = spec
        self.world = world
        self.sites = sites
        self.articles = Articles(spec, world)
        self.extra = Extra()
        self.style = render.host_css(spec.name)
        self._listing = lru_cache(maxsize=512)(self._find_listing)

    def make_link(
        self, path: str, text: str = "", kind: str = "a", *, nofollow: bool = False, href: str = ""
    ) -> DemoLink:
        return DemoLink(
            self.world.url(self.spec.name, path), text, kind, nofollow=nofollow, href=href or path
        )

    @property
    def named_sitemaps(self) -> tuple[str, ...]:
        """The paths of the sitemaps that robots.txt names."""
        return ("/sitemap.xml",) if self.spec.sitemap else ()

    @property
    def nav_links(self) -> tuple[DemoLink, ...]:
        sections = (self.make_link(f"/{name}", name.capitalize()) for name in self.spec.sections)
        return (*sections, self.make_link("/about.html", "About us"))

    @property
    def footer_links(self) -> tuple[DemoLink, ...]:
        return tuple(
            DemoLink(self.world.url(name), f"Our partner {name}") for name in self.spec.partners
        )

    def find_page(self, target: str, age: float) -> DemoPage | None:
        """The page under `target` (path and query) at `age`; None: there is none (404)."""
        key = canonical_target(target)
        path = key.partition("?")[0]
        special = self.extra.pages.get(key) or self.extra.pages.get(path)
        if special:
            return special(age)
        for prefix, family in self.extra.families.items():
            if key.startswith(prefix):
                return family(key, age)
        return (
            self._find_fixed(path, age)
            or self._find_article(path, age)
            or self._find_list(key, age)
        )

    def _find_fixed(self, path: str, age: float) -> DemoPage | None:
        spec = self.spec
        if path == "/robots.txt":
            return DemoPage(
                "robots",
                LONG_AGO,
                body=lambda: sources.robots_txt(self),
                type="text/plain; charset=utf-8",
            )
        if path == "/about.html":
            return self.plain_page("About us", paragraphs=6)
        if path == "/feed.xml" and spec.feed:
            return sources.feed_page(self, age)
        if path == "/sitemap.xml" and spec.sitemap:
            return sources.sitemap_page(self, age)
        if path.startswith("/img/") and path.endswith(".svg"):
            return DemoPage(
                "image",
                LONG_AGO,
                body=lambda: render.picture_svg(path).encode(),
                type="image/svg+xml",
            )
        return None

    # --- articles

    def _find_article(self, path: str, age: float) -> DemoPage | None:
        found = re.fullmatch(r"/[\w-]+/[\w-]+-(\d{1,9})\.html", path)
        if not found:
            return None
        number = int(found[1])
        count = self.articles.published_count(age)
        if number >= count or self.articles.get(number).path != path:
            return None
        if number < count - self.spec.keep:
            return DemoPage(
                "gone",
                self.articles.arrival_age(number + self.spec.keep + 1),
                status=410,
                body=lambda: b"Gone.\n",
            )
        return self.article_page(number, age)

    def article_url(self, number: int) -> str:
        return self.world.url(self.spec.name, self.articles.get(number).path)

    def article_page(self, number: int, age: float) -> DemoPage:
        item = self.articles.get(number)
        version, changed = self.articles.version_at(number, age)
        inline = self._inline(item)
        related = self._related(number)
        picture = self.make_link(f"/img/{number}.svg", "A view", "img")
        head = self.feed_links()
        shown: tuple[DemoLink, ...] = (picture, *inline, *related)
        if self.spec.markup == "bare":
            shown = inline
        else:
            url = self.article_url(number)
            head = (self.make_link(item.path, kind="canonical", href=url), *head)

        def body() -> bytes:
            changed_at = None
            if version:
                changed_at = self.world.datetime_at(changed)
            parts = ArticleParts(
                item,
                self.articles.version_paragraphs(number, version),
                self.world.datetime_at(item.published),
                changed=changed_at,
                picture=picture,
                inline=inline,
                related=related,
            )
            html = MARKUPS[self.spec.markup](parts)
            return self.render_html(item.title, html.main, head, aside=html.aside, meta=html.meta)

        links = (*self._frame(), *head, *shown)
        return DemoPage("article", changed, version, links=links, body=body)

    def _inline(self, item: DemoArticle) -> tuple[DemoLink, ...]:
        if self.spec.dead_every and item.number % self.spec.dead_every == 1:
            return (self.make_link(f"/archive/lost-{item.number}.html", "an older report"),)
        return ()

    def _related(self, number: int) -> tuple[DemoLink, ...]:
        older = {number - 1, number - 2, number - 4, number - 7}
        return tuple(self.teaser_link(n) for n in sorted(older, reverse=True) if n >= 0)

    def teaser_link(self, number: int) -> DemoLink:
        item = self.articles.get(number)
        return self.make_link(item.path, item.title)

    # --- lists of articles

    def _find_list(self, key: str, age: float) -> DemoPage | None:
        return self._listing(key, self.articles.published_count(age))

    def _shown(self, key: str, count: int) -> tuple[tuple[int, ...], int] | None:
        """The numbers of the articles on a list page, and how many pages the list has.

        None if there is no such page.
        """
        path, _, query = key.partition("?")
        size = self.spec.per_page
        section = path[1:]
        if path == "/":
            return self.articles.kept_numbers(count)[: size + 2], 1
        page = 1
        if re.fullmatch(r"page=\d{1,6}", query):
            page = int(query[5:])
        if section not in self.spec.sections or page < 1:
            return None
        numbers = self.articles.kept_numbers(count, section)
        pages = max(1, -(-len(numbers) // size))
        if page > pages:
            return None
        return numbers[(page - 1) * size : page * size], pages

    def _find_listing(self, key: str, count: int) -> DemoPage | None:
        shown = self._shown(key, count)
        if shown is None:
            return None
        changed = self._list_changed(key, count)
        numbers, pages = shown
        path, _, query = key.partition("?")
        cards = tuple(
            (self.teaser_link(n), self.make_link(f"/img/{n}.svg", "A view", "img")) for n in numbers
        )
        if path == "/":
            kind = "front"
            heading = "Latest news"
            title = heading
            box_title = "More from us"
            more = tuple(self.extra.entries)
        else:
            kind = "section"
            heading = path[1:].capitalize()
            title = key[1:]
            box_title = "Pages"
            more = self._pager(path, int(query[5:] or 1), pages)

        def body() -> bytes:
            parts = [f"<h1>{heading}</h1>"]
            for number, (teaser, picture) in zip(numbers, cards, strict=True):
                when = self.world.datetime_at(self.articles.get(number).published)
                summary = self.articles.paragraph(number, 0, 0)[:160] + " ..."
                parts.append(render.card_html(teaser, picture, when, summary=summary))
            box = ""
            if more:
                box = f"<h3>{box_title}</h3>" + render.list_html(more)
            return self.render_html(title, "".join(parts), self.feed_links(), aside=box)

        links = (
            *self._frame(),
            *self.feed_links(),
            *(link for pair in cards for link in pair),
            *more,
        )
        return DemoPage(kind, changed, combined_version(changed), links=links, body=body)

    def _list_changed(self, key: str, count: int) -> float:
        """The age of the last arrival that changed what a list page shows."""
        now = self._shown(key, count)
        first = self.spec.articles
        for earlier in range(count - 1, first - 1, -1):
            if self._shown(key, earlier) != now:
                return self.articles.arrival_age(earlier + 1)
        return self.articles.arrival_age(first)

    def _pager(self, path: str, page: int, pages: int) -> tuple[DemoLink, ...]:
        links = []
        if page == 2:
            links.append(self.make_link(path, "Newer"))
        elif page > 2:
            links.append(self.make_link(f"{path}?page={page - 1}", "Newer"))
        if page < pages:
            links.append(self.make_link(f"{path}?page={page + 1}", "Older"))
        return tuple(links)

    def feed_links(self) -> tuple[DemoLink, ...]:
        if not self.spec.feed:
            return ()
        return (self.make_link("/feed.xml", "News", "feed"),)

    # --- how pages are put together

    def _frame(self) -> tuple[DemoLink, ...]:
        return (self.make_link("/", self.spec.title), *self.nav_links, *self.footer_links)

    def render_html(
        self,
        title: str,
        main: str,
        head: tuple[DemoLink, ...] = (),
        aside: str = "",
        meta: str = "",
    ) -> bytes:
        return render.page_html(
            self.spec.title,
            title,
            main,
            style=self.style,
            home=self.make_link("/", self.spec.title),
            nav=self.nav_links,
            footer=self.footer_links,
            aside=aside,
            head="".join(map(render.head_link, head)) + meta,
            noise=self.spec.noise,
        ).encode()

    def plain_page(
        self, title: str, links: tuple[DemoLink, ...] = (), *, paragraphs: int = 4, meta: str = ""
    ) -> DemoPage:
        """A page that never changes: some text, then `links`."""

        def body() -> bytes:
            text = RandomText(self.world.random_stream(self.spec.name, "plain", title))
            main = f"<h1>{title}</h1>"
            main += render.paragraphs_html(text.paragraph() for _ in range(paragraphs))
            if links:
                main += render.list_html(links)
            return self.render_html(title, main, meta=meta)

        return DemoPage("page", LONG_AGO, links=(*self._frame(), *links), body=body)
