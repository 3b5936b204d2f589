"""Items that went on as those of an original, though their page turned out to be a copy: another
page with the same content was stored between the look-up for its items and its own commit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

MAX_PAGES = 100_000


class LateVerdicts:
    """Remembers pages whose items went on, until these pages are stored. On the event loop."""

    def __init__(self) -> None:
        self._items: dict[int, int] = {}

    def note_passed(self, page: int, items: int) -> None:
        """So many items of a page went on, since it seemed to be no copy."""
        if len(self._items) >= MAX_PAGES:
            # Ends that were too late are never stored.
            self._items.clear()
        self._items[page] = self._items.get(page, 0) + items

    def take_late(self, stored: Iterable[int], copies: Container[int]) -> int:
        """Forget pages that are stored now; return how many items of copies have gone on."""
        if not self._items:
            return 0
        late = 0
        for page in stored:
            items = self._items.pop(page, 0)
            if page in copies:
                late += items
        return late
