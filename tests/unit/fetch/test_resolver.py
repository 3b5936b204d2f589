from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from crawlproj.fetch.resolver import NO_DNS, Resolver, describe_failures
from crawlproj.politeness.guard import StaticNames


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The system's resolver answers nothing before this is set; then it knows no name."""
    answers = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> Any:
        answers.wait(10)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_a_name_that_is_known_never_waits_behind_names_that_are_looked_up(
    stuck: threading.Event,
) -> None:
    resolver = Resolver(StaticNames({"good.test": "127.0.0.1"}), threads=2)
    resolver.submit(f"n{number}.invalid" for number in range(1000))
    resolver.submit(["good.test", "192.0.2.1"])
    assert resolver.take_finished() == {"good.test": "127.0.0.1", "192.0.2.1": "192.0.2.1"}
    assert resolver.pending == 1000
    stuck.set()
    resolver.close()


def test_every_name_is_looked_up_once_and_answered_once(stuck: threading.Event) -> None:
    stuck.set()
    resolver = Resolver(StaticNames({}), threads=2)
    names = {f"n{number}.invalid" for number in range(50)}
    resolver.submit(sorted(names))
    resolver.submit(sorted(names))
    found: list[str] = []
    while resolver.pending:
        found += resolver.take_finished().values()
    assert sorted(found) == sorted(f"?{name}" for name in names)
    resolver.close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (socket.EAI_NONAME, "a.test does not resolve (there is no such name)"),
        (socket.EAI_AGAIN, "a.test does not resolve (no DNS server answers: is this machine con"),
    ],
)
def test_a_name_that_does_not_exist_is_told_from_a_network_without_dns(
    code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(code, "no")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    resolver = Resolver(StaticNames({}), threads=1)
    resolver.submit(["a.test"])
    while resolver.pending:
        resolver.take_finished()
    assert describe_failures(resolver.failures).startswith(says)
    resolver.close()


def test_only_a_few_of_many_names_are_told() -> None:
    many = {f"n{number}.test": NO_DNS for number in range(9)}
    assert describe_failures(many).startswith(
        "n0.test, n1.test, n2.test, n3.test, n4.test and 4 more do not resolve (no DNS"
    )
