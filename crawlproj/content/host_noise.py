"""What changes all the time on the pages of one host: learned on some, known on the next."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zlib import crc32

MAX_NOISE: Final = 4_000
"""Bytes of a packed noise."""
NOISY_SHARE: Final = 0.75
"""A path is noise if it changed in at least this share of the captures that could tell."""
MIN_CHURNED: Final = 2
MIN_EVIDENCE: Final = 5
"""So many pages have to say so, or fewer more often: pages and times are added."""
MAX_COUNT: Final = 200
_FORMAT: Final = 1
_ROW: Final = struct.Struct("<HBBB3s")
_MAX_PATHS: Final = (MAX_NOISE - 5) // _ROW.size
_MAX_TAGS: Final = 3


class PathNoise(NamedTuple):
    """What is known of a path of a host: in how many captures it changed and in how many it did
    not, how often what was new there had gone again, and which pages said so (a byte for each, of
    three at most).
    """

    changed: int = 0
    quiet: int = 0
    churned: int = 0
    pages: frozenset[int] = frozenset()

    @property
    def is_noisy(self) -> bool:
        """Whether a difference there says nothing, on a page of which little is known."""
        return (
            len(self.pages) + self.churned >= MIN_EVIDENCE
            and self.churned >= MIN_CHURNED
            and self.changed >= NOISY_SHARE * (self.changed + self.quiet)
        )

    def add(self, other: PathNoise) -> PathNoise:
        """Both experiences. Large counts are halved, so that what a host does now counts more."""
        changed = self.changed + other.changed
        quiet = self.quiet + other.quiet
        churned = self.churned + other.churned
        while max(changed, quiet) > MAX_COUNT:
            changed //= 2
            quiet //= 2
            churned //= 2
        pages = frozenset(sorted(self.pages | other.pages)[:_MAX_TAGS])
        return PathNoise(changed, quiet, churned, pages)


@dataclass(frozen=True, slots=True)
class HostNoise:
    """Ends of paths (hashed, see `page_blocks.path_end`) that were seen to change on pages of a
    host. A value: nothing changes it.

    What several workers learned is merged in any order, as long as each experience is in one of
    the values only: keep what is new in a value of its own and merge it into the stored one.
    """

    paths: Mapping[int, PathNoise] = field(default_factory=dict)

    def merge(self, other: HostNoise) -> HostNoise:
        """What both know; the least telling paths are left out if there are too many."""
        if not other.paths:
            return self
        merged = dict(self.paths)
        for path, noise in other.paths.items():
            known = merged.get(path)
            merged[path] = noise if known is None else known.add(noise)
        if len(merged) > _MAX_PATHS:
            merged = dict(sorted(merged.items(), key=_usefulness)[:_MAX_PATHS])
        return HostNoise(merged)

    def is_noisy(self, path: int) -> bool:
        """Whether a difference at a path (hashed) is noise on this host."""
        noise = self.paths.get(path)
        return noise is not None and noise.is_noisy

    def pack(self) -> bytes:
        """At most `MAX_NOISE` bytes; empty if nothing is known."""
        if not self.paths:
            return b""
        rows = sorted(self.paths.items(), key=_usefulness)[:_MAX_PATHS]
        packed = bytes([_FORMAT]) + b"".join(
            [
                _ROW.pack(
                    path,
                    min(255, noise.changed),
                    min(255, noise.quiet),
                    min(255, noise.churned),
                    bytes(sorted(noise.pages)[:_MAX_TAGS]),
                )
                for path, noise in rows
            ]
        )
        return packed + crc32(packed).to_bytes(4, "little")


NO_NOISE: Final = HostNoise()


def unpack_noise(packed: bytes | None) -> HostNoise:
    """What `HostNoise.pack` gave; damaged or unknown bytes give a noise that knows nothing."""
    if not packed or packed[0] != _FORMAT or (len(packed) - 5) % _ROW.size:
        return NO_NOISE
    if crc32(packed[:-4]) != int.from_bytes(packed[-4:], "little"):
        return NO_NOISE
    return HostNoise(
        {
            path: PathNoise(changed, quiet, churned, frozenset(pages) - {0})
            for path, changed, quiet, churned, pages in _ROW.iter_unpack(packed[1:-4])
        }
    )


def learn_noise(
    url: str,
    changed: Iterable[int],
    churned: Iterable[int],
    quiet: Iterable[int],
    unchanged: int = 0,
) -> HostNoise:
    """What one capture of a page says: paths that changed, those of them where something new had
    gone again, and paths that did not change. Before it so many captures were `unchanged`.
    """
    pages = frozenset((crc32(url.encode("utf-8", "replace")) % 255 + 1,))
    gone_again = frozenset(churned)
    paths = {path: PathNoise(1, unchanged, int(path in gone_again), pages) for path in changed}
    for path in quiet:
        paths.setdefault(path, PathNoise(0, 1 + unchanged))
    return HostNoise(paths)


def _usefulness(item: tuple[int, PathNoise]) -> tuple[int, int, int]:
    """The most telling path comes first."""
    path, noise = item
    return (-len(noise.pages), -noise.changed, path)
