"""When may this host, this server be asked next, and why. Pure values: times go in, the next time
and its reason come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

JITTER = 0.25


@dataclass(frozen=True, slots=True)
class HostRules:
    """What the settings say about every host, in seconds."""

    delay_s: float = 2.0
    slowdown: float = 5.0
    max_delay_s: float = 60.0
    max_crawl_delay_s: float = 300.0
    max_retry_after_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ServerRules:
    """What the settings say about every server. After `pause_after` requests to one of its hosts
    (0: never) it rests `pause_s`.
    """

    delay_s: float = 0.5
    hosts: int = 4
    pause_after: int = 500
    pause_s: float = 300.0


@dataclass(frozen=True, slots=True)
class FetchTiming:
    """What politeness needs to know of one exchange. `failed`: no answer, or one that says the
    server is in trouble. `sent`: when the request left, after its connection was made, which may
    have taken long; the host's delay counts from there. `luck`, from 0 to 1, lengthens a back-off
    by up to a quarter, so that hosts which failed together don't all come back together.
    """

    started: float
    ended: float
    failed: bool = False
    retry_after_s: float | None = None
    sent: float | None = None
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class HostClock:
    """`next_at` on the caller's clock in seconds; `reason` names the rule that set it; `asked`
    counts the requests since the last general pause.
    """

    next_at: float = 0.0
    reason: str = "new"
    failures: int = 0
    request_count: int = 0
    crawl_delay_s: float = 0.0

    def delay_s(self, rules: HostRules) -> float:
        return max(rules.delay_s, min(self.crawl_delay_s, rules.max_crawl_delay_s))

    def with_crawl_delay(self, seconds: float | None) -> HostClock:
        return replace(self, crawl_delay_s=seconds if seconds and seconds > 0 else 0.0)

    def after_fetch(self, timing: FetchTiming, rules: HostRules) -> HostClock:
        """The clock after an exchange: the latest of all rules wins."""
        failures = self.failures + 1 if timing.failed else 0
        elapsed = max(0.0, timing.ended - timing.started)
        delay = self.delay_s(rules)
        sent = timing.started if timing.sent is None else timing.sent
        times = {"delay" if delay == rules.delay_s else "crawl-delay": sent + delay}
        times["slowdown"] = timing.ended + min(rules.slowdown * elapsed, rules.max_delay_s)
        if failures:
            pause = max(delay, 1.0) * 2 ** min(failures, 20) * (1 + JITTER * timing.jitter)
            times["back-off"] = timing.ended + min(pause, rules.max_delay_s)
        if timing.retry_after_s is not None:
            times["retry-after"] = timing.ended + min(
                max(timing.retry_after_s, 0.0), rules.max_retry_after_s
            )
        reason = max(times, key=lambda name: times[name])
        return replace(
            self,
            next_at=times[reason],
            reason=reason,
            failures=failures,
            request_count=self.request_count + 1,
        )

    def resting_until(self, at: float, reason: str) -> HostClock:
        return replace(self, next_at=at, reason=reason) if at > self.next_at else self

    def taken_over(self, now: float, rules: HostRules) -> HostClock:
        """After a worker that died: a full delay from now."""
        return self.resting_until(now + self.delay_s(rules), "taken over")


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The pauses that all hosts of one address share."""

    next_at: float = 0.0
    reason: str = "new"

    def after_start(self, now: float, rules: ServerRules) -> ServerClock:
        """A request to one of its hosts has gone out."""
        return self.resting_until(now + rules.delay_s, "server delay")

    def after_fetch(
        self, host: HostClock, ended: float, rules: ServerRules
    ) -> tuple[ServerClock, HostClock]:
        """The clocks after an exchange with a host whose own clock is set already: a general pause
        if it was asked often enough.
        """
        if not rules.pause_after or host.request_count < rules.pause_after:
            return self, host
        return self.resting_until(ended + rules.pause_s, "general pause"), replace(
            host, request_count=0
        )

    def resting_until(self, at: float, reason: str) -> ServerClock:
        return ServerClock(at, reason) if at > self.next_at else self
