"""How the index distinguishes responses to forms, and to any request but a GET, from the page.

Their keys are those of the URL with the request's method and content appended to it, the post query
(`__wb_method=POST&...`), as pywb and others write and look them up. So a replayed form leads to its
response, and a replayed link never does.
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
MAX_CONTENT = 4_096
"""Characters of the content that are part of the key."""
_METHOD = re.compile(rb"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40})[ \t]+\S").match
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
PLAIN = "text/plain"
PARTS = "multipart/"


def parse_post_query(head: bytes, body: bytes) -> str:
    """The post query of a request as sent; empty for a GET, and for what is no request."""
    if not head or head.startswith(b"GET "):
        return ""
    found = _METHOD(head)
    if found is None:
        return ""
    return query_for(found[1].decode().upper(), heads.get_header(head, "Content-Type"), body)


def query_for(method: str, content_type: str, body: bytes) -> str:
    """The post query of a request with this method and content; empty for a GET."""
    if method == "GET":
        return ""
    query = METHOD + quote(method)
    if method in WITH_CONTENT and body:
        content = _content(content_type, body)[:MAX_CONTENT].translate(NO_BREAKS)
        if content:
            query += f"&{content}"
    return query


def add_post_query(url: str, query: str) -> str:
    """The URL whose key a response to a request with this post query has."""
    if not query:
        return url
    if "?" in url:
        return f"{url}&{query}"
    return f"{url}?{query}"


def _content(content_type: str, body: bytes) -> str:
    """The content of a request as a query."""
    try:
        if content_type.startswith(FORM):
            return unquote_plus(body.decode())
        if content_type.startswith(PARTS):
            return urlencode(list(_form_parts(content_type, body)), True)
        if content_type.startswith((JSON, PLAIN)):
            return urlencode(_flatten_json(json.loads(body)))
    except Exception:  # the parsers of mail and JSON raise anything; pywb does the same then
        if content_type.startswith(JSON):
            return ""
    return f"__wb_post_data={b64encode(body).decode()}"


def _form_parts(content_type: str, body: bytes) -> Iterator[tuple[str, str | bytes]]:
    """The fields of a multipart form; ValueError if it is none."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n" + body
    )
    boundary = message.get_boundary()
    if not boundary:
        raise ValueError(f"no parts: {content_type}")
    if not message.is_multipart():
        return
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        value = bytes(part.get_payload(decode=True) or b"")
        if part.get_filename():
            yield name, value
        else:
            yield name, value.decode("utf-8", "replace")


def _flatten_json(value: Any) -> dict[str, str]:
    """All values of a JSON text by their names; a name that is repeated gets a number."""
    out: dict[str, str] = {}
    times: dict[str, int] = {}
    for name, text in _json_leaves(value, ""):
        times[name] = times.get(name, 0) + 1
        if times[name] == 1:
            out[name] = text
        else:
            out[f"{name}.{times[name]}_"] = text
    return out


def _json_leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _json_leaves(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _json_leaves(each, name)
    elif name:
        yield name, _javascript_text(value)


def _javascript_text(value: Any) -> str:
    """A JSON value as JavaScript prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and modf(value)[0] == 0:  # an OverflowError, if it is infinite
        return str(int(value))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)
