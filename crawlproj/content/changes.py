"""Is a page changed against its last good captures, and how?

Two readings of a page differ nearly always: clocks, counters, adverts, tokens. A change is what a
reader would call one. A page is taken as a set of blocks (see `page_blocks`); what differs from the
last captures counts unless the block stands where this page, or its host, changes all the time, or
its text has come and gone before. What remains has to have some letters.

Pure: what is known of a page comes as bytes and goes as bytes (`page_state`), what is known of its
host is a value (`host_noise`). That two captures have the same bytes, or that a server says 304, is
for the caller to see, and costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from crawlproj.content.document import Block
from crawlproj.content.host_noise import HostNoise

CAPTURES: Final = 3
MAX_CAPTURES: Final = 7
MIN_LETTERS: Final = 10


class ChangeKind(StrEnum):
    """How a page differs from its last good capture. Only the first four are changes that a policy
    learns from; `gone` and `soft 404` are found by others, `new links` is what a listing is judged
    by.
    """

    NEW_TEXT = "new text"
    EDIT = "edit"
    DELETION = "deletion"
    NEW_LINKS = "new links"
    STRUCTURE = "structure only"
    ATTRIBUTES = "attributes only"
    NOISE = "noise"
    WALL = "wall"
    GONE = "gone"
    SOFT_404 = "soft 404"
    NONE = "none"


class MaskReason(StrEnum):
    """Why a difference does not count."""

    PATH_NOISE = "path noise"
    HOST_NOISE = "host noise"
    COUNT_RANGE = "count range"
    BOILERPLATE = "boilerplate"
    RELATIVE_TIME = "relative time"


class Masked(NamedTuple):
    """A text that differs and does not count; empty if only its hash is known. `new` says whether
    it came or went.
    """

    reason: MaskReason
    text: str
    path: str
    new: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The verdict on one capture; letters are those that count, masked ones are left out."""

    changed: bool
    kind: ChangeKind
    new_letters: int = 0
    gone_letters: int = 0
    masked: tuple[Masked, ...] = ()
    """A few examples for each reason."""


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """What a crawl takes for a change.

    `captures` is how many earlier captures are compared (1 to 7); `min_letters` is how many letters
    must differ, or, below 1, which share of the letters of the page.
    """

    captures: int = CAPTURES
    min_letters: float = MIN_LETTERS


DEFAULT_RULES: Final = ChangeRules()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What `judge_change` gives: the verdict, the state to be stored with the page (never more than
    `page_state.MAX_STATE` bytes), and what this visit says of the host, to be merged into its noise.

    After a wall the state is the old one.
    """

    change: Change
    state: bytes
    noise: HostNoise = field(default_factory=HostNoise)
    first: bool = False
    """Nothing was known of the page, so nothing could change."""


def judge_change(
    blocks: Iterable[Block],
    state: bytes | None,
    url: str,
    host: HostNoise | None = None,
    rules: ChangeRules = DEFAULT_RULES,
) -> Judgement:
    """Judge a capture by the packed state of the page, and make the state for the next one.

    No state, or one that can't be read, is a first visit. `url` only tells the pages of a host
    apart.
    """
    raise NotImplementedError
