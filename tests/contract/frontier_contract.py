"""The contract of `Frontier`, to be run with a `world` of each implementation."""

from __future__ import annotations

from tests.contract.adding import Depths, Limits, Reopening, Revival, Sieve
from tests.contract.leasing import Handing, Leasing, Looking, Resolving
from tests.contract.visits import AllOrNothing, Ends, LateEnds, RealTime, Robots


class FrontierContract(
    Sieve, Limits, Depths, Revival, Reopening, Ends, LateEnds, AllOrNothing, Robots, RealTime, Resolving, Leasing, Handing, Looking
):
    """Every sentence of `crawlproj.frontier.base`, and the exact meaning of each."""
