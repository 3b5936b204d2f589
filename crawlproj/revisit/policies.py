"""REVISIT_POLICY names a policy; here it is made, and called for each visit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from crawlproj.errors import ConfigError
from crawlproj.revisit.adaptive import AdaptivePolicy
from crawlproj.revisit.base import (
    NO_NUMBERS,
    Bounds,
    IntervalPolicy,
    Numbers,
    Plan,
    RevisitPolicy,
    RevisitSettings,
    Visit,
)
from crawlproj.revisit.classes import ClassesPolicy
from crawlproj.revisit.optimal import OptimalPolicy, make_prices, page_value
from crawlproj.revisit.price import Prices
from crawlproj.revisit.rates import (
    Calibration,
    Priors,
    elapsed_s,
    expected_age,
    freshness,
    is_known,
    learn,
    make_prior,
)
from crawlproj.revisit.uniform import UniformPolicy
from crawlproj.urls.rules import SiteRevisit

POLICY_NAMES = ("uniform", "adaptive", "classes", "optimal")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrappedPolicy:
    """A policy that gives intervals only, as two: one with the bounds of pages, one with those of
    sources.
    """

    pages: IntervalPolicy
    sources: IntervalPolicy

    def plan(self, visit: Visit) -> Plan:
        policy = self.pages
        if visit.source:
            policy = self.sources
        return Plan(policy.next_interval(visit), visit.numbers)


class RevisitPlanner:
    """Plans the next visit to any page: learns from this one, whatever the policy, and asks the
    policy of the page's site.

    `prices` are of one worker; they are shared by `PriceControl.take_factor` and `set_price`.
    `steers`: visits move the prices; those of the past, which are replayed, must not. `errors`
    counts what a policy of one's own has failed at: then the page has the first interval.
    """

    def __init__(self, settings: RevisitSettings, steers: bool = True) -> None:
        bounds = settings.bounds
        self.settings = settings
        self.bounds = bounds
        self.prices = make_prices(bounds)
        self.errors = 0
        self._steers = steers
        self._priors = {
            source: Priors(make_prior(self.prices.of_kind(source).mean_s))
            for source in (False, True)
        }
        self._calibrations = {source: Calibration() for source in (False, True)}
        self._began: datetime | None = None
        self.policy = _make_policy(settings, settings.policy, bounds, prices=self.prices)
        self._sites = {
            host: _SitePolicy.make(settings, site, self.prices)
            for host, site in settings.sites.items()
        }

    def set_counts(self, pages: int, sources: int) -> None:
        """So many pages and sources are visited again. Prices follow from that and the budget."""
        self.prices.set_counts(pages, sources, self.settings.budget)
        for source, priors in self._priors.items():
            priors.general = make_prior(self.prices.of_kind(source).mean_s)

    def plan(self, visit: Visit) -> Plan:
        """The next visit; always within the bounds, and never an exception."""
        priors = self._priors[visit.source]
        learned = learn(visit.numbers, visit, priors.prior_of(visit.host, visit.kind))
        if not visit.first:
            changed = visit.changed or bool(visit.new_links)
            self._calibrations[visit.source].note_visit(visit.numbers, elapsed_s(visit), changed)
        if visit.visits == 1:
            priors.note_visit(visit)
        kept = learned
        if visit.first and not is_known(visit.numbers):
            # A first visit teaches nothing. What is thought of such pages is asked again at the
            # second one, when more is known of others.
            kept = NO_NUMBERS
        policy, bounds, weight = self._policy_of(visit.host)
        informed = replace(visit, numbers=learned, weight=visit.weight * weight)
        try:
            plan = policy.plan(informed)
            seconds = plan.interval.total_seconds()
            numbers = replace(kept, own_a=plan.numbers.own_a, own_b=plan.numbers.own_b)
        except Exception:
            if not self.errors:
                log.exception("The revisit policy failed; such pages have the first interval")
            self.errors += 1
            return Plan(bounds.first(visit.source), kept)
        interval = bounds.clamp(timedelta(seconds=seconds), visit.source)
        if self._steers and isinstance(policy, OptimalPolicy):
            self._note_planned(visit, interval)
        return Plan(interval, numbers)

    def estimate(self, numbers: Numbers, age_s: float, source: bool) -> tuple[float, float]:
        """How likely a copy of that age is fresh, and since when it is expected to be out of date,
        in seconds. It is right in the mean of many pages.
        """
        if not is_known(numbers):
            numbers = self._priors[source].learned
        numbers = self._calibrations[source].correct(numbers)
        return freshness(numbers, age_s), expected_age(numbers, age_s)

    def _note_planned(self, visit: Visit, interval: timedelta) -> None:
        if self._began is None:
            self._began = visit.now
        late_s = 0.0
        if visit.interval is not None:
            late_s = max(elapsed_s(visit) - visit.interval.total_seconds(), 0.0)
            if visit.due is not None:
                # It may have been asked in vain meanwhile.
                late_s = max((visit.now - visit.due).total_seconds(), 0.0)
            # While the crawl did not run nothing was late for want of time.
            late_s = min(late_s, max((visit.now - self._began).total_seconds(), 0.0))
        control = self.prices.of_kind(visit.source)
        control.note_planned(interval.total_seconds(), late_s)

    def _policy_of(self, host: str) -> tuple[RevisitPolicy, Bounds, float]:
        if self._sites:
            name = host
            while name:
                site = self._sites.get(name)
                if site is not None:
                    return site.policy, site.bounds, site.weight
                name = name.partition(".")[2]
        return self.policy, self.bounds, 1.0


@dataclass(frozen=True, slots=True)
class _SitePolicy:
    """What REVISIT_SITES says of a site. With `optimal`, its interval is that of a page of which
    nothing is known: its pages weigh so much more or less.
    """

    policy: RevisitPolicy
    bounds: Bounds
    weight: float = 1.0

    @classmethod
    def make(cls, settings: RevisitSettings, site: SiteRevisit, prices: Prices) -> _SitePolicy:
        bounds = settings.bounds
        weight = 1.0
        if site.interval is not None:
            bounds = _site_bounds(bounds, site.interval)
            first_s = settings.bounds.first().total_seconds()
            weight = page_value(first_s, first_s) / page_value(
                site.interval.total_seconds(), first_s
            )
        policy = _make_policy(
            settings,
            site.policy or settings.policy,
            bounds,
            prices=prices,
            setting="REVISIT_SITES" if site.policy else "REVISIT_POLICY",
        )
        return cls(policy, bounds, weight)


def _site_bounds(bounds: Bounds, interval: timedelta) -> Bounds:
    """A site's own interval holds also where it is outside of the crawl's bounds."""
    sources = bounds.of_kind(source=True)
    quickest = min(sources.interval, interval)
    return Bounds(
        interval,
        min(bounds.shortest, interval),
        max(bounds.longest, interval),
        sources=replace(sources, interval=quickest, shortest=min(sources.shortest, quickest)),
    )


def choose_policy(settings: RevisitSettings, steers: bool = True) -> RevisitPlanner:
    """The planner of these settings; ConfigError if one of them makes no sense."""
    return RevisitPlanner(settings, steers)


def _make_policy(
    settings: RevisitSettings,
    name: str,
    bounds: Bounds,
    prices: Prices,
    setting: str = "REVISIT_POLICY",
) -> RevisitPolicy:
    """The policy of that name, or made by the callable with that dotted path."""
    if name == "uniform":
        return UniformPolicy(bounds)
    if name == "adaptive":
        return AdaptivePolicy(bounds, settings.increase, settings.decrease)
    if name == "classes":
        return ClassesPolicy(bounds, settings.classes)
    if name == "optimal":
        return OptimalPolicy(bounds, prices, settings.beta)
    return _load_policy(name, bounds, settings.args, setting=setting)


def _load_policy(name: str, bounds: Bounds, args: Mapping[str, Any], setting: str) -> RevisitPolicy:
    module, _, attribute = name.rpartition(".")
    try:
        make: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        choice = f"one of {', '.join(POLICY_NAMES)} or a dotted path"
        raise ConfigError(f"{setting} = {name!r} makes no sense: it must be {choice}") from None
    try:
        made = make(bounds, **args)
        if hasattr(made, "plan"):
            policy: RevisitPolicy = made
        else:
            policy = WrappedPolicy(made, make(bounds.of_kind(source=True), **args))
        is_policy = hasattr(made, "plan") or hasattr(made, "next_interval")
    except Exception as error:
        raise ConfigError(
            f"{setting}: {name!r} can't be made with REVISIT_ARGS = {dict(args)!r}: {error}"
        ) from None
    if not is_policy:
        raise ConfigError(
            f"{setting}: {name!r} makes no sense: it has neither plan nor next_interval"
        )
    return policy
