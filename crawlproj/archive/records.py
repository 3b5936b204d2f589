"""The bytes of WARC/1.1 records: those of an exchange (response or revisit, request, metadata),
and the warcinfo record that opens a file.
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

from crawlproj.archive.exchange import Exchange, LaterNote, Original, PageMetadata
from crawlproj.http import heads

NOT_MODIFIED: Final = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
IDENTICAL: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
RESPONSE_TYPE = "application/http;msgtype=response"
REQUEST_TYPE = "application/http;msgtype=request"
FIELDS_TYPE = "application/warc-fields"
OCTETS = "application/octet-stream"
REVISIT_MIME = "warc/revisit"
"""What the index says of a revisit in place of its type."""
HERITRIX_LINK_KINDS: Final = {
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
"""Kinds of links as Heritrix writes them, which readers of metadata records know."""
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS: Final = [first + second for first in _BASE32 for second in _BASE32]
_FIVES: Final = Struct(">IBIBIBIB").unpack
_NOT_PLAIN: Final = bytes(range(33)) + b"\x7f"
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


@dataclass(slots=True)
class Record:
    """A record to be written. `data` is the whole record, not compressed; `digest` is that of the
    payload. `mime`, `status` and `post_query` are for the index, which lists `indexed` records.
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
    """Random UUIDs (version 4), in a third of the time of uuid.uuid4, a system call each."""
    text = urandom(16 * count).hex()
    digits = [text[start : start + 32] for start in range(0, 32 * count, 32)]
    return [
        f"<urn:uuid:{x[:8]}-{x[8:12]}-4{x[13:16]}-{_VARIANT[x[16]]}{x[17:20]}-{x[20:]}>"
        for x in digits
    ]


def new_id() -> str:
    return new_ids(1)[0]


@lru_cache(8)
def format_warc_date(at: datetime) -> str:
    """A WARC-Date to the microsecond, as in Postgres: originals of revisits are found by it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def compute_digest(*pieces: bytes, algorithm: str = "sha1") -> str:
    """The digest of these bytes as WARC writes it: `sha1:` and base32."""
    hasher = _empty_hash(algorithm).copy()
    for piece in pieces:
        hasher.update(piece)
    return f"{algorithm}:{_base32(hasher.digest())}"


@cache
def _empty_hash(algorithm: str) -> hashlib._Hash:
    return hashlib.new(algorithm, usedforsecurity=False)


def _base32(data: bytes) -> str:
    """The same as b32encode, in a third of its time for a SHA-1.

    Each five bytes are four numbers of ten bits, and each of those is a pair of characters.
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
    """The URL without anything that is not ASCII or could end the line of a header."""
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
    """The bytes of a record with a block of these pieces; fields without a value are left out."""
    if not "".join(fields.values()).isprintable():
        fields = {name: _BREAKS.sub(" ", value) for name, value in fields.items()}
    lines = [f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Date: {format_warc_date(at)}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    lines.append(f"WARC-Block-Digest: {compute_digest(*block, algorithm=algorithm)}")
    lines.append(f"Content-Type: {content_type}")
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
    """The first record of the file `name`; `info` says by whom and how the file was made."""
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
    """The records of an exchange. The response is first: it is worth most if the process is killed
    while it writes.

    With an `original` the response becomes a revisit if it is a 304 or has the same payload; else
    it is stored whole, whatever the caller believed. The response to any request but a GET is
    always stored whole, because originals are looked up among responses to GETs.
    """
    post_query = exchange.post_query
    if post_query:
        original = None
    response_id, request_id, metadata_id = new_ids(3)
    response = build_response(
        exchange, original, info_id, algorithm=algorithm, record_id=response_id
    )
    response.post_query = post_query
    out = [response]
    url = response.url
    common = {
        "WARC-Warcinfo-ID": info_id,
        "WARC-Concurrent-To": response.id,
        "WARC-Target-URI": url,
    }
    head = heads.storable_request(exchange.request)
    if head is not None:
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
    block = _metadata_block(exchange, head)
    if block:
        fields = {"WARC-Record-ID": metadata_id, **common, "WARC-Refers-To": response.id}
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


def build_note(note: LaterNote, info_id: str, algorithm: str = "sha1") -> Record:
    """The metadata record of what became known of a page later."""
    record_id = new_id()
    url = plain_url(note.url)
    fields = {
        "WARC-Record-ID": record_id,
        "WARC-Warcinfo-ID": info_id,
        "WARC-Target-URI": url,
        "WARC-Refers-To": note.record_id,
    }
    data = build_record(
        "metadata",
        note.at,
        (warc_fields(list(note.fields)),),
        content_type=FIELDS_TYPE,
        fields={name: value for name, value in fields.items() if value},
        algorithm=algorithm,
    )
    return Record("metadata", record_id, url, at=note.at, data=data)


def build_response(
    exchange: Exchange,
    original: Original | None,
    info_id: str,
    algorithm: str = "sha1",
    record_id: str = "",
) -> Record:
    """The record of the response: a response, a revisit or, without an HTTP head, a resource."""
    url = plain_url(exchange.url)
    record_id = record_id or new_id()
    fields = {
        "WARC-Record-ID": record_id,
        "WARC-Warcinfo-ID": info_id,
        "WARC-Target-URI": url,
        "WARC-IP-Address": _address(exchange.address),
    }
    if not heads.is_http(exchange.head):
        return _build_resource(exchange, fields, algorithm)
    at = exchange.at
    head = heads.storable_response(exchange.head)
    digest = compute_digest(exchange.body, algorithm=algorithm)
    status = heads.parse_status(exchange.head)
    if original is not None:
        profile = _revisit_profile(exchange, status, digest, original=original)
        if profile:
            return _build_revisit(
                exchange,
                original,
                profile,
                head=head,
                status=status,
                fields=fields,
                algorithm=algorithm,
            )
    fields |= {"WARC-Payload-Digest": digest, "WARC-Truncated": exchange.truncated or ""}
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
        record_id,
        url,
        at=at,
        data=data,
        digest=digest,
        mime=mime_type(head),
        status=status,
        indexed=status != 304,
        original=Original(url, at, digest, record_id=record_id),
    )


def _build_resource(exchange: Exchange, fields: dict[str, str], algorithm: str) -> Record:
    """The record of what came without an HTTP head."""
    block = (exchange.head, exchange.body)
    digest = compute_digest(*block, algorithm=algorithm)
    fields |= {"WARC-Payload-Digest": digest, "WARC-Truncated": exchange.truncated or ""}
    content_type = exchange.content_type or OCTETS
    data = build_record(
        "resource",
        exchange.at,
        block,
        content_type=_BREAKS.sub(" ", content_type),
        fields=fields,
        algorithm=algorithm,
    )
    record_id = fields["WARC-Record-ID"]
    url = fields["WARC-Target-URI"]
    return Record(
        "resource",
        record_id,
        url,
        at=exchange.at,
        data=data,
        digest=digest,
        mime=content_type.partition(";")[0].strip(),
        status=0,
        indexed=True,
        original=Original(url, exchange.at, digest, record_id=record_id),
    )


def _build_revisit(
    exchange: Exchange,
    original: Original,
    profile: str,
    head: bytes,
    status: int,
    fields: dict[str, str],
    algorithm: str,
) -> Record:
    """The record of a response whose payload is that of the original."""
    fields |= {
        "WARC-Profile": profile,
        "WARC-Refers-To": original.record_id,
        "WARC-Refers-To-Target-URI": plain_url(original.url),
        "WARC-Refers-To-Date": format_warc_date(original.at),
        "WARC-Payload-Digest": original.digest,
    }
    data = build_record(
        "revisit",
        exchange.at,
        (head,),
        content_type=RESPONSE_TYPE,
        fields=fields,
        algorithm=algorithm,
    )
    return Record(
        "revisit",
        fields["WARC-Record-ID"],
        fields["WARC-Target-URI"],
        at=exchange.at,
        data=data,
        digest=original.digest,
        mime=REVISIT_MIME,
        status=status,
        indexed=profile == IDENTICAL,
        original=original,
    )


def _revisit_profile(exchange: Exchange, status: int, digest: str, original: Original) -> str:
    """How the response repeats the original; empty if it doesn't, or if it was cut off."""
    if exchange.truncated:
        return ""
    if status == 304:
        return NOT_MODIFIED
    if exchange.body and digest == original.digest:
        return IDENTICAL
    return ""


def mime_type(head: bytes) -> str:
    """The content type of a response, for the index."""
    return re.split(r"[;\s,]", heads.get_header(head, "Content-Type"), maxsplit=1)[0].lower()


@lru_cache(256)
def _address(text: str) -> str:
    """An IP address as WARC writes it; empty if it is none."""
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return ""


def _metadata_block(exchange: Exchange, stored_request: bytes | None) -> bytes:
    """The block of the metadata record; empty if there is nothing to say."""
    pairs: list[tuple[str, object]] = []
    if exchange.elapsed_s is not None:
        pairs.append(("fetchTimeMs", round(exchange.elapsed_s * 1000)))
    if heads.is_http(exchange.head) and not heads.is_plain(exchange.head):
        pairs.append(("httpHeadBase64", b64encode(exchange.head).decode()))
    if exchange.request and exchange.request != stored_request:
        pairs.append(("requestHeadBase64", b64encode(exchange.request).decode()))
    metadata = exchange.metadata
    if metadata is None:
        return warc_fields(pairs)
    if metadata.title:
        pairs.append(("title", metadata.title))
    return warc_fields(pairs) + _outlinks(metadata)


def _outlinks(metadata: PageMetadata) -> bytes:
    """A line for each link of a page."""
    links = metadata.links
    # Checked for all URLs at once, because hardly ever is one of them not plain.
    urls = "".join([link[0] for link in links]).encode("utf-8", "replace")
    if not urls.isascii() or len(urls.translate(None, _NOT_PLAIN)) < len(urls):
        links = [(plain_url(link[0]), link[1]) for link in links]
    lines = [
        f"outlink: {link[0]} {HERITRIX_LINK_KINDS.get(link[1]) or 'X ' + link[1]}\r\n"
        for link in links
    ]
    return "".join(lines).encode("utf-8", "replace")
