"""Which keys differ between two sets, from a small summary of one of them.

An invertible Bloom lookup table (Goodrich and Mitzenmacher 2011): each key is added to three cells.
Take the keys of another set away, and a cell that then holds one key tells it; taken out of its
other cells, it lets those tell theirs, and so on. How many keys the sets share does not matter: a
kilobyte finds some eighty differences between pages of a hundred thousand blocks, and says so if
there are more.

numpy is loaded by the first page that is so long: other crawls and most commands do without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    _Words: TypeAlias = NDArray[np.uint64]

CELL_BYTES: Final = 9
PARTS: Final = 3
MAX_NOTE: Final = (1 << 24) - 1
MAX_UNRESOLVED: Final = 2 * PARTS
"""Now and then two keys share all of their cells: then these two are not told, the others are."""
_MULTIPLIERS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_CHECK: Final = 0xD6E8FEB86659FD93
_MASK: Final = (1 << 64) - 1


class KeySketch(NamedTuple):
    """Cells: how many keys each holds (modulo 256), the keys with 8 bits to check each, XORed, and
    their notes, XORed.
    """

    counts: NDArray[np.uint8]
    keys: _Words
    notes: NDArray[np.uint32]


class KeyDifference(NamedTuple):
    """Keys that are in one of two sets only. Those of the sketch come with their notes, which may
    be wrong if a key that both sets have was noted differently.
    """

    only_there: dict[int, int]
    only_here: set[int]


def make_sketch(keys: Sequence[int], notes: Sequence[int], cells: int) -> KeySketch:
    """A summary of distinct keys (32 bits), each with a note (24 bits)."""
    import numpy as np

    cells -= cells % PARTS
    sketch = KeySketch(
        np.zeros(cells, np.uint8), np.zeros(cells, np.uint64), np.zeros(cells, np.uint32)
    )
    if not keys:
        return sketch
    words = np.array(keys, np.uint64)
    values = _checked(words)
    noted = np.array(notes, np.uint32)
    counts = np.zeros(cells, np.int64)
    for positions in _find_cells(words, cells):
        counts += np.bincount(positions, minlength=cells)
        np.bitwise_xor.at(sketch.keys, positions, values)
        np.bitwise_xor.at(sketch.notes, positions, noted)
    return sketch._replace(counts=counts.astype(np.uint8))


def find_difference(
    there: KeySketch, keys: Sequence[int], notes: Sequence[int]
) -> KeyDifference | None:
    """How the set of a sketch differs from these keys; None if they differ too much to be told."""
    cells = len(there.counts)
    here = make_sketch(keys, notes, cells)
    counts = (there.counts - here.counts).tolist()
    values = (there.keys ^ here.keys).tolist()
    noted = (there.notes ^ here.notes).tolist()
    found = KeyDifference({}, set())
    todo = [cell for cell in range(cells) if counts[cell] in (1, 255)]
    while todo:
        cell = todo.pop()
        count = counts[cell]
        value = values[cell]
        key = value & 0xFFFFFFFF
        if count not in (1, 255) or value != _checked_one(key):
            continue
        places = _cells_of(key, cells)
        if cell not in places:
            continue
        if key in found.only_there or key in found.only_here:
            return None
        note = noted[cell]
        if count == 1:
            found.only_there[key] = note
        else:
            found.only_here.add(key)
        for place in places:
            counts[place] = (counts[place] - count) & 0xFF
            values[place] ^= value
            noted[place] ^= note
            if counts[place] in (1, 255):
                todo.append(place)
    unresolved = sum(map(bool, values))
    return found if unresolved <= MAX_UNRESOLVED else None


def pack_sketch(sketch: KeySketch) -> bytes:
    """`CELL_BYTES` for each cell."""
    import numpy as np

    keys = sketch.keys.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :5]
    notes = sketch.notes.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    return np.hstack((sketch.counts[:, None], keys, notes)).tobytes()


def unpack_sketch(packed: bytes) -> KeySketch:
    """What `pack_sketch` gave."""
    import numpy as np

    rows = np.frombuffer(packed, np.uint8).reshape(-1, CELL_BYTES)
    keys = np.zeros((len(rows), 8), np.uint8)
    keys[:, :5] = rows[:, 1:6]
    notes = np.zeros((len(rows), 4), np.uint8)
    notes[:, :3] = rows[:, 6:]
    return KeySketch(
        rows[:, 0].copy(),
        keys.view("<u8").ravel().astype(np.uint64),
        notes.view("<u4").ravel().astype(np.uint32),
    )


def _checked(keys: _Words) -> _Words:
    import numpy as np

    return keys | ((keys * np.uint64(_CHECK)) >> np.uint64(56)) << np.uint64(32)


def _checked_one(key: int) -> int:
    return key | ((key * _CHECK & _MASK) >> 56) << 32


def _find_cells(keys: _Words, cells: int) -> list[NDArray[np.intp]]:
    """The cells of each key: one in each third of the table."""
    import numpy as np

    part = cells // PARTS
    return [
        (((keys * np.uint64(multiplier)) >> np.uint64(40)) % np.uint64(part)).astype(np.intp)
        + number * part
        for number, multiplier in enumerate(_MULTIPLIERS)
    ]


def _cells_of(key: int, cells: int) -> list[int]:
    part = cells // PARTS
    return [
        ((key * multiplier & _MASK) >> 40) % part + number * part
        for number, multiplier in enumerate(_MULTIPLIERS)
    ]
