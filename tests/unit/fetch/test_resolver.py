from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from crawlproj.fetch.resolver import Resolver
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
