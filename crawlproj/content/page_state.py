"""What is kept of the last good captures of a page, in less than 2 KB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_STATE: Final = 1_900
"""Bytes of a packed state, whatever the page."""


@dataclass(slots=True)
class PageState:
    """The last captures of a page, as far as the next one is compared with them."""


def pack_state(state: PageState) -> bytes:
    """At most `MAX_STATE` bytes; the first one is the format."""
    raise NotImplementedError


def unpack_state(packed: bytes | None) -> PageState | None:
    """None if there is nothing, or nothing that this code can read."""
    raise NotImplementedError
