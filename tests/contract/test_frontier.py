"""Both frontiers keep one contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

PARTS = (
    "adding",
    "changed_rules",
    "commits",
    "depths",
    "due_tickets",
    "leasing",
    "quotas",
    "rejudging",
    "resolving",
    "revival",
    "sharing",
    "starts",
    "visits",
)
pytest.register_assert_rewrite(*(f"tests.contract.{part}" for part in PARTS))

from tests.contract.frontier_contract import FrontierContract  # noqa: E402
from tests.contract.worlds import MemoryWorld, PostgresWorld, World, contract_database  # noqa: E402


@pytest.fixture(params=["memory", "postgres-embedded", "postgres-debian"])
def world(request: pytest.FixtureRequest, servers: Callable[[str], str]) -> Iterator[World]:
    kind, _, server = request.param.partition("-")
    world: World = MemoryWorld()
    if kind == "postgres":
        world = PostgresWorld(contract_database(servers(server)))
    yield world
    world.close()


class TestFrontier(FrontierContract):
    """Runs the contract on each of them."""
