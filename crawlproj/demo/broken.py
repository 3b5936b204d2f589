"""Every fault and every odd response under a path (`/timeout`) and on a host of its own
(`timeout.fault.demo.test`).

`PATHS` names the paths to request on each fault's own host: `http://NAME.fault.demo.test:PORT` +
path.
"""

from __future__ import annotations

import dataclasses
import re
from functools import partial

from crawlproj.demo import faults
from crawlproj.demo.model import DemoLink, DemoPage
from crawlproj.demo.site import LONG_AGO, Maker, PathMaker, Site

LONG_URL_CHARS = 10_000
REFUSED = "http://refused.fault.demo.test:2/"
"""Nobody listens there."""
STATUSES = (200, 301, 304, 400, 401, 403, 404, 410, 418, 429, 451, 500, 502, 503, 504, 599)
ODD = (
    "ok",
    "empty",
    "binary",
    "nuls",
    "utf-16",
    "cookie",
    "long-url",
    "nested",
    "links",
    "plain-type",
    "etag",
    "redirect-loop",
    "redirect-chain",
    "redirect-nowhere",
    "redirect-bad",
    "redirect-scheme",
)
PATHS: dict[str, tuple[str, ...]] = {
    **{name: (f"/{name}",) for name in (*faults.FAULTS, *ODD)},
    **{f"status-{status}": (f"/status/{status}",) for status in STATUSES},
    "status-503-wait": ("/status/503?retry_after=2",),
    "status-429-wait": ("/status/429?retry_after=1",),
}


def fault_pages(site: Site) -> dict[str, Maker]:
    """All faults and odd responses by path, for one host."""
    found = {
        f"/{name}": DemoPage("fault", LONG_AGO, fault=fault)
        for name, fault in faults.FAULTS.items()
    }
    fill = LONG_URL_CHARS - len(site.world.url(site.spec.name, "/long/"))
    long = site.make_link("/long/" + "x" * fill, "A long way")
    found |= {
        "/ok": site.plain_page("Nothing is wrong here"),
        "/empty": DemoPage("odd", LONG_AGO),
        "/binary": DemoPage(
            "odd",
            LONG_AGO,
            body=lambda: bytes(site.world.random_stream("binary").randbytes(20_000)),
        ),
        "/nuls": DemoPage(
            "odd", LONG_AGO, body=lambda: b"<p>be\0fore</p>" + b"\0" * 5000 + b"<p>af\0ter</p>"
        ),
        "/utf-16": DemoPage(
            "odd",
            LONG_AGO,
            body=lambda: "<title>Zwölf</title><p>Grüße</p>".encode("utf-16"),
            type="text/html",
        ),
        "/cookie": dataclasses.replace(
            site.plain_page("A cookie"), headers=(("Set-Cookie", "visitor=42; Path=/"),)
        ),
        "/long-url": site.plain_page("A long link", (long,)),
        "/nested": DemoPage("odd", LONG_AGO, body=lambda: b"<div>" * 50_000 + b"deep"),
        "/links": DemoPage("odd", LONG_AGO, 0, links=(site.make_link("/ok"),), body=_many_links),
        "/plain-type": DemoPage(
            "odd",
            LONG_AGO,
            body=lambda: b"<html><p>HTML, but called text</p></html>",
            type="text/plain",
        ),
        "/etag": site.plain_page("Asks to be asked conditionally"),
        "/robots-real.txt": DemoPage(
            "robots", LONG_AGO, body=lambda: faults.RULES, type="text/plain"
        ),
        **{path: _hop(*hop) for path, hop in _hops(site).items()},
    }
    return {path: partial(_same, page) for path, page in found.items()}


def _many_links() -> bytes:
    return b"".join(b'<a href="/ok#%d">x</a>\n' % n for n in range(20_000))


def _same(page: DemoPage, age: float) -> DemoPage:
    return page


def _hops(site: Site) -> dict[str, tuple[int, str]]:
    url = site.world.url(site.spec.name)[:-1]
    chain = {f"/redirect-chain/{n}": (302, f"{url}/redirect-chain/{n + 1}") for n in range(1, 30)}
    return {
        "/redirect-loop": (302, f"{url}/redirect-loop/2"),
        "/redirect-loop/2": (302, f"{url}/redirect-loop"),
        "/redirect-chain": (302, f"{url}/redirect-chain/1"),
        **chain,
        "/redirect-chain/30": (302, f"{url}/ok"),
        "/redirect-nowhere": (302, ""),
        "/redirect-bad": (302, "http://[::bad/"),
        "/redirect-scheme": (302, "ftp://files.demo.test/file"),
    }


def _hop(status: int, to: str) -> DemoPage:
    return DemoPage("redirect", LONG_AGO, status=status, location=to, body=lambda: b"moved\n")


def fault_families(site: Site) -> dict[str, PathMaker]:
    """`/status/NNN`, with `?retry_after=SECONDS` if wanted, and the page of the long URL."""

    def status(key: str, age: float) -> DemoPage | None:
        found = re.fullmatch(r"/status/([1-9]\d\d)(?:\?retry_after=(.*))?", key)
        if not found:
            return None
        code = int(found[1])
        retry_after = found[2]
        if code == 200:
            return site.plain_page("Status 200")
        headers: tuple[tuple[str, str], ...] = ()
        if retry_after:
            headers = (("Retry-After", retry_after),)
        kind = "error"
        location = ""
        if 301 <= code <= 308 and code != 304:
            kind = "redirect"
            location = site.world.url(site.spec.name, "/ok")
        return DemoPage(
            kind,
            LONG_AGO,
            status=code,
            location=location,
            headers=headers,
            body=lambda: b"status %d\n" % code,
        )

    return {"/status/": status, "/long/": lambda key, age: site.plain_page("A long URL")}


def add_faults(site: Site) -> None:
    """Every fault under its path, on every host that has this collection."""
    site.extra.pages |= fault_pages(site)
    site.extra.families |= fault_families(site)


def add_fault_index(site: Site) -> None:
    """Links to each fault on a host of its own, so that a bad one does not delay the others."""
    for spec in (other.spec for other in site.sites.values()):
        if spec.robots:
            paths: tuple[str, ...] = ("/", "/private/report.html")
        else:
            paths = PATHS.get(spec.name.removesuffix(".fault"), ())
        site.extra.entries += [
            DemoLink(site.world.url(spec.name, path), f"{spec.name} {path[:60]}") for path in paths
        ]
    site.extra.entries.append(DemoLink(REFUSED, "Refused"))
