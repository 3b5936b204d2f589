"""Stats that also write down what the download handler kept of each exchange."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from scrapy import Request, signals

from tests.support.crawling import StatsFile


class WireStats(StatsFile):
    """One line of JSON per request in the file WIRE_FILE: path of the URL, then request, head and
    body in base64, or null.
    """

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._wires = Path(crawler.settings["WIRE_FILE"])
        crawler.signals.connect(self.left, signal=signals.request_left_downloader)

    def left(self, request: Request) -> None:
        wire = request.meta.get("wire")
        parts = wire and [
            base64.b64encode(part).decode() for part in (wire.request, wire.head, wire.body)
        ]
        with self._wires.open("a") as file:
            file.write(json.dumps([request.url, parts]) + "\n")


def read_wires(path: Path) -> dict[str, tuple[bytes, bytes, bytes] | None]:
    """By path of the URL."""
    found: dict[str, tuple[bytes, bytes, bytes] | None] = {}
    for line in path.read_text().splitlines():
        url, parts = json.loads(line)
        decoded = [base64.b64decode(part) for part in parts or ()]
        found["/" + url.split("/", 3)[3]] = (decoded[0], decoded[1], decoded[2]) if parts else None
    return found
