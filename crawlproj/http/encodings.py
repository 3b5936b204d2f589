"""Bodies without their Content-Encoding: gzip, deflate, br and zstd, in layers.

What the header says about a body need not be true, so a damaged body is no error: whatever can be
decoded is returned. What costs too much is one: layers, bytes and time have limits, since a few
KB may become any number of bytes, or keep a decoder busy without any.

Decoders are generators that yield after each small piece of work, so that an event loop can do
other things between two of them.
"""

from __future__ import annotations

import re
import sys
import time
import zlib
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_LAYERS = 5
"""As curl. Servers have one; two if a proxy compresses again."""
MAX_BYTES = 256 << 20
MAX_WORK_S = 1.0
"""Time of the processor for one body. 10 MB take a tenth of it."""
OUTPUT_BYTES = 16_384
INPUT_BYTES = 4_096
MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""The first bytes of gzip and zstd; br and deflate have no such mark."""
SNIFF_BYTES = 1_024
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
"""Bytes that never occur in text."""
_NO_ENCODING = ("", "identity", "none", "utf-8")
"""Values of Content-Encoding that name no compression."""
BROKEN = (zlib.error, zstd.ZstdError, brotli.error, EOFError, ValueError)


class DecodingLimitError(Exception):
    """Decoding a body would cost too much; the text says why, if it is not just too big."""


class Decoded(NamedTuple):
    """A body without its layers.

    `is_sound` is False if a layer could not be decoded at all. `unknown` are the encodings that
    are left, because the last of them is not known.
    """

    body: bytes
    is_sound: bool = True
    unknown: tuple[str, ...] = ()


class _Layer(NamedTuple):
    """What came out of one layer; `is_sound`: it was one; `error`: why it ended early, if so."""

    out: bytes
    is_sound: bool
    error: str = ""


LayerSteps = Generator[None, None, _Layer]


def decode_steps(body: bytes, encoding: str, limit: int) -> Generator[None, None, Decoded]:
    """Decode a body in small steps; DecodingLimitError if it has too many layers or bytes.

    Neither the body itself nor all layers around it together may have more than `limit` bytes.
    """
    names = encoding_names(encoding)
    if len(names) > MAX_LAYERS:
        raise DecodingLimitError(f"more than {MAX_LAYERS} encodings")
    is_sound = True
    inner_bytes = 0
    while names and names[-1] in DECODERS:
        decoder = DECODERS[names.pop()]
        if not body:
            continue
        layer = yield from decoder(body, limit)
        body = layer.out
        is_sound = is_sound and layer.is_sound
        if names:
            inner_bytes += len(body)
        if len(body) > limit or inner_bytes > limit:
            raise DecodingLimitError("")
    return Decoded(body, is_sound, tuple(names))


def decode_body(
    body: bytes, encoding: str, limit: int = MAX_BYTES, max_work_s: float = float("inf")
) -> bytes:
    """The body as a reader sees it, at most `limit` bytes of it; nothing raises.

    A layer that the header names but the body does not have is skipped. Of a layer that is cut or
    damaged, whatever can be decompressed is returned. An unknown encoding ends the decoding. A body
    of too many layers stays as it is; one that takes too long has no content.
    """
    steps = decode_body_steps(body, encoding, limit, max_work_s)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decoded: bytes = end.value
            return decoded


def decode_body_steps(
    body: bytes, encoding: str, limit: int, max_work_s: float
) -> Generator[None, None, bytes]:
    """As `decode_body`, in small steps."""
    names = encoding_names(encoding)
    if len(names) > MAX_LAYERS:
        return body[:limit]
    left_s = max_work_s
    for name in reversed(names):
        if name not in DECODERS:
            break
        if body:
            body, left_s = yield from _limited_steps(DECODERS[name](body, limit), left_s)
            body = body[:limit]
    return body[:limit]


def _limited_steps(steps: LayerSteps, left_s: float) -> Generator[None, None, tuple[bytes, float]]:
    """The output of a layer, nothing if the processor's time is over before; and what is left of
    that time.
    """
    while left_s >= 0:
        started_s = time.thread_time()
        try:
            next(steps)
        except StopIteration as end:
            layer: _Layer = end.value
            return layer.out, left_s - (time.thread_time() - started_s)
        left_s -= time.thread_time() - started_s
        yield
    return b"", left_s


def encoding_names(header: str) -> list[str]:
    """The encodings that a Content-Encoding names, in the order in which they were applied."""
    names = [part.strip() for part in header.lower().split(",")]
    return [name for name in names if name not in _NO_ENCODING]


def is_compressed(body: bytes, encoding: str) -> bool:
    """Whether a decoded body is still compressed, or damaged, rather than never compressed."""
    if body.startswith(MAGIC):
        return True
    encoding = encoding.lower()
    may_be_unmarked = "br" in encoding or "deflate" in encoding
    return may_be_unmarked and _CONTROLS(body[:SNIFF_BYTES]) is not None


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
    *,
    only_first: bool = False,
) -> LayerSteps:
    """All streams of a body, one after another; the body itself if the first fails at its start.

    It stops when there are more than `limit` bytes. Input is given a little at a time: a stream
    copies the input that it leaves, and a body may consist of half a million empty streams.
    """
    out = bytearray()
    data = b""
    offset = 0
    stream = new_stream()
    started = False
    try:
        while len(out) <= limit:
            if not data:
                data = body[offset : offset + INPUT_BYTES]
                offset += INPUT_BYTES
            piece, data = step(stream, data)
            out += piece
            started = started or bool(piece) or stream.eof
            exhausted = not data and offset >= len(body)
            if stream.eof:
                if exhausted or only_first:
                    break
                stream = new_stream()
            elif exhausted and not piece:
                break  # the body is cut
            yield
    except BROKEN as error:
        if not started:
            return _Layer(body, False, str(error))
        return _Layer(bytes(out), True, str(error))
    return _Layer(bytes(out), started)


def _inflate(body: bytes, limit: int, window_bits: int, *, only_first: bool = False) -> LayerSteps:
    new_stream = partial(zlib.decompressobj, window_bits)
    return _decompress(body, limit, new_stream, step=_zlib_step, only_first=only_first)


def _gzip(body: bytes, limit: int) -> LayerSteps:
    """Gzip. If a checksum is wrong zlib gives up what it has just decompressed, so that is done
    again without checks.
    """
    layer = yield from _inflate(body, limit, 31)
    if not layer.error.endswith(("incorrect data check", "incorrect length check")):
        return layer
    start = _gzip_head_bytes(body)
    unchecked = yield from _inflate(body[start:], limit, -15, only_first=True)
    if len(unchecked.out) > len(layer.out) or not layer.is_sound:
        return unchecked
    return layer


def _gzip_head_bytes(body: bytes) -> int:
    """The length of the head of a gzip file (RFC 1952), which is known to have a whole one."""
    flags = body[3]
    size = 10
    if flags & 4:
        size += 2 + int.from_bytes(body[10:12], "little")
    for text_flag in (8, 16):  # a name, a comment
        if flags & text_flag:
            size = body.index(b"\0", size) + 1
    if flags & 2:
        size += 2
    return size


def _deflate(body: bytes, limit: int) -> LayerSteps:
    """Deflate with zlib's header, as in the standard, or without, as some servers send it."""
    layer = yield from _inflate(body, limit, 15)
    if layer.is_sound or not layer.error:
        return layer
    return (yield from _inflate(body, limit, -15))


def _zstd(body: bytes, limit: int) -> LayerSteps:
    return _decompress(body, limit, zstd.ZstdDecompressor, step=_zstd_step)


def _brotli(body: bytes, limit: int) -> LayerSteps:
    out, is_whole, failed = yield from _decompress_brotli(_pieces(body), limit)
    if failed is not None:
        before_junk = yield from _brotli_before_junk(body, limit, failed)
        if before_junk or out:
            return _Layer(before_junk or out, True)
        return _Layer(body, False)
    if not out and not is_whole and body.isascii():
        # Nothing distinguishes a short text from the start of a stream.
        return _Layer(body, False)
    return _Layer(out, is_whole or bool(out))


def _brotli_before_junk(body: bytes, limit: int, broken_piece: int) -> Generator[None, None, bytes]:
    """A whole brotli stream that is followed by other bytes; empty if there is no whole one.

    The decoder fails at the bytes that follow, so it gets the end of the stream byte by byte.
    """
    pieces = _pieces(body)
    pieces[broken_piece:] = [bytes([byte]) for byte in pieces[broken_piece]]
    out, is_whole, _ = yield from _decompress_brotli(pieces, limit)
    if not is_whole:
        return b""
    return out


def _pieces(body: bytes) -> list[bytes]:
    return [body[start : start + INPUT_BYTES] for start in range(0, len(body), INPUT_BYTES)]


def _decompress_brotli(
    pieces: list[bytes], limit: int
) -> Generator[None, None, tuple[bytes, bool, int | None]]:
    """The output; whether it is a whole stream, or more than `limit` bytes of it; the first broken
    piece.
    """
    stream = brotli.Decompressor()
    out = bytearray()
    for number, data in enumerate(pieces):
        try:
            while len(out) <= limit and not stream.is_finished():
                piece = stream.process(data, output_buffer_limit=OUTPUT_BYTES)
                data = b""
                out += piece
                yield
                if not piece and stream.can_accept_more_data():
                    break  # it needs the next piece
        except brotli.error:
            return bytes(out), False, number
    return bytes(out), stream.is_finished() or len(out) > limit, None


DECODERS: dict[str, Callable[[bytes, int], LayerSteps]] = {
    "gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd,
}  # fmt: skip
