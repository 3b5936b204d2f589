"""What is kept of the last good captures of a page, in less than 2 KB whatever its size.

Of the last capture every block is known: its key, how many letters it has and where it stands. If
that is too much, a sketch of the keys stands in for them (`key_sketch`): it tells some eighty
differences to the next capture, and if there are more, that there are more. Nothing is left out of
a sketch, so nothing that was left out can count as changed. Of the captures before it is known in
which of them blocks that came or went stood, and how often each path has changed.

A packed state begins with its format and ends with a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log2
from typing import Final, NamedTuple
from zlib import crc32

from crawlproj.content.key_sketch import (
    CELL_BYTES,
    PARTS,
    KeySketch,
    make_sketch,
    pack_sketch,
    unpack_sketch,
)

MAX_STATE: Final = 1_900
"""Bytes of a packed state, whatever the page."""
FORMAT: Final = 2
VISITS: Final = 256
"""Numbers of visits are kept modulo this."""
MAX_CAPTURES: Final = 7
_WALLS_AT: Final = 3
MAX_NOISY: Final = 40
"""Paths that are remembered because they changed."""
MAX_PLACES: Final = 200
"""Distinct paths of the blocks that are kept one by one."""
MAX_CELLS: Final = 150
KEPT_VARYING: Final = 60
"""Keys that vary and have their room before the blocks themselves have theirs."""
NOWHERE: Final = 0
"""The path of a block that nobody remembers."""
_HEADER: Final = struct.Struct("<BBBBIIIIBHHBB")
_NOISY: Final = struct.Struct("<IBBB")
_EXACT: Final = 0
_SKETCHED: Final = 1
_FINE: Final = 128
_STEPS: Final = 14
_PER_COUNT: Final = 16
"""Counts of changes are kept in sixteenths."""


class PathHistory(NamedTuple):
    """How often a path has changed, how often something that was new there had gone again, and how
    many letters differed at most.
    """

    changed: float = 0.0
    churned: float = 0.0
    letters: int = 0


class KeptBlock(NamedTuple):
    """A block of the last capture: about how many letters it has, and the hash of its path."""

    letters: int
    path: int


@dataclass(slots=True)
class PageState:
    """The last captures of a page, as far as the next one is compared with them.

    Either `blocks` or `sketch` tells the blocks of the last good capture. `varying` says for keys
    that not all captures have in which ones they stood (bit 0 is the last). `digests` are those of
    the captures, the last one first; `walls` is how many captures since the last good one were not
    taken for the page. `visit` is the number of the visit that made the last capture.
    """

    steps: float = 0.0
    walls: int = 0
    block_count: int = 0
    letter_count: int = 0
    structure: int = 0
    boilerplate: int = 0
    digests: tuple[int, ...] = ()
    blocks: dict[int, KeptBlock] = field(default_factory=dict)
    sketch: KeySketch | None = None
    varying: dict[int, int] = field(default_factory=dict)
    paths: dict[int, PathHistory] = field(default_factory=dict)
    visit: int = 0


def make_notes(letters: Sequence[int], paths: Sequence[int]) -> list[int]:
    """What a sketch remembers of each block: its letters and a part of its path's hash."""
    return [
        (path & 0xFFFF) << 8 | (count if count < _FINE else _coarse(count))
        for count, path in zip(letters, paths, strict=True)
    ]


def read_note(note: int) -> KeptBlock:
    """The letters and the short hash of the path."""
    return KeptBlock(_exact(note & 0xFF), note >> 8)


def short_path(path: int) -> int:
    """The part of a path's hash that a sketch has room for."""
    return path & 0xFFFF


def pack_state(
    state: PageState, keys: Sequence[int], letters: Sequence[int], paths: Sequence[int]
) -> bytes:
    """At most `MAX_STATE` bytes. The lists are the blocks of the last capture, which the state
    itself need not know; paths are hashes.
    """
    noisy = sorted(state.paths.items(), key=lambda item: (-item[1].changed, item[0]))[:MAX_NOISY]
    digests = state.digests[:MAX_CAPTURES]
    room = MAX_STATE - _HEADER.size - 4 - 8 * len(digests) - _NOISY.size * len(noisy)
    needed = 3 + 6 * len(keys) + 4 * min(MAX_PLACES, len(set(paths)))
    reserved = 5 * min(KEPT_VARYING, len(state.varying))
    if needed + reserved <= room:
        form = _EXACT
        body = _pack_blocks(keys, letters, paths)
    else:
        form = _SKETCHED
        cells = min(MAX_CELLS, (room - reserved) // CELL_BYTES)
        notes = make_notes(letters, paths)
        body = pack_sketch(make_sketch(keys, notes, cells - cells % PARTS))
    varying = list(islice(state.varying.items(), max(0, room - len(body)) // 5))
    packed = b"".join(
        (
            _HEADER.pack(
                FORMAT,
                form,
                min(255, round(state.steps * _PER_COUNT)),
                min(255, state.walls),
                min(0xFFFFFFFF, state.block_count),
                min(0xFFFFFFFF, state.letter_count),
                state.structure,
                state.boilerplate,
                len(digests),
                len(varying),
                len(body),
                len(noisy),
                state.visit % VISITS,
            ),
            struct.pack(f"<{len(digests)}Q", *digests),
            *(
                _NOISY.pack(
                    path,
                    min(255, round(history.changed * _PER_COUNT)),
                    min(255, round(history.churned * _PER_COUNT)),
                    _coarse(history.letters),
                )
                for path, history in noisy
            ),
            struct.pack(f"<{len(varying)}I", *[key for key, _ in varying]),
            bytes([mask for _, mask in varying]),
            body,
        )
    )
    return packed + crc32(packed).to_bytes(4, "little")


def unpack_state(packed: bytes | None) -> PageState | None:
    """None if there is nothing, or nothing that this code can read."""
    if not packed or packed[0] != FORMAT or len(packed) < _HEADER.size + 4:
        return None
    if crc32(packed[:-4]) != int.from_bytes(packed[-4:], "little"):
        return None
    try:
        return _unpack(packed)
    except (struct.error, ValueError, IndexError):
        return None


def count_wall(packed: bytes) -> bytes:
    """The same state, after one more capture that was a wall."""
    return _with_walls(packed, min(255, packed[_WALLS_AT] + 1))


def clear_walls(packed: bytes) -> bytes | None:
    """The same state without the walls that came since; None: there were none, or it can't be
    read. Asked at each visit that finds the same bytes, so it looks at one byte first.
    """
    if len(packed) <= _WALLS_AT or not packed[_WALLS_AT]:
        return None
    if unpack_state(packed) is None:
        return None
    return _with_walls(packed, 0)


def _with_walls(packed: bytes, walls: int) -> bytes:
    changed = bytearray(packed[:-4])
    changed[_WALLS_AT] = walls
    return bytes(changed) + crc32(changed).to_bytes(4, "little")


def _unpack(packed: bytes) -> PageState:
    (
        _,
        form,
        steps,
        walls,
        block_count,
        letter_count,
        structure,
        boilerplate,
        captures,
        varying_count,
        body_length,
        noisy_count,
        visit,
    ) = _HEADER.unpack_from(packed)
    at = _HEADER.size
    digests = struct.unpack_from(f"<{captures}Q", packed, at)
    at += 8 * captures
    paths = {}
    for _ in range(noisy_count):
        path, changed, churned, letters = _NOISY.unpack_from(packed, at)
        paths[path] = PathHistory(changed / _PER_COUNT, churned / _PER_COUNT, _exact(letters))
        at += _NOISY.size
    keys = struct.unpack_from(f"<{varying_count}I", packed, at)
    at += 4 * varying_count
    masks = packed[at : at + varying_count]
    at += varying_count
    body = packed[at : at + body_length]
    if at + body_length + 4 != len(packed) or not captures:
        raise ValueError("the lengths do not fit")
    return PageState(
        steps / _PER_COUNT,
        walls,
        block_count,
        letter_count,
        structure=structure,
        boilerplate=boilerplate,
        digests=digests,
        blocks=_unpack_blocks(body) if form == _EXACT else {},
        sketch=unpack_sketch(body) if form == _SKETCHED else None,
        varying=dict(zip(keys, masks, strict=True)),
        paths=paths,
        visit=visit,
    )


def _pack_blocks(keys: Sequence[int], letters: Sequence[int], paths: Sequence[int]) -> bytes:
    """How many blocks and places there are, the places, and a column each for keys, letters, and
    numbers of places.
    """
    numbers: dict[int, int] = {}
    for path in paths:
        if path not in numbers and len(numbers) < MAX_PLACES:
            numbers[path] = len(numbers)
    places = bytes([numbers.get(path, 255) for path in paths])
    return b"".join(
        (
            struct.pack("<HB", len(keys), len(numbers)),
            struct.pack(f"<{len(numbers)}I", *numbers),
            struct.pack(f"<{len(keys)}I", *keys),
            bytes(map(_coarse, letters)),
            places,
        )
    )


def _unpack_blocks(body: bytes) -> dict[int, KeptBlock]:
    count, place_count = struct.unpack_from("<HB", body)
    at = 3
    numbered = dict(enumerate(struct.unpack_from(f"<{place_count}I", body, at)))
    at += 4 * place_count
    keys = struct.unpack_from(f"<{count}I", body, at)
    at += 4 * count
    letters = [_EXACT_OF[byte] for byte in body[at : at + count]]
    at += count
    paths = [numbered.get(byte, NOWHERE) for byte in body[at : at + count]]
    if len(body) != at + count:
        raise ValueError("the lengths do not fit")
    return dict(zip(keys, map(KeptBlock, letters, paths), strict=True))


def _coarse(letters: int) -> int:
    """A count of letters in one byte: exact below 128, within 5 % above."""
    if letters < _FINE:
        return letters
    return min(255, _FINE + int(_STEPS * log2(letters / _FINE)))


def _exact(coarse: int) -> int:
    return _EXACT_OF[coarse]


_EXACT_OF: Final = tuple(
    byte if byte < _FINE else round(_FINE * 2 ** ((byte - _FINE + 0.5) / _STEPS))
    for byte in range(256)
)
