"""REVISIT_POLICY names a policy; here it is made."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from crawlproj.errors import ConfigError
from crawlproj.revisit.adaptive import AdaptivePolicy
from crawlproj.revisit.base import Bounds, RevisitPolicy
from crawlproj.revisit.uniform import UniformPolicy

POLICY_NAMES = ("uniform", "adaptive")


def choose_policy(name: str, bounds: Bounds, increase: float, decrease: float) -> RevisitPolicy:
    """The policy of that name, or made by the callable with that dotted path from the bounds."""
    if name == "uniform":
        return UniformPolicy(bounds)
    if name == "adaptive":
        return AdaptivePolicy(bounds, increase, decrease)
    module, _, attribute = name.rpartition(".")
    try:
        make: Callable[[Bounds], RevisitPolicy] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        choice = f"one of {', '.join(POLICY_NAMES)} or a dotted path"
        raise ConfigError(
            f"REVISIT_POLICY = {name!r} makes no sense: it must be {choice}"
        ) from None
    return make(bounds)
