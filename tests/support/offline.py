"""Extensions for runs that must not ask anybody: one lets nothing out of the process, one says how
much memory it took.
"""

from __future__ import annotations

import ctypes
import platform
import socket
from pathlib import Path
from typing import Any

from scrapy import signals

from crawlproj.content.documents import sandbox

SOCKET = {"x86_64": 41, "aarch64": 198}
ALLOW = 0x7FFF_0000
KILL = 0x8000_0000
NETWORKS = (socket.AF_INET, socket.AF_INET6, 17)


def end_at_any_socket() -> bool:
    """The kernel ends this process as soon as anything in it makes a socket to a network, whatever
    library does it. False where that can't be done.
    """
    call = SOCKET.get(platform.machine())
    if call is None:
        return False
    step = sandbox._Step
    last = len(NETWORKS)
    steps = [
        step(0x20, 0, 0, 0),
        step(0x15, 0, last + 1, call),
        step(0x20, 0, 0, 16),
    ]  # which call, and its first argument
    steps += [step(0x15, last - place, 0, family) for place, family in enumerate(NETWORKS)]
    steps += [step(0x06, 0, 0, ALLOW), step(0x06, 0, 0, KILL)]
    program = sandbox._Program(len(steps), (step * len(steps))(*steps))
    return sandbox._prctl(38, 1) and sandbox._prctl(22, 2, ctypes.byref(program))


class NoSockets:
    """A socket to a network is an error and a line in the file of the setting TRIED, and so is each
    name that is looked up. Sockets that are made behind Python's back are the end of the process.
    """

    @classmethod
    def from_crawler(cls, crawler: Any) -> NoSockets:
        tried = Path(crawler.settings["TRIED"])
        tried.write_text("")

        class Guarded(socket.socket):
            """Event loops connect without asking Python, but their sockets are made here."""

            def __init__(self, *args: Any, **named: Any) -> None:
                family = args[0] if args else named.get("family", -1)
                if family != socket.AF_UNIX and "fileno" not in named:
                    with tried.open("a") as file:
                        file.write(f"{family}\n")
                    raise OSError("no network here")
                super().__init__(*args, **named)

        def look_up(*args: Any, **named: Any) -> Any:
            with tried.open("a") as file:
                file.write(f"name {args[:2]}\n")
            raise OSError("no names here")

        socket.socket = Guarded  # type: ignore[misc]
        socket.getaddrinfo = look_up
        end_at_any_socket()
        return cls()


class Peak:
    """The stat `peak`: the most memory that the process has had, in bytes."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Peak:
        peak = cls()
        peak.stats = crawler.stats  # type: ignore[attr-defined]
        crawler.signals.connect(peak.spider_closed, signal=signals.spider_closed)
        return peak

    def spider_closed(self) -> None:
        lines = dict(
            line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
        )
        self.stats.set_value("peak", int(lines["VmHWM"].split()[0]) * 1024)  # type: ignore[attr-defined]
