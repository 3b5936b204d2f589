"""How often a page changes: what visits teach, and what follows from it.

A change rate is known as a Gamma distribution, `rate_a` and `rate_b` of `Numbers`, whatever the
policy is. All times are in seconds, and every function takes any float: what is no number of a sane
size counts as nothing known.
"""

from __future__ import annotations

from collections import OrderedDict
from math import exp, expm1, inf, isfinite, log1p

from crawlproj.revisit.base import NO_NUMBERS, Numbers, Visit

PRIOR_A = 0.5
"""A new page may change often or hardly ever."""
PRIOR_STRETCH = 2.0
"""`rate_b` of a new page, in mean intervals between visits."""
MAX_A = 10.0
"""Forgetting: what was learned counts for no more than so many changes."""
MAX_FALSE_CHANGE = 0.9
SMALLEST = 1e-6
LARGEST = 1e12
"""Seconds: 30,000 years."""
MOST_GROUPS = 20_000
MOST_LINKS = 1_000_000
GROUP_LEAST = 2.0
"""What a group is thought to be weighs as much as so many pages."""
GROUP_MOST = 100.0
"""Forgetting: what was learned of a group weighs no more than so many pages."""
CALIBRATION_STEP = 5.0
CALIBRATION_START = 50
LEAST_STEP = 0.01
"""How far a single visit moves the calibration, at first and later."""
MOST_FACTOR = 4.0
ALL_PAGES = ("*", "")


def is_known(numbers: Numbers) -> bool:
    """Whether there is a rate, and one that can be."""
    a = numbers.rate_a
    b = numbers.rate_b
    if a is None or b is None:
        return False
    return SMALLEST <= a <= LARGEST and SMALLEST <= b <= LARGEST


def make_prior(mean_interval_s: float) -> Numbers:
    """What is thought of a page before its first visit, if pages are visited so often."""
    return Numbers(PRIOR_A, PRIOR_STRETCH * keep_sane(mean_interval_s))


def keep_sane(value: float) -> float:
    """The number, or the nearest that can be reckoned with."""
    if value != value:  # not a number
        return SMALLEST
    return min(max(value, SMALLEST), LARGEST)


def learn(numbers: Numbers, visit: Visit, prior: Numbers) -> Numbers:
    """The numbers after a visit; the first one teaches nothing, as there is nothing to compare."""
    a = numbers.rate_a
    b = numbers.rate_b
    if a is None or b is None or not is_known(numbers):
        a = prior.rate_a
        b = prior.rate_b
        if a is None or b is None or not is_known(prior):
            return numbers
    if not visit.first and visit.last_visit is not None:
        tau = elapsed_s(visit)
        if tau > 0:
            a, b = update(a, b, visit, tau=tau)
            if a > MAX_A:
                b *= MAX_A / a
                a = MAX_A
    return Numbers(keep_sane(a), keep_sane(b), numbers.own_a, numbers.own_b)


def elapsed_s(visit: Visit) -> float:
    """Seconds since the visit before; 0 at the first, and if a clock has gone backwards."""
    if visit.last_visit is None:
        return 0.0
    return max((visit.now - visit.last_visit).total_seconds(), 0.0)


def update(a: float, b: float, visit: Visit, tau: float) -> tuple[float, float]:
    """The posterior after a visit `tau` seconds after the one before."""
    if visit.new_links is not None and (visit.source or visit.kind == "listing"):
        return a + min(max(visit.new_links, 0), MOST_LINKS), b + tau
    if not visit.changed:
        return a, b + tau
    modified = visit.hints.last_modified
    if modified is not None and visit.last_visit is not None:
        age = (visit.now - modified).total_seconds()
        if 0 <= age <= tau:
            return a + 1, b + age
    return update_changed(a, b, tau, false_change=visit.false_change)


def update_changed(a: float, b: float, tau: float, false_change: float) -> tuple[float, float]:
    """The posterior after at least one change within `tau`, or a false one: the Gamma distribution
    with its mean and variance.
    """
    q = 0.0
    if 0 < false_change < inf:
        q = min(false_change, MAX_FALSE_CHANGE)
    growth = log1p(tau / b)
    z0 = q - (1 - q) * expm1(-a * growth)
    z1 = q - (1 - q) * expm1(-(a + 1) * growth)
    z2 = q - (1 - q) * expm1(-(a + 2) * growth)
    if z0 <= 0:
        return a + 1, b
    # In units of the old mean a / b: m and the second moment.
    mean = z1 / z0
    spread = (a + 1) / a * (z2 / z0) - mean * mean
    if not (spread > 0 and isfinite(mean)):
        return a + 1, b
    return mean * mean / spread, mean / spread * (b / a)


def freshness(numbers: Numbers, age_s: float) -> float:
    """How likely a copy of that age is still what the page says; 1 if nothing is known."""
    if not is_known(numbers):
        return 1.0
    assert numbers.rate_a is not None and numbers.rate_b is not None
    return exp(-numbers.rate_a * log1p(max(keep_sane(age_s), 0.0) / numbers.rate_b))


def expected_age(numbers: Numbers, age_s: float) -> float:
    """Since when a copy of that age is expected to lack a change, in seconds; 0 if it is fresh."""
    if not is_known(numbers):
        return 0.0
    assert numbers.rate_a is not None and numbers.rate_b is not None
    return age_integral(numbers.rate_a, numbers.rate_b, keep_sane(age_s))


def age_integral(a: float, b: float, tau: float) -> float:
    """The integral of 1 - (1 + u / b)^-a from 0 to tau."""
    x = tau / b
    if x * (1 + a) < 1e-4:
        return b * a * x * x * (0.5 - (a + 1) * x / 6 * (1 - (a + 2) * x / 4))
    return max(tau - b * power_integral(1 - a, log1p(x)), 0.0)


def power_integral(exponent: float, growth: float) -> float:
    """(e^(exponent * growth) - 1) / exponent, also where the exponent is 0 or nearly so."""
    size = exponent * growth
    if abs(size) < 1e-9:
        return growth * (1 + size / 2)
    return expm1(size) / exponent


def visit_value(a: float, b: float, tau: float) -> float:
    """What a visit after `tau` is worth for the age of the copy: the integral of
    u * (1 - (1 + u / b)^-a) from 0 to tau. It grows with tau.
    """
    x = tau / b
    if x * (1 + a) < 2e-3:
        rest = (a + 2) * x / 30 * (1 - (a + 3) * x * 5 / 24)
        return b * b * a * x * x * x * (1 / 3 - (a + 1) * x * (1 / 8 - rest))
    growth = log1p(x)
    integral = power_integral(2 - a, growth) - power_integral(1 - a, growth)
    return max(b * b * (x * x / 2 - integral), 0.0)


class Calibration:
    """How much more often pages are found changed than was expected of them: `factor` times as
    often. What is learned of each page begins with what is thought of all, so the mean of many
    lags behind; what is said of all copies together is corrected by this.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self._visits = 0

    def note_visit(self, numbers: Numbers, tau: float, changed: bool) -> None:
        """A page of which that was known was found changed, or not, after tau seconds."""
        if not is_known(numbers) or tau <= 0:
            return
        self._visits += 1
        step = max(CALIBRATION_STEP / (self._visits + CALIBRATION_START), LEAST_STEP)
        surprise = float(changed) - 1 + freshness(self.correct(numbers), tau)
        factor = self.factor * exp(step * surprise)
        self.factor = min(max(factor, 1 / MOST_FACTOR), MOST_FACTOR)

    def correct(self, numbers: Numbers) -> Numbers:
        """What is to be expected of many pages with these numbers."""
        if not is_known(numbers):
            return numbers
        assert numbers.rate_a is not None
        return Numbers(keep_sane(numbers.rate_a * self.factor), numbers.rate_b)


class Priors:
    """What is thought of a new page: what the pages of its host and kind taught at their second
    visits, else those of its kind, else the crawl's own prior. Kept in memory, for the groups used
    last.

    A group has its mean rate of change: that of all rates which its pages are expected to have,
    each by the prior of that moment and what its second visit has shown. So it goes where pages
    that were drawn from it would show what its pages have shown.
    """

    def __init__(self, prior: Numbers, most: int = MOST_GROUPS) -> None:
        self.general = prior
        self._most = most
        self._groups: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def prior_of(self, host: str, kind: str) -> Numbers:
        for name in ((host, kind), ("", kind)):
            group = self._groups.get(name)
            if group is not None:
                return _group_prior(group[1])
        return self.general

    @property
    def learned(self) -> Numbers:
        """What all pages taught: for the mean of pages of which not even the kind is known."""
        group = self._groups.get(ALL_PAGES)
        if group is None:
            return self.general
        return _group_prior(group[1])

    def note_visit(self, visit: Visit) -> None:
        """Learn from the second visit to a page: so each page counts once."""
        tau = elapsed_s(visit)
        if not tau:
            return
        self._update_group(ALL_PAGES, self.general, visit, tau=tau)
        above = self.general
        for name in (("", visit.kind), (visit.host, visit.kind)):
            above = self._update_group(name, above, visit, tau=tau)
        while len(self._groups) > self._most:
            self._groups.popitem(last=False)

    def _update_group(
        self, name: tuple[str, str], above: Numbers, visit: Visit, tau: float
    ) -> Numbers:
        number, mean_s = self._groups.get(name) or self._first_group(above)
        prior = _group_prior(mean_s)
        assert prior.rate_a is not None and prior.rate_b is not None
        a, b = update(prior.rate_a, prior.rate_b, visit, tau=tau)
        mean_s = keep_sane((number + 1) / (number / mean_s + a / b))
        self._groups[name] = (min(number + 1, GROUP_MOST), mean_s)
        self._groups.move_to_end(name)
        return _group_prior(mean_s)

    def _first_group(self, above: Numbers) -> tuple[float, float]:
        """A group of which nothing is known changes as often as the one above it."""
        a = above.rate_a
        b = above.rate_b
        if a is None or b is None or above is NO_NUMBERS:
            return GROUP_LEAST, LARGEST
        return GROUP_LEAST, keep_sane(b / a)


def _group_prior(mean_s: float) -> Numbers:
    """Of a group of pages that change at a rate of once in so many seconds, in the mean."""
    return Numbers(PRIOR_A, keep_sane(PRIOR_A * mean_s))
