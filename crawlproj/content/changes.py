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

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final, NamedTuple

from crawlproj.content.document import Block
from crawlproj.content.host_noise import NO_NOISE, HostNoise, learn_noise
from crawlproj.content.key_sketch import find_difference
from crawlproj.content.page_blocks import PageBlocks, find_blocks, path_end
from crawlproj.content.page_state import (
    MAX_CAPTURES,
    NOWHERE,
    VISITS,
    KeptBlock,
    PageState,
    PathHistory,
    count_wall,
    make_notes,
    pack_state,
    read_note,
    short_path,
    unpack_state,
)
from crawlproj.content.relative_times import MAX_LETTERS, is_relative_time

CAPTURES: Final = 3
MIN_LETTERS: Final = 10
LEAST_KEPT: Final = 3
"""Captures that are remembered at least: with fewer nobody can tell what comes and goes."""
NOISY_SHARE: Final = 0.75
"""A path is noise if it changed in at least this share of the earlier steps."""
MIN_STEPS: Final = 2
"""Fewer earlier steps say nothing."""
KEPT_STEPS: Final = 8
"""About so many steps count, the last ones most."""
GROWTH: Final = 4
"""Noise stays noise up to so many times the letters it had before."""
SHORT: Final = 60
"""Letters of a text that may take the place of one that had come not long ago, if nothing else
stands at its path: a slot whose texts take turns.
"""
WALL_KEPT: Final = 0.3
WALL_SIZE: Final = 0.25
MAX_WALLS: Final = 8
"""After so many walls in a row it is taken for the page."""
MAX_EXAMPLES: Final = 3
MAX_EXAMPLE: Final = 120
"""Characters of an example."""
_WORD: Final = re.compile(r"[^\W\d_]+")


class ChangeKind(StrEnum):
    """How a page differs from its last good capture.

    The first four are changes. `new links` is what a listing is judged by; that, `gone` and `soft
    404` are found by others.
    """

    NEW_TEXT = "new text"
    EDIT = "edit"
    DELETION = "deletion"
    NEW_LINKS = "new links"
    STRUCTURE = "structure only"
    ATTRIBUTES = "attributes only"
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
NO_CHANGE: Final = Change(False, ChangeKind.NONE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What `judge_change` gives: the verdict, the state to be stored with the page (never more than
    `page_state.MAX_STATE` bytes), and what this visit says of the host, to be merged into its
    noise.

    After a wall the state still describes the last good capture.
    """

    change: Change
    state: bytes
    noise: HostNoise = NO_NOISE
    first: bool = False
    """Nothing was known of the page, so nothing could change."""


def judge_change(
    blocks: Iterable[Block],
    state: bytes | None,
    url: str,
    host: HostNoise = NO_NOISE,
    rules: ChangeRules = DEFAULT_RULES,
    visit: int | None = None,
) -> Judgement:
    """Judge a capture by the packed state of the page, and make the state for the next one.

    No state, or one that can't be read, is a first visit. `url` only tells the pages of a host
    apart; `host` is what is known of it. `visit` is the number of this visit, of those that saw the
    page: those between this one and that of the state, which nobody has judged, have found what the
    state says. None: there were none.
    """
    page = find_blocks(blocks)
    known = unpack_state(state)
    if known is None or state is None:
        return Judgement(NO_CHANGE, _pack(PageState(visit=visit or 0), page, rules), first=True)
    unchanged = 0
    if visit is not None:
        unchanged = (visit - known.visit - 1) % VISITS
        known.visit = visit
    seen = _Comparison(page, known, host, rules, unchanged)
    if seen.is_wall and known.walls < MAX_WALLS:
        return Judgement(Change(False, ChangeKind.WALL), count_wall(state))
    change = seen.judge()
    return Judgement(change, _pack(seen.next_state(), page, rules), seen.learn_noise(url))


class _Difference(NamedTuple):
    """A block that came or went; `number` is its place among the blocks of the page, if it came."""

    key: int
    letters: int
    path: int
    number: int | None

    @property
    def is_new(self) -> bool:
        return self.number is not None


class _Comparison:
    """A capture beside what is known of the ones before it."""

    def __init__(
        self,
        page: PageBlocks,
        known: PageState,
        host: HostNoise,
        rules: ChangeRules,
        unchanged: int = 0,
    ) -> None:
        _repeat_capture(known, unchanged, kept_captures(rules))
        self._unchanged = unchanged
        self._page = page
        self._known = known
        self._host = host
        self._rules = rules
        self._hashes = page.places
        self._window = (1 << min(rules.captures, len(known.digests))) - 1
        self._too_many = False
        """There are more differences than can be told."""
        self._differences: list[_Difference] = []
        if page.digest != known.digests[0]:
            self._differences = self._find_differences()

    @property
    def is_wall(self) -> bool:
        """Whether hardly anything of the page is left."""
        page = self._page
        known = self._known
        if page.digest in known.digests or not known.block_count:
            return False
        if sum(page.letters) >= WALL_SIZE * known.letter_count:
            return False
        if self._too_many:
            return True
        gone = sum(not difference.is_new for difference in self._differences)
        return known.block_count - gone < WALL_KEPT * known.block_count

    def judge(self) -> Change:
        """The verdict, walls aside."""
        page = self._page
        if self._too_many:
            return self._judge_unknown()
        masked: list[Masked] = []
        if page.boilerplate != self._known.boilerplate:
            masked.append(Masked(MaskReason.BOILERPLATE, "", "", True))
        if not self._differences:
            kind = ChangeKind.NONE
            if page.structure != self._known.structure:
                kind = ChangeKind.STRUCTURE
            elif not masked:
                kind = ChangeKind.ATTRIBUTES
            return Change(False, kind, masked=tuple(masked))
        new_letters = 0
        gone_letters = 0
        examples: Counter[MaskReason] = Counter()
        for difference, reason in zip(self._differences, self._mask_all(), strict=True):
            if reason is None:
                if difference.is_new:
                    new_letters += difference.letters
                else:
                    gone_letters += difference.letters
                continue
            examples[reason] += 1
            if examples[reason] <= MAX_EXAMPLES:
                masked.append(self._as_example(difference, reason))
        return self._decide(new_letters, gone_letters, tuple(masked))

    def _judge_unknown(self) -> Change:
        """More differs than is known of the page."""
        if self._page.digest in self._seen_digests:
            mask = Masked(MaskReason.COUNT_RANGE, "", "", True)
            return Change(False, ChangeKind.NONE, masked=(mask,))
        letters = sum(self._page.letters)
        known = self._known.letter_count
        return Change(True, ChangeKind.EDIT, max(0, letters - known), max(0, known - letters))

    @property
    def _seen_digests(self) -> tuple[int, ...]:
        return self._known.digests[: self._rules.captures]

    def _decide(self, new_letters: int, gone_letters: int, masked: tuple[Masked, ...]) -> Change:
        least = self._rules.min_letters
        if least < 1:
            least *= max(sum(self._page.letters), self._known.letter_count)
        # An edited block has both come and gone: its letters count once.
        most = max(new_letters, gone_letters)
        changed = 0 < most >= least
        kind = ChangeKind.NONE
        if changed:
            kind = ChangeKind.EDIT
            if new_letters >= least > gone_letters:
                kind = ChangeKind.NEW_TEXT
            elif gone_letters >= least > new_letters:
                kind = ChangeKind.DELETION
        return Change(changed, kind, new_letters, gone_letters, masked)

    def _find_differences(self) -> list[_Difference]:
        """Blocks that are in one of this capture and the last one only."""
        page = self._page
        known = self._known
        numbers = {key: number for number, key in enumerate(page.keys)}
        if known.sketch is None:
            gone = {key: block for key, block in known.blocks.items() if key not in numbers}
            new = [key for key in page.keys if key not in known.blocks]
        else:
            notes = make_notes(page.letters, self._hashes)
            found = find_difference(known.sketch, page.keys, notes)
            if found is None:
                self._too_many = True
                return []
            gone = self._with_paths(found.only_there)
            new = [key for key in page.keys if key in found.only_here]
        differences = [
            _Difference(key, block.letters, block.path, number=None) for key, block in gone.items()
        ]
        for key in new:
            number = numbers[key]
            letters = page.letters[number]
            text = page.texts[number]
            if not text.isascii():
                letters = sum(map(len, _WORD.findall(text)))
            differences.append(_Difference(key, letters, self._hashes[number], number))
        return differences

    def _with_paths(self, notes: dict[int, int]) -> dict[int, KeptBlock]:
        """The blocks of a sketch, which knows a part of their paths only."""
        paths = {short_path(path): path for path in self._known.paths}
        paths.update((short_path(path), path) for path in set(self._hashes))
        found = {}
        for key, note in notes.items():
            block = read_note(note)
            found[key] = KeptBlock(block.letters, paths.get(block.path, NOWHERE))
        return found

    def _find_noisy_paths(self) -> dict[int, MaskReason]:
        """Paths whose differences do not count, and why."""
        letters = self._letters_by_path()
        noisy = {}
        for path, count in letters.items():
            history = self._known.paths.get(path)
            if self._is_noisy(history, count):
                noisy[path] = MaskReason.PATH_NOISE
            elif self._host.is_noisy(path_end(path)) and (
                history is not None or self._known.steps < MIN_STEPS
            ):
                noisy[path] = MaskReason.HOST_NOISE
        return noisy

    def _is_noisy(self, history: PathHistory | None, letters: int) -> bool:
        steps = self._known.steps
        return (
            history is not None
            and steps >= MIN_STEPS
            and history.changed >= NOISY_SHARE * steps
            and history.churned > 0
            and letters <= GROWTH * history.letters
        )

    def _letters_by_path(self) -> dict[int, int]:
        letters: defaultdict[int, int] = defaultdict(int)
        for difference in self._differences:
            letters[difference.path] += difference.letters
        return letters

    def _mask_all(self) -> list[MaskReason | None]:
        """For each difference why it does not count; None if it does."""
        noisy = self._find_noisy_paths()
        reasons: list[MaskReason | None] = []
        slots: Counter[int] = Counter()
        times: Counter[int] = Counter()
        for difference in self._differences:
            reason = noisy.get(difference.path)
            if self._has_varied(difference, self._window):
                reason = MaskReason.COUNT_RANGE
                slots[difference.path] += not difference.is_new
            elif reason is None and self._says_time(difference):
                reason = MaskReason.RELATIVE_TIME
                times[difference.path] += 1
            reasons.append(reason)
        crowd = Counter(self._hashes)
        for index, difference in enumerate(self._differences):
            if reasons[index] is not None:
                continue
            path = difference.path
            if difference.is_new:
                if 0 < crowd[path] <= slots[path] and difference.letters <= SHORT:
                    reasons[index] = MaskReason.PATH_NOISE
            elif times[path] > 0 and difference.letters <= MAX_LETTERS:
                times[path] -= 1
                reasons[index] = MaskReason.RELATIVE_TIME
        return reasons

    def _says_time(self, difference: _Difference) -> bool:
        number = difference.number
        return number is not None and is_relative_time(self._page.texts[number])

    def _has_varied(self, difference: _Difference, window: int) -> bool:
        """Whether it has been both ways in these captures."""
        stood = self._known.varying.get(difference.key)
        if stood is None:
            return False
        stood &= window
        return stood != 0 if difference.is_new else stood != window

    def _as_example(self, difference: _Difference, reason: MaskReason) -> Masked:
        number = difference.number
        if number is not None:
            page = self._page
            return Masked(reason, page.texts[number][:MAX_EXAMPLE], page.paths[number], True)
        paths = dict(zip(self._hashes, self._page.paths, strict=True))
        return Masked(reason, "", paths.get(difference.path, ""), False)

    def next_state(self) -> PageState:
        """What is known with this capture; its own blocks are added when it is packed."""
        known = self._known
        return PageState(
            _add_step(known.steps, True),
            digests=known.digests,
            visit=known.visit,
            varying=self._next_varying(),
            paths=self._next_paths(),
        )

    def _next_varying(self) -> dict[int, int]:
        """In which captures the keys stood that come and go; those that stand now come first."""
        known = self._known
        captures = min(len(known.digests) + 1, kept_captures(self._rules))
        full = (1 << captures) - 1
        before = (1 << len(known.digests)) - 1
        now: dict[int, int] = {}
        present = set(self._page.keys)
        for key, stood in known.varying.items():
            now[key] = stood << 1 | (key in present)
        for difference in self._differences:
            if difference.is_new:
                now[difference.key] = known.varying.get(difference.key, 0) << 1 | 1
            else:
                now[difference.key] = known.varying.get(difference.key, before) << 1
        masks = [(key, stood & full) for key, stood in now.items() if stood & full not in (0, full)]
        masks.sort(key=lambda item: -(item[1] & 1))
        return dict(masks)

    def _next_paths(self) -> dict[int, PathHistory]:
        steps = self._known.steps
        letters = self._letters_by_path()
        churned = self._churned_paths()
        paths = {}
        for path in {*self._known.paths, *letters}:
            history = self._known.paths.get(path, PathHistory())
            changed = _add_step(history.changed, path in letters, steps)
            if changed >= 0.5:
                paths[path] = PathHistory(
                    changed,
                    _add_step(history.churned, path in churned, steps),
                    max(history.letters, letters.get(path, 0)),
                )
        paths.pop(NOWHERE, None)
        return paths

    def _churned_paths(self) -> set[int]:
        """Paths where something went that had come not long ago."""
        window = (1 << len(self._known.digests)) - 1
        return {
            difference.path
            for difference in self._differences
            if not difference.is_new and self._has_varied(difference, window)
        }

    def learn_noise(self, url: str) -> HostNoise:
        """What this capture says of its host."""
        paths = {difference.path for difference in self._differences}
        paths.discard(NOWHERE)
        changed = set(map(path_end, paths))
        churned = set(map(path_end, self._churned_paths()))
        quiet = self._host.paths.keys() & set(map(path_end, set(self._hashes))) - changed
        if not changed and not quiet:
            return NO_NOISE
        return learn_noise(url, changed, churned, quiet, min(self._unchanged, KEPT_STEPS))


def kept_captures(rules: ChangeRules) -> int:
    """How many captures a state remembers."""
    return min(MAX_CAPTURES, max(LEAST_KEPT, rules.captures))


def _repeat_capture(known: PageState, times: int, captures: int) -> None:
    """Let a state know that the next captures were the same as its last one."""
    if not times:
        return
    decays = max(0, times - ceil(max(KEPT_STEPS - known.steps, 0)))
    kept = (1 - 1 / KEPT_STEPS) ** decays
    known.steps = min(known.steps + times, KEPT_STEPS)
    known.paths = {
        path: history._replace(changed=kept * history.changed, churned=kept * history.churned)
        for path, history in known.paths.items()
    }
    repeated = min(times, captures)
    known.digests = (known.digests[:1] * repeated + known.digests)[:captures]
    full = (1 << len(known.digests)) - 1
    ones = (1 << repeated) - 1
    stood_now = {
        key: stood << repeated | ones * (stood & 1) for key, stood in known.varying.items()
    }
    known.varying = {
        key: stood & full for key, stood in stood_now.items() if stood & full not in (0, full)
    }


def _add_step(count: float, counts: bool, steps: float | None = None) -> float:
    """A count with one more step; of many steps the older ones count less."""
    if steps is None:
        steps = count
    if steps >= KEPT_STEPS:
        count *= 1 - 1 / KEPT_STEPS
    return count + counts


def _pack(state: PageState, page: PageBlocks, rules: ChangeRules) -> bytes:
    """The state with this capture as its last one."""
    state.block_count = len(page.keys)
    state.letter_count = sum(page.letters)
    state.structure = page.structure
    state.boilerplate = page.boilerplate
    state.digests = (page.digest, *state.digests)[: kept_captures(rules)]
    return pack_state(state, page.keys, page.letters, page.places)
