"""A news site of the demo web: articles under several addresses, sources of all kinds, an archive
six clicks deep, and bait without end.

Each place that lists articles says which by `listed_numbers`, and its page is made from that.
"""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta

from crawlproj.demo import news_sources, render
from crawlproj.demo.articles import DemoArticle, combined_version
from crawlproj.demo.model import DemoLink, DemoPage, HostSpec, NewsSpec, World
from crawlproj.demo.news_articles import NewsArticles
from crawlproj.demo.site import LONG_AGO, Site, canonical_target
from crawlproj.demo.words import title_slug

FRONT_SIZE = 14
SECTION_SIZE = 12
SECTION_PAGES = 2
ARCHIVE_SIZE = 6
FORUM_LINKS = 4
TOPICS = "/topics.html"
MONTH = re.compile(r"/archive/(\d{4})/(\d{2})/")
YEAR = re.compile(r"/archive/(\d{4})/")
PAGE = re.compile(r"page=(\d{1,3})")
PLACES = ("front", "feed", "sitemap")
"""With the variant `slugs` an article has another slug in each of them."""


class NewsSite(Site):
    def __init__(self, spec: HostSpec, world: World, sites: dict[str, Site]) -> None:
        super().__init__(spec, world, sites)
        assert spec.news is not None
        self.news: NewsSpec = spec.news
        self.news_articles = NewsArticles(spec, spec.news, world)
        self.articles = self.news_articles

    # --- what there is

    def find_page(self, target: str, age: float) -> DemoPage | None:
        key = canonical_target(target)
        path, _, query = key.partition("?")
        if path in ("/robots.txt", "/about.html") or path.startswith("/img/"):
            return self._find_fixed(path, age)
        if path.startswith(("/forum/", "/calendar/")):
            return self._find_bait(path, query)
        if path in self.source_paths or path.startswith("/sitemap-"):
            return news_sources.source_page(self, path, age)
        if path.startswith("/archive/"):
            return self._find_archive(path, query)
        return self._find_variant(path, query, age) or self._find_news_list(key, age)

    @property
    def feed_path(self) -> str:
        names = {"rss": "/feed.xml", "atom": "/news.atom", "json": "/feed.json"}
        return names.get(self.news.feed, "")

    @property
    def named_sitemaps(self) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        if self.news.news_sitemap:
            found += ("/news-sitemap.xml",)
        if self.news.sitemaps:
            found += ("/sitemap.xml",)
        return found

    @property
    def source_paths(self) -> tuple[str, ...]:
        """Feed and sitemaps that are there all the time."""
        return (*filter(None, [self.feed_path]), *self.named_sitemaps)

    @property
    def list_paths(self) -> tuple[str, ...]:
        """Pages that show what is new."""
        sections = tuple(f"/{section}" for section in self.spec.sections)
        return ("/", *sections) if self.news.front == "new" else sections

    def listed_numbers(self, target: str, age: float) -> tuple[int, ...]:
        """The articles that a source or list shows at an age, newest first."""
        path, _, query = target.partition("?")
        if path in self.source_paths or path.startswith("/sitemap-"):
            return news_sources.listed_numbers(self, path, age)
        if path.startswith("/archive/"):
            return self._archived_numbers(path, query)
        count = self.articles.published_count(age)
        if path == "/":
            return self._newest(count, FRONT_SIZE) if self.news.front == "new" else ()
        section = path[1:]
        page = _page_number(query)
        if section not in self.spec.sections or not 1 <= page <= SECTION_PAGES:
            return ()
        shown = self._newest(count, SECTION_SIZE * page, section)
        return shown[SECTION_SIZE * (page - 1) :]

    def _newest(self, count: int, size: int, section: str = "") -> tuple[int, ...]:
        found: list[int] = []
        for number in range(count - 1, self.news_articles.archived - 1, -1):
            if not section or self.articles.get(number).section == section:
                found.append(number)
                if len(found) == size:
                    break
        return tuple(found)

    # --- articles and their addresses

    def number_under(self, target: str) -> tuple[int, str] | None:
        """The article that an address names, and which variant it is ("": its own); whether it has
        been published is another matter.
        """
        path, _, query = target.partition("?")
        has = self.news.variants
        variant = ""
        if "amp_prefix" in has and path.startswith("/amp/"):
            path = path[4:]
            variant = "amp"
        elif "amp_suffix" in has and path.endswith("/amp/"):
            path = path[:-4]
            variant = "amp"
        elif "amp_query" in has and query == "outputType=amp":
            variant = "amp"
        elif "print" in has and query == "print=1":
            variant = "print"
        elif query:
            return None
        number = self._number_in(path)
        if number is None:
            return None
        return number, variant

    def _number_in(self, path: str) -> int | None:
        style = self.news.addresses
        if style in ("id_last", "id_first"):
            form = r"/[\w-]+/[\w-]+-(\d{7,9})\.html"
            if style == "id_first":
                form = r"/(\d{7,9})/[\w-]+\.html"
            found = re.fullmatch(form, path)
            return self.news_articles.number_of(int(found[1])) if found else None
        form = r"/[\w-]+/[\w-]+-(\d{1,6})"
        if style == "dated":
            form = r"/\d{4}/\d\d/\d\d/[\w-]+-(\d{1,6})/"
        found = re.fullmatch(form, path)
        return int(found[1]) if found else None

    def _find_variant(self, path: str, query: str, age: float) -> DemoPage | None:
        target = f"{path}?{query}" if query else path
        found = self.number_under(target)
        if found is None or found[0] >= self.articles.published_count(age):
            return None
        number, variant = found
        own = self.articles.get(number).path
        bare = path.removeprefix("/amp") if variant else path
        has_words = "slugs" in self.news.variants and own.split("/")[-1] != bare.split("/")[-1]
        page = self.article_page(number, age)
        if not variant and path == own:
            return page
        if not has_words and not variant:
            return None
        return dataclasses.replace(
            page, kind=variant or "slug", copy_of=self.article_url(number), copy_kind="text"
        )

    def address_in(self, number: int, place: str) -> str:
        """The path under which a place links an article."""
        item = self.articles.get(number)
        if "slugs" not in self.news.variants or place not in PLACES[1:]:
            return item.path
        slug = f"{place}-{title_slug(item.title)}"
        return self.news_articles.address(number, item.section, slug, item.published)

    def link_in(self, number: int, place: str) -> DemoLink:
        return self.make_link(self.address_in(number, place), self.articles.get(number).title)

    def teaser_link(self, number: int) -> DemoLink:
        return self.link_in(number, "front")

    def other_links(self, number: int) -> tuple[DemoLink, ...]:
        """Links of an article to itself: AMP in the head, a version for printing in the text."""
        path = self.articles.get(number).path
        links: list[DemoLink] = []
        for name in self.news.variants:
            if name == "amp_prefix":
                links.append(self.make_link(f"/amp{path}", "Light version"))
            elif name == "amp_suffix":
                links.append(self.make_link(f"{path}amp/", "Light version"))
            elif name == "amp_query":
                links.append(self.make_link(f"{path}?outputType=amp", "Light version"))
            elif name == "print":
                links.append(self.make_link(f"{path}?print=1", "Print"))
        return tuple(links)

    def _inline(self, item: DemoArticle) -> tuple[DemoLink, ...]:
        return self.other_links(item.number)

    def _related(self, number: int) -> tuple[DemoLink, ...]:
        """Older ones, but none from the archive; and archived ones link none."""
        if number < self.news_articles.archived:
            return ()
        older = (number - 1, number - 2, number - 4)
        return tuple(self.teaser_link(n) for n in older if n >= self.news_articles.archived)

    def feed_links(self) -> tuple[DemoLink, ...]:
        if not self.feed_path:
            return ()
        return (self.make_link(self.feed_path, "News", "feed"),)

    # --- lists

    @property
    def nav_links(self) -> tuple[DemoLink, ...]:
        links = list(self._section_links)
        if self.news.front == "topics":
            links = [self.make_link(TOPICS, "All topics")]
        links.append(self.make_link("/about.html", "About us"))
        if self.news.archive_months:
            links.append(self.make_link("/archive/", "Archive"))
        if self.news.forum:
            links.append(self.make_link("/forum/", "Forum"))
        if self.news.calendar:
            links.append(self.make_link("/calendar/2026/01/", "Calendar"))
        return tuple(links)

    @property
    def _section_links(self) -> tuple[DemoLink, ...]:
        return tuple(self.make_link(f"/{name}", name.capitalize()) for name in self.spec.sections)

    def _find_news_list(self, key: str, age: float) -> DemoPage | None:
        if key == "/" and self.news.front != "new":
            welcome = self.plain_page("Welcome", self.nav_links, paragraphs=1)
            return dataclasses.replace(welcome, kind="front")
        if key == TOPICS and self.news.front == "topics":
            return self.plain_page("All topics", self._section_links, paragraphs=1)
        numbers = self.listed_numbers(key, age)
        if not numbers:
            return None
        path, _, query = key.partition("?")
        kind = "front" if path == "/" else "section"
        pager: tuple[DemoLink, ...] = ()
        page = _page_number(query)
        if kind == "section" and self.listed_numbers(f"{path}?page={page + 1}", age):
            pager = (self.make_link(f"{path}?page={page + 1}", "Older"),)
        newest = self.listed_numbers(path, age)[0]
        changed = max(self.articles.get(newest).published, LONG_AGO)
        return self._list_page(kind, key, numbers, pager, changed)

    def _list_page(
        self,
        kind: str,
        title: str,
        numbers: tuple[int, ...],
        more: tuple[DemoLink, ...],
        changed: float,
    ) -> DemoPage:
        cards = tuple((self.teaser_link(n), self._picture(n)) for n in numbers)

        def body() -> bytes:
            parts = [f"<h1>{title}</h1>"]
            for number, (teaser, picture) in zip(numbers, cards, strict=True):
                when = self.world.datetime_at(self.articles.get(number).published)
                summary = self.articles.paragraph(number, 0, 0)[:160] + " ..."
                parts.append(render.card_html(teaser, picture, when, summary=summary))
            box = f"<h3>Pages</h3>{render.list_html(more)}" if more else ""
            return self.render_html(title, "".join(parts), self.feed_links(), aside=box)

        teasers = tuple(link for card in cards for link in card)
        links = (*self._frame(), *self.feed_links(), *teasers, *more)
        return DemoPage(kind, changed, combined_version(changed), links=links, body=body)

    def _picture(self, number: int) -> DemoLink:
        return self.make_link(f"/img/{number}.svg", "A view", "img")

    # --- the archive: years, months, pages of months, articles

    def _months(self) -> dict[str, list[int]]:
        """The archived articles by year and month (as in the path), newest first."""
        months: dict[str, list[int]] = {}
        for number in range(self.news_articles.archived - 1, -1, -1):
            published = self.articles.get(number).published
            day = self.world.datetime_at(0) + timedelta(seconds=published)
            months.setdefault(f"{day:%Y/%m}", []).append(number)
        return months

    def _archived_numbers(self, path: str, query: str) -> tuple[int, ...]:
        found = MONTH.fullmatch(path)
        if not found:
            return ()
        page = _page_number(query)
        numbers = self._months().get(f"{found[1]}/{found[2]}", [])
        return tuple(numbers[max(0, page - 1) * ARCHIVE_SIZE : page * ARCHIVE_SIZE])

    def _find_archive(self, path: str, query: str) -> DemoPage | None:
        if not self.news.archive_months:
            return None
        months = self._months()
        if path == "/archive/":
            links = [self.make_link(f"/archive/{y}/", y) for y in sorted({m[:4] for m in months})]
        elif YEAR.fullmatch(path):
            year = path[9:13]
            links = [self.make_link(f"/archive/{m}/", m) for m in months if m.startswith(year)]
        else:
            numbers = self._archived_numbers(path, query)
            if not numbers:
                return None
            more: tuple[DemoLink, ...] = ()
            page = _page_number(query)
            if self._archived_numbers(path, f"page={page + 1}"):
                more = (self.make_link(f"{path}?page={page + 1}", "Older"),)
            return self._list_page("archive", path, numbers, more, LONG_AGO)
        if not links:
            return None
        return dataclasses.replace(
            self.plain_page(path, tuple(links), paragraphs=0), kind="archive"
        )

    # --- bait

    def _find_bait(self, path: str, query: str) -> DemoPage | None:
        """A forum of threads that link threads, and a calendar of days and months: no end."""
        found = re.fullmatch(r"/calendar/(\d{4})/(\d\d)/(?:(\d\d)/)?", path)
        if found and self.news.calendar:
            months = int(found[1]) * 12 + int(found[2]) - 1
            paths = [f"/calendar/{m // 12:04}/{m % 12 + 1:02}/" for m in (months - 1, months + 1)]
            if not found[3]:
                paths += [f"{path}{day:02}/" for day in range(1, 29)]
            links = tuple(self.make_link(each, f"Events {each[10:-1]}") for each in paths)
            page = self.plain_page(f"Events {path[10:-1]}", links, paragraphs=1)
            return dataclasses.replace(page, kind="calendar")
        if path.startswith("/forum/") and self.news.forum:
            links = (*self._forum_links(path + query), self.make_link(f"{path}?page=2", "Next"))
            page = self.plain_page(f"Talk {path}{query}", links, paragraphs=2)
            return dataclasses.replace(page, kind="forum")
        return None

    def _forum_links(self, of: str) -> tuple[DemoLink, ...]:
        stream = self.world.random_stream(self.spec.name, "forum", of)
        threads = [stream.randrange(100_000) for _ in range(FORUM_LINKS)]
        return tuple(self.make_link(f"/forum/thread/{n}/", f"Talk about {n}") for n in threads)


def _page_number(query: str) -> int:
    """The page that a query names: 1 without a query, 0 if it is another query."""
    if not query:
        return 1
    found = PAGE.fullmatch(query)
    return int(found[1]) if found else 0
