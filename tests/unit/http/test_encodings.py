"""What decoding a body may cost: layers, bytes and work are bounded, and it is done in steps."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Generator

import brotli  # type: ignore[import-untyped]
import pytest

from crawlproj.http.encodings import (
    INPUT_BYTES,
    MAX_LAYERS,
    OUTPUT_BYTES,
    Decoded,
    DecodingLimitError,
    decode_body,
    decode_body_steps,
    decode_steps,
    zstd,
)
from tests.support.spam import gzip_spam

PAGE = b"<p>A page with some text.</p>" * 20
MB = 1_000_000
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def run(steps: Generator[None, None, Decoded]) -> tuple[Decoded, int]:
    """The result, and how many steps it took."""
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, taken
        taken += 1


def layered(body: bytes, *names: str) -> bytes:
    for name in names:
        body = PACKERS[name](body)
    return body


@pytest.mark.parametrize("name", PACKERS)
def test_as_many_layers_as_allowed_are_taken_off_and_no_more(name: str) -> None:
    allowed = [name] * MAX_LAYERS
    body = layered(PAGE, *allowed)
    assert run(decode_steps(body, ", ".join(allowed), MB))[0] == Decoded(PAGE)
    assert decode_body(body, ",".join(allowed)) == PAGE
    more = ",".join([*allowed, name])
    with pytest.raises(DecodingLimitError, match="more than 5 encodings"):
        next(decode_steps(body, more, MB))
    assert decode_body(body, more) == body


def test_names_that_mean_nothing_are_no_layers() -> None:
    header = "identity, " * 500 + "gzip, ,none"
    assert run(decode_steps(gzip.compress(PAGE), header, MB))[0] == Decoded(PAGE)


def test_an_unknown_encoding_ends_the_decoding() -> None:
    body = gzip.compress(b"packed in a way that nobody knows")
    found = run(decode_steps(body, "br, rot13, gzip", MB))[0]
    assert found == Decoded(b"packed in a way that nobody knows", unknown=("br", "rot13"))


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("size", [MB, MB + 1])
def test_a_body_may_be_just_as_large_as_the_limit(name: str, size: int) -> None:
    steps = decode_steps(layered(bytes(size), name), name, MB)
    if size <= MB:
        assert run(steps)[0] == Decoded(bytes(size))
    else:
        with pytest.raises(DecodingLimitError):
            run(steps)


def test_layers_inside_of_others_have_one_limit_together() -> None:
    """Each of them is smaller than allowed; the last gives next to nothing."""
    inner = gzip.compress(PAGE) + b" " * (MB * 2 // 3)
    names = ["gzip", "gzip", "gzip"]
    between = gzip.compress(inner) + b" " * (MB * 2 // 3)
    assert decode_body(gzip.compress(between), ",".join(names)) == PAGE
    with pytest.raises(DecodingLimitError):
        run(decode_steps(gzip.compress(between), ",".join(names), MB))


@pytest.mark.parametrize("name", PACKERS)
def test_no_step_has_much_to_do(name: str) -> None:
    """Also brotli's, which gives twice as much as it is told at most."""
    for body in (layered(bytes(5 * MB), name), layered(PAGE * 200, name)):
        found, taken = run(decode_steps(body, name, 5 * MB))
        assert taken >= max(len(body) // INPUT_BYTES, len(found.body) // OUTPUT_BYTES // 2)


def test_what_keeps_a_decoder_busy_is_fed_in_small_pieces_and_given_up_in_time() -> None:
    spam = gzip_spam(MB)
    found, taken = run(decode_steps(gzip.compress(spam), "gzip,gzip", 10 * MB))
    assert (found.body, found.is_sound) == (b"", False) and taken >= MB // INPUT_BYTES
    assert decode_body(spam, "gzip") == b""
    assert decode_body(spam + gzip.compress(PAGE), "gzip", max_work_s=0.001) == b""


@pytest.mark.parametrize("flags", [0, 4 | 8 | 16 | 2])
def test_a_wrong_checksum_costs_nothing_of_the_content(flags: int) -> None:
    extra = b""
    if flags:
        extra = b"\x03\0abc" + b"name\0" + b"comment\0"
        head = gzip.compress(PAGE)[:3] + bytes([flags]) + gzip.compress(PAGE)[4:10] + extra
        extra += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    packed = gzip.compress(PAGE)
    packed = packed[:3] + bytes([flags]) + packed[4:10] + extra + packed[10:]
    assert decode_body(packed, "gzip") == PAGE
    for wrong in (packed[:-8] + b"\0\0\0\0" + packed[-4:], packed[:-4] + b"\0\0\0\0"):
        assert run(decode_steps(wrong, "gzip", MB))[0] == Decoded(PAGE)


@pytest.mark.parametrize("name", PACKERS)
def test_a_body_that_can_not_be_decoded_is_said_to_be_so(name: str) -> None:
    body = layered(PAGE, name)
    assert run(decode_steps(body[:2], name, MB))[0].is_sound is False
    assert run(decode_steps(b"", name, MB))[0] == Decoded(b"")
    assert run(decode_steps(layered(b"", name), name, MB))[0] == Decoded(b"")


def test_a_file_of_very_many_members_is_decoded_in_small_steps() -> None:
    spam = gzip.compress(b"", mtime=0) * 5_000 + gzip.compress(PAGE)
    steps = decode_body_steps(spam, "gzip", limit=1_000_000, max_work_s=60.0)
    count = 0
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as end:
        assert end.value == PAGE
    assert count >= 5_000


@pytest.mark.parametrize("encoding", ["", "identity", "unknown"])
def test_a_body_without_a_layer_that_we_know_is_limited_too(encoding: str) -> None:
    assert decode_body(b"x" * 1_000, encoding, limit=10) == b"x" * 10
