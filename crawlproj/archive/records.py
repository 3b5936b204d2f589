"""WARC/1.1 records of an exchange: answer (or revisit), request, metadata; and the warcinfo that
opens a file.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b32encode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from ipaddress import ip_address
from os import urandom
from struct import Struct
from typing import Final
from urllib.parse import quote

from crawlproj.archive.exchange import Exchange, Original, PageMetadata
from crawlproj.http import heads

NOT_MODIFIED: Final = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
IDENTICAL: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
RESPONSE_TYPE = "application/http;msgtype=response"
REQUEST_TYPE = "application/http;msgtype=request"
FIELDS_TYPE = "application/warc-fields"
OCTETS = "application/octet-stream"
HOPS: Final = {
    "a": "L a/@href",
    "area": "L area/@href",
    "img": "E img/@src",
    "link": "E link/@href",
    "script": "E script/@src",
    "iframe": "E iframe/@src",
    "frame": "E frame/@src",
    "redirect": "R Location:",
    "feed": "L feed",
    "sitemap": "L sitemap",
}
"""How Heritrix writes kinds of links, which those who read metadata records know."""
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS: Final = [first + second for first in _BASE32 for second in _BASE32]
_FIVES: Final = Struct(">IBIBIBIB").unpack
_NOT_PLAIN: Final = bytes(range(33)) + b"\x7f"
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


@dataclass(slots=True)
class Record:
    """`data` is the whole record, not packed. `digest` is that of the payload. `mime` and `status`
    are for the index, which lists `indexed` records; `asked` is what its request is told by from a
    GET.
    """

    kind: str
    id: str
    url: str
    at: datetime
    data: bytes
    digest: str = ""
    mime: str = ""
    status: int = 0
    indexed: bool = False
    original: Original | None = None
    post_query: str = ""


def new_ids(count: int) -> list[str]:
    """Random UUIDs (version 4): uuid.uuid4 asks the system for each, and takes three times
    as long.
    """
    text = urandom(16 * count).hex()
    each = [text[start : start + 32] for start in range(0, 32 * count, 32)]
    return [
        f"<urn:uuid:{x[:8]}-{x[8:12]}-4{x[13:16]}-{_VARIANT[x[16]]}{x[17:20]}-{x[20:]}>"
        for x in each
    ]


def new_id() -> str:
    return new_ids(1)[0]


@lru_cache(8)
def format_warc_date(at: datetime) -> str:
    """To the microsecond, as Postgres keeps it: what a revisit refers to is found by it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def compute_digest(*pieces: bytes, algorithm: str = "sha1") -> str:
    found = _empty_hash(algorithm).copy()
    for piece in pieces:
        found.update(piece)
    return f"{algorithm}:{_base32(found.digest())}"


@cache
def _empty_hash(algorithm: str) -> hashlib._Hash:
    return hashlib.new(algorithm, usedforsecurity=False)


def _base32(data: bytes) -> str:
    """As b32encode, in a third of its time for a SHA-1: each five bytes are four numbers of ten
    bits.
    """
    if len(data) != 20:
        return b32encode(data).decode()
    a, b, c, d, e, f, g, h = _FIVES(data)
    p = _PAIRS
    return "".join((
        p[a >> 22], p[a >> 12 & 1023], p[a >> 2 & 1023], p[(a & 3) << 8 | b],
        p[c >> 22], p[c >> 12 & 1023], p[c >> 2 & 1023], p[(c & 3) << 8 | d],
        p[e >> 22], p[e >> 12 & 1023], p[e >> 2 & 1023], p[(e & 3) << 8 | f],
        p[g >> 22], p[g >> 12 & 1023], p[g >> 2 & 1023], p[(g & 3) << 8 | h],
    ))  # fmt: skip


def plain_url(url: str) -> str:
    """Without anything that could end the header's line or that is not ASCII."""
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    return quote(url, safe="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def build_record(
    kind: str,
    at: datetime,
    block: tuple[bytes, ...],
    content_type: str,
    fields: Mapping[str, str],
    algorithm: str = "sha1",
) -> bytes:
    """The bytes of a record with a block of these pieces. Fields without a value are left out."""
    if not "".join(fields.values()).isprintable():
        fields = {name: _BREAKS.sub(" ", value) for name, value in fields.items()}
    lines = [f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Date: {format_warc_date(at)}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    lines.append(
        f"WARC-Block-Digest: {compute_digest(*block, algorithm=algorithm)}\r\nContent-Type: {content_type}"
    )
    lines.append(f"Content-Length: {sum(map(len, block))}\r\n\r\n")
    return b"".join(("\r\n".join(lines).encode("utf-8", "replace"), *block, b"\r\n\r\n"))


def warc_fields(pairs: list[tuple[str, object]]) -> bytes:
    """A block of application/warc-fields."""
    lines = [f"{name}: {value}" for name, value in pairs]
    if not "".join(lines).isprintable():
        lines = [_BREAKS.sub(" ", line) for line in lines]
    return "\r\n".join([*lines, ""]).encode("utf-8", "replace")


def build_warcinfo(
    name: str, at: datetime, info: Mapping[str, object], algorithm: str = "sha1"
) -> Record:
    """The first record of the file `name`; `info` says by whom, with what and under which rules it
    was made.
    """
    about = {"software": "crawlproj", "format": "WARC File Format 1.1", **info}
    fields = {"WARC-Record-ID": new_id(), "WARC-Filename": name}
    data = build_record(
        "warcinfo",
        at,
        (warc_fields(list(about.items())),),
        content_type=FIELDS_TYPE,
        fields=fields,
        algorithm=algorithm,
    )
    return Record("warcinfo", fields["WARC-Record-ID"], "", at=at, data=data)


def build_records(
    exchange: Exchange, original: Original | None, info_id: str, algorithm: str = "sha1"
) -> tuple[Record, ...]:
    """The records of an exchange. The answer is first: it is worth most if the process is killed
    while it writes.

    With an `original` the answer becomes a revisit, if it is a 304 or has the same payload; else it
    is stored whole, whatever the caller believed. So is the answer to anything else than a GET:
    what a revisit refers to is looked up among pages.
    """
    asked = exchange.post_query
    new, request_id, metadata_id = new_ids(3)
    first = build_response(
        exchange, None if asked else original, info_id, algorithm=algorithm, new=new
    )
    first.post_query = asked
    out = [first]
    url = first.url
    common = {"WARC-Warcinfo-ID": info_id, "WARC-Concurrent-To": first.id, "WARC-Target-URI": url}
    if (head := heads.storable_request(exchange.request)) is not None:
        fields = {
            "WARC-Record-ID": request_id,
            **common,
            "WARC-IP-Address": _address(exchange.address),
        }
        if exchange.request_body:
            fields["WARC-Payload-Digest"] = compute_digest(
                exchange.request_body, algorithm=algorithm
            )
        data = build_record(
            "request",
            exchange.at,
            (head, exchange.request_body),
            content_type=REQUEST_TYPE,
            fields=fields,
            algorithm=algorithm,
        )
        out.append(Record("request", request_id, url, at=exchange.at, data=data))
    if block := _metadata(exchange, head):
        fields = {"WARC-Record-ID": metadata_id, **common, "WARC-Refers-To": first.id}
        data = build_record(
            "metadata",
            exchange.at,
            (block,),
            content_type=FIELDS_TYPE,
            fields=fields,
            algorithm=algorithm,
        )
        out.append(Record("metadata", metadata_id, url, at=exchange.at, data=data))
    return tuple(out)


def build_response(
    exchange: Exchange,
    original: Original | None,
    info_id: str,
    algorithm: str = "sha1",
    new: str = "",
) -> Record:
    """Response, revisit, or (if there is no HTTP in it) resource. `new` is its id."""
    url = plain_url(exchange.url)
    at = exchange.at
    new = new or new_id()
    fields = {
        "WARC-Record-ID": new,
        "WARC-Warcinfo-ID": info_id,
        "WARC-Target-URI": url,
        "WARC-IP-Address": _address(exchange.address),
    }
    if not heads.is_http(exchange.head):
        whole = (exchange.head, exchange.body)
        fields |= {
            "WARC-Payload-Digest": compute_digest(*whole, algorithm=algorithm),
            "WARC-Truncated": exchange.truncated or "",
        }
        kind = exchange.content_type or OCTETS
        data = build_record(
            "resource",
            at,
            whole,
            content_type=_BREAKS.sub(" ", kind),
            fields=fields,
            algorithm=algorithm,
        )
        here = Original(url, at, fields["WARC-Payload-Digest"], record_id=new)
        return Record(
            "resource",
            new,
            url,
            at=at,
            data=data,
            digest=here.digest,
            mime=kind.partition(";")[0].strip(),
            status=0,
            indexed=True,
            original=here,
        )
    head = heads.storable_response(exchange.head)
    found = compute_digest(exchange.body, algorithm=algorithm)
    status = heads.parse_status(exchange.head)
    if original is not None and (profile := _profile(exchange, status, found, original=original)):
        fields |= {
            "WARC-Profile": profile,
            "WARC-Refers-To": original.record_id,
            "WARC-Refers-To-Target-URI": plain_url(original.url),
            "WARC-Refers-To-Date": format_warc_date(original.at),
            "WARC-Payload-Digest": original.digest,
        }
        data = build_record(
            "revisit", at, (head,), content_type=RESPONSE_TYPE, fields=fields, algorithm=algorithm
        )
        return Record(
            "revisit",
            new,
            url,
            at=at,
            data=data,
            digest=original.digest,
            mime="warc/revisit",
            status=status,
            indexed=profile == IDENTICAL,
            original=original,
        )
    fields |= {"WARC-Payload-Digest": found, "WARC-Truncated": exchange.truncated or ""}
    data = build_record(
        "response",
        at,
        (head, exchange.body),
        content_type=RESPONSE_TYPE,
        fields=fields,
        algorithm=algorithm,
    )
    return Record(
        "response",
        new,
        url,
        at=at,
        data=data,
        digest=found,
        mime=mime_type(head),
        status=status,
        indexed=status != 304,
        original=Original(url, at, found, record_id=new),
    )


def _profile(exchange: Exchange, status: int, found: str, original: Original) -> str:
    """How the answer repeats the original; empty if it doesn't, or did not come to its end."""
    if exchange.truncated:
        return ""
    if status == 304:
        return NOT_MODIFIED
    return IDENTICAL if found == original.digest and exchange.body else ""


def mime_type(head: bytes) -> str:
    """The content type of an answer, for the index."""
    return re.split(r"[;\s,]", heads.get_header(head, "Content-Type"), maxsplit=1)[0].lower()


@lru_cache(256)
def _address(text: str) -> str:
    """An address as WARC has it, or nothing."""
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return ""


def _metadata(exchange: Exchange, request: bytes | None) -> bytes:
    """`request` is the head of the request as it is stored."""
    pairs: list[tuple[str, object]] = []
    if exchange.elapsed_s is not None:
        pairs.append(("fetchTimeMs", round(exchange.elapsed_s * 1000)))
    if heads.is_http(exchange.head) and not heads.is_plain(exchange.head):
        pairs.append(("httpHeadBase64", b64encode(exchange.head).decode()))
    if request != exchange.request and exchange.request:
        pairs.append(("requestHeadBase64", b64encode(exchange.request).decode()))
    if (facts := exchange.metadata) is not None and facts.title:
        pairs.append(("title", facts.title))
    return warc_fields(pairs) + (_outlinks(facts) if facts is not None else b"")


def _outlinks(facts: PageMetadata) -> bytes:
    """One look at all URLs together: hardly ever is one of them not plain."""
    links = facts.links
    urls = "".join([link[0] for link in links]).encode("utf-8", "replace")
    if not urls.isascii() or len(urls.translate(None, _NOT_PLAIN)) < len(urls):
        links = [(plain_url(link[0]), link[1]) for link in links]
    lines = [f"outlink: {link[0]} {HOPS.get(link[1]) or 'X ' + link[1]}\r\n" for link in links]
    return "".join(lines).encode("utf-8", "replace")
