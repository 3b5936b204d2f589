"""What a document may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    timeout_s: float
    memory: int
    """Bytes of address space of the process that reads."""
    max_bytes: int
    """Of a document; bigger ones are kept, but not read."""
