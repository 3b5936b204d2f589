"""One changing web on loopback, with profiles: for the demo, the tests, the benchmarks and the
simulations.

`Web` is the pure model and knows the truth; `DemoServer` and `DemoProcess` serve it and log what
they saw.
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
