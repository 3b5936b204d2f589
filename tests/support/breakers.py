"""Extensions that each break one rule of politeness, to see that it would be noticed. The log still
says that all are kept.

That a host is asked one at a time can't be broken in one place: Scrapy's own slots keep it as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crawlproj.fetch.handler import GuardedHandler
from crawlproj.politeness.clocks import FetchTiming, HostClock, HostRules, ServerClock
from crawlproj.scheduling.robots_lifecycle import RobotsLifecycle
from crawlproj.scheduling.window import ServerWindow
from middlewares.robots import RobotsMiddleware

RULE: dict[str, Callable[[], None]] = {}


def breaks(function: Callable[[], None]) -> Callable[[], None]:
    RULE[function.__name__] = function
    return function


def _after(change: Callable[[FetchTiming, HostRules], tuple[FetchTiming, HostRules]]) -> None:
    true = HostClock.after_fetch
    HostClock.after_fetch = lambda self, answer, rules: true(self, *change(answer, rules))  # type: ignore[method-assign]


@breaks
def host_delay() -> None:
    _after(lambda answer, rules: (replace(answer, sent=answer.started - rules.delay_s), rules))


@breaks
def forgotten_answers() -> None:
    """No clock is set and the log has no times, as when a middleware fails, or is switched off."""
    GuardedHandler._note_end = lambda self, request, response: None  # type: ignore[method-assign]


@breaks
def crawl_delay() -> None:
    HostClock.with_crawl_delay = lambda self, seconds: self  # type: ignore[method-assign]


@breaks
def slowdown() -> None:
    _after(lambda answer, rules: (answer, replace(rules, slowdown=0)))


@breaks
def retry_after() -> None:
    _after(lambda answer, rules: (replace(answer, retry_after_s=None, failed=False), rules))


@breaks
def back_off() -> None:
    _after(lambda answer, rules: (replace(answer, failed=False), rules))


@breaks
def server_delay() -> None:
    true = ServerClock.after_start
    ServerClock.after_start = lambda self, now, rules: true(self, now, replace(rules, delay_s=0))  # type: ignore[method-assign]


@breaks
def hosts_per_server() -> None:
    true = ServerWindow.ready_at

    def ready_at(self: ServerWindow) -> float | None:
        self.limit = 100
        return true(self)

    hosts_between_pauses()
    ServerWindow.ready_at = ready_at  # type: ignore[method-assign]


@breaks
def general_pause() -> None:
    ServerClock.pausing = lambda self, rules: replace(self, asked={})  # type: ignore[method-assign]


@breaks
def hosts_between_pauses() -> None:
    """A place in the round is found for every host."""
    ServerClock.may_ask = lambda self, host, rules: not self.round_is_over(rules)  # type: ignore[method-assign]
    true = ServerClock.round_is_over
    ServerClock.round_is_over = lambda self, rules: true(self, replace(rules, hosts=100))  # type: ignore[method-assign]


@breaks
def robots_first() -> None:
    RobotsLifecycle.robots_first = lambda self, host, ticket: ticket  # type: ignore[method-assign]
    RobotsMiddleware.process_request = lambda self, request: None  # type: ignore[method-assign]


@breaks
def robots_rules() -> None:
    RobotsMiddleware.process_request = lambda self, request: None  # type: ignore[method-assign]


class Breaker:
    """Breaks the rule that the setting BROKEN names."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Breaker:
        RULE[crawler.settings["BROKEN"]]()
        return cls()
