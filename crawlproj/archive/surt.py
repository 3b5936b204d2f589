"""SURT, the keys of the index: URLs with their hosts reversed, in lower case, without details.

`https://www.Example.org/A/?b` becomes `org,example)/a?b`. The rules are those of the Internet
Archive's Wayback Machine, because pywb and others look pages up by them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PARTS: Final = re.compile(
    r"(?is)(https?)://(?:[^/?#]*@)?(\[[^/?#]*\]|[^/?#:]*)(?::([0-9]*))?([^?#]*)(?:\?([^#]*))?"
).match
_PLAIN: Final = re.compile(r"[a-z0-9/._~-]*(?:\?[a-z0-9._~=&+,-]*)?", re.A).fullmatch
_SAFE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_WWW: Final = re.compile(r"www\d*\.", re.A)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_SESSION: Final = re.compile(
    "(?:(?:jsession|phpsess|s)id=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}"
    "|cfid=[^&]{1,100}&cftoken=[^&]{1,100})(?:&|$)",
    re.I,
)
_ASPX_SESSION: Final = re.compile(
    r"(?<=/)\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)/(?=[^?]+\.aspx)", re.I
)
"""Session ids in a query, and in the path of ASP.NET."""
_PASSES: Final = 4
_HEX: Final = frozenset(b"0123456789ABCDEFabcdef")


@lru_cache(1024)
def _reversed_host(scheme: str, host: str, port: str) -> str:
    """`org,example` for `www.example.org`, with a port that is not the scheme's own."""
    host = _unescaped(host).decode("utf-8", "replace").lower()
    host = host.replace("..", ".").strip(".")
    if not host.isascii():
        with suppress(UnicodeError):
            host = host.encode("idna").decode("ascii")
    if _WWW.match(host):
        host = _WWW.sub("", host, count=1)
    labels = host.split(".")
    if host.startswith("["):
        labels = [host.strip("[]")]
    escaped = _escaped(",".join(reversed(labels)).encode("utf-8", "replace"))
    if port and port != _DEFAULT_PORTS[scheme]:
        return f"{escaped}:{port}"
    return escaped


def surt_key(url: str) -> str:
    """The key of a URL; one that is not http or https is its own key, without spaces."""
    parts = _PARTS(url.strip())
    if parts is None:
        return quote_from_bytes(url.encode("utf-8", "replace"), safe=_SAFE + "%#") or "-"
    scheme, host, port, path, query = parts.groups()
    path = _path(path or "/")
    query = _query(query or "")
    server = _reversed_host(scheme.lower(), host, (port or "").lstrip("0"))
    if query:
        return f"{server}){path}?{query}"
    return f"{server}){path}"


def _path(path: str) -> str:
    if not _PLAIN(path) or "//" in path or "/." in path:
        path = _escaped(_normal_path(_unescaped(path))).lower()
        path = _ASPX_SESSION.sub("", path)
    if len(path) > 1 and path.endswith("/"):
        return path[:-1]
    return path


def _query(query: str) -> str:
    if not query:
        return ""
    query = _escaped(_unescaped(query))
    if "id" in query.lower():
        query = _SESSION.sub("", query)
    pairs = sorted(part.split("=", 1) for part in query.lower().split("&"))
    return "&".join("=".join(pair) for pair in pairs)


def _normal_path(path: bytes) -> bytes:
    """The path without `.`, `..` and empty segments."""
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(segment)
        elif segment != b".":
            kept.append(segment)
    *folders, last = kept or [b""]
    return b"/" + b"".join(folder + b"/" for folder in folders if folder) + last


def _unescaped(text: str) -> bytes:
    """The text without percent-encoding, also where it was encoded several times."""
    data = text.encode("utf-8", "replace")
    for _ in range(_PASSES):
        if b"%" not in data:
            return data
        less = unquote_to_bytes(data)
        if less == data:
            return data
        data = less
    return _unescaped_in_one_pass(data)


def _unescaped_in_one_pass(data: bytes) -> bytes:
    """The same for what was encoded very often, byte by byte: each pass over `%252525...` would
    remove one `25`.
    """
    out = bytearray()
    for byte in data:
        out.append(byte)
        while len(out) >= 3 and out[-3] == ord("%") and out[-2] in _HEX and out[-1] in _HEX:
            out[-3:] = bytes((int(out[-2:], 16),))
    return bytes(out)


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)
