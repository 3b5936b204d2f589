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
"""Longer ones are refused by the frontier's trap rule, not here."""

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
_ABSOLUTE: Final = re.compile(f"(https?://[A-Za-z0-9.:_-]+)(/{_WIDE_PATH})?{_TAIL}", re.S).fullmatch


def canonical_url(url: str) -> str | None:
    """The one spelling of `url`, or None if it is no valid http or https URL."""
    return _plain(url) or _parsed(url, None)


def join_href(base: str, href: str) -> str | None:
    """Canonical form of `href` as it stands on the page `base`; see Joiner for many links of one
    page.
    """
    return Joiner(base)(href)


class Joiner:
    """Resolves the links of one page: `Joiner(base)(href)` is the canonical URL or None.

    Links are resolved against the canonical form of the base. An invalid base still lets absolute
    links through.
    """

    __slots__ = ("_base", "_folder", "_origin", "_scheme")

    def __init__(self, base: str) -> None:
        self._base = canonical_url(base)
        self._origin = origin_of(self._base) if self._base else ""
        self._scheme = self._origin.partition("//")[0]
        self._folder = self._base.partition("?")[0].rpartition("/")[0] + "/" if self._base else ""

    def __call__(self, href: str) -> str | None:
        if href.startswith(_HTTP):
            return _plain(href) or _parsed(href, None)
        if self._base:
            if (plain := _RELATIVE(href)) and "/." not in (path := plain[1]) and "/%2" not in path:
                path = (self._origin if path[0] == "/" else self._folder) + (
                    _percent(path) if "%" in path else path
                )
                return path + _query(plain[2]) if plain[2] else path
            if href.startswith("//") and (url := _plain(self._scheme + href)):
                return url
        return _parsed(href, self._base)

    def join_all(self, hrefs: list[str]) -> list[str | None]:
        """The same for a list; each spelling is resolved once. Absurdly long ones are not parsed:
        what says http is given back as it is, for the caller to count, and the rest (data: and
        worse) is None.
        """
        known: dict[str, str | None] = dict.fromkeys(hrefs)
        root = self._origin
        for href in known:
            if (rooted := _ROOTED(href)) and root and "/." not in (path := rooted[0]):
                known[href] = root + path
            elif len(href) <= 2 * MAX_URL:
                known[href] = canonical_url(href) if href.startswith(_HTTP) else self(href)
            elif href.startswith(_HTTP) and canonical_url(href[:MAX_URL]):
                known[href] = href
        return [known[href] for href in hrefs]


def host_of(url: str) -> str:
    """Host name of a canonical URL, without the port; an IPv6 address keeps its brackets."""
    name = url.split("/", 3)[2]
    return name if name.endswith("]") or ":" not in name else name.rpartition(":")[0]


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical URL: `https://host[:port]`."""
    return url[: url.index("/", 8)]


def url_key(crawl: str, url: str) -> int:
    """Signed 64-bit number of a canonical URL in a crawl; fits a bigint. Different crawls give
    unrelated numbers.
    """
    hasher = _hasher(crawl).copy()
    hasher.update(url.encode())
    return int.from_bytes(hasher.digest(), "little", signed=True)


@lru_cache(maxsize=64)
def _hasher(crawl: str) -> blake2b:
    return blake2b(digest_size=8, person=blake2b(crawl.encode(), digest_size=16).digest())


@lru_cache(maxsize=8192)
def _origin(prefix: str) -> str | None:
    root = _parsed(prefix + "/", None)
    return root and root[:-1]


def _plain(url: str) -> str | None:
    """The quick way, for absolute URLs; None if it may be wrong for this one."""
    if not (plain := _ABSOLUTE(url)) or not (root := _origin(plain[1])):
        return None
    path = plain[2] or "/"
    if "/." in path or "/%2" in path:
        return None
    if "%" in path:
        path = _percent(path)
    return root + path + _query(plain[3]) if plain[3] else root + path


def _parsed(url: str, base: str | None) -> str | None:
    """The slow way, right for every input."""
    try:
        full = join_url(base, url) if base else normalize_url(url)
    except ValueError:
        whole = url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _parsed(whole, base) if whole != url else None
    scheme, _, rest = full.partition("#")[0].partition("://")
    if scheme not in ("http", "https"):
        return None
    rest, _, query = rest.partition("?")
    server, _, path = rest.partition("/")
    name, colon, port = _port(server.rpartition("@")[2])
    dotless = name.rstrip(".")
    path = _percent("/" + path)
    clean = _PATH_SESSION.sub("", path) if ";" in path or "(" in path else path
    if not dotless:
        return None
    result = f"{scheme}://{dotless}{colon}{port}{clean or '/'}{_query(query)}"
    # What was cut may leave a dot segment or a number as host: parse again; it got shorter, so this
    # ends.
    return canonical_url(result) if dotless != name or clean != path else result


def _port(server: str) -> tuple[str, str, str]:
    return (server, "", "") if server.endswith("]") or ":" not in server else server.rpartition(":")


def _percent(text: str) -> str:
    """Unreserved characters bare, hex digits in upper case, a percent sign that encodes nothing as
    %25.
    """
    return _PERCENT.sub(_escape, text) if "%" in text else text


def _escape(match: re.Match[str]) -> str:
    digits = (match[1] or "25").upper()
    return _UNRESERVED.get(digits) or "%" + digits


def _query(query: str) -> str:
    """The query that is left, sorted by name and value, with its question mark; parts without a
    sign stay so.
    """
    if not query:
        return ""
    parts = [part.partition("=") for part in _percent(query).split("&") if part]
    parts = [part for part in parts if not _dropped(part[0].lower(), part[2])]
    parts.sort(key=_name_and_value)
    return "?" + "&".join(["".join(part) for part in parts]) if parts else ""


def _name_and_value(part: tuple[str, str, str]) -> tuple[str, str]:
    return part[0], part[2]


def _dropped(name: str, value: str) -> bool:
    if name in TRACKING or name in SESSION or name.startswith(DROPPED_PREFIXES):
        return True
    return name in _SID_NAMES and _SID_VALUE.fullmatch(value) is not None
