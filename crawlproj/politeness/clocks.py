"""Clocks say when a host or a server may be asked next, and why not earlier. Pure values: times go
in, the next time and its reason come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

JITTER = 0.25
GENERAL_PAUSE = "general pause"
"""The reason of a server's clock while it has its general pause."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """Settings that hold for every host, in seconds."""

    delay_s: float = 2.0
    slowdown: float = 5.0
    max_delay_s: float = 60.0
    max_crawl_delay_s: float = 300.0
    max_retry_after_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ServerRules:
    """Settings that hold for every server.

    After `pause_after` requests to one of its hosts (0: never) it rests for `pause_s`: its general
    pause. At most `hosts` of its hosts are asked between two of them, and at a time.
    """

    delay_s: float = 0.5
    hosts: int = 4
    pause_after: int = 500
    pause_s: float = 300.0

    @property
    def has_pauses(self) -> bool:
        return self.pause_after > 0 and self.pause_s > 0


@dataclass(frozen=True, slots=True)
class PolitenessRules:
    """All rules of a worker that clocks follow."""

    host: HostRules = HostRules()
    server: ServerRules = ServerRules()

    def as_settings(self) -> dict[str, float]:
        """The rules by the names of their settings, as they are stored."""
        return {name: float(getattr(self._part(name), rule)) for name, rule in RULES.items()}

    def strictest(self, others: Iterable[Mapping[str, float]]) -> PolitenessRules:
        """These rules, each replaced by that of `others` if that one is stricter.

        Of a number of requests or hosts the smaller one is stricter, 0 being no limit; of all
        others the larger one. What is not known here, or makes no sense, is left out.
        """
        rules = self.as_settings()
        for other in others:
            for name in rules.keys() & other.keys():
                rules[name] = _stricter(name, rules[name], other[name])
        return self._replaced(rules)

    def _part(self, name: str) -> HostRules | ServerRules:
        return self.server if name in SERVER_RULES else self.host

    def _replaced(self, rules: Mapping[str, float]) -> PolitenessRules:
        host = {HOST_RULES[name]: value for name, value in rules.items() if name in HOST_RULES}
        server = {rule: rules[name] for name, rule in SERVER_RULES.items() if name in rules}
        return PolitenessRules(
            replace(self.host, **host),
            ServerRules(
                server["delay_s"],
                hosts=int(server["hosts"]),
                pause_after=int(server["pause_after"]),
                pause_s=server["pause_s"],
            ),
        )


HOST_RULES = {
    "POLITENESS_DELAY": "delay_s",
    "POLITENESS_SLOWDOWN": "slowdown",
    "POLITENESS_MAX_DELAY": "max_delay_s",
    "ROBOTS_MAX_CRAWL_DELAY": "max_crawl_delay_s",
}
SERVER_RULES = {
    "POLITENESS_SERVER_DELAY": "delay_s",
    "POLITENESS_HOSTS_PER_SERVER": "hosts",
    "POLITENESS_PAUSE_AFTER": "pause_after",
    "POLITENESS_PAUSE": "pause_s",
}
RULES = HOST_RULES | SERVER_RULES
LIMITS = frozenset({"POLITENESS_HOSTS_PER_SERVER", "POLITENESS_PAUSE_AFTER"})
"""Rules of which the smaller one is stricter."""


def _stricter(name: str, mine: float, other: float) -> float:
    if not 0 <= other < float("inf"):
        return mine
    if name not in LIMITS:
        return max(mine, other)
    return min((limit for limit in (mine, other) if limit > 0), default=0.0)


@dataclass(frozen=True, slots=True)
class FetchTiming:
    """What politeness needs to know of one request and its response.

    `failed`: no response, or one that says the server is in trouble. `sent`: when the request left,
    after its connection was made, which may have taken long; the host's delay counts from there.
    `jitter`, from 0 to 1, lengthens a back-off by up to a quarter, so that hosts which failed
    together don't all come back together. `took_s`: how long the server took by the system's own
    measure, if it is known; we may have noticed the end later.
    """

    started: float
    ended: float
    failed: bool = False
    retry_after_s: float | None = None
    sent: float | None = None
    jitter: float = 0.0
    took_s: float | None = None

    @property
    def response_time_s(self) -> float:
        """How long the server took."""
        if self.took_s is not None:
            return self.took_s
        return max(0.0, self.ended - self.started)


@dataclass(frozen=True, slots=True)
class HostClock:
    """When a host may be asked next.

    `next_at` is in seconds on the caller's clock; `reason` names the rule that set it.
    """

    next_at: float = 0.0
    reason: str = "new"
    failures: int = 0
    crawl_delay_s: float = 0.0

    def delay_s(self, rules: HostRules) -> float:
        return max(rules.delay_s, min(self.crawl_delay_s, rules.max_crawl_delay_s))

    def with_crawl_delay(self, seconds: float | None) -> HostClock:
        if seconds is None or not seconds > 0:
            return replace(self, crawl_delay_s=0.0)
        return replace(self, crawl_delay_s=seconds)

    def after_fetch(self, timing: FetchTiming, rules: HostRules) -> HostClock:
        """The clock after a request has ended: the rule with the latest time wins."""
        elapsed = timing.response_time_s
        delay = self.delay_s(rules)
        sent = timing.sent
        if sent is None:
            sent = timing.started
        delay_rule = "delay"
        if delay != rules.delay_s:
            delay_rule = "crawl-delay"
        times = {
            delay_rule: sent + delay,
            "slowdown": timing.ended + min(rules.slowdown * elapsed, rules.max_delay_s),
        }
        failures = 0
        if timing.failed:
            failures = self.failures + 1
            pause = max(delay, 1.0) * 2 ** min(failures, 20) * (1 + JITTER * timing.jitter)
            times["back-off"] = timing.ended + min(pause, rules.max_delay_s)
        if timing.retry_after_s is not None:
            retry_after_s = min(max(timing.retry_after_s, 0.0), rules.max_retry_after_s)
            times["retry-after"] = timing.ended + retry_after_s
        reason = max(times, key=lambda rule: times[rule])
        return replace(self, next_at=times[reason], reason=reason, failures=failures)

    def resting_until(self, at: float, reason: str) -> HostClock:
        """The clock with a pause until `at`, unless it rests longer already."""
        if at > self.next_at:
            return replace(self, next_at=at, reason=reason)
        return self

    def taken_over(self, now: float, rules: HostRules) -> HostClock:
        """The clock of a host whose worker died: a full delay from now."""
        return self.resting_until(now + self.delay_s(rules), "taken over")


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The pauses that all hosts of one address share.

    `asked`: the hosts that were asked since the last general pause, and how often: a *round*.
    `busy_at`: when the last request to one of them started or ended.
    """

    next_at: float = 0.0
    reason: str = "new"
    asked: Mapping[str, int] = field(default_factory=dict)
    busy_at: float = 0.0

    def after_start(self, now: float, rules: ServerRules) -> ServerClock:
        """The clock after a request to one of its hosts has gone out."""
        busy_at = max(self.busy_at, now)
        at = now + rules.delay_s
        if at > self.next_at:
            return ServerClock(at, "server delay", self.asked, busy_at)
        return ServerClock(self.next_at, self.reason, self.asked, busy_at)

    def counting(self, host: str, now: float, rules: ServerRules, *, idle: bool) -> ServerClock:
        """The clock with one more request to a host, which starts now. `idle`: no other is under
        way. A rest that was as long as a general pause was one: counting begins anew.
        """
        asked = self.asked
        if not rules.has_pauses:
            return replace(self, asked={}) if asked else self
        if idle and now - self.busy_at >= rules.pause_s:
            asked = {}
        return replace(self, asked={**asked, host: asked.get(host, 0) + 1})

    def may_ask(self, host: str, rules: ServerRules) -> bool:
        """Whether a host may be asked before the next general pause."""
        if not rules.has_pauses:
            return True
        if self.round_is_over(rules):
            return False
        return host in self.asked or len(self.asked) < rules.hosts

    def round_is_over(self, rules: ServerRules) -> bool:
        """Whether a general pause must come before any other request.

        The number of hosts is exceeded only where it had to be guessed, after a worker died.
        """
        if not rules.has_pauses:
            return False
        return len(self.asked) > rules.hosts or any(
            number >= rules.pause_after for number in self.asked.values()
        )

    def after_end(self, ended: float, rules: ServerRules) -> ServerClock:
        """The clock after a request has ended: a general pause counts from there."""
        later = ServerClock(self.next_at, self.reason, self.asked, max(self.busy_at, ended))
        if self.reason == GENERAL_PAUSE and ended < self.next_at:
            return later.resting_until(ended + rules.pause_s, GENERAL_PAUSE)
        return later

    def pausing(self, rules: ServerRules) -> ServerClock:
        """The clock with a general pause since it was last busy: all counters begin anew."""
        rested = self.resting_until(self.busy_at + rules.pause_s, GENERAL_PAUSE)
        return replace(rested, asked={})

    def resting_until(self, at: float, reason: str) -> ServerClock:
        """The clock with a pause until `at`, unless it rests longer already."""
        if at > self.next_at:
            return ServerClock(at, reason, self.asked, self.busy_at)
        return self
