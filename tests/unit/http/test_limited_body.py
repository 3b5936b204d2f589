from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.demo.faults import gzip_bomb
from crawlproj.http.encodings import decode_body
from crawlproj.http.limited_body import MAX_INNER_BYTES, BodyDecompressor, first_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def read(body: bytes, header: str = "", limit: int = 1000, size: int = 7) -> tuple[bytes, bool]:
    """Let the body come in chunks of that size."""

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    return asyncio.run(first_bytes(chunks(), limit, BodyDecompressor.from_header(header)))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@given(st.binary(max_size=600), st.integers(1, 700), st.integers(1, 50))
def test_no_more_is_read_than_is_wanted(body: bytes, limit: int, size: int) -> None:
    assert read(body, limit=limit, size=size) == (body[:limit], len(body) >= limit)


@given(st.binary(max_size=600), st.integers(1, 700), st.integers(2, 50), st.booleans())
def test_no_more_is_unpacked_than_is_wanted(
    body: bytes, limit: int, size: int, twice: bool
) -> None:
    packed = gzip.compress(body)
    header = "gzip"
    if twice:
        packed = zlib.compress(packed)
        header = "gzip, deflate"
    assert read(packed, header, limit, size) == (body[:limit], len(body) >= limit)


def test_a_long_stream_comes_out_whole() -> None:
    body = b"Disallow: /\n" * 100_000
    assert read(gzip.compress(body), "x-gzip", 10_000_000, 1000) == (body, False)
    assert read(gzip.compress(gzip.compress(body)), "gzip,gzip", 10_000_000, 50_000) == (
        body,
        False,
    )


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=5),
    st.integers(1, 50),
    st.sampled_from([b"", b"junk", b"\0" * 20]),
)
def test_a_stream_of_several_members_comes_out_whole(
    parts: list[bytes], size: int, junk: bytes
) -> None:
    packed = b"".join(map(gzip.compress, parts)) + junk
    assert read(packed, "gzip", size=size) == (b"".join(parts), False)
    assert read(gzip.compress(packed), "gzip, gzip", size=size) == (b"".join(parts), False)


def test_a_member_that_is_no_more_than_a_mark_says_nothing() -> None:
    assert read(gzip.compress(b"Disallow: /") + b"\x1f\x8b", "gzip") == (b"Disallow: /", False)


def test_deflate_may_lack_its_header() -> None:
    assert read(raw_deflate(b"Disallow: /"), "deflate") == (b"Disallow: /", False)
    assert read(zlib.compress(b"Disallow: /"), "Deflate") == (b"Disallow: /", False)


@pytest.mark.parametrize("header", ["gzip", "deflate", "gzip, gzip"])
def test_what_is_not_packed_is_passed_on_whatever_it_says(header: str) -> None:
    assert read(b"User-agent: *\nDisallow: /", header) == (b"User-agent: *\nDisallow: /", False)


def test_a_stream_that_is_cut_off_gives_what_there_is() -> None:
    body = b"".join(b"Disallow: /%d\n" % n for n in range(1000))
    packed = gzip.compress(body)
    out, cut = read(packed[: len(packed) // 2], "gzip", 100_000, 50)
    assert len(out) > 1000 and body.startswith(out) and not cut


def test_a_stream_that_breaks_on_its_way_is_an_error() -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 50, 1))
    packed[40:60] = b"\xff" * 20
    with pytest.raises(zlib.error):
        read(bytes(packed), "gzip", 100_000, 10_000)


@pytest.mark.parametrize(("layers", "header"), [(1, "gzip"), (2, "gzip, gzip")])
def test_a_bomb_is_unpacked_only_as_far_as_it_is_wanted(layers: int, header: str) -> None:
    body = gzip_bomb() if layers == 1 else gzip.compress(gzip_bomb(), 9)
    assert read(body, header, 5000, 65_536) == (b" " * 5000, True)


def test_a_stream_that_never_gives_anything_is_left() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    assert read(start + b"\0\0\0\xff\xff" * 100_000, "gzip", 100, 1000) == (b"", True)


@pytest.mark.parametrize(
    "header", ["", "identity", "br", "zstd", "gzip, br", "rot13", "gzip, gzip, gzip, gzip"]
)
def test_other_encodings_are_not_ours(header: str) -> None:
    assert BodyDecompressor.from_header(header) is None


class Counting:
    """zlib's decompressors, which note how much they are given."""

    def __init__(self) -> None:
        self.given = 0
        self._real = zlib.decompressobj

    def __call__(self, *window: int) -> Counting.Stream:
        return Counting.Stream(self, self._real(*window))

    class Stream:
        def __init__(self, counting: Counting, stream: zlib._Decompress) -> None:
            self._counting = counting
            self._stream = stream

        def decompress(self, data: bytes, most: int = 0) -> bytes:
            self._counting.given += len(data)
            return self._stream.decompress(data, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)


@pytest.mark.parametrize("way", ["first bytes", "whole"])
def test_many_members_of_nothing_cost_little(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left behind each was copied as a whole: ten times as many took a hundred times as
    long.
    """
    counting = Counting()
    monkeypatch.setattr(zlib, "decompressobj", counting)
    body = gzip.compress(b"") * 20_000 + gzip.compress(b"end") + b"junk"
    if way == "whole":
        assert decode_body(body, "gzip") == b"end"
    else:
        assert read(body, "gzip", limit=len(body), size=len(body)) == (b"end", False)
    assert counting.given < 200 * len(
        body
    )  # half of a small piece for each member; it was 10,000 times


@given(
    st.lists(st.binary(max_size=9_000), min_size=1, max_size=5),
    st.sampled_from(["gzip", "zstd", "deflate"]),
    st.integers(0, 9),
)
def test_pieces_of_any_size_come_out_whole(parts: list[bytes], name: str, cut: int) -> None:
    packed = {
        "gzip": gzip.compress,
        "zstd": zstd.compress,
        "deflate": lambda data: zlib.compress(data, cut),
    }[name]
    body = packed(parts[0]) if name == "deflate" else b"".join(map(packed, parts))
    wanted = parts[0] if name == "deflate" else b"".join(parts)
    assert decode_body(body, name) == wanted
    assert wanted.startswith(decode_body(body[: len(body) - cut], name)) or len(body) <= cut + 20
    if name == "gzip":
        assert read(body, name, limit=200_000, size=5_000) == (wanted, False)


def test_a_bomb_inside_of_another_layer_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MB of members of nothing, in a layer around them 8 KB: all of them were decompressed."""
    counting = Counting()
    monkeypatch.setattr(zlib, "decompressobj", counting)
    body = gzip.compress(gzip.compress(b"") * 200_000, 9)
    assert read(body, "gzip, gzip", limit=500_000, size=len(body)) == (b"", True)
    assert counting.given < 110 * MAX_INNER_BYTES
