"""The values of the demo web: a host, its page at a moment, a request and a response."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

DOMAIN = "demo.test"
Validators = Literal["both", "etag", "modified", "none"]
FaultEnd = Literal["close", "reset", "hang"]


@dataclass(frozen=True, slots=True)
class NewsSpec:
    """What makes a host a news site (`news_site.py`). Hours are those of the web."""

    daily: float = 100.0
    """Articles a day, in the mean; by night there are few."""
    hour: float = 6.0
    """The hour of its day when the web begins: sites live in several time zones."""
    addresses: Literal["id_last", "id_first", "dated", "plain"] = "id_last"
    """How the addresses of articles are made: with a long number, with the day, with words only."""
    variants: tuple[Literal["slugs", "amp_prefix", "amp_suffix", "amp_query", "print"], ...] = ()
    """Other addresses of each article. `slugs`: feed, sitemaps and front page each have their own.
    """
    feed: Literal["", "rss", "atom", "json"] = ""
    feed_fault: Literal["", "stops", "repeats", "now"] = ""
    """It stops after two hours; it lists the same for ever; its dates are those of the request."""
    sitemaps: Literal["", "flat", "index", "dead"] = ""
    """`dead`: an index of sitemaps that are not there."""
    news_sitemap: bool = False
    front: Literal["new", "sections", "topics"] = "new"
    """What the front page shows: new articles; or nothing of them but links to the sections, or to
    a page that links to the sections.
    """
    archive_months: int = 0
    """How many months of old articles can be reached by the archive, and by nothing else."""
    forum: bool = False
    calendar: bool = False


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One host as data. Durations are seconds of web time, or real ones where the server waits."""

    name: str
    """First part of the host name: `news1` is `news1.demo.test`."""
    title: str = "The Demo Post"
    address: str = "127.0.0.1"
    sections: tuple[str, ...] = ("world", "business", "sport")
    articles: int = 12
    """How many articles there are at the epoch."""
    keep: int = 36
    """Only the newest so many articles stay; the status of older ones is 410."""
    appear_s: float = 0.0
    """Mean seconds between new articles; 0: none appear."""
    change_s: tuple[float, ...] = (0.0,)
    """Mean seconds between changes of an article; each article draws one of these; 0: it never
    changes.
    """
    per_page: int = 8
    feed: Literal["", "rss", "atom"] = ""
    sitemap: bool = False
    crawl_delay_s: float = 0.0
    disallow: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    validators: Validators = "both"
    gzip: bool = True
    max_age_s: int = 0
    latency_s: tuple[float, float] = (0.0, 0.0)
    busy_every: int = 0
    """One page request in so many gets 429, and so do all others until its Retry-After ends."""
    retry_after_s: int = 1
    noise: bool = False
    """Clock, counter and token on each page, different at every request although the content is the
    same.
    """
    dead_every: int = 0
    """One article in so many has a link to a page that does not exist."""
    extras: tuple[str, ...] = ()
    """Names of the special collections in `extras.py` that this host has."""
    markup: Literal["clean", "bare", "odd"] = "clean"
    """How its articles are written (`markups.py`)."""
    partners: tuple[str, ...] = ()
    copies_of: str = ""
    news: NewsSpec | None = None
    robots: str = ""
    """Name of what is wrong with robots.txt (`faults.ROBOTS`); empty: nothing."""

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"


@dataclass(frozen=True, slots=True)
class Profile:
    """A named web: its hosts, those whose front pages are the seeds, and the depth up to which it
    is finite.
    """

    name: str
    hosts: tuple[HostSpec, ...]
    seeds: tuple[str, ...]
    depth: int = 8


@dataclass(frozen=True, slots=True)
class DemoLink:
    """A link as the model knows it: `target` is canonical and absolute, `href` is what the page
    says.
    """

    target: str
    text: str = ""
    kind: str = "a"
    nofollow: bool = False
    href: str = ""

    @property
    def written_href(self) -> str:
        return self.href or self.target


@dataclass(frozen=True, slots=True)
class Fault:
    """Bytes that a server should not send, or not in this way: raw chunks, pauses between them, and
    how it ends.
    """

    name: str
    description: str
    chunks: Callable[[], Iterable[bytes]]
    end: FaultEnd = "close"
    status: int = 0
    """The status on the wire; 0: no valid status line is sent."""
    pause_s: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether it is over as soon as the client has read all there is."""
        return self.end != "hang" and not self.pause_s


def empty_body() -> bytes:
    return b""


@dataclass(frozen=True, slots=True)
class DemoPage:
    """The page under one URL at one moment.

    `changed` is the web age (seconds since the epoch, negative: before it) of the last change of
    the content and `version` rises with each change. `body` is called only when somebody wants the
    bytes. `copy_of`: the URL that it was copied from; `copy_kind`: exact, text, near or paragraph.
    """

    kind: str
    changed: float
    version: int = 0
    links: tuple[DemoLink, ...] = ()
    body: Callable[[], bytes] = field(default=empty_body, compare=False)
    status: int = 200
    type: str = "text/html; charset=utf-8"
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    noindex: bool = False
    nofollow: bool = False
    fault: Fault | None = None
    copy_of: str = ""
    copy_kind: str = ""


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """A request as the model sees it; header names are lower case."""

    host: str
    target: str = "/"
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DemoResponse:
    """A response, to be sent after `latency_s`; a fault replaces everything else."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    latency_s: float = 0.0
    fault: Fault | None = None


@dataclass(slots=True)
class World:
    """What all hosts share: the seed, the epoch `t0` (unix), the speed of time, and the port."""

    seed: int
    t0: float
    speed: float
    port: int

    def random_stream(self, *parts: object) -> random.Random:
        """A random stream of its own for each thing: drawing from one never disturbs another."""
        return random.Random("/".join(map(str, (self.seed, *parts))))

    def age_at(self, now: float) -> float:
        return max(0.0, (now - self.t0) * self.speed)

    def unix_time(self, age: float) -> float:
        if age > 0:
            age /= self.speed
        return self.t0 + age

    def datetime_at(self, age: float) -> datetime:
        return datetime.fromtimestamp(self.unix_time(age), UTC)

    def url(self, name: str, path: str = "/") -> str:
        """The absolute URL of a path on the host called `name` (without the domain)."""
        if self.port == 80:
            return f"http://{name}.{DOMAIN}{path}"
        return f"http://{name}.{DOMAIN}:{self.port}{path}"
