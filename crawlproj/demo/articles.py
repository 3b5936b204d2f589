"""The articles of one host: which exist at an age, and what they say in which version.

All of it follows from the seed and the age.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from crawlproj.demo.events import Poisson
from crawlproj.demo.model import HostSpec, World
from crawlproj.demo.words import RandomText, title_slug

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class DemoArticle:
    """What never changes about an article; `published` is a web age, negative before the epoch."""

    number: int
    section: str
    title: str
    path: str
    author: str
    published: float
    paragraphs: int


class Articles:
    """The articles 0, 1, 2, ... of a host in the order of publication.

    `spec.articles` of them were published before the epoch, then one comes per arrival.
    """

    def __init__(self, spec: HostSpec, world: World) -> None:
        self._spec = spec
        self._world = world
        self.arrivals = Poisson(world.random_stream(spec.name, "arrivals"), spec.appear_s)
        self._edits: dict[int, Poisson] = {}
        self.get = lru_cache(maxsize=4096)(self._get)
        self.paragraph = lru_cache(maxsize=4096)(self._paragraph)

    def published_count(self, age: float) -> int:
        return self._spec.articles + self.arrivals.events_until(age)

    def kept_numbers(self, count: int, section: str = "") -> tuple[int, ...]:
        """The numbers of the articles left when `count` have been published, newest first."""
        numbers = range(count - 1, max(0, count - self._spec.keep) - 1, -1)
        return tuple(n for n in numbers if not section or self.get(n).section == section)

    def arrival_age(self, count: int) -> float:
        """The age at which the `count`-th article was published."""
        if not count:
            return -1.0
        return self.get(count - 1).published

    def _get(self, number: int) -> DemoArticle:
        spec = self._spec
        stream = self._world.random_stream(self._spec.name, "article", number)
        text = RandomText(stream)
        first = spec.articles
        title = text.title()
        section = stream.choice(spec.sections)
        published = (number - first) * 3 * HOUR_S - stream.random() * HOUR_S
        if number >= first:
            published = self.arrivals.event_time(number - first + 1)
        path = f"/{section}/{title_slug(title)}-{number}.html"
        return DemoArticle(
            number,
            section,
            title,
            path=path,
            author=text.person_name(),
            published=published,
            paragraphs=stream.randint(6, 12),
        )

    def is_lasting(self, number: int) -> bool:
        """Whether an article never changes."""
        stream = self._world.random_stream(self._spec.name, "edits", number)
        return not stream.choice(self._spec.change_s)

    def version_at(self, number: int, age: float) -> tuple[int, float]:
        """How often an article has changed by `age`, and when it last did (or was published)."""
        edits = self._edits.get(number)
        published = self.get(number).published
        if edits is None:
            stream = self._world.random_stream(self._spec.name, "edits", number)
            edits = Poisson(stream, stream.choice(self._spec.change_s), max(0.0, published))
            edits = self._edits.setdefault(number, edits)
        version = edits.events_until(age)
        if not version:
            return 0, published
        return version, edits.event_time(version)

    def version_paragraphs(self, number: int, version: int) -> tuple[str, ...]:
        """The paragraphs of a version of an article.

        Change k rewrites one paragraph, each in its turn, so that versions are near-copies.
        """
        size = self.get(number).paragraphs
        texts = []
        for index in range(size):
            edit = 0
            if version > index:
                edit = (version - 1 - index) // size * size + index + 1
            texts.append(self.paragraph(number, index, edit))
        return tuple(texts)

    def _paragraph(self, number: int, index: int, edit: int) -> str:
        stream = self._world.random_stream(self._spec.name, "text", number, index, edit)
        return RandomText(stream).paragraph()


def combined_version(changed: float) -> int:
    """The version of a page that is made from others: the millisecond of its last change."""
    return max(0, round(changed * 1000))
