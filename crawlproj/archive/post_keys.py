"""How an index tells answers to forms, and to anything else that is no GET, from the page itself.

Their keys are those of the URL with method and content of the request behind it
(`__wb_method=POST&...`), as pywb and others write and look them up: so a replayed form leads to its
answer, and a replayed link never does.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from math import modf
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode

from crawlproj.http import heads

METHOD = "__wb_method="
WITH_CONTENT = ("POST", "PUT")
NO_BREAKS = dict.fromkeys(map(ord, "\t\r\n"))
LONGEST = 4_096
"""Characters of the content that count."""
_METHOD = re.compile(rb"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40})[ \t]+\S").match
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
PLAIN = "text/plain"
PARTS = "multipart/"


def parse_post_query(head: bytes, body: bytes) -> str:
    """What distinguishes a request that went over the wire; empty for a GET, and if nobody kept it,
    or what is kept is none.
    """
    if not head or head.startswith(b"GET ") or (found := _METHOD(head)) is None:
        return ""
    return build_post_query(found[1].decode().upper(), heads.get_header(head, "Content-Type"), body)


def build_post_query(method: str, content_type: str, body: bytes) -> str:
    """The same of a request with this content type."""
    if method == "GET":
        return ""
    content = (
        _content(content_type, body)[:LONGEST].translate(NO_BREAKS)
        if method in WITH_CONTENT and body
        else ""
    )
    return METHOD + quote(method) + (f"&{content}" if content else "")


def add_post_query(url: str, query: str) -> str:
    """The URL whose key an answer has."""
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _content(kind: str, body: bytes) -> str:
    try:
        if kind.startswith(FORM):
            return unquote_plus(body.decode())
        if kind.startswith(PARTS):
            return urlencode(list(_parts(kind, body)), True)
        if kind.startswith((JSON, PLAIN)):
            return urlencode(_flat(json.loads(body)))
    except Exception:  # who reads mail, or JSON, may stumble over anything; so does who looks it up
        if kind.startswith(JSON):
            return ""
    return f"__wb_post_data={b64encode(body).decode()}"


def _parts(kind: str, body: bytes) -> Iterator[tuple[str, str | bytes]]:
    """Fields of a form with files; ValueError if it is none."""
    whole = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n" + body
    )
    boundary = whole.get_boundary()
    if not boundary:
        raise ValueError(f"no parts: {kind}")
    for part in whole.iter_parts() if whole.is_multipart() else ():
        value = bytes(part.get_payload(decode=True) or b"")
        name = part.get_param("name", header="content-disposition")
        yield str(name), value if part.get_filename() else value.decode("utf-8", "replace")


def _flat(found: Any) -> dict[str, str]:
    """All values of a JSON text by the names that they have where they are; a name that comes again
    gets a number.
    """
    out: dict[str, str] = {}
    times: dict[str, int] = {}
    for name, value in _leaves(found, ""):
        times[name] = times.get(name, 0) + 1
        out[name if times[name] == 1 else f"{name}.{times[name]}_"] = value
    return out


def _leaves(found: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield from _leaves(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from _leaves(value, name)
    elif name:
        yield name, _said(found)


def _said(value: Any) -> str:
    """As JavaScript writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and modf(value)[0] == 0:  # an OverflowError, if it is infinite
        return str(int(value))
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
