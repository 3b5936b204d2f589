"""The demo web keeps its word: one seed, one web; its truth is what a crawler finds; rates and
faults hold.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import http.client
import io
import json
import re
import socket
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree, html  # type: ignore[import-untyped]
from protego import Protego

from crawlproj.demo import (
    EPOCH,
    DemoProcess,
    DemoServer,
    FrozenClock,
    HostSpec,
    PortInUse,
    Profile,
    Web,
    find_profile,
    grid_profile,
)
from crawlproj.demo import dns_hosts as names_of
from crawlproj.demo.broken import PATHS
from crawlproj.demo.events import Poisson
from crawlproj.demo.faults import BOMB_BYTES, FAULTS, HUGE_BYTES
from crawlproj.demo.model import DemoRequest
from crawlproj.demo.server import BusyHost
from crawlproj.demo.site import TRACKING
from crawlproj.demo.words import RandomText, title_slug

HOUR_S = 3600.0


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


def get(demo: DemoServer | DemoProcess, url: str, **headers: str) -> Reply:
    """One GET on a connection of its own, to the address that the demo web names for the host."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        demo.dns_hosts[parts.hostname or ""], demo.port, timeout=20
    )
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(connection):
        connection.request("GET", target, headers={"Host": parts.netloc, **named})
        with connection.getresponse() as response:
            return Reply(
                response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
            )


def quick(web: Profile) -> Profile:
    """The same web without waiting."""
    hosts = (dataclasses.replace(host, latency_s=(0.0, 0.0), busy_every=0) for host in web.hosts)
    return dataclasses.replace(web, hosts=tuple(hosts))


# --- a crawler in miniature: knows HTTP and HTML, knows nothing of the model


def canonical(base: str, href: str) -> str:
    parts = urlsplit(urljoin(base, href))
    query = urlencode(
        sorted(pair for pair in parse_qsl(parts.query) if not TRACKING.fullmatch(pair[0]))
    )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path or '/'}" + (
        f"?{query}" if query else ""
    )


def links(url: str, reply: Reply) -> Iterator[tuple[str, str]]:
    """(kind, URL) of all links that may be followed, and of the images."""
    kind = reply.headers["content-type"]
    if url.endswith((".pdf", ".docx", ".txt")):
        yield from (("a", found.decode()) for found in document_links(reply.body))
    elif "xml" in kind and "svg" not in kind:
        tree = etree.fromstring(reply.body)
        for node in tree.iter("{*}link", "{*}loc"):
            yield "source", canonical(url, node.get("href") or node.text)
    elif "html" in kind and reply.body:
        yield from html_links(url, reply, kind)


def document_links(body: bytes) -> list[bytes]:
    if body.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return re.findall(
                rb'Target="(http[^"]+)"', archive.read("word/_rels/document.xml.rels")
            )
    return re.findall(rb"/URI\((.+?)\)", body) or re.findall(rb"http\S+(?=\.\s)", body)


def html_links(url: str, reply: Reply, kind: str) -> Iterator[tuple[str, str]]:
    charset = kind.partition("charset=")[2] or None
    tree = html.document_fromstring(reply.body, parser=html.HTMLParser(encoding=charset))
    if "nofollow" in "".join(tree.xpath("//meta[@name='robots']/@content")):
        return
    base = urljoin(url, "".join(tree.xpath("//base/@href")))
    found = tree.xpath(
        "//a[not(@rel='nofollow')]/@href | //area/@href | //iframe/@src | //link[@rel]/@href"
    )
    found += [re.search("'(.+)'", text)[1] for text in tree.xpath("//@onclick")]  # type: ignore[index]
    found += re.findall(r'"((?:http:/)?/[^"]+)"', "".join(tree.xpath("//script/text()")))
    yield from (("a", canonical(base, href)) for href in found)
    yield from (("img", canonical(base, href)) for href in tree.xpath("//img/@src"))


@dataclass
class Crawl:
    """Breadth-first, polite about robots.txt, each URL once."""

    demo: DemoServer
    limit: int
    replies: dict[str, Reply] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=set)
    rules: dict[str, Protego] = field(default_factory=dict)

    def run(self, seeds: tuple[str, ...]) -> Crawl:
        now = dict.fromkeys(seeds, 0)
        later = dict[str, int]()
        for depth in range(self.limit + 1):
            todo = list(now)
            while todo:
                self.visit(todo.pop(0), depth, todo, later)
            now = later
            later = {}
        return self

    def visit(self, url: str, depth: int, same: list[str], later: dict[str, int]) -> None:
        if url in self.replies or url in self.forbidden:
            return
        if not self.robots(url, later).can_fetch(url, "anybot"):
            self.forbidden.add(url)
            return
        reply = self.replies[url] = get(self.demo, url)
        self.depths[url] = depth
        if "location" in reply.headers:
            same.append(canonical(url, reply.headers["location"]))
        elif reply.status == 200:
            for kind, target in links(url, reply):
                (self.images.add(target) if kind == "img" else later.setdefault(target, 0))

    def robots(self, url: str, later: dict[str, int]) -> Protego:
        where = urljoin(url, "/robots.txt")
        if where not in self.rules:
            self.replies[where] = get(self.demo, where)
            self.rules[where] = Protego.parse(self.replies[where].body.decode())
            later |= dict.fromkeys(self.rules[where].sitemaps, 0)
        return self.rules[where]


@pytest.mark.parametrize(
    ("name", "later_s"), [("tiny", 0.0), ("tiny", 300.0), ("demo", 0.0), ("demo", 200.0)]
)
def test_truth_is_what_a_crawler_finds_over_a_socket(name: str, later_s: float) -> None:
    clock = FrozenClock()
    with DemoServer(quick(find_profile(name)), clock=clock) as demo:
        clock.advance(later_s)
        truth = demo.web.truth_at(clock())
        crawl = Crawl(demo, demo.profile.depth).run(demo.web.seed_urls)
        assert set(crawl.replies) == truth.requested_urls
        assert crawl.forbidden == truth.forbidden
        assert crawl.images - set(crawl.replies) == truth.images
        assert {u for u, r in crawl.replies.items() if "location" in r.headers} == set(
            truth.redirects
        )
        assert {u: r.status for u, r in crawl.replies.items() if r.status >= 400} == truth.errors
        assert {u: crawl.depths[u] for u in truth.pages} == {
            u: page.depth for u, page in truth.pages.items()
        }
        quiet = {
            u: p.digest for u, p in truth.pages.items() if not u.startswith(demo.url("ticker", "/"))
        }
        assert {u: hashlib.sha256(crawl.replies[u].body).hexdigest() for u in quiet} == quiet
        asked = [f"http://{record.host}{record.path}" for record in demo.log.records()]
        assert len(asked) == len(set(asked)) == len(truth.requested_urls)


def test_every_page_holds_exactly_the_links_the_model_knows() -> None:
    web = Web(find_profile("demo"), port=8000)
    truth = web.truth_at(EPOCH + HOUR_S)
    for url, page in truth.pages.items():
        answer = web.response_to(DemoRequest(*_ask(url)), EPOCH + HOUR_S)
        reply = Reply(200, {k.lower(): v for k, v in answer.headers}, answer.body)
        open_links = {link.target for link in page.links if not link.nofollow}
        expected = set() if "/notes/nofollow" in url else open_links
        assert {target for _, target in links(url, reply)} == expected, url


def _ask(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")


# --- the model


def test_two_webs_with_one_seed_are_the_same_and_another_seed_is_not() -> None:
    one, same, other = (Web(find_profile("demo"), seed=seed, port=8000) for seed in (5, 5, 6))
    other.truth_at(EPOCH + 9 * HOUR_S)
    same.truth_at(EPOCH + 9 * HOUR_S)
    assert one.truth_at(EPOCH + 400) == same.truth_at(EPOCH + 400)
    assert one.truth_at(EPOCH + 400) != other.truth_at(EPOCH + 400)


def test_the_demo_has_about_three_hundred_pages_and_small_hosts() -> None:
    web = Web(find_profile("demo"), port=8000)
    asked = web.truth_at(EPOCH).requested_urls
    hosts = [urlsplit(url).hostname for url in asked]
    assert 280 <= len(asked) <= 350
    assert max(hosts.count(host) for host in set(hosts)) <= 45
    assert set(hosts) == set(names_of(web.profile))


def test_it_stays_small_after_a_month() -> None:
    assert (
        len(Web(find_profile("demo"), port=8000).truth_at(EPOCH + 30 * 24 * HOUR_S).requested_urls)
        < 440
    )


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_minute_brings_changed_and_new_articles(seed: int) -> None:
    web = Web(find_profile("demo"), seed=seed, port=8000)
    before = web.truth_at(EPOCH).pages
    after = web.truth_at(EPOCH + 60).pages
    changed = [url for url in before if url in after and before[url].digest != after[url].digest]
    assert len([url for url in changed if before[url].kind == "article"]) >= 5
    assert len([url for url in after if url not in before and after[url].kind == "article"]) >= 1


@pytest.mark.parametrize("step_s", [7.0, 61.0, 1999.0])
def test_content_changes_exactly_when_the_version_does(step_s: float) -> None:
    web = Web(find_profile("demo"), port=8000)
    before = web.truth_at(EPOCH)
    at = EPOCH
    for _ in range(12):
        at += step_s
        after = web.truth_at(at)
        for url in before.pages.keys() & after.pages.keys():
            old = before.pages[url]
            new = after.pages[url]
            assert (
                (old.digest != new.digest)
                == (old.version != new.version)
                == (old.changed_at != new.changed_at)
            ), url
            assert new.changed_at <= at
            if old.version != new.version:
                assert at - step_s < new.changed_at and new.version > old.version
        before = after


@pytest.mark.parametrize("every_s", [20.0, 90.0])
def test_events_come_at_their_rate(every_s: float) -> None:
    web = Web(
        grid_profile(40, like=HostSpec("", appear_s=every_s, change_s=(every_s,), keep=10**6)),
        port=8000,
    )
    for count in (
        sum(
            site.articles.published_count(6000.0) - site.spec.articles
            for site in web.sites.values()
        ),
        sum(site.articles.version_at(0, 6000.0)[0] for site in web.sites.values()),
    ):
        expected = 40 * 6000 / every_s
        assert abs(count - expected) < 4 * expected**0.5


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=20), st.floats(1, 1e3))
@settings(max_examples=50, deadline=None)
def test_events_do_not_depend_on_who_asks_when(ages: list[float], every_s: float) -> None:
    stream = Web(find_profile("tiny")).world.random_stream
    jumping = Poisson(stream("x"), every_s)
    fresh = [Poisson(stream("x"), every_s) for _ in ages]
    counts = [jumping.events_until(age) for age in ages]
    assert counts == [process.events_until(age) for process, age in zip(fresh, ages, strict=True)]
    for age, count in zip(ages, counts, strict=True):
        assert not count or jumping.event_time(count) <= age


def test_each_change_rewrites_one_paragraph_in_turn() -> None:
    articles = Web(find_profile("tiny")).sites["one"].articles
    size = articles.get(0).paragraphs
    versions = [articles.version_paragraphs(0, version) for version in range(2 * size + 2)]
    for version, (old, new) in enumerate(pairwise(versions)):
        assert [i for i in range(size) if old[i] != new[i]] == [version % size]


def test_speed_makes_things_happen_sooner_but_not_in_the_future() -> None:
    slow, fast = (Web(find_profile("demo"), speed=speed, port=8000) for speed in (1.0, 10.0))
    assert set(fast.truth_at(EPOCH + 60).pages) == set(slow.truth_at(EPOCH + 600).pages)
    assert max(page.changed_at for page in fast.truth_at(EPOCH + 60).pages.values()) <= EPOCH + 60


def test_articles_that_fall_out_answer_410_and_future_ones_404() -> None:
    web = Web(find_profile("demo"), port=8000)
    site = web.sites["news1"]
    late = EPOCH + 6 * HOUR_S
    assert site.articles.published_count(6 * HOUR_S) > site.spec.articles + site.spec.keep
    oldest = site.articles.get(0).path
    newest = site.articles.get(site.articles.published_count(6 * HOUR_S) - 1).path
    assert web.response_to(DemoRequest("news1.demo.test", oldest), EPOCH).status == 200
    assert web.response_to(DemoRequest("news1.demo.test", oldest), late).status == 410
    assert web.response_to(DemoRequest("news1.demo.test", newest), EPOCH).status == 404
    assert web.response_to(DemoRequest("news1.demo.test", newest), late).status == 200


def test_nofollow_depth_and_sources_are_arguments() -> None:
    web = Web(find_profile("demo"), port=8000)
    usual = web.truth_at(EPOCH)
    bold = web.truth_at(EPOCH, nofollow=False)
    assert set(bold.pages) - set(usual.pages) == usual.unfollowed
    shallow = web.truth_at(EPOCH, depth=1)
    assert max(page.depth for page in shallow.pages.values()) == 1 and shallow.too_deep
    assert not [url for url in web.truth_at(EPOCH, sources=False).pages if url.endswith(".xml")]


def test_traps_grow_with_the_depth_limit_only_where_robots_allow_them() -> None:
    web = Web(find_profile("demo"), port=8000)
    found = web.truth_at(EPOCH, depth=30).pages
    assert (
        len([url for url in found if "/calendar/" in url])
        == len([url for url in found if "/more/" in url])
        == 28
    )
    assert not [url for url in found if url.startswith(web.url("maze", "/calendar"))]


def test_copies_are_exact_and_reprints_are_near() -> None:
    web = Web(find_profile("demo"), port=8000)
    pages = web.truth_at(EPOCH + 60).pages
    path = web.sites["news3"].articles.get(1).path
    assert pages[web.url("news3", "/copy" + path)].digest == pages[web.url("news3", path)].digest
    text = [
        web.response_to(DemoRequest("news3.demo.test", prefix + path), EPOCH + 60).body
        for prefix in ("", "/print")
    ]
    paragraphs = [set(re.findall(rb"<p>(.{80,}?)</p>", body)) for body in text]
    assert paragraphs[0] == paragraphs[1]


def test_noise_differs_at_every_answer_and_the_rest_does_not() -> None:
    web = Web(find_profile("demo"), port=8000)
    bodies = [web.response_to(DemoRequest("ticker.demo.test", "/"), EPOCH).body for _ in range(3)]
    assert len(set(bodies)) == 3
    assert (
        len({re.sub(rb'<div class="meta" data-token.*?</div>', b"", body) for body in bodies}) == 1
    )


def test_text_is_readable_and_slugs_are_clean() -> None:
    voice = RandomText(Web(find_profile("tiny")).world.random_stream("text"))
    assert all(re.fullmatch(r'["A-Z].+[."]', voice.sentence()) for _ in range(200))
    assert title_slug('Why "Kestrel-on-Sea": 3 songs') == "why-kestrel-on-sea-3-songs"


def test_hosts_are_slow_only_where_the_profile_says_so() -> None:
    web = Web(find_profile("demo"), port=8000)
    assert 0.3 <= web.response_to(DemoRequest("slow.demo.test", "/"), EPOCH).latency_s <= 1.0
    assert web.response_to(DemoRequest("news1.demo.test", "/"), EPOCH).latency_s == 0


def test_unknown_hosts_methods_and_profiles_are_refused_clearly() -> None:
    web = Web(find_profile("tiny"), port=8000)
    assert web.response_to(DemoRequest("evil.example", "/"), EPOCH).status == 421
    assert web.response_to(DemoRequest("one.demo.test", "/", "POST"), EPOCH).status == 405
    with pytest.raises(ValueError, match="demo, faults, newsweb, tiny"):
        find_profile("nothing")


# --- conditional requests


@pytest.mark.parametrize(
    ("validators", "has"), [("both", 2), ("etag", 1), ("modified", 1), ("none", 0)]
)
def test_conditional_get_says_304_until_the_page_changes(validators: str, has: int) -> None:
    spec = HostSpec("h", articles=3, change_s=(30.0,), validators=validators)  # type: ignore[arg-type]
    clock = FrozenClock()
    with DemoServer(Profile("one", (spec,), ("h",)), clock=clock) as demo:
        path = demo.web.sites["h"].articles.get(0).path
        for _ in range(6):
            first = get(demo, demo.url("h", path))
            names = {"etag": "If_None_Match", "last-modified": "If_Modified_Since"}
            asked = {new: first.headers[old] for old, new in names.items() if old in first.headers}
            assert len(asked) == has
            again = get(demo, demo.url("h", path), **asked)
            assert (again.status, again.body == b"") == ((304, True) if has else (200, False))
            version = demo.web.sites["h"].articles.version_at(0, clock() - EPOCH)[0]
            while demo.web.sites["h"].articles.version_at(0, clock() - EPOCH)[0] == version:
                clock.advance(2.5)
            clock.advance(2.0)
            changed = get(demo, demo.url("h", path), **asked)
            assert changed.status == 200 and changed.body != first.body


def test_a_change_of_this_second_has_no_last_modified_yet() -> None:
    web = Web(Profile("one", (HostSpec("h", articles=1, change_s=(30.0,)),), ("h",)), port=8000)
    site = web.sites["h"]
    version = site.articles.version_at(0, 500.0)[0]
    at = web.world.unix_time(site.articles.version_at(0, 500.0)[1])
    assert version
    names = [
        dict(web.response_to(DemoRequest("h.demo.test", site.articles.get(0).path), now).headers)
        for now in (at, at + 1)
    ]
    assert "Last-Modified" not in names[0] and "Last-Modified" in names[1]


def test_if_none_match_decides_alone_and_bad_dates_are_ignored() -> None:
    web = Web(find_profile("tiny"), port=8000)
    full = dict(web.response_to(DemoRequest("one.demo.test", "/about.html"), EPOCH).headers)

    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.response_to(
            DemoRequest("one.demo.test", "/about.html", headers=named), EPOCH
        ).status

    assert status(if_none_match='"other"', if_modified_since=full["Last-Modified"]) == 200
    assert status(if_none_match=f'"other", {full["ETag"]}') == 304
    assert status(if_modified_since="Thu, 01 Jan 1970 00:00:00 GMT") == 200
    assert status(if_modified_since="yesterday") == 200
    assert status(if_none_match="*") == 304


def test_a_host_without_etags_matches_none() -> None:
    web = Web(find_profile("demo"), port=8000)
    since = dict(web.response_to(DemoRequest("news2.demo.test", "/about.html"), EPOCH).headers)[
        "Last-Modified"
    ]
    for tag, status in (('"other"', 200), ("", 200), ("*", 304)):
        asked = {"if-none-match": tag, "if-modified-since": since}
        assert (
            web.response_to(
                DemoRequest("news2.demo.test", "/about.html", headers=asked), EPOCH
            ).status
            == status
        )


def test_gzip_is_sent_only_to_those_who_take_it() -> None:
    with DemoServer("tiny", clock=FrozenClock()) as demo:
        url = demo.url("one", "/about.html")
        plain, packed, refused = (
            get(demo, url, Accept_Encoding=e) for e in ("identity", "br, gzip;q=0.8", "gzip;q=0")
        )
        assert (
            packed.headers["content-encoding"] == "gzip"
            and gzip.decompress(packed.body) == plain.body == refused.body
        )
        assert (
            "content-encoding" not in plain.headers and plain.headers["vary"] == "Accept-Encoding"
        )


# --- the server


def test_keep_alive_serves_many_requests_on_one_connection_and_head_has_no_body() -> None:
    with DemoServer("tiny", clock=FrozenClock()) as demo:
        connection = http.client.HTTPConnection("127.0.0.1", demo.port, timeout=10)
        for method in ("GET", "HEAD", "GET"):
            connection.request(
                method,
                "/about.html",
                headers={"Host": f"one.demo.test:{demo.port}", "User-Agent": "me"},
            )
            response = connection.getresponse()
            body = response.read()
            assert (response.status, bool(body)) == (200, method == "GET")
        connection.close()
        records = demo.log.records()
        assert len({record.connection for record in records}) == 1
        assert [record.method for record in records] == ["GET", "HEAD", "GET"]


def test_log_tells_who_asked_what_when_and_from_where(tmp_path: Path) -> None:
    with DemoServer("demo", clock=FrozenClock(), log_path=tmp_path / "log.jsonl") as demo:
        before = time.monotonic()
        get(
            demo,
            demo.url("news3", "/?x=1"),
            User_Agent="robot/1",
            If_None_Match='"x"',
            Cookie="a=b",
        )
        (record,) = demo.log.records()
        assert (
            before - 0.01 <= record.started <= record.ended <= time.monotonic()
        )  # the kernel counts in steps of 4 ms
        assert (record.host, record.path, record.status) == (
            f"news3.demo.test:{demo.port}",
            "/?x=1",
            200,
        )
        assert (record.user_agent, record.if_none_match, record.cookie) == ("robot/1", '"x"', "a=b")
        assert record.local == demo.dns_hosts["news3.demo.test"]
        assert record.bytes_sent > 1000
        assert json.loads((tmp_path / "log.jsonl").read_text()) == dataclasses.asdict(record)


def test_hosts_answer_on_their_own_addresses() -> None:
    with DemoServer(grid_profile(6, addresses=3), clock=FrozenClock()) as demo:
        for host in demo.profile.hosts:
            get(demo, demo.url(host.name))
        assert [r.local for r in demo.log.records()] == [f"127.0.0.{n % 3 + 1}" for n in range(6)]


def test_busy_host_says_429_now_and_then_and_recovers() -> None:
    busy = BusyHost(3, 2)
    now = 100.0
    assert [busy.refuse_request(now) is None for _ in range(3)] == [True, True, False]
    refusal = busy.refuse_request(now + 0.5)
    assert refusal and refusal.status == 429 and dict(refusal.headers)["Retry-After"] == "2"
    assert [busy.refuse_request(now + 2.0) is None for _ in range(3)] == [True, True, False]


def test_busy_host_never_refuses_robots_txt_and_the_log_tells_the_wait() -> None:
    web = Profile("busy", (HostSpec("h", busy_every=2, retry_after_s=30),), ("h",))
    with DemoServer(web, clock=FrozenClock()) as demo:
        statuses = [
            get(demo, demo.url("h", path)).status for path in ("/", "/", "/", "/robots.txt")
        ]
        assert statuses == [200, 429, 429, 200]
        assert [record.retry_after_s for record in demo.log.records()] == [0, 30, 30, 0]


def test_port_in_use_is_said_clearly() -> None:
    with DemoServer("tiny") as demo:
        with pytest.raises(PortInUse, match=f"port {demo.port} on 127.0.0.1 is in use"):
            DemoServer("tiny", port=demo.port)
        command = [
            sys.executable,
            "-m",
            "crawlproj.demo",
            "--profile",
            "tiny",
            "--port",
            str(demo.port),
        ]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (
            ended.returncode == 1
            and "is in use" in ended.stderr
            and "Traceback" not in ended.stderr
        )


def test_nothing_but_loopback_is_bound() -> None:
    with pytest.raises(ValueError, match="loopback only"):
        DemoServer(Profile("open", (HostSpec("h", address="0.0.0.0"),), ("h",)))


def test_a_second_server_with_the_same_epoch_goes_on_with_the_same_web() -> None:
    with DemoServer("tiny", clock=FrozenClock(EPOCH + 500), t0=EPOCH) as demo:
        port = demo.port
        first = demo.web.truth_at(EPOCH + 500)
    with DemoServer("tiny", clock=FrozenClock(EPOCH + 500), t0=EPOCH, port=port) as demo:
        assert demo.web.truth_at(demo.now()) == first
        path = next(
            url for url, page in first.pages.items() if page.version and page.kind == "article"
        )
        assert hashlib.sha256(get(demo, path).body).hexdigest() == first.pages[path].digest


def test_a_child_process_serves_the_same_web_and_its_log_can_be_read() -> None:
    with DemoProcess("tiny", frozen=True, t0=EPOCH) as demo:
        start = demo.now()
        assert demo.advance(100.0) == start + 100.0
        url = demo.url("one", "/")
        assert (
            hashlib.sha256(get(demo, url).body).hexdigest()
            == demo.web.truth_at(demo.now()).pages[url].digest
        )
        (record,) = demo.records()
        assert (record.path, record.status) == ("/", 200)
        child = demo.child
    assert child.returncode == 0


# --- faults


@pytest.fixture(scope="module")
def faulty() -> Iterator[DemoServer]:
    with DemoServer("faults", clock=FrozenClock()) as demo:
        yield demo


def raw(
    demo: DemoServer, path: str, limit: int = 10**9, silence_s: float = 20.0, least: int = 0
) -> tuple[bytes, str]:
    """What comes over the wire for a path, up to `limit` bytes, and how it ended: eof, reset,
    timeout or limit. That it is silent counts only after `least` bytes.
    """
    got = bytearray()
    with socket.create_connection(("127.0.0.1", demo.port)) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: fault.demo.test:{demo.port}\r\n\r\n".encode())
        sock.settimeout(None if least else silence_s)
        try:
            while data := sock.recv(1 << 20):
                got += data
                if len(got) >= least:
                    sock.settimeout(silence_s)
                if len(got) > limit:
                    return bytes(got), "limit"
        except TimeoutError:
            return bytes(got), "timeout"
        except ConnectionResetError:
            return bytes(got), "reset"
    return bytes(got), "eof"


@pytest.mark.parametrize(
    ("path", "start", "end", "least", "most"),
    [
        ("/timeout", b"", "timeout", 0, 0),
        ("/stall", b"HTTP/1.1 200", "timeout", 1000, 2000),
        ("/reset", b"", "reset", 0, 0),
        ("/reset-body", b"", "reset", 0, 2000),
        ("/no-answer", b"", "eof", 0, 0),
        ("/short", b"HTTP/1.1 200", "eof", 1000, 2000),
        ("/garbage", b"\x80\x81", "eof", 100, 5000),
        ("/endless", b"HTTP/1.1 200", "limit", 10**6, 10**8),
        ("/endless-headers", b"HTTP/1.1 200", "limit", 10**6, 10**8),
        ("/huge", b"HTTP/1.1 200", "eof", HUGE_BYTES, HUGE_BYTES + 500),
        ("/headers-huge", b"HTTP/1.1 200", "eof", 300_000, 301_000),
        ("/chunk-bad", b"HTTP/1.1 200", "eof", 100, 500),
        ("/drip", b"H", "timeout", 1, 20),
    ],
)
def test_each_fault_on_the_wire_is_what_its_name_says(
    faulty: DemoServer, path: str, start: bytes, end: str, least: int, most: int
) -> None:
    limit = 10**6 if path.startswith("/endless") else 10**9
    got, how = raw(faulty, path, limit, *((0.15, least) if end == "timeout" else ()))
    assert got.startswith(start) and how == end
    assert least <= len(got) <= most


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.is_finite])
def test_faults_are_in_the_log_by_name(faulty: DemoServer, name: str) -> None:
    faulty.log.clear()
    raw(faulty, f"/{name}")
    assert [record.fault for record in faulty.log.records() if record.path == f"/{name}"] == [name]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/short", http.client.IncompleteRead),
        ("/chunk-cut", http.client.IncompleteRead),
        ("/garbage", http.client.BadStatusLine),
        ("/no-answer", http.client.RemoteDisconnected),
        ("/headers-huge", http.client.LineTooLong),
        ("/headers-many", http.client.HTTPException),
    ],
)
def test_an_http_client_stumbles_as_expected(
    faulty: DemoServer, path: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        get(faulty, faulty.url("fault", path))


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bomb_is_small_on_the_wire_and_large_inside(faulty: DemoServer, layers: int) -> None:
    reply = get(faulty, faulty.url("fault", "/bomb" if layers == 1 else "/bomb-twice"))
    assert reply.headers["content-encoding"] == ", ".join(["gzip"] * layers)
    assert len(reply.body) < (200_000 if layers == 1 else 3_000)
    body = reply.body if layers == 1 else gzip.decompress(reply.body)
    unpacker = zlib.decompressobj(31)
    size = 0
    while not unpacker.eof:
        size += len(unpacker.decompress(body, 1 << 22))
        body = unpacker.unconsumed_tail
    assert size == BOMB_BYTES > 100_000_000


def test_statuses_and_waits_are_as_the_path_says(faulty: DemoServer) -> None:
    for status in (301, 304, 404, 410, 500, 503):
        assert get(faulty, faulty.url("fault", f"/status/{status}")).status == status
    waiting = get(faulty, faulty.url("fault", "/status/503?retry_after=2"))
    assert (waiting.status, waiting.headers["retry-after"]) == (503, "2")
    assert "retry-after" not in get(faulty, faulty.url("fault", "/status/503")).headers


def test_odd_answers_are_odd(faulty: DemoServer) -> None:
    def body(path: str) -> Reply:
        return get(faulty, faulty.url("fault", path))

    assert body("/empty").body == b"" and body("/empty").status == 200
    assert b"\0" * 1000 in body("/nuls").body
    assert "Grüße" in body("/utf-16").body.decode("utf-16")
    assert body("/binary").headers["content-type"].startswith("text/html")
    assert body("/cookie").headers["set-cookie"].startswith("visitor=42")
    (long,) = re.findall(rb'href="(/long/x+)"', body("/long-url").body)
    assert len(faulty.url("fault", long.decode())) == 10_000
    assert get(faulty, faulty.url("fault", long.decode())).status == 200
    assert body("/redirect-loop").headers["location"].endswith("/redirect-loop/2")
    assert "location" not in body("/redirect-nowhere").headers


def test_start_page_links_every_fault_on_a_host_of_its_own(faulty: DemoServer) -> None:
    front = get(faulty, faulty.url("fault", "/")).body.decode()
    for name, paths in PATHS.items():
        for path in paths:
            assert f'href="{faulty.url(f"{name}.fault", path)}"' in front


@pytest.mark.parametrize(
    ("name", "status", "start"),
    [
        ("404", 404, b""),
        ("500", 500, b""),
        ("html", 200, b"<!DOCTYPE html>"),
        ("bom", 200, b"\xef\xbb\xbfUser-agent"),
        ("huge", 200, b"User-agent: *\nDisallow: /private/"),
        ("slow", 200, b"User-agent: *\nDisallow: /private/"),
        ("redirect", 301, b""),
    ],
)
def test_robots_txt_is_wrong_in_the_way_its_host_says(
    faulty: DemoServer, name: str, status: int, start: bytes
) -> None:
    reply = get(faulty, faulty.url(f"robots-{name}.fault", "/robots.txt"))
    assert reply.status == status and reply.body.startswith(start)


def test_truth_of_broken_robots_follows_the_rfc() -> None:
    truth = Web(find_profile("faults"), port=8000).truth_at(EPOCH)
    assert "http://robots-404.fault.demo.test:8000/private/report.html" in truth.pages
    assert "http://robots-500.fault.demo.test:8000/" in truth.forbidden
    assert "http://robots-huge.fault.demo.test:8000/private/report.html" in truth.forbidden
    assert truth.faults["http://timeout.fault.demo.test:8000/timeout"] == "timeout"
