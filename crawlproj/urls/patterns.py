"""Regular expressions that people give: compiled by RE2, whose searches take linear time.

Python's own engine takes exponential time for some pairs of pattern and URL, and pages choose their
URLs. RE2 has no lookaround and no backreference; `\\d`, `\\w` and `\\b` know ASCII only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import re2  # type: ignore[import-untyped]

from crawlproj.errors import ConfigError

_SPECIAL = frozenset(r"\.^$*+?{}[]|()")
_PIECE = re.compile(r"\\.|\{,\d*\}", re.S)
MAX_SHOWN = 200
"""Characters of a pattern that an error shows."""
PATTERNS_AT_ONCE = 100
"""So many patterns are searched for together: RE2 gives them one budget of memory."""

_LOOKAROUND = "there is no lookaround, such as (?=, (?!, (?<= and (?<!"
_BACKREFERENCE = "there is no backreference, such as \\1 and (?P=name)"
_POSSESSIVE = "there is no possessive quantifier, and none is needed: *, + and ? are quick"
_TOO_LARGE = "it is too large"
_REASONS = (
    ("invalid perl operator: (?=", _LOOKAROUND),
    ("invalid perl operator: (?!", _LOOKAROUND),
    ("invalid perl operator: (?<=", _LOOKAROUND),
    ("invalid perl operator: (?<!", _LOOKAROUND),
    ("invalid perl operator: (?P", _BACKREFERENCE),
    ("invalid perl operator: (?(", "there is no condition (?(...)"),
    ("invalid perl operator: (?>", "there is no atomic group (?>, and none is needed"),
    ("invalid perl operator: (?#", "there is no comment (?#"),
    ("invalid perl operator: ", "there is no such group or flag: "),
    ("invalid escape sequence: \\Z", "the end is written $ or \\z, not \\Z"),
    ("invalid escape sequence: \\u", "a character is written as it is or \\x{e9}, not \\u00e9"),
    *((f"invalid escape sequence: \\{number}", _BACKREFERENCE) for number in range(1, 10)),
    ("invalid escape sequence: \\k", _BACKREFERENCE),
    ("invalid escape sequence: \\g", _BACKREFERENCE),
    ("invalid escape sequence: ", "there is no such escape: "),
    *((f"bad repetition operator: {sign}+", _POSSESSIVE) for sign in "*+?"),
    ("invalid repetition size: ", "repetitions go up to 1000, multiplied where they are nested: "),
    ("pattern too large", _TOO_LARGE),
    ("expression nesting depth exceeds limit", "its groups are nested too deeply"),
)
"""How an error of RE2 begins, and what we say; after a colon the rest of it is added."""


def compile_pattern(text: str, source: str) -> Callable[[str], bool]:
    """The question whether the pattern is found anywhere in a URL.

    ConfigError in one line, with `source` (where the pattern was given), if RE2 refuses it.
    """
    if not _SPECIAL.intersection(text):
        return lambda url: text in url
    for piece in _PIECE.findall(text):
        if piece.startswith("{"):
            raise _refusal(text, source, f"{piece} is written {{0{piece[1:]}")
    try:
        search = re2.compile(text.encode(), _options()).search
    except UnicodeEncodeError:
        raise _refusal(text, source, "it is not text in UTF-8") from None
    except re2.error as error:
        raise _refusal(text, source, _plain_reason(error)) from None

    def is_found(url: str) -> bool:
        return search(_encode(url)) is not None

    return is_found


def literal_pattern(text: str) -> str:
    """The pattern that finds this very text."""
    return str(re2.escape(text))


def compile_first_match(patterns: Sequence[str]) -> Callable[[str], int]:
    """The question which of many patterns is the first that is found in a text: its number, or -1.

    It takes hardly longer than for one pattern. Each must be one that `compile_pattern` takes.
    """
    starts = range(0, len(patterns), PATTERNS_AT_ONCE)
    parts = [(start, _PatternSet(patterns[start : start + PATTERNS_AT_ONCE])) for start in starts]

    def first_match(text: str) -> int:
        encoded = _encode(text)
        for start, part in parts:
            number = part.first_match(encoded)
            if number >= 0:
                return start + number
        return -1

    return first_match


class _PatternSet:
    """Patterns that are searched for together, or one after the other where that takes too much
    memory: a set has a budget for all of them. It says so when it is compiled, but not when a
    search fails, so the last pattern is an empty one, which is always found.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [pattern.encode() for pattern in patterns]
        self._set = re2.Set.SearchSet(_options())
        for pattern in [*self._patterns, b""]:
            self._set.Add(pattern)
        try:
            self._set.Compile()
        except re2.error:
            self._set = None

    def first_match(self, text: bytes) -> int:
        found: list[int] = []
        if self._set is not None:
            found = self._set.Match(text)
        if not found:
            return self._search_each(text)
        first = min(found)
        if first == len(self._patterns):
            return -1
        return first

    def _search_each(self, text: bytes) -> int:
        for number, pattern in enumerate(self._patterns):
            if re2.compile(pattern, _options()).search(text) is not None:
                return number
        return -1


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return options


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def _refusal(text: str, source: str, reason: str) -> ConfigError:
    shown = repr(text[:MAX_SHOWN])
    if len(text) > MAX_SHOWN:
        shown += "..."
    return ConfigError(f"{source} = {shown} is not a regular expression that RE2 knows: {reason}")


def _plain_reason(error: Exception) -> str:
    reason = error.args[0]
    if isinstance(reason, bytes):
        reason = reason.decode(errors="replace")
    for start, words in _REASONS:
        if reason.startswith(start):
            rest = ""
            if words.endswith(": "):
                rest = repr(reason.removeprefix(start)[:MAX_SHOWN])
            return words + rest
    kind, _, where = reason.partition(": ")
    if not where:
        return str(kind)
    return f"{kind} in {where[:MAX_SHOWN]!r}"
