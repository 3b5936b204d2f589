"""The whole demo web as a pure model: what each host answers at a time. No sockets, no threads, no
files.

Everything follows from the profile, the seed, the epoch and the time asked for: two webs made alike
are alike, also in two processes. Only the noise of noisy hosts is counted per answer.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from urllib.parse import urlsplit

from crawlproj.demo import faults, render, sources
from crawlproj.demo.clock import EPOCH
from crawlproj.demo.extras import EXTRAS
from crawlproj.demo.model import (
    DOMAIN,
    DemoPage,
    DemoRequest,
    DemoResponse,
    Fault,
    HostSpec,
    Profile,
    World,
)
from crawlproj.demo.site import Site, canonical_target
from crawlproj.demo.truth import FOLLOWED, Truth, walk_links

MIN_GZIP_BYTES = 300
CACHE_PAGES = 4096


@dataclass(slots=True)
class RenderedPage:
    """The bytes of one version of a page; `packed` is made when first asked for."""

    body: bytes
    digest: str
    compressed: bytes = b""


class Web:
    """All hosts of a profile. `port` is part of their URLs, so it is known from the start."""

    def __init__(
        self,
        profile: Profile,
        *,
        seed: int = 1,
        t0: float = EPOCH,
        speed: float = 1.0,
        port: int = 80,
    ) -> None:
        self.profile = profile
        self.world = World(seed, t0, speed, port=port)
        self.sites: dict[str, Site] = {}
        self.sites |= {spec.name: Site(spec, self.world, self.sites) for spec in profile.hosts}
        self._by_host = {site.spec.host: site for site in self.sites.values()}
        self._cache: OrderedDict[tuple[str, str, float], RenderedPage] = OrderedDict()
        self._noise = itertools.count(1)
        for site in self.sites.values():
            for name in site.spec.extras:
                EXTRAS[name](site)

    # --- addresses

    def url(self, name: str, path: str = "/") -> str:
        return self.world.url(name, path)

    @property
    def seed_urls(self) -> tuple[str, ...]:
        return tuple(self.url(name) for name in self.profile.seeds)

    def find_site(self, host: str) -> Site | None:
        """The host of that full name, with or without a port."""
        return self._by_host.get(host.lower().rpartition(":")[0] if ":" in host else host.lower())

    def split_url(self, url: str) -> tuple[Site, str] | None:
        """The host and the canonical path of one of the web's own URLs; None: it lies outside."""
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError:
            return None
        site = self._by_host.get(parts.hostname or "")
        if site is None or parts.scheme != "http" or port != self.world.port:
            return None
        return site, canonical_target(f"{parts.path or '/'}?{parts.query}")

    # --- pages

    def find_page(self, site: Site, target: str, age: float) -> DemoPage | None:
        """What stands there: robots.txt with its faults, or the host's page."""
        if site.spec.robots and target == "/robots.txt":
            wrong = faults.ROBOTS[site.spec.robots]
            return DemoPage("robots", -1.0, fault=wrong) if isinstance(wrong, Fault) else wrong
        return site.find_page(target, age)

    def render_page(self, site: Site, target: str, page: DemoPage) -> RenderedPage:
        """The bytes of a page, kept per version."""
        key = (site.spec.name, canonical_target(target), page.changed)
        found = self._cache.get(key)
        if found is None:
            body = page.body()
            found = RenderedPage(
                body, hashlib.sha256(body.replace(render.NOISE.encode(), b"")).hexdigest()
            )
            self._cache[key] = found
            while len(self._cache) > CACHE_PAGES:
                self._cache.popitem(last=False)
        return found

    # --- answers

    def response_to(self, ask: DemoRequest, now: float) -> DemoResponse:
        """The answer to a request at the time `now` (unix seconds of the web's clock)."""
        site = self.find_site(ask.host)
        if site is None:
            return _text(421, f"No host {ask.host[:100]!r} on this web; hosts end in .{DOMAIN}.\n")
        if ask.method not in ("GET", "HEAD"):
            return replace(_text(405, "Only GET and HEAD.\n"), headers=(("Allow", "GET, HEAD"),))
        page = self.find_page(site, ask.target, self.world.age_at(now))
        if page is None:
            return _text(
                404,
                site.render_html("Not found", "<h1>Not found</h1><p>There is no such page.</p>"),
            )
        if page.fault:
            return DemoResponse(page.fault.status, fault=page.fault)
        answer = self._full(site, ask, page, now=now)
        return replace(answer, latency_s=self._latency_s(site.spec, ask.target))

    def _full(self, site: Site, ask: DemoRequest, page: DemoPage, now: float) -> DemoResponse:
        made = self.render_page(site, ask.target, page)
        validators = self._validators(site.spec, page, made, now=now) if page.status == 200 else ()
        headers = (("Content-Type", page.type), *page.headers, *validators)
        headers += (("Location", page.location),) if page.location else ()
        if validators and _not_modified(ask.headers, dict(validators)):
            return DemoResponse(304, tuple(h for h in headers if h[0] != "Content-Type"))
        body = made.body
        if site.spec.noise:
            body = body.replace(render.NOISE.encode(), self._make_noise(now))
        elif site.spec.gzip and len(body) >= MIN_GZIP_BYTES:
            headers += (("Vary", "Accept-Encoding"),)
            if _accepts_gzip(ask.headers.get("accept-encoding", "")):
                made.compressed = made.compressed or gzip.compress(body, 6, mtime=0)
                return DemoResponse(
                    page.status, (*headers, ("Content-Encoding", "gzip")), made.compressed
                )
        return DemoResponse(page.status, headers, body)

    def _validators(
        self, spec: HostSpec, page: DemoPage, made: RenderedPage, now: float
    ) -> tuple[tuple[str, str], ...]:
        """ETag and Last-Modified as the host gives them. A change in this very second has no
        Last-Modified yet, because a second change in the same second could not be told from it.
        """
        found: list[tuple[str, str]] = []
        if spec.validators in ("both", "etag"):
            weak = "W/" if spec.gzip else ""
            found.append(("ETag", f'{weak}"{page.version}-{made.digest[:16]}"'))
        changed = self.world.unix_time(page.changed)
        if spec.validators in ("both", "modified") and int(changed) < int(now):
            found.append(
                (
                    "Last-Modified",
                    format_datetime(datetime.fromtimestamp(int(changed), UTC), usegmt=True),
                )
            )
        if spec.max_age_s:
            found.append(("Cache-Control", f"max-age={spec.max_age_s}"))
        return tuple(found)

    def _make_noise(self, now: float) -> bytes:
        count = next(self._noise)
        token = hashlib.sha256(f"{self.world.seed}/{count}".encode()).hexdigest()[:24]
        clock = datetime.fromtimestamp(now + count, UTC)
        return render.noise_html(token, 40_000 + count, f"{clock:%H:%M:%S}")

    def _latency_s(self, spec: HostSpec, target: str) -> float:
        low, high = spec.latency_s
        return (
            self.world.random_stream(spec.name, "latency", target).uniform(low, high)
            if high
            else 0.0
        )

    # --- truth

    def truth_at(
        self,
        at: float,
        *,
        seeds: Collection[str] | None = None,
        depth: int | None = None,
        nofollow: bool = True,
        sources: bool = True,
        follow: Collection[str] = FOLLOWED,
    ) -> Truth:
        """What a crawl from `seeds` finds at the time `at`; see `Truth` and `truth.walk` for what
        counts.
        """
        limit = self.profile.depth if depth is None else depth
        return walk_links(
            self,
            at,
            self.seed_urls if seeds is None else seeds,
            depth=limit,
            nofollow=nofollow,
            sources=sources,
            follow=follow,
        )

    def is_allowed(self, site: Site, target: str) -> bool:
        """Whether robots.txt lets a crawler ask for `target`, as RFC 9309 says also for a
        robots.txt that is broken.
        """
        if site.spec.robots in faults.ROBOTS_KEEP_AWAY:
            return target == "/robots.txt"
        return sources.is_allowed(site.spec, target)


def _text(status: int, text: str | bytes) -> DemoResponse:
    body = text.encode() if isinstance(text, str) else text
    return DemoResponse(status, (("Content-Type", "text/html; charset=utf-8"),), body)


def _accepts_gzip(header: str) -> bool:
    offers = [part.replace(" ", "").lower() for part in header.split(",")]
    return any(
        offer.split(";")[0] in ("gzip", "*") and not offer.endswith(("q=0", "q=0.0"))
        for offer in offers
    )


def _not_modified(asked: dict[str, str], validators: dict[str, str]) -> bool:
    """If-None-Match decides alone when it is there (weak comparison); else If-Modified-Since."""
    if "if-none-match" in asked:
        tags = {tag.strip().removeprefix("W/") for tag in asked["if-none-match"].split(",")}
        own = validators.get("ETag", "")
        return "*" in tags or (bool(own) and own.removeprefix("W/") in tags)
    if "if-modified-since" in asked and "Last-Modified" in validators:
        try:
            since = parsedate_to_datetime(asked["if-modified-since"])
        except ValueError:
            return False
        return parsedate_to_datetime(validators["Last-Modified"]) <= since.replace(tzinfo=UTC)
    return False
