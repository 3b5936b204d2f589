"""What was done already, in little memory: a set of 64-bit numbers takes 16 to 32 bytes for each,
Python's own 80 and more.
"""

from __future__ import annotations

from array import array

FIRST_SIZE = 1 << 12


class NumberSet:
    """A table of numbers, never more than half full. 0 stands for "free", so the number 0 is kept
    as 1.
    """

    def __init__(self, size: int = FIRST_SIZE) -> None:
        self._slots = array("q", bytes(8 * size))
        self._count = 0

    def add(self, number: int) -> bool:
        """True if it is new."""
        number = number or 1
        place = self._slot_of(number)
        if self._slots[place]:
            return False
        self._slots[place] = number
        self._count += 1
        if self._count * 2 > len(self._slots):
            self._grow()
        return True

    def __contains__(self, number: int) -> bool:
        return bool(self._slots[self._slot_of(number or 1)])

    def __len__(self) -> int:
        return self._count

    def _slot_of(self, number: int) -> int:
        """Where it is, or where it would be."""
        slots = self._slots
        mask = len(self._slots) - 1
        place = number & mask
        while slots[place] and slots[place] != number:
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("q", bytes(16 * len(self._slots)))
        for number in old:
            if number:
                self._slots[self._slot_of(number)] = number
