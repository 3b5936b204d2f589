"""Bodies without their Content-Encoding: gzip, deflate, br and zstd, in layers.

What the header says about a body need not be true, so nothing here raises: whatever can be decoded
is returned.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_LAYERS = 3
MAX_BYTES = 256 << 20
OUTPUT_BYTES = 1 << 20
INPUT_BYTES = 4_096
MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""The first bytes of gzip and zstd; br and deflate have no such mark."""
SNIFF_BYTES = 1_024
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
"""Bytes that never occur in text."""
_NO_ENCODING = ("", "identity", "none", "utf-8")
"""Values of Content-Encoding that name no compression."""
BROKEN = (zlib.error, zstd.ZstdError, brotli.error, EOFError, ValueError)


def decode_body(body: bytes, encoding: str, limit: int = MAX_BYTES) -> bytes:
    """The body as a reader sees it, at most `limit` bytes of it.

    A layer that the header names but the body does not have is skipped. Of a layer that is cut or
    damaged, whatever can be decompressed is returned. An unknown encoding ends the decoding.
    """
    names = [part.strip() for part in encoding.lower().split(",")]
    names = [name for name in names if name not in _NO_ENCODING]
    for name in reversed(names[-MAX_LAYERS:]):
        if name not in DECODERS:
            break
        if body:
            body = DECODERS[name](body, limit)
    return body[:limit]


def is_compressed(body: bytes, encoding: str) -> bool:
    """Whether a decoded body is still compressed, or damaged, rather than never compressed."""
    if body.startswith(MAGIC):
        return True
    encoding = encoding.lower()
    may_be_unmarked = "br" in encoding or "deflate" in encoding
    return may_be_unmarked and _CONTROLS(body[:SNIFF_BYTES]) is not None


def _inflate(body: bytes, limit: int, *window_bits: int) -> bytes:
    """The body decompressed with the first of these windows that fits, else as it is."""
    for bits in window_bits:
        out = _decompress(body, limit, partial(zlib.decompressobj, bits), step=_zlib_step)
        if out is not None:
            return out
    return body


def _zlib_step(stream: Any, data: bytes) -> tuple[bytes, bytes]:
    """The next output of a zlib stream, and the input that is left."""
    out = stream.decompress(data, OUTPUT_BYTES)
    return out, stream.unconsumed_tail or stream.unused_data


def _zstd_step(stream: Any, data: bytes) -> tuple[bytes, bytes]:
    """The next output of a zstd stream, and the input that is left."""
    out = stream.decompress(data, OUTPUT_BYTES)
    if stream.eof:
        return out, stream.unused_data
    return out, b""


def _decompress(
    body: bytes,
    limit: int,
    new_stream: Callable[[], Any],
    step: Callable[[Any, bytes], tuple[bytes, bytes]],
) -> bytes | None:
    """All streams of a body, one after another; None if the first fails at its start.

    Input is given a little at a time: a stream copies the input that it leaves, and a body may
    consist of half a million empty streams.
    """
    out = bytearray()
    data = b""
    offset = 0
    stream = new_stream()
    started = False
    try:
        while len(out) < limit:
            if not data:
                data = body[offset : offset + INPUT_BYTES]
                offset += INPUT_BYTES
            piece, data = step(stream, data)
            out += piece
            started = started or bool(piece) or stream.eof
            exhausted = not data and offset >= len(body)
            if stream.eof:
                if exhausted:
                    break
                stream = new_stream()
            elif exhausted and not piece:
                break  # the body is cut
    except BROKEN:
        if not started:
            return None
    return bytes(out)


def _gzip(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, 31)


def _deflate(body: bytes, limit: int) -> bytes:
    """Deflate with zlib's header, as in the standard, or without, as some servers send it."""
    return _inflate(body, limit, 15, -15)


def _zstd(body: bytes, limit: int) -> bytes:
    out = _decompress(body, limit, zstd.ZstdDecompressor, step=_zstd_step)
    if out is None:
        return body
    return out


def _brotli(body: bytes, limit: int) -> bytes:
    out, _, failed = _decompress_brotli([body], limit)
    if failed is not None:
        return _brotli_before_junk(body, limit) or out or body
    if not out and body.isascii():
        # Nothing distinguishes a short text from the start of a stream.
        return body
    return out


def _brotli_before_junk(body: bytes, limit: int) -> bytes:
    """A whole brotli stream that is followed by other bytes; empty if there is no whole one.

    The decoder fails at the bytes that follow, so it gets the end of the stream byte by byte.
    """
    pieces = [body[start : start + INPUT_BYTES] for start in range(0, len(body), INPUT_BYTES)]
    _, _, failed = _decompress_brotli(pieces, limit)
    if failed is not None:
        pieces = [*pieces[:failed], *(bytes([byte]) for byte in pieces[failed])]
    out, is_whole, _ = _decompress_brotli(pieces, limit)
    if not is_whole:
        return b""
    return out


def _decompress_brotli(pieces: list[bytes], limit: int) -> tuple[bytes, bool, int | None]:
    """The output; whether it is a whole stream, or `limit` bytes of it; the first broken piece."""
    stream = brotli.Decompressor()
    out = bytearray()
    for number, data in enumerate(pieces):
        try:
            while len(out) < limit and not stream.is_finished():
                piece = stream.process(data, output_buffer_limit=OUTPUT_BYTES)
                data = b""
                out += piece
                if not piece and stream.can_accept_more_data():
                    break  # it needs the next piece
        except brotli.error:
            return bytes(out), False, number
    return bytes(out), stream.is_finished() or len(out) >= limit, None


DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd,
}  # fmt: skip
