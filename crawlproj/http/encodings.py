"""Bodies without their Content-Encoding: gzip, deflate, br, zstd, in layers. What a server says
about a body need not be true.
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
PIECE = 1 << 20
SMALL = 4_096
MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""What gzip and zstd begin with; br and deflate begin with nothing of their own."""
LOOK = 1_024
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
"""Bytes that no text has."""
BROKEN = (zlib.error, zstd.ZstdError, brotli.error, EOFError, ValueError)


def decode_body(body: bytes, encoding: str, limit: int = MAX_BYTES) -> bytes:
    """The body as a reader sees it, `limit` bytes of it at most.

    A layer that isn't there is passed over; of one that is cut or damaged comes what can be had. An
    unknown one ends the unpacking.
    """
    names = [
        name
        for part in encoding.lower().split(",")
        if (name := part.strip()) not in ("", "identity", "none", "utf-8")
    ]
    for name in reversed(names[-MAX_LAYERS:]):
        if name not in LAYERS:
            return body[:limit]
        body = LAYERS[name](body, limit) if body else body
    return body[:limit]


def is_compressed(body: bytes, encoding: str) -> bool:
    """Whether what is left of such a body is still packed, or the ruin of it, rather than something
    that never was packed.
    """
    if body.startswith(MAGIC):
        return True
    return (
        any(name in encoding.lower() for name in ("br", "deflate"))
        and _CONTROLS(body[:LOOK]) is not None
    )


def _inflate(body: bytes, limit: int, *windows: int) -> bytes:
    for window in windows:
        out = _pieces(body, limit, partial(zlib.decompressobj, window), step=_zlib_step)
        if out is not None:
            return out
    return body


def _zlib_step(layer: Any, data: bytes) -> tuple[bytes, bytes]:
    out = layer.decompress(data, PIECE)
    return out, layer.unconsumed_tail or layer.unused_data


def _zstd_step(layer: Any, data: bytes) -> tuple[bytes, bytes]:
    return layer.decompress(data, PIECE), layer.unused_data if layer.eof else b""


def _pieces(
    body: bytes,
    limit: int,
    new: Callable[[], Any],
    step: Callable[[Any, bytes], tuple[bytes, bytes]],
) -> bytes | None:
    """Through one decompressor after another: a stream may be several in a row. None if the first
    fails at its start.

    It is given a little at a time: what it leaves is copied, and a body may be half a million
    streams of nothing.
    """
    out = bytearray()
    data = b""
    at = 0
    layer = new()
    started = False
    try:
        while len(out) < limit:
            if not data:
                data = body[at : at + SMALL]
                at = at + SMALL
            piece, data = step(layer, data)
            out += piece
            started = started or bool(piece) or layer.eof
            if layer.eof:
                if not data and at >= len(body):
                    break
                layer = new()
            elif not piece and not data and at >= len(body):
                break  # cut
    except BROKEN:
        return bytes(out) if started else None
    return bytes(out)


def _gzip(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, 31)


def _deflate(body: bytes, limit: int) -> bytes:
    """With zlib's header, as the standard has it, or without, as some servers send it."""
    return _inflate(body, limit, 15, -15)


def _zstd(body: bytes, limit: int) -> bytes:
    found = _pieces(body, limit, zstd.ZstdDecompressor, step=_zstd_step)
    return body if found is None else found


def _brotli(body: bytes, limit: int) -> bytes:
    out, _, failed = _unbrotli([body], limit)
    if failed is None:
        return (
            out if out or not body.isascii() else body
        )  # nothing tells a short text from the start of a stream
    return _brotli_before_junk(body, limit) or out or body


def _brotli_before_junk(body: bytes, limit: int) -> bytes:
    """Of a whole stream with something behind it, at which the decoder fails: it must get the end
    byte by byte.
    """
    pieces = [body[at : at + SMALL] for at in range(0, len(body), SMALL)]
    _, _, failed = _unbrotli(pieces, limit)
    if failed is not None:
        pieces = [*pieces[:failed], *(bytes([byte]) for byte in pieces[failed])]
    out, is_whole, _ = _unbrotli(pieces, limit)
    return out if is_whole else b""


def _unbrotli(pieces: list[bytes], limit: int) -> tuple[bytes, bool, int | None]:
    """What comes of them, whether that is a whole stream or all that is wanted of it, and which of
    them is broken.
    """
    layer = brotli.Decompressor()
    out = bytearray()
    for number, data in enumerate(pieces):
        try:
            while len(out) < limit and not layer.is_finished():
                piece = layer.process(data, output_buffer_limit=PIECE)
                data = b""
                out += piece
                if not piece and layer.can_accept_more_data():
                    break  # it wants the next
        except brotli.error:
            return bytes(out), False, number
    return bytes(out), layer.is_finished() or len(out) >= limit, None


LAYERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd,
}  # fmt: skip
