"""The whole demo web as a pure model: how each host responds at a time. No sockets, threads, files.

Everything follows from the profile, the seed, the epoch and the time: two webs made alike are
alike, also in two processes. Only the noise of noisy hosts is counted per response.
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
from crawlproj.demo.news_site import NewsSite
from crawlproj.demo.site import Site, canonical_target
from crawlproj.demo.truth import FOLLOWED, Truth, walk_links

MIN_GZIP_BYTES = 300
CACHE_PAGES = 4096


@dataclass(slots=True)
class RenderedPage:
    """The bytes of one version of a page; `compressed` is made when it is first needed."""

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
        for spec in profile.hosts:
            kind = NewsSite if spec.news else Site
            self.sites[spec.name] = kind(spec, self.world, self.sites)
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
        host = host.lower()
        if ":" in host:
            host = host.rpartition(":")[0]
        return self._by_host.get(host)

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
        """The page of the host under `target`; for robots.txt with its faults."""
        if site.spec.robots and target == "/robots.txt":
            robots = faults.ROBOTS[site.spec.robots]
            if isinstance(robots, Fault):
                return DemoPage("robots", -1.0, fault=robots)
            return robots
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

    # --- responses

    def response_to(self, request: DemoRequest, now: float) -> DemoResponse:
        """The response to a request at the time `now` (unix seconds of the web's clock)."""
        site = self.find_site(request.host)
        if site is None:
            return _text(
                421, f"No host {request.host[:100]!r} on this web; hosts end in .{DOMAIN}.\n"
            )
        if request.method not in ("GET", "HEAD"):
            return replace(_text(405, "Only GET and HEAD.\n"), headers=(("Allow", "GET, HEAD"),))
        page = self.find_page(site, request.target, self.world.age_at(now))
        if page is None:
            return _text(
                404,
                site.render_html("Not found", "<h1>Not found</h1><p>There is no such page.</p>"),
            )
        if page.fault:
            return DemoResponse(page.fault.status, fault=page.fault)
        response = self._full_response(site, request, page, now=now)
        return replace(response, latency_s=self._latency_s(site.spec, request.target))

    def _full_response(
        self, site: Site, request: DemoRequest, page: DemoPage, now: float
    ) -> DemoResponse:
        """The response with the page, compressed if the client accepts it, or a 304."""
        rendered = self.render_page(site, request.target, page)
        headers = (("Content-Type", page.type), *page.headers)
        validators: tuple[tuple[str, str], ...] = ()
        if page.status == 200:
            validators = self._validators(site.spec, page, rendered, now=now)
            headers += validators
        if page.location:
            headers += (("Location", page.location),)
        if validators and _not_modified(request.headers, dict(validators)):
            kept = tuple((name, value) for name, value in headers if name != "Content-Type")
            return DemoResponse(304, kept)
        body = rendered.body
        if site.spec.noise:
            body = body.replace(render.NOISE.encode(), self._make_noise(now))
        elif site.spec.gzip and len(body) >= MIN_GZIP_BYTES:
            headers += (("Vary", "Accept-Encoding"),)
            if _accepts_gzip(request.headers.get("accept-encoding", "")):
                if not rendered.compressed:
                    rendered.compressed = gzip.compress(body, 6, mtime=0)
                headers += (("Content-Encoding", "gzip"),)
                body = rendered.compressed
        return DemoResponse(page.status, headers, body)

    def _validators(
        self, spec: HostSpec, page: DemoPage, rendered: RenderedPage, now: float
    ) -> tuple[tuple[str, str], ...]:
        """ETag, Last-Modified and Cache-Control, as far as the host sends them.

        A change in this very second has no Last-Modified yet, because a second change in the same
        second could not be told from it.
        """
        found: list[tuple[str, str]] = []
        if spec.validators in ("both", "etag"):
            etag = f'"{page.version}-{rendered.digest[:16]}"'
            if spec.gzip:
                etag = f"W/{etag}"
            found.append(("ETag", etag))
        changed = int(self.world.unix_time(page.changed))
        if spec.validators in ("both", "modified") and changed < int(now):
            date = format_datetime(datetime.fromtimestamp(changed, UTC), usegmt=True)
            found.append(("Last-Modified", date))
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
        if not high:
            return 0.0
        return self.world.random_stream(spec.name, "latency", target).uniform(low, high)

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
        """What a crawl from `seeds` finds at the time `at`; see `Truth` and `walk_links`."""
        if seeds is None:
            seeds = self.seed_urls
        if depth is None:
            depth = self.profile.depth
        return walk_links(
            self, at, seeds, depth=depth, nofollow=nofollow, sources=sources, follow=follow
        )

    def is_allowed(self, site: Site, target: str) -> bool:
        """Whether robots.txt, also a broken one, lets a crawler fetch `target` by RFC 9309."""
        if site.spec.robots in faults.ROBOTS_KEEP_AWAY:
            return target == "/robots.txt"
        return sources.is_allowed(site.spec, target)


def _text(status: int, text: str | bytes) -> DemoResponse:
    if isinstance(text, str):
        text = text.encode()
    return DemoResponse(status, (("Content-Type", "text/html; charset=utf-8"),), text)


def _accepts_gzip(header: str) -> bool:
    offers = [part.replace(" ", "").lower() for part in header.split(",")]
    return any(
        offer.split(";")[0] in ("gzip", "*") and not offer.endswith(("q=0", "q=0.0"))
        for offer in offers
    )


def _not_modified(request_headers: dict[str, str], validators: dict[str, str]) -> bool:
    """Whether a 304 is due: If-None-Match decides alone if it is there, by weak comparison."""
    if "if-none-match" in request_headers:
        tags = {
            tag.strip().removeprefix("W/") for tag in request_headers["if-none-match"].split(",")
        }
        own = validators.get("ETag", "")
        return "*" in tags or (bool(own) and own.removeprefix("W/") in tags)
    if "if-modified-since" in request_headers and "Last-Modified" in validators:
        try:
            since = parsedate_to_datetime(request_headers["if-modified-since"])
        except ValueError:
            return False
        return parsedate_to_datetime(validators["Last-Modified"]) <= since.replace(tzinfo=UTC)
    return False
