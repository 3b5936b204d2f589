"""The facts of `insight` in words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from crawlproj.formatting import format_count, format_duration, format_time, format_when
from crawlproj.frontier.base import State
from crawlproj.politeness.guard import NO_ADDRESS

ROBOTS = {
    "allowed": "robots.txt allows it",
    "forbidden": "robots.txt forbids it",
    "unreachable": "robots.txt could not be read, so it is not asked for now",
    "unknown": "robots.txt of this host was not read yet: it is the first thing that will be",
}
REASONS = {
    "delay": "the pause between two requests",
    "crawl-delay": "the pause that its robots.txt asks for",
    "slowdown": "its last answer was slow",
    "retry-after": "its server asked for it with Retry-After",
    "back-off": "it has failed",
    "taken over": "the worker before has died",
    "robots.txt unreachable": "its robots.txt could not be read",
    "server delay": "another host of the same address was asked",
    "general pause": "the general pause after many requests",
}


def url_in_words(facts: dict[str, Any], now: datetime) -> list[str]:
    lines = [facts["canonical"], *_forgotten(facts["forgotten"], now)]
    if facts["state"] is None and not facts["forgotten"]:
        lines.append(
            f"  Crawl {facts['crawl']} does not know it: no page that it has read links to it."
        )
    elif facts["state"] is not None:
        lines.append("  " + _state(facts, now))
        lines += _visits(facts, now)
        lines.append("  " + _origin(facts, now))
    read = f" (read {format_when(facts['robots_read'], now)})" if facts["robots_read"] else ""
    lines.append(f"  {ROBOTS[facts['robots']]}{read}.")
    return [*lines, *_host(facts["host"], now)]


def _forgotten(rule: dict[str, Any] | None, now: datetime) -> list[str]:
    if rule is None:
        return []
    reason = f": {rule['reason']}" if rule["reason"] else ""
    rest = "" if rule["ended"] else " The removal has not ended: do it again."
    return [
        f"  {rule['what']} was forgotten at {format_time(rule['asked'], now)}{reason}. It is not fetched "
        f"again.{rest}"
    ]


def _state(facts: dict[str, Any], now: datetime) -> str:
    why = f" ({facts['why']})" if facts["why"] else ""
    at = facts["next_visit"]
    if facts["lane"] == "urgent":
        return "It was pushed, and is fetched ahead of all others."
    texts = {
        State.NEW: f"It waits since {format_when(facts['first_seen'], now)} to be fetched for the first "
        "time.",
        State.WAITING: "It was read and is not visited again." + why,
        State.RETRY: f"It failed{why} and is tried again {_at(at, now)}; "
        f"{format_count(facts['tries'], 'try', 'tries')} so far.",
        State.DEAD: f"It failed{why} and is not tried again.",
        State.MOVED: f"It has moved to {facts['moved_to']}{why}.",
        State.GONE: f"It was gone{why} and is looked for once more {_at(at, now)}.",
        State.RETIRED: f"It is gone{why} and is only asked for again if a page links to it anew.",
        State.FORBIDDEN: f"It may not be fetched{why}.",
        State.IGNORED: f"It is left out{why}.",
    }
    if facts["state"] == State.WAITING and at is not None:
        pause = (
            f", {format_duration(facts['interval_s'])} after the last"
            if facts["interval_s"]
            else ""
        )
        late = " It is due." if at <= now else ""
        return (
            f"It was read and waits for its next visit at {format_when(at, now)}{pause}.{late}{why}"
        )
    return texts[State(facts["state"])]


def _at(at: datetime | None, now: datetime) -> str:
    return f"at {format_when(at, now)}" if at else "later"


def _visits(facts: dict[str, Any], now: datetime) -> list[str]:
    if facts["last_visit"] is None:
        return []
    answer = f"status {facts['status']}" if facts["status"] else "no answer"
    changed = f", {format_count(facts['changes'], 'change')} seen" if facts["changes"] else ""
    last = (
        f", its text is from {format_when(facts['last_change'], now)}"
        if facts["last_change"]
        else ""
    )
    return [
        f"  Last visit {format_when(facts['last_visit'], now)}: {answer}. "
        f"{format_count(facts['visits'], 'visit')}{changed}{last}."
    ]


def _origin(facts: dict[str, Any], now: datetime) -> str:
    where = (
        f"found on {facts['parent']}"
        if facts["parent"]
        else "a seed"
        if facts["depth"] == 0
        else "found in a sitemap"
    )
    depth = (
        f"{format_count(facts['depth'], 'click')} from a seed"
        if facts["depth"]
        else "where the crawl begins"
    )
    return (
        f"Known since {format_time(facts['first_seen'], now)}, {where}, {depth}, score "
        f"{facts['score']:.3g}."
    )


def _host(facts: dict[str, Any], now: datetime) -> list[str]:
    if facts["address"] is None:
        return [f"  Host {facts['name']} was not asked yet."]
    at = facts["next_allowed"]
    why = f" ({_reason(facts)})" if facts["reason"] else ""
    rest = f"rests until {format_when(at, now)}{why}" if at and at > now else "may be asked now"
    source = (
        "Crawl-delay of its robots.txt"
        if facts["delay_source"] == "robots.txt"
        else "setting POLITENESS_DELAY"
    )
    place = (
        "(no address found)"
        if facts["address"].startswith(NO_ADDRESS)
        else f"at {facts['address']}"
    )
    line = (
        f"  Host {facts['name']} {place} {rest}; {format_duration(facts['delay_s'])} between two "
        f"requests: {source}."
    )
    if facts["leased_by"]:
        line += (
            f" A running crawl has it (worker {facts['leased_by']}), and knows its clock better."
        )
    return [line]


def _reason(facts: dict[str, Any]) -> str:
    text = REASONS.get(facts["reason"], facts["reason"])
    return (
        f"{text}, {format_count(facts['failures'], 'failure')} in a row"
        if facts["reason"] == "back-off"
        else text
    )


def host_in_words(facts: dict[str, Any], now: datetime) -> list[str]:
    lines = [facts["host"]["name"], *_forgotten(facts["forgotten"], now)]
    if not facts["known"]:
        lines.append(f"  Crawl {facts['crawl']} knows no URL of this host.")
    else:
        states = ", ".join(
            f"{number:,} {name}"
            for name, number in facts["urls"].items()
            if number and name != "known"
        )
        lines.append(f"  {format_count(facts['urls']['known'], 'URL')} known: {states}.")
        due = "Nothing is due now"
        if facts["due_now"]:
            due = f"{format_count(facts['due_now'], 'URL')} due now"
        if facts["next_due"]:
            due += f", the next at {format_when(facts['next_due'], now)}"
        lines.append(f"  {due}.")
    for row in facts["robots"]:
        answer = f"status {row['status']}" if row["status"] else "no answer"
        times = f"read {format_when(row['fetched'], now)}, again {format_when(row['expires'], now)}"
        lines.append(f"  robots.txt of {row['origin']}: {answer}, {times}.")
    return [*lines, *_host(facts["host"], now)]
