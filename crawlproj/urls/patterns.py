"""Regular expressions that people give: compiled by RE2, whose searches take linear time.

Python's own engine takes exponential time for some pairs of pattern and URL, and pages choose their
URLs. RE2 has no lookaround and no backreference; `\\d`, `\\w` and `\\b` know ASCII only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import re2  # type: ignore[import-untyped]

from crawlproj.errors import ConfigError

_SPECIAL = frozenset(r"\.^$*+?{}[]|()")
_PIECE = re.compile(r"\\.|\{,\d*\}", re.S)
MAX_SHOWN = 200
"""Characters of a pattern that an error shows."""

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
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        search = re2.compile(text.encode(), options).search
    except UnicodeEncodeError:
        raise _refusal(text, source, "it is not text in UTF-8") from None
    except re2.error as error:
        raise _refusal(text, source, _plain_reason(error)) from None

    def is_found(url: str) -> bool:
        try:
            encoded = url.encode()
        except UnicodeEncodeError:
            encoded = url.encode(errors="surrogatepass")
        return search(encoded) is not None

    return is_found


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
