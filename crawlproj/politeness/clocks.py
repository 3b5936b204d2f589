"""Clocks say when a host or a server may be asked next, and why not earlier. Pure values: times go
in, the next time and its reason come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

JITTER = 0.25


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

    After `pause_after` requests to one of its hosts (0: never) it rests for `pause_s`.
    """

    delay_s: float = 0.5
    hosts: int = 4
    pause_after: int = 500
    pause_s: float = 300.0


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

    `next_at` is in seconds on the caller's clock; `reason` names the rule that set it;
    `request_count` counts the requests since the last general pause.
    """

    next_at: float = 0.0
    reason: str = "new"
    failures: int = 0
    request_count: int = 0
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
        return replace(
            self,
            next_at=times[reason],
            reason=reason,
            failures=failures,
            request_count=self.request_count + 1,
        )

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
    """The pauses that all hosts of one address share."""

    next_at: float = 0.0
    reason: str = "new"

    def after_start(self, now: float, rules: ServerRules) -> ServerClock:
        """The clock after a request to one of its hosts has gone out."""
        return self.resting_until(now + rules.delay_s, "server delay")

    def after_fetch(
        self, host: HostClock, ended: float, rules: ServerRules
    ) -> tuple[ServerClock, HostClock]:
        """The clocks of server and host after a request: a general pause if it was one of many.

        The host's own clock is set already (`HostClock.after_fetch`).
        """
        if not rules.pause_after or host.request_count < rules.pause_after:
            return self, host
        resting = self.resting_until(ended + rules.pause_s, "general pause")
        return resting, replace(host, request_count=0)

    def resting_until(self, at: float, reason: str) -> ServerClock:
        """The clock with a pause until `at`, unless it rests longer already."""
        if at > self.next_at:
            return ServerClock(at, reason)
        return self
