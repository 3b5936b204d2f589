from __future__ import annotations

import pytest

from crawlproj.urls.domains import registered_domain


@pytest.mark.parametrize(
    ("host", "above"),
    [
        ("example.org", "example.org"), ("a.b.example.org", "example.org"), ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"), ("me.blogspot.com", "me.blogspot.com"), ("a.me.blogspot.com", "me.blogspot.com"),
        ("h1.demo.test", "demo.test"), ("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("[::1]", "[::1]"),
        ("a.b.xn--p1ai", "b.xn--p1ai"),
    ],
)  # fmt: skip
def test_the_registered_domain_of_a_host(host: str, above: str) -> None:
    assert registered_domain(host) == above
