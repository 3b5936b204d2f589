"""Articles under several addresses are fetched once, where addresses tell: what is learned of each
host, and which addresses are held back.

A view (AMP, for printing) is held back if the article itself has gone through. Of the addresses
with one long number two go through; if they turn out to be one article three times on a host, by
what pages name as canonical, the second is held back from then on. If two of them ever claim to be
canonical themselves, the number says nothing on that host, and all that was held back goes through.

What is known here is of one worker. Of addresses with a number the frontier keeps, for all workers,
how many have gone through, and holds back others (`ArticleClaim`, `ArticleEnd`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from crawlproj.frontier.base import Found
from crawlproj.urls.article_keys import ArticleKey, article_key, viewed_urls

ENOUGH = 3
"""So many articles of a host show that its numbers name articles."""
UNSURE = 2
"""So many addresses of a number go through as long as that is not known."""
MAX_HELD = 5_000
MAX_ADDRESSES = 20
"""So many are kept of one article; later ones wait for a page that links them again."""
MAX_SHAPES = 20_000


class HeldUrl(NamedTuple):
    """What is needed to let a URL through later."""

    url: str
    depth: int
    parent: int | None
    found: Found


class Freed(Enum):
    """What a page has shown to say nothing: its own number, or all of its form of address."""

    NOTHING = 0
    NUMBER = 1
    SHAPE = 2


@dataclass(slots=True)
class _Shape:
    """What is known of the numbers in one form of address of one host."""

    agreed: set[int] = field(default_factory=set)
    distrusted: bool = False

    @property
    def trusted(self) -> bool:
        return len(self.agreed) >= ENOUGH and not self.distrusted


@dataclass(slots=True)
class _Held:
    """Addresses that wait for what becomes of another. `shape`: empty for views."""

    shape: str
    urls: dict[str, HeldUrl] = field(default_factory=dict)


class ArticleAddresses:
    """Lives on the event loop, beside `SeenUrls`. Its memory is bounded: what it forgets goes
    through once more.
    """

    def __init__(self, limit: int, id_of: Callable[[str], int] = hash) -> None:
        """`id_of` gives the id of a URL in this crawl."""
        self._id_of = id_of
        self._half = max(1, limit // 2)
        self._passed: dict[int, tuple[int, ...]] = {}
        self._older: dict[int, tuple[int, ...]] = {}
        self._shapes: dict[str, _Shape] = {}
        self._selves: dict[int, int] = {}
        self._held: dict[int, _Held] = {}
        self.held_back = 0
        """How often an address was held back that was not held already."""
        self._released: list[HeldUrl] = []
        self._settled: list[tuple[str, int]] = []

    def admit(self, url: HeldUrl, passed: Callable[[str], bool]) -> bool:
        """Whether an address is to be fetched; if not, it is kept for the case that it must be.
        `passed` says of a URL whether it has gone through.
        """
        views = viewed_urls(url.url)
        for view in views:
            if passed(view):
                self._hold(hash(view), "", url, page=self._id_of(view))
                return False
        key = article_key(views[0] if views else url.url)
        if key is None:
            return True
        shape = self._shape(key)
        if shape.distrusted:
            return True
        number = hash(key)
        known = self._recall(number)
        own = self._id_of(url.url)
        if own in known:
            return True
        if len(known) >= (1 if shape.trusted else UNSURE):
            self._hold(number, key.shape, url, page=known[0] if shape.trusted else None)
            return False
        self._passed[number] = (*known, own)
        return True

    def claim_of(self, url: str) -> tuple[ArticleKey, int] | None:
        """The number of an address that goes through, and how many with it may; None: all."""
        views = viewed_urls(url)
        key = article_key(views[0] if views else url)
        if key is None:
            return None
        shape = self._shape(key)
        if shape.distrusted:
            return None
        return key, 1 if shape.trusted else UNSURE

    def learn(self, url: str, canonical: str | None) -> Freed:
        """Take in what a page that was read names as its canonical address; what that says of its
        number.
        """
        key = article_key(url)
        self._held.pop(hash(url), None)
        if key is None:
            return Freed.NOTHING
        number = hash(key)
        shape = self._shape(key)
        if shape.distrusted:
            return Freed.NOTHING
        if canonical == url:
            self._note_self(url, key, shape)
            return Freed.SHAPE if shape.distrusted else Freed.NOTHING
        if canonical is not None and article_key(canonical) == key:
            shape.agreed.add(number)
            if shape.trusted:
                self._drop_shape(key.shape)
        elif not shape.trusted:
            # Nothing says that the others are the same.
            self._release(number)
            return Freed.NUMBER
        return Freed.NOTHING

    def fail(self, url: str) -> None:
        """An address has turned out to be no page: let those through that were held for it."""
        key = article_key(url)
        self._release(hash(url))
        if key is not None:
            number = hash(key)
            own = self._id_of(url)
            self._passed[number] = tuple(each for each in self._recall(number) if each != own)
            self._release(number)

    def take_released(self) -> list[HeldUrl]:
        """Addresses that are to be fetched after all."""
        taken = self._released
        if taken:
            self._released = []
        return taken

    def take_settled(self) -> list[tuple[str, int]]:
        """Addresses that have turned out to be those of another page, with its id."""
        taken = self._settled
        if taken:
            self._settled = []
        return taken

    def _note_self(self, url: str, key: ArticleKey, shape: _Shape) -> None:
        """Two addresses with one number that both are canonical are two articles."""
        number = hash(key)
        other = self._selves.get(number)
        if other is not None and other != hash(url):
            shape.distrusted = True
            for held_number in [n for n, held in self._held.items() if held.shape == key.shape]:
                self._release(held_number)
            return
        if len(self._selves) >= self._half:
            self._selves.clear()
        self._selves[number] = hash(url)
        if shape.trusted:
            self._held.pop(number, None)

    def _shape(self, key: ArticleKey) -> _Shape:
        shape = self._shapes.get(key.shape)
        if shape is None:
            if len(self._shapes) >= MAX_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            shape = self._shapes[key.shape] = _Shape()
        return shape

    def _recall(self, number: int) -> tuple[int, ...]:
        known = self._passed.get(number)
        if known is None:
            if len(self._passed) >= self._half:
                self._older = self._passed
                self._passed = {}
            known = self._older.get(number, ())
            if known:
                self._passed[number] = known
        return known

    def _hold(self, number: int, shape: str, url: HeldUrl, page: int | None) -> None:
        """Keep an address for later; `page`: whose it is, if there is no doubt."""
        held = self._held.get(number)
        if held is None:
            if len(self._held) >= MAX_HELD:
                self._give_up_oldest()
            held = self._held[number] = _Held(shape)
        if url.url not in held.urls:
            self.held_back += 1
            if len(held.urls) < MAX_ADDRESSES:
                held.urls[url.url] = url
                if page is not None:
                    self._settled.append((url.url, page))

    def _give_up_oldest(self) -> None:
        number = next(iter(self._held))
        shape = self._shapes.get(self._held[number].shape)
        if shape is not None and not shape.trusted:
            self._release(number)
        else:
            del self._held[number]

    def _release(self, number: int) -> None:
        held = self._held.pop(number, None)
        if held is not None:
            self._released += held.urls.values()

    def _drop_shape(self, name: str) -> None:
        for number in [n for n, held in self._held.items() if held.shape == name]:
            held = self._held.pop(number)
            known = self._recall(number)
            if known:
                self._settled += [(url, known[0]) for url in held.urls]
