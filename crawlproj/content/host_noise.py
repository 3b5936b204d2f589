"""What changes all the time on the pages of one host: learned on some, known on the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_NOISE: Final = 4_000
"""Bytes of a packed noise."""


@dataclass(frozen=True, slots=True)
class HostNoise:
    """Paths (hashed) that were seen to change on pages of a host. A value: nothing changes it.

    What several workers learned is merged in any order, as long as each experience is in one of
    the values only: keep what is new in a value of its own and merge it into the stored one.
    """

    paths: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    def merge(self, other: HostNoise) -> HostNoise:
        """What both know; the least telling paths are left out if there are too many."""
        raise NotImplementedError

    def noisy_paths(self) -> Collection[int]:
        """Hashes of the paths that are noise on this host."""
        raise NotImplementedError

    def pack(self) -> bytes:
        """At most `MAX_NOISE` bytes; empty if nothing is known."""
        raise NotImplementedError


def unpack_noise(packed: bytes | None) -> HostNoise:
    """What `HostNoise.pack` gave; damaged or unknown bytes give a noise that knows nothing."""
    raise NotImplementedError
