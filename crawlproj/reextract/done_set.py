"""A set of 64-bit numbers in little memory: 16 to 32 bytes for each, Python's own set takes 80 and
more. It remembers which requests of a run are done.
"""

from __future__ import annotations

from array import array

FIRST_SIZE = 1 << 12


class NumberSet:
    """A hash table of numbers, never more than half full.

    0 stands for a free slot, so the number 0 is stored as 1.
    """

    def __init__(self, size: int = FIRST_SIZE) -> None:
        self._slots = array("q", bytes(8 * size))
        self._count = 0

    def add(self, number: int) -> bool:
        """Add a number; True if it is new."""
        number = number or 1
        slot = self._slot_of(number)
        if self._slots[slot]:
            return False
        self._slots[slot] = number
        self._count += 1
        if self._count * 2 > len(self._slots):
            self._grow()
        return True

    def __contains__(self, number: int) -> bool:
        return bool(self._slots[self._slot_of(number or 1)])

    def __len__(self) -> int:
        return self._count

    def _slot_of(self, number: int) -> int:
        """The index of the slot that holds the number, or of the free one where it belongs."""
        slots = self._slots
        mask = len(self._slots) - 1
        slot = number & mask
        while slots[slot] and slots[slot] != number:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("q", bytes(16 * len(self._slots)))
        for number in old:
            if number:
                self._slots[self._slot_of(number)] = number
