"""Which URLs belong to a crawl: the seeds' domains, narrowed by include and exclude."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import MAX_URL, canonical_url, host_of


class Scope:
    """A URL is wanted if its host is that of a seed or below it (`www.` does not matter), `include`
    is found in it and `exclude` is not.
    """

    def __init__(self, include: str | None = None, exclude: str | None = None) -> None:
        self._include = _pattern("include", include)
        self._exclude = _pattern("exclude", exclude)
        self._domains: set[str] = set()
        self._hosts: dict[str, bool] = {}

    def add_seeds(self, urls: Iterable[str]) -> None:
        self._domains.update(host_of(url).removeprefix("www.") for url in urls)
        self._hosts.clear()

    def __call__(self, url: str) -> bool:
        name = host_of(url)
        inside = self._hosts.get(name)
        if inside is None:
            if len(self._hosts) > 10_000:
                self._hosts.clear()
            inside = self._hosts[name] = self._within(name)
        if not inside or (self._include and not self._include.search(url)):
            return False
        return not (self._exclude and self._exclude.search(url))

    def _within(self, name: str) -> bool:
        labels = name.split(".")
        return any(".".join(labels[i:]) in self._domains for i in range(len(labels)))


def _pattern(name: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ConfigError(f"{name} = {text!r} is not a regular expression: {error}") from None


def read_seeds(seeds: str | None, seeds_file: str | None) -> list[str]:
    """Canonical seeds of both sources, in order. Every bad one is named."""
    lines = [
        (f"seeds, number {n}", text)
        for n, text in enumerate((seeds or "").split(","), 1)
        if text.strip()
    ]
    if seeds_file:
        lines += _file_lines(Path(seeds_file))
    good: dict[str, None] = {}
    bad = []
    for place, text in lines:
        url = text.strip() if "://" in text else "http://" + text.strip()
        found = canonical_url(url) if len(url) <= MAX_URL else None
        if found is None or not re.search(r"[\w\]]$", host_of(found)):
            bad.append(f"{place}: {text.strip()[:100]!r}")
        else:
            good[found] = None
    if bad:
        more = f" (and {len(bad) - 5} more)" if len(bad) > 5 else ""
        raise ConfigError("not a web address: " + "; ".join(bad[:5]) + more)
    return list(good)


def _file_lines(path: Path) -> list[tuple[str, str]]:
    """One URL per line; blank lines and lines that start with # don't count."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"seeds_file {str(path)!r} can't be read: {why}") from None
    lines = [(f"{path}, line {n}", line) for n, line in enumerate(text.splitlines(), 1)]
    lines = [
        (place, line) for place, line in lines if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise ConfigError(f"seeds_file {str(path)!r} has no URLs")
    return lines
