"""Runs all spiders of a project with Scrapy as it comes, in one process, for comparison.

`python stock.py '{"bases": {spider: url}, "names": {host: address}, "module": settings}'`, in the
folder that gets `SPIDER.jsonl`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings


def know_names(names: dict[str, str]) -> None:
    """Let the system's resolver know these names too."""
    look_up = socket.getaddrinfo
    look_up_name = socket.gethostbyname
    socket.getaddrinfo = lambda host, *more, **named: look_up(names.get(host, host), *more, **named)  # type: ignore[assignment,call-arg]
    socket.gethostbyname = lambda host: look_up_name(names.get(host, host))


def main(order: dict[str, Any]) -> None:
    know_names(order["names"])
    os.environ["SCRAPY_SETTINGS_MODULE"] = order["module"]
    settings = get_project_settings()
    settings.set("TELNETCONSOLE_ENABLED", False)
    settings.set("LOG_LEVEL", "WARNING")
    settings.set("DOWNLOAD_DELAY", 0)
    settings.set("FEEDS", {"%(name)s.jsonl": {"format": "jsonlines"}})
    settings.set("OWN_FILE", "own.jsonl")
    process = CrawlerProcess(settings)
    for spider, base in order["bases"].items():
        process.crawl(spider, base=base)
    process.start()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
