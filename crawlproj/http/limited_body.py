"""The first bytes of a body, unpacked on the way: no more is read, and no more is unpacked, than is
wanted.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Self

WINDOWS = {"gzip": zlib.MAX_WBITS + 16, "x-gzip": zlib.MAX_WBITS + 16, "deflate": zlib.MAX_WBITS}
MAX_LAYERS = 3
PIECE = 65_536
SMALL = 4_096
SLACK = 1_000
"""Headers and trailers of what is packed."""
GZIP = b"\x1f\x8b"


class CompressionLayer:
    """One layer of packing. Gzip may be several members in a row; what is behind the last of them
    is nothing.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._is_next = False
        self.done = False

    def decompress_piece(self, data: bytes) -> tuple[bytes, bytes]:
        """The next piece, and what is left of the data."""
        try:
            piece = self._stream.decompress(data, PIECE)
        except zlib.error:
            if not self._is_next:
                raise
            self.done = True
            return b"", b""
        self._is_next = self._is_next and not piece
        if not self._stream.eof:
            return piece, self._stream.unconsumed_tail
        rest = self._stream.unused_data
        self.done = self._window != WINDOWS["gzip"]
        self._stream = zlib.decompressobj(self._window)
        self._is_next = True
        return piece, rest


class BodyDecompressor:
    """Takes layers of gzip and deflate off a stream. A stream that is not packed at all, whatever
    its header says, is passed on.
    """

    def __init__(self, encodings: list[str]) -> None:
        self._layers = [CompressionLayer(WINDOWS[name]) for name in reversed(encodings)]
        # Some call it deflate and leave out its header; others have not packed it at all.
        self._others: list[list[CompressionLayer]] = [
            [],
            *([[CompressionLayer(-zlib.MAX_WBITS)]] if encodings == ["deflate"] else []),
        ]
        self._head = bytearray()
        self._started = False

    @classmethod
    def from_header(cls, header: str) -> Self | None:
        """For the value of a Content-Encoding; None if it names nothing, or something that is not
        ours to unpack.
        """
        names = [
            name
            for part in header.lower().split(",")
            if (name := part.strip()) not in ("", "identity")
        ]
        return (
            cls(names)
            if names and len(names) <= MAX_LAYERS and WINDOWS.keys() >= set(names)
            else None
        )

    def feed(self, data: bytes, limit: int) -> bytes:
        """What comes of the next bytes, `limit` of it at most; zlib.error if the stream is broken
        on its way.
        """
        if not self._started:
            self._head += data
        while True:
            try:
                out = self._through(0, data, limit)
            except zlib.error:
                if self._started or self._head.startswith(GZIP):
                    raise
                self._layers = self._others.pop()
                data = bytes(self._head)
            else:
                self._started = self._started or bool(out)
                return out

    def _through(self, number: int, data: bytes, limit: int) -> bytes:
        """Through this layer and those below it, in pieces, so that a bomb is never unpacked
        further than is wanted.
        """
        if number == len(self._layers):
            return data[:limit]
        layer = self._layers[number]
        out = bytearray()
        for at in range(
            0, len(data), SMALL
        ):  # a little at a time: what a member leaves is copied, and there may be many
            rest = data[at : at + SMALL]
            piece = b""
            while (rest or len(piece) == PIECE) and len(out) < limit and not layer.done:
                piece, rest = layer.decompress_piece(rest)
                out += self._through(number + 1, piece, limit - len(out))
        return bytes(out)


async def first_bytes(
    chunks: AsyncIterator[bytes], limit: int, unpacker: BodyDecompressor | None = None
) -> tuple[bytes, bool]:
    """Up to `limit` bytes, and whether there may have been more. What is packed and becomes no
    smaller by it is given up too.
    """
    body = bytearray()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        body += unpacker.feed(chunk, limit - len(body)) if unpacker else chunk
        if len(body) >= limit or received >= 2 * limit + SLACK:
            return bytes(body[:limit]), True
    return bytes(body), False
