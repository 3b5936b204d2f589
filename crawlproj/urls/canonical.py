"""The canonical form of a URL, and what is read from it: host, origin, key.

Two spellings of one page must become one string, because the frontier knows a page by it. The
canonical form is what a browser would ask for (WHATWG parsing, in C) and then: no fragment, no user
and password, no trailing dot of the host, percent-encoding in one spelling, the query sorted,
session ids and tracking parameters dropped. It is idempotent.

A crawler sees a hundred links per page, so plain ones (most of them) are joined as strings. Plain
is what the parser would return unchanged; the tests hold both ways against each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from ada_url import join_url, normalize_url

MAX_URL: Final = 2000
"""The longest URL that the frontier takes; it is the frontier's trap rule that refuses others."""

WHAT_IS_RIGHT: Final = (
    "write https://example.org/page; http://name/ for a host whose name has no dot"
)
"""For people whose web address is none."""

# fmt: off
TRACKING: Final = frozenset((
    "__hsfp", "__hssc", "__hstc", "_branch_match_id", "_bta_c", "_bta_tid", "_ga", "_gl", "_hsenc",
    "_hsmi", "_openstat", "at_campaign", "at_custom1", "at_custom2", "at_custom3", "at_custom4",
    "at_medium", "cmpid", "dclid", "dicbo", "epik", "fb_action_ids", "fb_action_types", "fb_ref",
    "fb_source", "fbclid", "gad_campaignid", "gad_source", "gbraid", "gclid", "gclsrc",
    "guccounter", "guce_referrer", "guce_referrer_sig", "hsctatracking", "icid", "igsh", "igshid",
    "irclickid", "irgwc", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "ml_subscriber",
    "ml_subscriber_hash", "msclkid", "ncid", "ns_campaign", "ns_fee", "ns_linkname", "ns_mchannel",
    "ns_source", "oly_anon_id", "oly_enc_id", "piwik_campaign", "piwik_kwd", "rb_clickid",
    "ref_src", "ref_url", "s_cid", "sc_cid", "spm", "srsltid", "sscid", "trk_contact", "trk_msg",
    "trk_sid", "ttclid", "twclid", "vero_conv", "vero_id", "wbraid", "wickedid", "wt_mc", "wt_zmc",
    "xtor", "yclid", "ysclid",
))
# fmt: on
"""Parameters that say where a reader came from, never what the page is (lower case)."""

DROPPED_PREFIXES: Final = (
    "utm_",
    "mtm_",
    "pk_campaign",
    "pk_kwd",
    "pk_source",
    "hsa_",
    "itm_",
    "aspsessionid",
)

SESSION: Final = frozenset(("phpsessid", "jsessionid", "cftoken", "oscsid", "zenid"))
"""Parameters that only ever carry a session id (lower case)."""

_HTTP: Final = ("http://", "https://")
_UNRESERVED: Final = {
    f"{ord(c):02X}": c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
}
_PERCENT: Final = re.compile("%([0-9A-Fa-f]{2})?")
_ODD_PERCENT: Final = re.compile(
    "%(?:(?![0-9A-F]{2})|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])"
).search
"""Finds what is not in the one spelling: a bare percent sign, small hex digits, an unreserved
character. To rewrite each of hundreds of escapes takes twenty times as long.
"""
_PATH_SESSION: Final = re.compile(
    r";(?:jsessionid|phpsessid|sid)=[^/;]*|/\(S\([0-9a-z]{24}\)\)(?=/|$)", re.I
)
_SID_NAMES: Final = frozenset(("sid", "s", "sess", "session", "sessionid", "session_id"))
_SID_VALUE: Final = re.compile(r"(?=[^0-9]*[0-9])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-zA-Z,-]{26})")

# Plain: characters that the parser returns unchanged, where no segment starts with a dot (or %2e)
# and no session id can hide.
_PATH: Final = "[A-Za-z0-9/._~-]*"
_WIDE_PATH: Final = "[A-Za-z0-9/._~%!$&*+,=@-]*"
_TAIL: Final = r"(?:\?([A-Za-z0-9._~=&+,:;@!$()*/%?|\[\]-]*))?(?:#.*)?"
_ROOTED: Final = re.compile(rf"/(?!/){_PATH}(?=#|\Z)").match
_RELATIVE: Final = re.compile(f"((?:/(?!/)|[A-Za-z0-9_~-]){_WIDE_PATH}){_TAIL}", re.S).fullmatch
_WHITE_SPACE: Final = re.compile(r"\s").search
_HOST_NAME: Final = re.compile(r"[\w.-]*\w|\[[0-9a-f:]+\]").fullmatch
_ABSOLUTE: Final = re.compile(f"(https?://[A-Za-z0-9.:_-]+)(/{_WIDE_PATH})?{_TAIL}", re.S).fullmatch


def canonical_url(url: str) -> str | None:
    """The one spelling of `url`, or None if it is no valid http or https URL."""
    return _join_plain(url) or _parse(url, None)


def typed_url(word: str) -> str | None:
    """The canonical URL that a person means by a word; None if it is no web address.

    `example.org/news`, `localhost:8000` and `192.0.2.1` may do without a scheme. A single name such
    as `intranet` may not (it is a slip far more often than a host), nor may a mail address.
    """
    has_scheme = "://" in word
    if len(word) > MAX_URL or _WHITE_SPACE(word):
        return None
    if not has_scheme:
        name = _split_port(word.partition("/")[0])[0]
        single = "." not in name.rstrip(".") and not name.startswith("[")
        if (single and name.lower() != "localhost") or "@" in name:
            return None
        word = f"http://{word}"
    url = canonical_url(word)
    if url is None or len(url) > MAX_URL or not _HOST_NAME(host_of(url)):
        return None
    return url


def join_href(base: str, href: str) -> str | None:
    """The canonical URL of one `href` of the page `base`; for many links of a page use Joiner."""
    return Joiner(base)(href)


class Joiner:
    """Resolves the links of one page: `Joiner(base)(href)` is the canonical URL or None.

    Links are resolved against the canonical form of the base. An invalid base still lets absolute
    links through.
    """

    __slots__ = ("_base", "_folder", "_origin", "_scheme")

    def __init__(self, base: str) -> None:
        self._base = canonical_url(base)
        self._origin = ""
        self._scheme = ""
        self._folder = ""
        if self._base:
            self._origin = origin_of(self._base)
            self._scheme = self._origin.partition("//")[0]
            self._folder = self._base.partition("?")[0].rpartition("/")[0] + "/"

    def __call__(self, href: str) -> str | None:
        if href.startswith(_HTTP):
            return _join_plain(href) or _parse(href, None)
        if self._base:
            relative = _RELATIVE(href)
            if relative:
                path, query = relative.groups()
                if "/." not in path and "/%2" not in path:
                    if "%" in path:
                        path = _normalize_percent(path)
                    url = (self._origin if path[0] == "/" else self._folder) + path
                    return url + _normalize_query(query) if query else url
            if href.startswith("//"):
                plain = _join_plain(self._scheme + href)
                if plain:
                    return plain
        return _parse(href, self._base)

    def join_all(self, hrefs: list[str]) -> list[str | None]:
        """The canonical URL (or None) of each of many links; each spelling is resolved once.

        Absurdly long ones are not parsed: those with http are returned as they are, for the caller
        to count; the rest (data: and worse) is None.
        """
        urls: dict[str, str | None] = dict.fromkeys(hrefs)
        origin = self._origin
        for href in urls:
            rooted = _ROOTED(href)
            if rooted and origin and "/." not in (path := rooted[0]):
                urls[href] = origin + path
            elif len(href) <= 2 * MAX_URL:
                urls[href] = self(href)
            elif href.startswith(_HTTP) and canonical_url(href[:MAX_URL]):
                urls[href] = href
        return [urls[href] for href in hrefs]


def host_of(url: str) -> str:
    """The host name of a canonical URL, without the port; an IPv6 address keeps its brackets."""
    name = url.split("/", 3)[2]
    if ":" not in name or name.endswith("]"):
        return name
    return name.rpartition(":")[0]


def origin_of(url: str) -> str:
    """The scheme, host and port of a canonical URL: `https://host[:port]`."""
    return url[: url.index("/", 8)]


def url_key(crawl: str, url: str) -> int:
    """The number of a canonical URL in a crawl: 64 bits, signed, as a bigint holds them.

    The same URL has unrelated numbers in different crawls.
    """
    hasher = _hasher(crawl).copy()
    hasher.update(url.encode())
    return int.from_bytes(hasher.digest(), "little", signed=True)


@lru_cache(maxsize=64)
def _hasher(crawl: str) -> blake2b:
    return blake2b(digest_size=8, person=blake2b(crawl.encode(), digest_size=16).digest())


@lru_cache(maxsize=8192)
def _canonical_origin(prefix: str) -> str | None:
    root = _parse(prefix + "/", None)
    if root is None:
        return None
    return root[:-1]


def _join_plain(url: str) -> str | None:
    """The quick way, for absolute URLs; None if it may be wrong for this one."""
    plain = _ABSOLUTE(url)
    if not plain:
        return None
    prefix, path, query = plain.groups()
    origin = _canonical_origin(prefix)
    if not origin:
        return None
    if not path:
        path = "/"
    elif "/." in path or "/%2" in path:
        return None
    elif "%" in path:
        path = _normalize_percent(path)
    if query:
        return origin + path + _normalize_query(query)
    return origin + path


def _parse(url: str, base: str | None) -> str | None:
    """The slow way, right for every input."""
    try:
        full = join_url(base, url) if base else normalize_url(url)
    except ValueError:
        whole = url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if whole == url:
            return None
        return _parse(whole, base)
    scheme, _, rest = full.partition("#")[0].partition("://")
    if scheme not in ("http", "https"):
        return None
    rest, _, query = rest.partition("?")
    server, _, path = rest.partition("/")
    name, port = _split_port(server.rpartition("@")[2])
    dotless = name.rstrip(".")
    if not dotless:
        return None
    path = _normalize_percent("/" + path)
    clean = path
    if ";" in path or "(" in path:
        clean = _PATH_SESSION.sub("", path)
    result = f"{scheme}://{dotless}{port}{clean or '/'}{_normalize_query(query)}"
    if dotless != name or clean != path:
        # What was cut may leave a dot segment or a number as host. The URL got shorter, so this
        # ends.
        return canonical_url(result)
    return result


def _split_port(server: str) -> tuple[str, str]:
    """The name, and the port with its colon, or "" if there is none."""
    if ":" not in server or server.endswith("]"):
        return server, ""
    name, colon, port = server.rpartition(":")
    return name, colon + port


def _normalize_percent(text: str) -> str:
    """The text with its percent-encoding in one spelling.

    Unreserved characters are bare, hex digits in upper case; a bare percent sign becomes %25.
    """
    if "%" not in text or not _ODD_PERCENT(text):
        return text
    return _PERCENT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    digits = (match[1] or "25").upper()
    return _UNRESERVED.get(digits) or "%" + digits


def _normalize_query(query: str) -> str:
    """The parameters that stay, sorted by name and value, after a question mark; or nothing."""
    if not query:
        return ""
    # Three strings each, so that `a` and `a=` stay different.
    parts = [part.partition("=") for part in _normalize_percent(query).split("&") if part]
    parts = [part for part in parts if not _is_dropped(part[0].lower(), part[2])]
    if not parts:
        return ""
    parts.sort(key=_name_and_value)
    return "?" + "&".join(["".join(part) for part in parts])


def _name_and_value(part: tuple[str, str, str]) -> tuple[str, str]:
    name, _, value = part
    return name, value


def _is_dropped(name: str, value: str) -> bool:
    if name in TRACKING or name in SESSION or name.startswith(DROPPED_PREFIXES):
        return True
    return name in _SID_NAMES and _SID_VALUE.fullmatch(value) is not None
