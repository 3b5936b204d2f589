"""The contract of `Frontier`, to be run with a `world` of each implementation."""

from __future__ import annotations

from tests.contract.adding import Limits, Sieve
from tests.contract.archived import Archived
from tests.contract.borrowing import Borrowing
from tests.contract.commits import AllOrNothing, LateEnds, RealTime, Robots
from tests.contract.crowds import Crowds
from tests.contract.depths import Depths
from tests.contract.handing import Handing, Looking
from tests.contract.judging import Judging
from tests.contract.leasing import Arrivals, Leasing
from tests.contract.quotas import Quotas
from tests.contract.resolving import Resolving
from tests.contract.revival import Reopening, Revival
from tests.contract.sharing import Sharing
from tests.contract.turns import Turns
from tests.contract.visits import Ends


class Entering(Sieve, Limits, Crowds, Depths, Revival, Reopening):
    """How URLs come in."""


class Ending(Ends, Archived, LateEnds, AllOrNothing, Robots, Judging, RealTime):
    """How visits end."""


class Leaving(Resolving, Leasing, Arrivals, Borrowing, Sharing, Turns, Handing, Quotas, Looking):
    """How URLs are let out."""


class FrontierContract(Entering, Ending, Leaving):
    """Every sentence of `crawlproj.frontier.base`, and the exact meaning of each."""
