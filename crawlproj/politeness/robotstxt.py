"""robots.txt read for one robot, by RFC 9309: which groups hold for it, which URLs it may fetch.

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
from functools import lru_cache, partial
from typing import Final, NamedTuple

from crawlproj.urls.canonical import MAX_URL, Joiner

MAX_BYTES: Final = 500 * 1024
"""RFC 9309 lets a robot stop reading here."""
LONGEST_S: Final = 1e9
"""Delays beyond this are cut to it."""

AGENT = "agent"
ALLOW = "allow"
DISALLOW = "disallow"
DELAY = "delay"
RATE = "rate"
SITEMAP = "sitemap"
MAX_SITEMAPS = 5_000
"""Sitemaps that are taken of one robots.txt."""
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
"""Names of directives, without the blanks, hyphens and underscores that people add or leave out."""

MAX_RULE: Final = 6 * MAX_URL
"""Characters of a rule with stars. No URL is so long, even if all of it becomes encoded and there
is a star before each character.
"""
MAX_PARTS: Final = 60_000
"""Parts between stars of all rules for one robot: each is looked for in every URL. Of later rules
those that forbid are cut at their first star, and those that allow are left out.
"""
_GLUE: Final = re.compile(r"[\s_-]+")
_SITEMAP: Final = re.compile(r"[\s_-]*".join("sitemap"), re.I).search
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


_BAD_BYTES: Final = {0xDC00 + byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}
"""What Python's `surrogateescape` makes of a byte that is not UTF-8 -> how it is sent."""


def decode_robots(body: bytes) -> str:
    """The text of a file, cut at a line end if it is too long; empty if it is a web page instead.

    Bytes that are not UTF-8 become percent-encoded, as browsers would send them.
    """
    head = body[:MAX_BYTES]
    if head.startswith(_UTF16):
        text = head.decode("utf-16", "replace")
    else:
        text = _decode_utf8(head)
    text = text.replace("\0", "").lstrip("\ufeff")
    if len(body) > MAX_BYTES:
        last_line_end = max(text.rfind("\n"), text.rfind("\r"))
        text = text[: last_line_end + 1]
    if text[:100].lstrip().lower().startswith(_MARKUP):
        return ""
    return text


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # A handler that is called for each byte would take half a second.
        return data.decode("utf-8", "surrogateescape").translate(_BAD_BYTES)


def parse_directives(text: str) -> Iterator[tuple[str, str]]:
    """Kind and value of each directive that we know."""
    for line in text.replace("\r", "\n").split("\n"):
        if not line:
            continue
        line = line.partition("#")[0].strip(_BLANK)
        if not line:
            continue
        directive = _parse_directive(line)
        if directive is not None:
            yield directive


def _parse_directive(line: str) -> tuple[str, str] | None:
    """A directive; its colon may be missing where the name can't be mistaken."""
    name, colon, value = line.partition(":")
    if colon:
        kind = _kind(name)
        if kind is not None:
            return kind, value.strip(_BLANK)
    words = line.split(maxsplit=3)
    if 2 <= len(words) <= 3:
        kind = _kind(" ".join(words[:-1]))
        if kind is not None:
            return kind, words[-1]
    return None


@lru_cache(maxsize=1_000)
def _kind(name: str) -> str | None:
    if len(name) > 40:
        return None
    return _FIELDS.get(_GLUE.sub("", name).lower())


# One spelling for paths

_BARE: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!'(),:;=@[]&+"
)
"""Characters that mean the same bare and encoded; not `/` and `?`, nor `*` and `$` of rules."""
_KEPT: Final = _BARE | set("/?")
_IS_ODD: Final = re.compile(r"[^A-Za-z0-9\-._~!'(),:;=@\[\]&+/?]").search
_IS_ODD_IN_RULES: Final = re.compile(r"[^A-Za-z0-9\-._~!'(),:;=@\[\]&+/?*$\n]").search
_PERCENT: Final = "\0"
"""Stands for a percent sign that was there before others are encoded."""
_ENCODED: Final = {
    byte: chr(byte) if chr(byte) in _KEPT else f"%{byte:02X}" for byte in range(256)
} | {ord("%"): _PERCENT}
_ENCODED_IN_RULES: Final = _ENCODED | {ord(character): character for character in "*$\n"}
_HEX: Final = "0123456789ABCDEFabcdef"
_CHARACTERS: Final = {
    high + low: chr(int(high + low, 16))
    if chr(int(high + low, 16)) in _BARE
    else f"%{high}{low}".upper()
    for high in _HEX
    for low in _HEX
}
"""Two hex digits behind a percent sign -> the spelling of that character."""


def normalize_path(path: str) -> str:
    """A path in the one spelling that is compared; `*` and `$` become encoded."""
    if _IS_ODD(path) is None:
        return path
    return _respell(path, _ENCODED)


def _normalize_rules(values: list[str]) -> list[str]:
    """The values of many rules in that spelling; `*` and `$` stay."""
    text = "\n".join(values)
    if _IS_ODD_IN_RULES(text) is None:
        return values
    return _respell(text, _ENCODED_IN_RULES).split("\n")


def _respell(path: str, encoded: dict[int, str]) -> str:
    """In few steps over the whole text: half a million odd characters are no reason to be slow."""
    as_bytes = path.encode("utf-8", "replace").decode("latin-1")
    first, *rest = as_bytes.translate(encoded).split(_PERCENT)
    if not rest:
        return first
    spelling = _CHARACTERS.get
    decoded = [known + part[2:] if (known := spelling(part[:2])) else "%25" + part for part in rest]
    return first + "".join(decoded)


def url_target(url: str) -> str:
    """Path and query of an absolute URL, in the spelling that is compared."""
    rest = url.partition("#")[0].partition("://")[2]
    start = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    path = rest[start:]
    if not path.startswith("/"):
        path = "/" + path
    return normalize_path(path)


def equivalent_targets(path: str) -> set[str]:
    """All spellings of one target: in a query, unlike in a path, an encoded slash is a slash."""
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
        """Whether the parts stand in the path one after the other; the first that fits is taken."""
        first = self.parts[0]
        last = self.parts[-1]
        if not path.startswith(first):
            return False
        if len(self.parts) == 1:
            return path == first
        offset = len(first)
        for part in self.parts[1:-1]:
            found = path.find(part, offset)
            if found < 0:
                return False
            offset = found + len(part)
        if self.anchored:
            return path.endswith(last) and len(path) - len(last) >= offset
        return path.find(last, offset) >= 0


_make_rule = partial(tuple.__new__, WildcardRule)
"""Quicker than WildcardRule(...), and there may be thirty thousand."""


@dataclass(slots=True)
class RobotsRules:
    """The rules for one robot.

    Plain ones are looked up by their text, those with wildcards are tried, the longest first.
    """

    delay_s: float | None = None
    plain: dict[str, bool] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    wildcards: list[WildcardRule] = field(default_factory=list)
    parts: int = 0

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched: the longest rule that fits decides.

        Of two equally long ones Allow wins; without any the URL may be fetched, and robots.txt
        itself always.
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

    def add_directives(self, directives: list[tuple[str, str]]) -> None:
        """Add those of a group; path rules that start neither at the root nor with a star are none.

        All paths together are brought into one spelling, there may be fifty thousand.
        """
        paths: list[str] = []
        allowed: list[bool] = []
        for kind, value in directives:
            if kind in (ALLOW, DISALLOW):
                if value.startswith(("/", "*")):
                    paths.append(value)
                    allowed.append(kind == ALLOW)
                continue
            pause_s = parse_crawl_delay(value) if kind == DELAY else parse_request_rate(value)
            if pause_s is not None:
                self.delay_s = max(self.delay_s or 0.0, pause_s)
        plain = self.plain
        for path, is_allowed in zip(_normalize_rules(paths), allowed, strict=True):
            if "*" in path or "$" in path:
                self._add_path_rule(path, is_allowed)
            else:
                plain[path] = is_allowed or plain.get(path, False)

    def _add_path_rule(self, path: str, allowed: bool) -> None:
        """Add a rule with stars, or with a dollar, which means the end only at the end."""
        anchored = path.endswith("$")
        bare = path[:-1] if anchored else path
        if "$" in bare:
            bare = bare.replace("$", "%24")
        parts = tuple(bare.split("*"))
        if not anchored and len(parts) == 1:
            self.plain[parts[0]] = allowed or self.plain.get(parts[0], False)
            return
        length = len(bare) + anchored
        if length > MAX_RULE:
            return
        self.parts += len(parts)
        if self.parts <= MAX_PARTS:
            if len(parts) > 2:  # several stars in a row are one
                parts = (parts[0], *filter(None, parts[1:-1]), parts[-1])
            self.wildcards.append(_make_rule((length, allowed, parts, anchored)))
        elif not allowed:  # cut at its first star it forbids more
            self.plain.setdefault(parts[0], False)

    def sort_rules(self) -> RobotsRules:
        self.lengths = sorted(set(map(len, self.plain)), reverse=True)
        self.wildcards.sort(key=lambda rule: (-rule.length, not rule.allowed))
        return self


@lru_cache(maxsize=1_000)
def product_token(agent: str) -> str:
    """The name by which a group addresses a robot: `CrawlProj/1.0 (x)` is crawlproj."""
    match = _NAME.match(agent.strip())
    if match is None:
        return ""
    return match[0].lower()


def rules_for(text: str, agent: str) -> RobotsRules:
    """All groups that name the robot, taken together; if there is none, those for everybody.

    Lines that we do not know, and Sitemap, neither end a group nor the names at its head.
    Crawl-delay and Request-rate, which are not the RFC's either, belong to a group like Disallow:
    where a group holds nothing else, the next one must not run into it.
    """
    name = product_token(agent)
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    agents: set[str] = set()
    at_head = False
    is_named = False
    for directive in parse_directives(text):
        kind, value = directive
        if kind == AGENT:
            if not at_head:
                agents = set()
            at_head = True
            agents.add(product_token(value))
            is_named = is_named or name in agents
        elif kind != SITEMAP:
            at_head = False
            if name in agents:
                own.append(directive)
            if "*" in agents:
                common.append(directive)
    rules = RobotsRules()
    rules.add_directives(own if is_named else common)
    return rules.sort_rules()


def parse_crawl_delay(value: str) -> float | None:
    """Seconds of a Crawl-delay; None if it makes no sense."""
    match = _SECONDS.fullmatch(value)
    if match is None:
        return None
    number = match[1].replace(",", ".")
    exponent = match[2] or ""
    return min(float(number + exponent), LONGEST_S)


def parse_request_rate(value: str) -> float | None:
    """Seconds between two requests by a Request-rate: `1/10` is one request in ten seconds.

    The hours of the day for which it is meant are ignored.
    """
    match = _RATE.fullmatch(value)
    if match is None:
        return None
    requests = int(match[1])
    if requests == 0:
        return None
    seconds = int(match[2]) * _UNITS[match[3].lower()]
    return seconds / requests


def parse_sitemaps(text: str, url: str) -> list[str]:
    """Sitemaps that the file at `url` names, each once, as absolute URLs.

    Those beyond MAX_SITEMAPS are not looked at; one of them is returned to show that there are.
    """
    if _SITEMAP(text) is None:
        return []
    join = Joiner(url)
    found: dict[str, None] = {}
    for kind, value in parse_directives(text):
        if kind == SITEMAP and value:
            name = join(value)
            if name:
                found[name] = None
            if len(found) > MAX_SITEMAPS:
                break
    return list(found)
