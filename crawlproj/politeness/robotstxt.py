"""What a robots.txt file tells one robot, by RFC 9309: which of its groups hold for it, and whether
a URL may be fetched.

Generous where people make mistakes that leave no doubt (typos, missing colons, old line ends),
strict where a guess could be wrong: the robot's name must be the whole word. Any text gives rules,
and matching takes time linear in the URL for each rule.

Paths are compared in one spelling: percent-encoded characters that may stand bare are bare, all
others are encoded, hex digits are in upper case. So `/~joe`, `/%7Ejoe` and `/%7ejoe` are one path,
while `/a%2Fb` and `/a/b` are two.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crawlproj.urls.canonical import join_href

MAX_BYTES: Final = 500 * 1024
"""RFC 9309 lets a robot stop reading here."""
LONGEST_S: Final = 1e9

AGENT = "agent"
ALLOW = "allow"
DISALLOW = "disallow"
DELAY = "delay"
RATE = "rate"
SITEMAP = "sitemap"
_FIELDS: Final = {
    "useragent": AGENT,
    "useragents": AGENT,
    "allow": ALLOW,
    "disallow": DISALLOW,
    "dissallow": DISALLOW,
    "dissalow": DISALLOW,
    "disalow": DISALLOW,
    "disallaw": DISALLOW,
    "diasllow": DISALLOW,
    "crawldelay": DELAY,
    "requestrate": RATE,
    "sitemap": SITEMAP,
    "sitemaps": SITEMAP,
}
"""Names of lines, without the blanks, hyphens and underscores that people put in or leave out."""

_LINE_ENDS: Final = re.compile(r"\r\n|\r|\n")
_GLUE: Final = re.compile(r"[\s_-]+")
_BLANK: Final = " \t\v\f\xa0\ufeff\u200b"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+|\*(?=\s|$)")
_SECONDS: Final = re.compile(
    r"(\d{1,300}(?:[.,]\d{0,300})?|[.,]\d{1,300})(e\+?\d{1,3})?\s*(?:s|secs?|seconds?)?",
    re.I | re.A,
)
_RATE: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})\s*([smhd]?)(?:\s.*)?", re.I | re.A | re.S)
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_MARKUP: Final = ("<!doctype", "<html", "<head", "<body", "<?xml", "<script", "<meta", "<title")
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _percent(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"%{byte:02X}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("crawlproj.percent", _percent)


def decode_robots(body: bytes) -> str:
    """The text of a file, cut at a line end if it is too long; empty if it is a web page instead.

    Bytes that are not UTF-8 become percent-encoded, as browsers would send them.
    """
    head = body[:MAX_BYTES]
    text = (
        head.decode("utf-16", "replace")
        if head.startswith(_UTF16)
        else head.decode("utf-8", "crawlproj.percent")
    )
    text = text.replace("\0", "").lstrip("\ufeff")
    if len(body) > MAX_BYTES:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return "" if text[:100].lstrip().lower().startswith(_MARKUP) else text


def parse_directives(text: str) -> Iterator[tuple[str, str]]:
    """Kind and value of each line that says something we know."""
    for line in _LINE_ENDS.split(text):
        line = line.partition("#")[0].strip(_BLANK)
        if line and (record := _parse_directive(line)):
            yield record


def _parse_directive(line: str) -> tuple[str, str] | None:
    name, colon, value = line.partition(":")
    if colon and (kind := _kind(name)):
        return kind, value.strip(_BLANK)
    words = line.split()
    if 2 <= len(words) <= 3 and (kind := _kind(" ".join(words[:-1]))):
        return kind, words[-1]
    return None


def _kind(name: str) -> str | None:
    return _FIELDS.get(_GLUE.sub("", name).lower()) if len(name) <= 40 else None


# One spelling for paths

_BARE: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!'(),:;=@[]&+"
)
"""Characters that mean the same bare and encoded. `/` and `?` do not, `*` and `$` mean something in
rules.
"""
_ODD: Final = re.compile(r"%([0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~!'(),:;=@\[\]&+/?]")


def _normalize_character(match: re.Match[str]) -> str:
    digits = match[1]
    found = match[0]
    if digits:
        character = chr(int(digits, 16))
        return character if character in _BARE else "%" + digits.upper()
    return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "replace"))


def normalize_path(path: str) -> str:
    """A path in the spelling that is compared; `*` and `$` become encoded."""
    return _ODD.sub(_normalize_character, path)


def url_target(url: str) -> str:
    """Path and query of an absolute URL, spelled."""
    rest = url.partition("#")[0].partition("://")[2]
    start = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    path = rest[start:]
    return normalize_path(path if path.startswith("/") else "/" + path)


def equivalent_targets(path: str) -> set[str]:
    """Spellings of one target: in a query, unlike in a path, an encoded slash is a slash."""
    before, mark, query = path.partition("?")
    if "/" not in query and "%2F" not in query:
        return {path}
    return {
        path,
        before + mark + query.replace("%2F", "/"),
        before + mark + query.replace("/", "%2F"),
    }


class WildcardRule(NamedTuple):
    """A rule with `*` or an end mark: the parts between the stars, in this order."""

    length: int
    allowed: bool
    parts: tuple[str, ...]
    anchored: bool

    def matches(self, path: str) -> bool:
        first = self.parts[0]
        last = self.parts[-1]
        if not path.startswith(first):
            return False
        if len(self.parts) == 1:
            return path == first
        at = len(first)
        for part in self.parts[1:-1]:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return (
            path.endswith(last) and len(path) - len(last) >= at
            if self.anchored
            else path.find(last, at) >= 0
        )


@dataclass(slots=True)
class RobotsRules:
    """What one robot is told. Plain rules are looked up by their text, the few others are tried,
    longest first.
    """

    delay_s: float | None = None
    plain: dict[str, bool] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    wildcards: list[WildcardRule] = field(default_factory=list)

    def allows(self, url: str) -> bool:
        """The longest rule that fits decides; of two equal ones Allow; none: allowed. robots.txt
        itself always is.
        """
        path = url_target(url)
        if path.partition("?")[0] == "/robots.txt":
            return True
        return max(self._longest_match(form) for form in equivalent_targets(path))[1]

    def _longest_match(self, path: str) -> tuple[int, bool]:
        fitting = (n for n in self.lengths if n <= len(path) and path[:n] in self.plain)
        best = next(((n, self.plain[path[:n]]) for n in fitting), (0, True))
        for rule in self.wildcards:
            if rule.length < best[0]:
                break
            if rule.matches(path):
                return max(best, (rule.length, rule.allowed))
        return best

    def add_directive(self, kind: str, value: str) -> None:
        if kind in (ALLOW, DISALLOW):
            self._add_path_rule(value, kind == ALLOW)
        elif (
            pause := parse_crawl_delay(value) if kind == DELAY else parse_request_rate(value)
        ) is not None:
            self.delay_s = max(self.delay_s or 0.0, pause)

    def _add_path_rule(self, value: str, allowed: bool) -> None:
        """A rule that starts neither at the root nor with a star fits nothing; an empty one says
        nothing.
        """
        if not value.startswith(("/", "*")):
            return
        anchored = value.endswith("$")
        parts = tuple(normalize_path(part) for part in value.removesuffix("$").split("*"))
        if anchored or len(parts) > 1:
            self.wildcards.append(
                WildcardRule(len("*".join(parts)) + anchored, allowed, parts, anchored=anchored)
            )
        else:
            self.plain[parts[0]] = self.plain.get(parts[0], False) or allowed

    def sort_rules(self) -> RobotsRules:
        self.lengths = sorted(set(map(len, self.plain)), reverse=True)
        self.wildcards.sort(key=lambda rule: (-rule.length, not rule.allowed))
        return self


def product_token(agent: str) -> str:
    """The name by which a group addresses a robot: `CrawlProj/1.0 (x)` is crawlproj."""
    match = _NAME.match(agent.strip())
    return match[0].lower() if match else ""


def rules_for(text: str, agent: str) -> RobotsRules:
    """All groups that name the robot, taken together; if there is none, those for everybody.

    Lines that we do not know, and Sitemap, neither end a group nor the names at its head.
    Crawl-delay and Request-rate, which are not the RFC's either, belong to a group like Disallow:
    where a group holds nothing else, the next one must not run into it.
    """
    name = product_token(agent)
    ours = RobotsRules()
    everybody = RobotsRules()
    heads: set[str] = set()
    named = naming = False
    for kind, value in parse_directives(text):
        if kind == AGENT:
            heads = heads if naming else set()
            naming = True
            heads.add(product_token(value))
            named = named or name in heads
        elif kind != SITEMAP:
            naming = False
            for who, rules in ((name, ours), ("*", everybody)):
                if who in heads:
                    rules.add_directive(kind, value)
    return (ours if named else everybody).sort_rules()


def parse_crawl_delay(value: str) -> float | None:
    """Crawl-delay: a number that is not negative; None if it makes no sense."""
    match = _SECONDS.fullmatch(value)
    return min(float(match[1].replace(",", ".") + (match[2] or "")), LONGEST_S) if match else None


def parse_request_rate(value: str) -> float | None:
    """Request-rate as a pause: `1/10` is one request in ten seconds; the hours for which it is
    meant are not looked at.
    """
    match = _RATE.fullmatch(value)
    return (
        int(match[2]) * _UNITS[match[3].lower()] / int(match[1])
        if match and int(match[1])
        else None
    )


def parse_sitemaps(text: str, url: str) -> list[str]:
    """Sitemaps that the file at `url` names, each once, as absolute URLs."""
    found = (
        join_href(url, value) for kind, value in parse_directives(text) if kind == SITEMAP and value
    )
    return list(dict.fromkeys(name for name in found if name))
