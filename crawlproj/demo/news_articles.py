"""The articles of a news site: they come with the hours of its day, and each has an address, or
several.
"""

from __future__ import annotations

import zlib
from datetime import timedelta

from crawlproj.demo.articles import Articles, DemoArticle
from crawlproj.demo.events import Rhythm
from crawlproj.demo.model import HostSpec, NewsSpec, World
from crawlproj.demo.words import RandomText, title_slug

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
HOURS = (
    *(0.05, 0.05, 0.05, 0.05, 0.1, 0.3),
    *(0.7, 1.0, 1.0, 0.9, 0.9, 0.9),
    *(0.8, 0.8, 0.9, 0.9, 1.0, 0.9),
    *(0.8, 0.6, 0.5, 0.3, 0.2, 0.1),
)
"""What share of the busiest hour's articles each hour of the day has."""
RECENT = 12
"""So many articles before the first moment are as near as new ones are; older ones are archived."""
RECENT_EVERY_S = 2 * HOUR_S
ARCHIVE_EVERY_S = 2 * DAY_S
FIRST_ID = 1_000_000


class NewsArticles(Articles):
    """Recent ones every two hours before the first moment, archived ones every second day, new ones
    in the rhythm of the site.
    """

    def __init__(self, spec: HostSpec, news: NewsSpec, world: World) -> None:
        super().__init__(spec, world)
        self._news = news
        busiest_s = DAY_S / news.daily * (sum(HOURS) / len(HOURS))

        def share(age: float) -> float:
            return HOURS[int(news.hour + age / HOUR_S) % 24]

        self.arrivals = Rhythm(world.random_stream(spec.name, "arrivals"), busiest_s, share)
        self._first_id = FIRST_ID + zlib.crc32(spec.name.encode()) % 8_000_000

    @property
    def archived(self) -> int:
        """The articles with smaller numbers are in the archive, and linked from nowhere else."""
        return max(0, self._spec.articles - RECENT)

    def long_id(self, number: int) -> int:
        return self._first_id + 3 * number

    def number_of(self, long_id: int) -> int | None:
        number, rest = divmod(long_id - self._first_id, 3)
        return None if rest or number < 0 else number

    def _get(self, number: int) -> DemoArticle:
        spec = self._spec
        stream = self._world.random_stream(spec.name, "article", number)
        text = RandomText(stream)
        title = text.title()
        section = stream.choice(spec.sections)
        published = self._published(number, stream.random())
        return DemoArticle(
            number,
            section,
            title,
            path=self.address(number, section, title_slug(title), published),
            author=text.person_name(),
            published=published,
            paragraphs=stream.randint(4, 7),
        )

    def _published(self, number: int, jitter: float) -> float:
        before = self._spec.articles - number
        if before <= 0:
            return self.arrivals.event_time(1 - before)
        if number >= self.archived:
            return -RECENT_EVERY_S * (before - 1 + jitter)
        recent = self._spec.articles - self.archived
        return -RECENT_EVERY_S * recent - ARCHIVE_EVERY_S * (before - recent - 1 + jitter)

    def address(self, number: int, section: str, slug: str, published: float) -> str:
        """The path of an article under one of its slugs."""
        long_id = self.long_id(number)
        if self._news.addresses == "id_last":
            return f"/{section}/{slug}-{long_id}.html"
        if self._news.addresses == "id_first":
            return f"/{long_id}/{slug}.html"
        if self._news.addresses == "dated":
            day = self._world.datetime_at(0) + timedelta(seconds=published)
            return f"/{day:%Y/%m/%d}/{slug}-{number}/"
        return f"/{section}/{slug}-{number}"
