"""The demo web: sites that change, served on loopback for `scrapy demo`, the tests and the
benchmarks.

`web` is the pure model, which knows the truth at every moment: open it first, then `site` (the
pages of one host) and `profiles` (the webs there are, as data). `server` serves it in a thread,
`process` in a process of its own, and both log every request. Only `server`, `wire`, `log`,
`process` and `session` touch sockets, files or threads; nothing here knows Scrapy or the database,
and of crawlproj it imports only `errors`.
"""

from __future__ import annotations

from crawlproj.demo.clock import EPOCH, FrozenClock
from crawlproj.demo.log import AccessLog, AccessRecord
from crawlproj.demo.model import DemoLink, DemoPage, HostSpec, Profile
from crawlproj.demo.process import DemoProcess
from crawlproj.demo.profiles import PROFILES, dns_hosts, find_profile, grid_profile
from crawlproj.demo.server import DemoServer, PortInUse
from crawlproj.demo.truth import PageTruth, Truth
from crawlproj.demo.web import Web

__all__ = [
    "EPOCH",
    "PROFILES",
    "AccessLog",
    "AccessRecord",
    "DemoLink",
    "DemoPage",
    "DemoProcess",
    "DemoServer",
    "FrozenClock",
    "HostSpec",
    "PageTruth",
    "PortInUse",
    "Profile",
    "Truth",
    "Web",
    "dns_hosts",
    "find_profile",
    "grid_profile",
]
