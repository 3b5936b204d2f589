"""Extensions for runs that must not ask anybody: one lets nothing out of the process, one says how much memory it took."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from scrapy import signals


class NoSockets:
    """Each try to connect to a network address is a line in the file of the setting TRIED, and fails."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> NoSockets:
        tried = Path(crawler.settings["TRIED"])
        tried.write_text("")

        class Guarded(socket.socket):
            def connect(self, address: Any) -> None:
                self._refuse(address)
                super().connect(address)

            def connect_ex(self, address: Any) -> int:
                self._refuse(address)
                return super().connect_ex(address)

            def _refuse(self, address: Any) -> None:
                if self.family != socket.AF_UNIX:
                    with tried.open("a") as file:
                        file.write(f"{address}\n")
                    raise OSError(f"no network here: {address}")

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
