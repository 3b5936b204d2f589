"""The demo webs that there are, by name. A new one is a few lines of data."""

from __future__ import annotations

import dataclasses

from crawlproj.demo import broken, faults
from crawlproj.demo.model import HostSpec, Profile
from crawlproj.demo.news_web import NEWS_WEB

DISALLOW = ("/private/", "/search")
CHANGES = (0.0, 0.0, 600.0, 120.0, 40.0)

DEMO = Profile(
    "demo",
    hosts=(
        HostSpec(
            "news1",
            "The Harbour Post",
            articles=26,
            appear_s=30,
            change_s=CHANGES,
            feed="rss",
            sitemap=True,
            keep=30,
            crawl_delay_s=0.5,
            disallow=DISALLOW,
            allow=("/private/open.html",),
            extras=("private", "dead"),
            dead_every=9,
            partners=("news2", "news3"),
        ),
        HostSpec(
            "news2",
            "Meridian Daily",
            sections=("politics", "science"),
            articles=20,
            keep=24,
            appear_s=40,
            change_s=CHANGES,
            feed="atom",
            sitemap=True,
            validators="modified",
            extras=("redirects",),
            partners=("slow", "busy"),
            dead_every=8,
        ),
        HostSpec(
            "news3",
            "Valley Courier",
            "127.0.0.2",
            articles=24,
            keep=28,
            appear_s=60,
            change_s=CHANGES,
            validators="etag",
            extras=("copies", "variants"),
            partners=("mirror", "maze", "lantern", "ridgeway", "echo"),
            max_age_s=60,
        ),
        HostSpec(
            "mirror",
            "The Wire Mirror",
            "127.0.0.2",
            sections=("agency-own",),
            articles=6,
            extras=("mirror",),
            copies_of="news1",
            partners=("deep",),
            gzip=False,
        ),
        HostSpec(
            "maze",
            "Maze Gazette",
            "127.0.0.2",
            articles=14,
            disallow=("/calendar/",),
            extras=("calendar",),
            partners=("ticker",),
            validators="none",
        ),
        HostSpec(
            "deep",
            "Deep Country News",
            "127.0.0.3",
            sections=("country",),
            articles=10,
            extras=("calendar", "deeper"),
        ),
        HostSpec(
            "slow",
            "The Slow Reader",
            "127.0.0.3",
            sections=("essays",),
            articles=4,
            change_s=(60.0,),
            latency_s=(0.3, 1.0),
        ),
        HostSpec(
            "busy",
            "Busy Bulletin",
            "127.0.0.3",
            sections=("city",),
            articles=14,
            keep=16,
            appear_s=60,
            busy_every=7,
            partners=("babel",),
        ),
        HostSpec(
            "ticker",
            "Ticker Today",
            "127.0.0.4",
            sections=("markets", "people"),
            articles=14,
            change_s=(0.0, 90.0),
            noise=True,
            validators="none",
            partners=("notes",),
        ),
        HostSpec(
            "babel",
            "Babel Review",
            "127.0.0.4",
            sections=("letters",),
            articles=8,
            extras=("charsets", "documents"),
            partners=("news1",),
        ),
        HostSpec(
            "notes",
            "Marginal Notes",
            "127.0.0.4",
            sections=("margins",),
            articles=10,
            feed="atom",
            extras=("orders", "scripts"),
            change_s=(0.0, 200.0),
        ),
        # The three that the spiders of these names are made for.
        HostSpec(
            "lantern",
            "The Lantern",
            "127.0.0.4",
            sections=("town", "coast"),
            articles=8,
            keep=10,
            appear_s=50,
            change_s=(0.0, 120.0),
            feed="rss",
            sitemap=True,
        ),
        HostSpec(
            "ridgeway",
            "Ridgeway Times",
            "127.0.0.4",
            sections=("hills", "valley"),
            articles=9,
            keep=10,
            appear_s=80,
            change_s=(0.0, 150.0),
            per_page=3,
            markup="bare",
        ),
        HostSpec(
            "echo",
            "Quillham Echo",
            "127.0.0.4",
            sections=("city", "stage"),
            articles=7,
            keep=20,  # so that the article of the tutorial is still there after an hour
            appear_s=240,
            change_s=(0.0, 150.0),
            feed="atom",
            markup="odd",
        ),
    ),
    seeds=("news1", "news3"),
)

TINY = Profile(
    "tiny",
    hosts=(
        HostSpec(
            "one",
            "Tiny One",
            sections=("world",),
            articles=5,
            appear_s=60,
            change_s=(30.0, 0.0),
            feed="rss",
            sitemap=True,
            disallow=("/private/",),
            extras=("private", "redirects", "dead"),
            partners=("two",),
            per_page=3,
        ),
        HostSpec("two", "Tiny Two", sections=("world",), articles=3, validators="etag"),
    ),
    seeds=("one",),
)


def _bad_robots_host(name: str) -> HostSpec:
    """A host with one of the faulty robots.txt."""
    disallow: tuple[str, ...] = ()
    if name in faults.ROBOTS_WITH_RULES:
        disallow = ("/private/",)
    return HostSpec(
        f"robots-{name}.fault",
        f"robots.txt: {name}",
        sections=(),
        articles=0,
        robots=name,
        disallow=disallow,
        extras=("broken", "private"),
    )


FAULTS = Profile(
    "faults",
    hosts=(
        HostSpec(
            "fault",
            "Everything that can go wrong",
            sections=(),
            articles=0,
            extras=("broken", "fault_index"),
        ),
        *(
            HostSpec(f"{name}.fault", f"Fault {name}", sections=(), articles=0, extras=("broken",))
            for name in broken.PATHS
        ),
        *(_bad_robots_host(name) for name in faults.ROBOTS),
    ),
    seeds=("fault",),
    depth=4,
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (DEMO, TINY, FAULTS, NEWS_WEB)}


def find_profile(name: str) -> Profile:
    """The profile called `name`; a clear error names those that exist."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(
            f"no demo profile {name!r}; there are: {', '.join(sorted(PROFILES))}"
        ) from None


def grid_profile(
    hosts: int, addresses: int = 1, like: HostSpec | None = None, name: str = "grid"
) -> Profile:
    """Many hosts like `like`, spread over 127.0.0.1, 127.0.0.2, ...; all of them are seeds.

    Each links the next one.
    """
    model = like or HostSpec("")
    names = [f"h{number}" for number in range(1, hosts + 1)]
    specs = []
    for index, host in enumerate(names):
        partners: tuple[str, ...] = ()
        if hosts > 1:
            partners = (names[(index + 1) % hosts],)
        spec = dataclasses.replace(
            model,
            name=host,
            title=f"Host {host}",
            address=f"127.0.0.{index % addresses + 1}",
            partners=partners,
        )
        specs.append(spec)
    return Profile(name, tuple(specs), tuple(names))


def dns_hosts(web: Profile) -> dict[str, str]:
    """The address of each host name, in the form of the crawler's setting DNS_HOSTS."""
    return {spec.host: spec.address for spec in web.hosts}


def loopback_addresses(web: Profile) -> tuple[str, ...]:
    return tuple(sorted({"127.0.0.1"} | {spec.address for spec in web.hosts}))
