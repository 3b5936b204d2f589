"""Sources in a database as visits would have left them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from crawlproj.database.connection import Database
from crawlproj.frontier.base import CrawlSpec, NewUrl
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.urls.canonical import host_of, url_key
from crawlproj.urls.domains import registered_domain


@dataclass
class Sources:
    """The sources of one crawl; moments are given in seconds before now."""

    database: Database
    crawl: str = "site"

    def __post_init__(self) -> None:
        self.frontier = PostgresFrontier(self.database, CrawlSpec(self.crawl))
        self.frontier.open()
        self.now = self.frontier.now()

    def ago(self, seconds: float) -> datetime:
        return self.now - timedelta(seconds=seconds)

    def add_url(self, url: str) -> int:
        id_ = url_key(self.crawl, url)
        self.frontier.add([NewUrl(id_, url, host_of(url), 1)])
        return id_

    def add(
        self,
        url: str,
        kind: str = "feed",
        *,
        first: float = 0,
        last: float = 0,
        last_new: float | None = None,
        gap_s: float | None = None,
        visits: int = 100,
        entries: int = 20,
        new_links: int = 20,
        newest: float | None = None,
        title: str = "",
        state: str = "waiting",
    ) -> int:
        """A source; `first`, `last`, `last_new` and `newest` are so many seconds ago."""
        id_ = self.add_url(url)
        values = {
            "first_visit": self.ago(first),
            "last_visit": self.ago(last),
            "last_new": None if last_new is None else self.ago(last_new),
            "newest": None if newest is None else self.ago(newest),
        }
        times = {
            name: "null" if at is None else f"'{at.isoformat()}'" for name, at in values.items()
        }
        self.database.run_script(f"""
            update crawlproj.url set source = true, visit = {visits}, state = '{state}', status = 200,
                lane = null, rank = null, interval_s = 900, next_visit = {times["last_visit"]}
            where id = {id_};
            insert into crawlproj.source (url, crawl, site, kind, title, first_visit, last_visit,
                visits, entries, new_links, last_new, gap_s, newest)
            values ({id_}, {self.frontier.crawl_id}, '{registered_domain(host_of(url))}', '{kind}',
                '{title}', {times["first_visit"]}, {times["last_visit"]}, {visits}, {entries},
                {new_links}, {times["last_new"]}, {"null" if gap_s is None else gap_s},
                {times["newest"]})
            on conflict (url) do update set first_visit = excluded.first_visit,
                last_visit = excluded.last_visit, visits = excluded.visits, entries = excluded.entries,
                new_links = excluded.new_links, last_new = excluded.last_new,
                gap_s = excluded.gap_s, newest = excluded.newest""")
        return id_

    def add_article(
        self, url: str, found: float, date: str = "", published: float | None = None
    ) -> None:
        """An article, found so many seconds ago."""
        id_ = self.add_url(url)
        at = self.ago(found).isoformat()
        listed = "null" if published is None else f"'{self.ago(published).isoformat()}'"
        self.database.run_script(f"""
            update crawlproj.url set published = {listed} where id = {id_};
            insert into crawlproj.article (page, crawl, site, version, at, found_at, changed_at,
                title, text, date, fields, text_key)
            values ({id_}, {self.frontier.crawl_id}, 'The Weekly', 1, '{at}', '{at}', '{at}', 't', 't',
                nullif('{date}', ''), '{{}}', 1)""")

    def stored(self) -> dict[str, tuple[bool, str]]:
        """Of each source whether it is silent, and its problem."""
        rows = self.database.run_script("""
            select u.canonical, s.silent_since is not null, s.problem
            from crawlproj.source s join crawlproj.url u on u.id = s.url""")
        return {url: (silent, problem) for url, silent, problem in rows}
