"""How the workers of one crawl share its servers: pure arithmetic.

A worker that finds no free server says that it is wanting. While one is, the others take no more
than their share, and give back what they hold beyond it. While nobody is, everybody takes what is
free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from crawlproj.frontier.base import Peer


@dataclass(frozen=True, slots=True)
class PeerSummary:
    """The other workers of this crawl: how many, what they hold in all, and whether one of them is
    wanting. `died`: workers, of any crawl, that were found dead just now.
    """

    others: int = 0
    held: int = 0
    wanting: bool = False
    died: int = 0

    def servers_to_return(self, mine: int) -> int:
        """How many of my servers to give back."""
        if not self.wanting:
            return 0
        return max(0, mine - ceil((mine + self.held) / (self.others + 1)))

    def server_limit(self, mine: int, capacity: int) -> int:
        """How many servers I may hold. One more than an equal share, or nobody would take a server
        that comes up when all are equal.
        """
        if not self.wanting:
            return capacity
        return min(capacity, (mine + self.held) // (self.others + 1) + 1)


def summarize_peers(peers: Iterable[Peer], died: int = 0) -> PeerSummary:
    """Sum up those of the workers that run this crawl."""
    ours = [peer for peer in peers if peer.ours]
    held = sum(peer.held for peer in ours)
    wanting = any(peer.wanting for peer in ours)
    return PeerSummary(len(ours), held, wanting, died)
