"""The facts that `facts.url_facts` and `facts.host_facts` collect, as sentences."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any, NamedTuple

from crawlproj.formatting import (
    format_count,
    format_duration,
    format_share,
    format_time,
    format_when,
)
from crawlproj.frontier.base import State
from crawlproj.politeness.guard import NO_ADDRESS
from crawlproj.reports.changes import change_lines
from crawlproj.reports.facts import LEFT_OUT

ROBOTS = {
    "allowed": "robots.txt allows it",
    "forbidden": "robots.txt forbids it",
    "unreachable": "robots.txt could not be read, so it is not asked for now",
    "unknown": "robots.txt of this host was not read yet: it is the first thing that will be",
}
LEFT_OUT_REASONS = {
    "host": "its host is outside of the scope",
    "domain hosts": "its domain has as many hosts already as links may add",
    "include": "the pattern that it must have is not found in it",
    "exclude": "a pattern that it must not have is found in it",
    "rule": "a rule of its site ignores it",
    "suffix": "it is media by its suffix: links to it are recorded, not followed",
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


LANGUAGES = {"und": "unknown"}


class WayIn(NamedTuple):
    """How a URL was found, in words: before the page that it was found on, and if that is not known
    (any more).
    """

    on_parent: str
    alone: str


WAYS_IN = {
    "seed": WayIn("a seed, also found on", "a seed"),
    "link": WayIn("found by a link on", "found by a link"),
    "feed": WayIn("listed in the feed", "listed in a feed"),
    "sitemap": WayIn("listed in the sitemap", "listed in a sitemap"),
    "robots": WayIn("named in robots.txt of", "a sitemap that a robots.txt names"),
    "push": WayIn("pushed, also found on", "pushed"),
    "redirect": WayIn("found by a redirect of", "found by a redirect"),
    "request": WayIn("requested by the spider on", "requested by the spider"),
    "import": WayIn("imported, also found on", "imported from a WARC file"),
    "named_feed": WayIn(
        "a feed outside of the scope that is named by", "a feed outside of the scope"
    ),
    "probe": WayIn(
        "asked for to see how its server answers for pages that are gone, because of",
        "asked for to see how its server answers for pages that are gone",
    ),
}


def url_in_words(facts: dict[str, Any], now: datetime) -> list[str]:
    """Lines that say what is known of a URL and what happens to it next."""
    lines = [facts["canonical"], *_forgotten_lines(facts["forgotten"], now)]
    if facts["state"] == LEFT_OUT:
        lines += _left_out_lines(facts, now)
    elif facts["state"] is not None:
        lines.append("  " + _state_sentence(facts, now))
        lines += _visit_lines(facts, now)
        lines += change_lines(facts, now)
        lines += _text_lines(facts)
        lines.append("  " + _origin_sentence(facts, now))
    elif not facts["forgotten"]:
        lines.append(
            f"  Crawl {facts['crawl']} does not know it: no page that it has read links to it."
        )
    robots = ROBOTS[facts["robots"]]
    if facts["robots_read"]:
        robots += f" (read {format_when(facts['robots_read'], now)})"
    lines.append(f"  {robots}.")
    return [*lines, *_host_lines(facts["host"], now)]


def host_in_words(facts: dict[str, Any], now: datetime) -> list[str]:
    """Lines that say what is known of a host and when it may be asked again."""
    lines = [facts["host"]["name"], *_forgotten_lines(facts["forgotten"], now)]
    if facts["state"] == LEFT_OUT:
        lines += _left_out_lines(facts, now)
    elif not facts["known"]:
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
        times = f"read {format_when(row['fetched'], now)}, again {format_when(row['expires'], now)}"
        lines.append(f"  robots.txt of {row['origin']}: {_status_words(row['status'])}, {times}.")
    return [*lines, *_host_lines(facts["host"], now)]


def _left_out_lines(facts: dict[str, Any], now: datetime) -> list[str]:
    reason = LEFT_OUT_REASONS[facts["why"]]
    lines = [f"  It is not part of crawl {facts['crawl']}: {reason} ({facts['rule']})."]
    if facts["first_link"]:
        first = format_when(facts["first_seen"], now)
        lines.append(f"  A link led to {facts['first_link']} first {first}.")
    return lines


def _forgotten_lines(rule: dict[str, Any] | None, now: datetime) -> list[str]:
    if rule is None:
        return []
    line = f"  {rule['what']} was forgotten at {format_time(rule['asked'], now)}"
    if rule["reason"]:
        line += f": {rule['reason']}"
    line += ". It is not fetched again."
    if not rule["ended"]:
        line += " The removal has not ended: do it again."
    return [line]


def _state_sentence(facts: dict[str, Any], now: datetime) -> str:
    if facts["pushed"]:
        return "It was pushed, and is fetched ahead of all others."
    if facts["lane"] == "urgent":
        return "A run has started with it, and asks for it again before all others."
    state = State(facts["state"])
    next_visit = facts["next_visit"]
    if state == State.WAITING and next_visit is not None:
        return _revisit_sentence(facts, now)
    why = _why(facts)
    at = "later"
    if next_visit:
        at = f"at {format_when(next_visit, now)}"
    first_seen = format_when(facts["first_seen"], now)
    tries = format_count(facts["tries"], "try", "tries")
    sentences = {
        State.NEW: f"It waits since {first_seen} to be fetched for the first time.",
        State.WAITING: f"It was read and is not visited again.{why}",
        State.RETRY: f"It failed{why} and is tried again {at}; {tries} so far.",
        State.DEAD: f"It failed{why} and is not tried again.",
        State.MOVED: f"It has moved to {facts['moved_to']}{why}.",
        State.GONE: f"It was gone{why} and is looked for once more {at}.",
        State.RETIRED: f"It is gone{why} and is only asked for again if a page links to it anew.",
        State.FORBIDDEN: _forbidden_sentence(facts, why),
        State.IGNORED: f"It is left out{why}.",
    }
    return sentences[state]


def _forbidden_sentence(facts: dict[str, Any], why: str) -> str:
    """Who forbids it: the server that was asked, or we ourselves, who did not ask."""
    if facts["status"]:
        return f"The server refuses it{why}."
    return f"It may not be fetched{why}."


def _revisit_sentence(facts: dict[str, Any], now: datetime) -> str:
    next_visit = facts["next_visit"]
    sentence = f"It was read and waits for its next visit at {format_when(next_visit, now)}"
    if facts["interval_s"]:
        sentence += f", {format_duration(facts['interval_s'])} after the last"
    sentence += "."
    if next_visit <= now:
        sentence += " It is due."
    return sentence + _why(facts)


def _why(facts: dict[str, Any]) -> str:
    if not facts["why"]:
        return ""
    return f" ({facts['why']})"


def _visit_lines(facts: dict[str, Any], now: datetime) -> list[str]:
    if facts["last_visit"] is None:
        return []
    last_visit = format_when(facts["last_visit"], now)
    line = f"  Last visit {last_visit}: {_status_words(facts['status'])}. "
    line += format_count(facts["visits"], "visit")
    if facts["changes"]:
        line += f", {format_count(facts['changes'], 'change')} seen"
    if facts["last_change"]:
        line += f", its text is from {format_when(facts['last_change'], now)}"
    return [f"{line}."]


def _text_lines(facts: dict[str, Any]) -> list[str]:
    """What is kept of its text, and of which page it is a copy."""
    lines = []
    if facts["text"]:
        line = f"  Its text is kept: {format_count(facts['words'], 'word')} in "
        line += format_count(facts["text"]["blocks"], "block")
        if facts["language"]:
            line += f", language {LANGUAGES.get(facts['language'], facts['language'])}"
        lines.append(f"{line}.")
    if facts["links"] and facts["links"]["all"]:
        links = facts["links"]
        line = f"  Its links are stored: {format_count(links['all'], 'link')}"
        if links["inside"]:
            line += f", {links['inside']} to pages of the crawl"
        if links["nofollow"]:
            line += f", {links['nofollow']} not to be followed"
        lines.append(f"{line}.")
    if facts["duplicate_kind"]:
        lines.append(f"  {copy_sentence(facts)}")
    elif facts["known_share"]:
        share = format_share(facts["known_share"])
        lines.append(f"  {share} of its long paragraphs stand on other pages, too.")
    if facts["copies"]:
        copies = format_count(facts["copies"], "other page is a copy", "other pages are copies")
        lines.append(f"  {copies} of it: scrapy duplicates {shlex.quote(facts['canonical'])}")
    return lines


def copy_sentence(facts: dict[str, Any]) -> str:
    """How a page was found to be a copy, and of which."""
    original = facts["duplicate_of"] or "a page that is not known any more"
    share = format_share(facts["similarity"])
    sentences = {
        "exact": f"It is a copy: byte for byte the same as {original}.",
        "text": f"It is a copy: the same text as {original}.",
        "near": f"It is a copy: {share} of its text is the same as that of {original}.",
        "paragraph": f"It is a copy: {share} of its long paragraphs stand elsewhere, most of them "
        f"on {original}.",
    }
    return sentences[facts["duplicate_kind"]]


def _status_words(status: int | None) -> str:
    if not status:
        return "no answer"
    return f"status {status}"


def _origin_sentence(facts: dict[str, Any], now: datetime) -> str:
    where = _way_in(facts)
    if facts["depth"]:
        depth = f"{format_count(facts['depth'], 'click')} from a seed"
    else:
        depth = "where the crawl begins"
    since = format_time(facts["first_seen"], now)
    return f"Known since {since}, {where}, {depth}, score {facts['score']:.3g}."


def _way_in(facts: dict[str, Any]) -> str:
    """How the URL was found; a database from before this was stored knows the parent only."""
    parent = facts["parent"]
    found = WAYS_IN.get(facts["found"] or "")
    if found is not None and parent:
        return f"{found.on_parent} {parent}"
    if found is not None:
        return found.alone
    if parent:
        return f"found on {parent}"
    if facts["depth"] == 0:
        return "a seed"
    return "found in a way that was not stored"


def _host_lines(facts: dict[str, Any], now: datetime) -> list[str]:
    if facts["address"] is None:
        return [f"  Host {facts['name']} was not asked yet."]
    address = f"at {facts['address']}"
    if facts["address"].startswith(NO_ADDRESS):
        address = "(no address found)"
    rest = "may be asked now"
    if facts["next_allowed"] and facts["next_allowed"] > now:
        rest = f"rests until {format_when(facts['next_allowed'], now)}{_rest_reason(facts)}"
    delay = format_duration(facts["delay_s"])
    delay_source = "setting POLITENESS_DELAY"
    if facts["delay_source"] == "robots.txt":
        delay_source = "Crawl-delay of its robots.txt"
    line = f"  Host {facts['name']} {address} {rest}; {delay} between two requests: {delay_source}."
    if facts["leased_by"]:
        line += (
            f" A running crawl has it (worker {facts['leased_by']}), and knows its clock better."
        )
    return [line]


def _rest_reason(facts: dict[str, Any]) -> str:
    reason = facts["reason"]
    if not reason:
        return ""
    words = REASONS.get(reason, reason)
    if reason == "back-off":
        words += f", {format_count(facts['failures'], 'failure')} in a row"
    return f" ({words})"
