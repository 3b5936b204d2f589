"""Extensions for runs that must not ask anybody: one lets nothing out of the process, one says how much memory it took."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from scrapy import signals


class NoSockets:
    """Each socket to a network that is made is a line in the file of the setting TRIED, and an error."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> NoSockets:
        tried = Path(crawler.settings["TRIED"])
        tried.write_text("")

        class Guarded(socket.socket):
            """Event loops connect without asking Python, but their sockets are made here."""

            def __init__(self, *args: Any, **named: Any) -> None:
                super().__init__(*args, **named)
                if self.family != socket.AF_UNIX:
                    with tried.open("a") as file:
                        file.write(f"{self.family}\n")
                    raise OSError("no network here")

        def look_up(*args: Any, **named: Any) -> Any:
            with tried.open("a") as file:
                file.write(f"name {args[:2]}\n")
            raise OSError("no names here")

        socket.socket, socket.getaddrinfo = Guarded, look_up  # type: ignore[misc]
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
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        self.stats.set_value("peak", int(lines["VmHWM"].split()[0]) * 1024)  # type: ignore[attr-defined]
