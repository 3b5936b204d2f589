from __future__ import annotations

import pytest

from crawlproj.politeness.guard import Guard, StaticNames, bad_port, plain_address

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
    *("0.1.2.3", "192.0.0.1", "192.0.0.9", "198.51.100.7", "203.0.113.9", "198.19.255.255"),
    *("100.127.255.255", "192.88.99.1", "239.1.1.1", "240.0.0.1", "255.0.0.1"),
    *("fec0::1", "feff::1", "100::1", "100:0:0:1::1", "5f00::1", "3fff::1", "4000::1", "1::1"),
    *("::7f00:1", "::8.8.8.8", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8", "::ffff:192.0.2.1"),
    *("2002:c0a8:101::1", "2002:a9fe:a9fe::1", "64:ff9b::169.254.169.254", "64:ff9b:1::808:808"),
    *("2001::1", "2001:0:808:808::f7f7:f7f7", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1"),
    *("2001:10::1", "2001:20::1", "2a00:1450::5efe:10.0.0.1", "2a00:1450::200:5efe:127.0.0.1"),
    *("2002:e000:1::", "64:ff9b::224.0.0.1", "0x7f.1", "127.1", "not an address"),
]
PUBLIC = [
    *("93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"),
    *("9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "128.0.0.1", "172.32.0.1"),
    *("192.0.1.1", "192.31.196.1", "198.17.255.255", "198.20.0.1", "223.255.255.255"),
    *("64:ff9b::808:808", "2002:808:808::1", "2a00:1450::5efe:8.8.8.8", "2001:200::1"),
    *("2001:4860:4860::8888", "2620:4f:8000::1", "2a03:2880:f12f:83:face:b00c:0:25de"),
]


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


@pytest.mark.parametrize("address", ["0.0.0.0", "0.1.2.3", "240.0.0.1", "::", "ff02::1"])
def test_what_is_no_host_is_refused_also_where_private_addresses_are_allowed(address: str) -> None:
    assert Guard(allow_private=True, has_contact=True).refusal_reason(address) == "not a host"


def test_only_this_machine_is_asked_without_a_contact() -> None:
    guard = Guard(allow_private=True)
    assert guard.refusal_reason("::ffff:127.0.0.1") == ""
    assert guard.refusal_reason("2002:7f00:1::") == "no ROBOT_CONTACT"
    assert guard.refusal_reason("64:ff9b::127.0.0.1") == "no ROBOT_CONTACT"


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://a.test:25/", 25),
        ("https://[::1]:6667/x", 6667),
        ("http://a.test:0/", 0),
        ("http://a.test:10080/?:22/", 10080),
        ("http://a.test:8080/", None),
        ("http://a.test/:25/", None),
        ("http://[2001:db8::25]/", None),
        ("http://a.test:6670/", None),
    ],
)
def test_ports_that_browsers_refuse_are_refused(url: str, port: int | None) -> None:
    assert bad_port(url) == port


def test_an_ipv4_address_in_ipv6_form_is_the_same_server() -> None:
    assert plain_address("::ffff:8.8.8.8") == "8.8.8.8"
    assert plain_address("::FFFF:808:808") == "8.8.8.8"
    assert plain_address("2001:4860::1") == "2001:4860::1"
    assert plain_address("8.8.8.8") == "8.8.8.8"


def test_exact_static_names_win_over_wildcards_and_long_ones_over_short() -> None:
    names = StaticNames({"*.test": "127.0.0.1", "*.a.test": "127.0.0.2", "x.a.test": "127.0.0.3"})
    assert [names.find_address(n) for n in ("b.test", "b.a.test", "x.a.test", "test", "other.org")] == [
        "127.0.0.1", "127.0.0.2", "127.0.0.3", None, None,
    ]  # fmt: skip
