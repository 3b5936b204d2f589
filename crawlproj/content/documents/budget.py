"""The budget of a document: what reading it may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """What the reader process may use, and how big a document may be."""

    timeout_s: float
    memory: int
    """Bytes of address space of the reader process."""
    max_bytes: int
    """The size of a document; bigger ones are kept, but not read."""
    max_waiting_bytes: int = 64_000_000
    """The size of all documents that wait for the reader process."""
