"""The first bytes of a body, decompressed while it is received.

No more is read, and no more is decompressed, than is wanted, even of a decompression bomb. Only
robots.txt is read like this; pages are decompressed by `middlewares/unpacking.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Self

WINDOW_BITS = {
    "gzip": zlib.MAX_WBITS + 16,
    "x-gzip": zlib.MAX_WBITS + 16,
    "deflate": zlib.MAX_WBITS,
}
MAX_LAYERS = 3
OUTPUT_BYTES = 65_536
INPUT_BYTES = 4_096
SLACK_BYTES = 1_000
"""For headers and trailers of compressed streams."""
GZIP_MAGIC = b"\x1f\x8b"
MAX_INNER_BYTES = 1_100_000
"""What layers inside of others may have, all together: a little more than the largest robots.txt
may come with. They are small on the wire, and decompressing them may take long and give nothing.
"""


class CompressionLayer:
    """One layer of gzip or deflate. Gzip may have several members; what follows the last of them
    is ignored.
    """

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits)
        self._is_after_member = False
        """At least one member is complete, and the next has given nothing yet."""
        self.done = False

    def decompress_piece(self, data: bytes) -> tuple[bytes, bytes]:
        """The next piece of output, and the input that is left."""
        try:
            piece = self._stream.decompress(data, OUTPUT_BYTES)
        except zlib.error:
            if not self._is_after_member:
                raise
            self.done = True
            return b"", b""
        self._is_after_member = self._is_after_member and not piece
        if not self._stream.eof:
            return piece, self._stream.unconsumed_tail
        rest = self._stream.unused_data
        self.done = self._window_bits != WINDOW_BITS["gzip"]
        self._stream = zlib.decompressobj(self._window_bits)
        self._is_after_member = True
        return piece, rest


class BodyDecompressor:
    """Removes layers of gzip and deflate from a stream. A stream that is not compressed, whatever
    its header says, comes out as it is.
    """

    def __init__(self, encodings: list[str]) -> None:
        self._layers = [CompressionLayer(WINDOW_BITS[name]) for name in reversed(encodings)]
        # Some servers don't compress at all; some send deflate without zlib's header.
        self._fallbacks = [list[CompressionLayer]()]
        if encodings == ["deflate"]:
            self._fallbacks.append([CompressionLayer(-zlib.MAX_WBITS)])
        self._head = bytearray()
        self._started = False
        self._inner_bytes = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether so much has been decompressed inside that no more is worth it."""
        return self._inner_bytes > MAX_INNER_BYTES

    @classmethod
    def from_header(cls, header: str) -> Self | None:
        """The decompressor for a Content-Encoding; None if it names none or an unknown one."""
        names = [part.strip() for part in header.lower().split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if not names or len(names) > MAX_LAYERS or not WINDOW_BITS.keys() >= set(names):
            return None
        return cls(names)

    def feed(self, data: bytes, limit: int) -> bytes:
        """The output for the next bytes, at most `limit`; zlib.error if the stream is damaged."""
        if not self._started:
            self._head += data
        while True:
            try:
                out = self._decompress(0, data, limit)
            except zlib.error:
                if self._started or self._head.startswith(GZIP_MAGIC):
                    raise
                self._layers = self._fallbacks.pop()
                data = bytes(self._head)
            else:
                self._started = self._started or bool(out)
                return out

    def _decompress(self, number: int, data: bytes, limit: int) -> bytes:
        """The output of layer `number` and those below it, piece by piece because of bombs."""
        if number == len(self._layers):
            return data[:limit]
        layer = self._layers[number]
        is_inner = number + 1 < len(self._layers)
        out = bytearray()
        # A little at a time: a member copies the input that it leaves, and there may be many.
        for start in range(0, len(data), INPUT_BYTES):
            rest = data[start : start + INPUT_BYTES]
            piece = b""
            while (rest or len(piece) == OUTPUT_BYTES) and len(out) < limit and not layer.done:
                piece, rest = layer.decompress_piece(rest)
                if is_inner:
                    self._inner_bytes += len(piece)
                    layer.done = layer.done or self.is_exhausted
                out += self._decompress(number + 1, piece, limit - len(out))
        return bytes(out)


async def first_bytes(
    chunks: AsyncIterator[bytes], limit: int, decompressor: BodyDecompressor | None = None
) -> tuple[bytes, bool]:
    """Up to `limit` bytes, and whether there may have been more.

    A body that is larger compressed than not is given up, too.
    """
    most = most_received(limit)
    body = bytearray()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if decompressor is not None:
            chunk = decompressor.feed(chunk, limit - len(body))
        body += chunk
        if len(body) >= limit or received >= most:
            return bytes(body[:limit]), True
        if decompressor is not None and decompressor.is_exhausted:
            return bytes(body), True
    return bytes(body), False


def most_received(limit: int) -> int:
    """How many bytes of a body may come for its first `limit` bytes."""
    return 2 * limit + SLACK_BYTES
