"""The scope of a crawl: the seeds' domains, narrowed by include and exclude; and its seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import WHAT_IS_RIGHT, host_of, typed_url
from crawlproj.urls.patterns import compile_pattern

MAX_NAME = 253
"""Characters of a host name that DNS knows."""
_BETWEEN_URLS = re.compile(r"\s|[,;](?=https?://)", re.I)
_HAS_SCHEME = re.compile("https?://", re.I).match
_COMMENT = re.compile(r"(^|\s)#.*")


class Scope:
    """The rule that decides which URLs a crawl wants: `scope(url)`.

    Its host must be that of a seed or below it (`www.` does not matter), `include` must be found in
    it and `exclude` must not.
    """

    def __init__(self, include: str | None = None, exclude: str | None = None) -> None:
        self._include = compile_pattern(include, "include") if include else None
        self._exclude = compile_pattern(exclude, "exclude") if exclude else None
        self._domains: set[str] = set()
        self._hosts: dict[str, bool] = {}

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Widen the scope by the hosts of these URLs."""
        self._domains.update(host_of(url).removeprefix("www.") for url in urls)
        self._hosts.clear()

    def __call__(self, url: str) -> bool:
        name = host_of(url)
        inside = self._hosts.get(name)
        if inside is None:
            if len(self._hosts) > 10_000:
                self._hosts.clear()
            inside = self._is_below_seed(name)
            self._hosts[name] = inside
        if not inside:
            return False
        if self._include is not None and not self._include(url):
            return False
        return self._exclude is None or not self._exclude(url)

    def _is_below_seed(self, name: str) -> bool:
        if len(name) > MAX_NAME:
            return False
        labels = name.split(".")
        return any(".".join(labels[i:]) in self._domains for i in range(len(labels)))


def read_seeds(seeds: str | None, seeds_file: str | None) -> list[str]:
    """The canonical seeds of both sources, in order; ConfigError names those that are bad."""
    words = [
        (f"seeds, number {number}", word)
        for number, part in enumerate((seeds or "").split(","), 1)
        for word in _split_urls(part)
    ]
    if seeds_file:
        words += _file_lines(Path(seeds_file))
    good: dict[str, None] = {}
    bad = []
    for origin, word in words:
        url = typed_url(word)
        if url is None:
            bad.append(f"{origin}: {word[:100]!r}")
        else:
            good[url] = None
    if bad:
        message = "not a web address: " + "; ".join(bad[:5])
        if len(bad) > 5:
            message += f" (and {len(bad) - 5} more)"
        raise ConfigError(f"{message} ({WHAT_IS_RIGHT})")
    return list(good)


def _split_urls(line: str) -> list[str]:
    """The URLs of a line: several if each says http or https, else the line is one word."""
    words = [word for word in _BETWEEN_URLS.split(line) if word]
    if len(words) > 1 and not all(map(_HAS_SCHEME, words)):
        return [line.strip()]
    return [word.rstrip(",;") if len(words) > 1 else word for word in words]


def _file_lines(path: Path) -> list[tuple[str, str]]:
    """The URLs of a file, each with the number of its line; no comments (`# ...`)."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"seeds_file {str(path)!r} can't be read: {why}") from None
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", line)
        lines += [(f"{path}, line {number}", word) for word in _split_urls(line)]
    if not lines:
        raise ConfigError(f"seeds_file {str(path)!r} has no URLs")
    return lines
