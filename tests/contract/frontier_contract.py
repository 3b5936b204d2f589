"""The contract of `Frontier`, to be run with a `world` of each implementation."""

from __future__ import annotations

from tests.contract.adding import Adding, Limits
from tests.contract.archived import Archived
from tests.contract.borrowing import Borrowing
from tests.contract.changed_rules import ChangedRules
from tests.contract.commits import AllOrNothing, LateEnds, Pieces, RealTime, Robots
from tests.contract.depths import Depths
from tests.contract.due_tickets import DueTickets, Reading
from tests.contract.host_limits import HostLimits
from tests.contract.learning import Learning
from tests.contract.leasing import Leasing, NewHostsOnLeases
from tests.contract.quotas import Quotas
from tests.contract.rejudging import Rejudging, SettingAside
from tests.contract.resolving import Resolving
from tests.contract.revival import Reopening, Revival
from tests.contract.sharing import Sharing
from tests.contract.sources import ArticleClaims, Backfill, Sources
from tests.contract.starts import FindingOrder, Starts, WaysIn
from tests.contract.turns import Turns
from tests.contract.visits import Ends


class Entering(
    Adding,
    Limits,
    HostLimits,
    Depths,
    Revival,
    Reopening,
    Starts,
    WaysIn,
    FindingOrder,
    ChangedRules,
    ArticleClaims,
    Backfill,
):
    """How URLs come in."""


class Ending(
    Ends,
    Archived,
    LateEnds,
    AllOrNothing,
    Pieces,
    Robots,
    Rejudging,
    SettingAside,
    RealTime,
    Learning,
    Sources,
):
    """How visits end."""


class Leaving(
    Resolving,
    Leasing,
    NewHostsOnLeases,
    Borrowing,
    Sharing,
    Turns,
    DueTickets,
    Quotas,
    Reading,
):
    """How URLs are let out."""


class FrontierContract(Entering, Ending, Leaving):
    """Every sentence of `crawlproj.frontier.base`, and the exact meaning of each."""
