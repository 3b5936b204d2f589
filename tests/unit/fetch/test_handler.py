"""The download handler, as far as it can be seen without a network."""

from __future__ import annotations

import pytest
from scrapy import Request

from crawlproj.fetch.handler import host_asked
from crawlproj.frontier.base import Lane, State, Ticket


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://[::1]:8080/a", "[::1]"),
        ("http://Example.ORG./a", "example.org"),
        ("https://example.org:8443/", "example.org"),
    ],
)
def test_pauses_are_those_of_the_host_as_it_is_leased(url: str, host: str) -> None:
    ticket = Ticket(1, url, host, 1, 1, 0, Lane.NEW, State.NEW)
    assert host_asked(Request(url, meta={"ticket": ticket})) == host
    assert host_asked(Request(url)) == host
