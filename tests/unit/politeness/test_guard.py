from __future__ import annotations

import pytest

from crawlproj.politeness.guard import Guard, StaticNames

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "64:ff9b:1::1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "192.0.2.1",
    "2001:db8::1",
]
PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert Guard(has_contact=True).refusal_reason(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed_with_a_contact_only(address: str) -> None:
    assert Guard(has_contact=True).refusal_reason(address) == ""
    assert Guard(allow_private=True).refusal_reason(address) == "no ROBOT_CONTACT"


def test_loopback_needs_no_contact_if_private_addresses_are_allowed() -> None:
    assert Guard(allow_private=True).refusal_reason("127.0.0.1") == ""
    assert Guard(allow_private=True).refusal_reason("::1") == ""
    assert Guard(allow_private=True).refusal_reason("10.0.0.1") == "no ROBOT_CONTACT"


def test_exact_static_names_win_over_wildcards_and_long_ones_over_short() -> None:
    names = StaticNames({"*.test": "127.0.0.1", "*.a.test": "127.0.0.2", "x.a.test": "127.0.0.3"})
    assert [names.find_address(n) for n in ("b.test", "b.a.test", "x.a.test", "test", "other.org")] == [
        "127.0.0.1", "127.0.0.2", "127.0.0.3", None, None,
    ]  # fmt: skip
