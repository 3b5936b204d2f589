"""The numbers by which pages like this one are found: MinHash, cut into bands.

Pages that share a band are candidates; `compare` decides. datasketch computes the MinHash. Its
package would load scipy (65 MB), so only its module is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from importlib.util import find_spec
from struct import Struct
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawlproj.duplicates.compare import MIN_SHINGLES, JudgedText
from crawlproj.duplicates.words import Hashes


@contextmanager
def _package_left_out(package: str) -> Iterator[None]:
    """Let modules of a package be imported without running its `__init__`.

    Afterwards the package is as unknown as before, so that others may import it as a whole.
    """
    if package in sys.modules:
        yield
        return
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    stub = ModuleType(package)
    stub.__path__ = list(spec.submodule_search_locations)
    sys.modules[package] = stub
    try:
        yield
    finally:
        for name in list(sys.modules):
            if name == package or name.startswith(f"{package}."):
                del sys.modules[name]


with _package_left_out("datasketch"):
    from datasketch.minhash import MinHash

_SCHEME: Final = "affine32"
_TEXT: Final = "long1"
"""Names the judged text and what a word is; another name for another rule."""
_PIECE_BYTES: Final = 128 * 1024
"""So much memory takes what is permuted at once: it fits into the processor's cache, and is less
than glibc asks the system for each time (`BIG_BLOCK`): with 512 KB, page faults took most of it.
"""
_UPPER_HALF: Final = np.uint64(32)
_BAND_AND_SCOPE: Final = Struct("<Hq")
_BAND_HASH: Final = Struct("<q")


class Signer:
    """Makes the bands of pages. `scheme` says how: only bands of one scheme can be compared."""

    def __init__(
        self, num_perm: int = 128, shingle: int = 3, band_count: int = 8, seed: int = 1
    ) -> None:
        if not 1 <= band_count <= num_perm or shingle < 1:
            raise ValueError(f"{num_perm=} makes no {band_count=} of {shingle=}")
        self.shingle: Final = shingle
        rows = num_perm // band_count
        self._band_count = band_count
        self._band_bytes = rows * 4
        self._used_perm = rows * band_count
        self._piece = max(1, _PIECE_BYTES // (4 * self._used_perm))
        self._permutations = MinHash(self._used_perm, seed, scheme=_SCHEME).permutations
        bands = f"bands={band_count}x{rows}"
        self.scheme: Final = (
            f"{_SCHEME} seed={seed} perm={num_perm} shingle={shingle} {bands} text={_TEXT}"
        )

    def bands(self, text: JudgedText, scope: int) -> tuple[int, ...] | None:
        """One signed 64-bit number for each band; pages of other scopes have others.

        None if the text is too short to be judged.
        """
        shingles = text.shingle_set(self.shingle)
        if len(shingles) < MIN_SHINGLES:
            return None
        signature = self.sign_shingles(shingles).astype("<u4").tobytes()
        return tuple(
            self._hash_band(signature, number, scope) for number in range(self._band_count)
        )

    def sign_shingles(self, shingles: Hashes) -> NDArray[np.uint32]:
        """The MinHash of shingles."""
        minhash = MinHash(
            self._used_perm, permutations=self._permutations, scheme=_SCHEME, hashfunc=_as_it_is
        )
        values = (shingles >> _UPPER_HALF).astype(np.uint32)
        for start in range(0, len(values), self._piece):
            # The one value of this batch is a whole array: no loop over the shingles.
            minhash.update_batch([values[start : start + self._piece]])
        signature: NDArray[np.uint32] = minhash.hashvalues
        return signature

    def _hash_band(self, signature: bytes, number: int, scope: int) -> int:
        start = number * self._band_bytes
        hasher = blake2b(signature[start : start + self._band_bytes], digest_size=8)
        hasher.update(_BAND_AND_SCOPE.pack(number, scope))
        band: int = _BAND_HASH.unpack(hasher.digest())[0]
        return band


def _as_it_is(value: Any) -> Any:
    return value
