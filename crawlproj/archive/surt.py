"""Keys of the index: SURT, the URL with its host turned round, in lower case, without what rarely
matters.

The rules are those of the Internet Archive's wayback machine, because pywb and others look pages up
by them.
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
    "(?:(?:jsession|phpsess|s)id=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)(?:&|$)",
    re.I,
)
_ASPX_SESSION: Final = re.compile(
    r"(?<=/)\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)/(?=[^?]+\.aspx)", re.I
)
"""Session ids in a query, and in the path of ASP.NET."""


@lru_cache(1024)
def _turned(scheme: str, host: str, port: str) -> str:
    host = _unescaped(host).decode("utf-8", "replace").lower()
    host = host.replace("..", ".").strip(".")
    if not host.isascii():
        with suppress(UnicodeError):
            host = host.encode("idna").decode("ascii")
    host = _WWW.sub("", host, count=1) if _WWW.match(host) else host
    turned = host.strip("[]") if host.startswith("[") else ",".join(reversed(host.split(".")))
    return _escaped(turned.encode("utf-8", "replace")) + (
        f":{port}" if port and port != _DEFAULT_PORTS[scheme] else ""
    )


def surt_key(url: str) -> str:
    """The key of a URL; one that is no http URL is its own key, without spaces."""
    parts = _PARTS(url.strip())
    if parts is None:
        return quote_from_bytes(url.encode("utf-8", "replace"), safe=_SAFE + "%#") or "-"
    scheme, host, port, path, query = parts.groups()
    path = _path(path or "/")
    query = _query(query or "")
    place = _turned(scheme.lower(), host, (port or "").lstrip("0"))
    return f"{place}){path}?{query}" if query else f"{place}){path}"


def _path(path: str) -> str:
    if not _PLAIN(path) or "//" in path or "/." in path:
        path = _escaped(_normal(_unescaped(path))).lower()
        path = _ASPX_SESSION.sub("", path)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def _query(query: str) -> str:
    if not query:
        return ""
    query = _escaped(_unescaped(query))
    if "id" in query.lower():
        query = _SESSION.sub("", query)
    return "&".join(
        "=".join(pair)
        for pair in sorted(tuple(part.split("=", 1)) for part in query.lower().split("&"))
    )


def _normal(path: bytes) -> bytes:
    """Without dots and without empty steps."""
    kept: list[bytes] = []
    for step in path.split(b"/")[1:]:
        if step == b"..":
            kept = kept[:-1] if kept else [step]
        elif step != b".":
            kept.append(step)
    return b"/" + b"".join(step + b"/" for step in kept[:-1] if step) + (kept[-1] if kept else b"")


def _unescaped(text: str) -> bytes:
    """Until nothing changes."""
    data = text.encode("utf-8", "replace")
    while b"%" in data and (less := unquote_to_bytes(data)) != data:
        data = less
    return data


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)
