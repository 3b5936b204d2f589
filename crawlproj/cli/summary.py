"""What a crawl did, for whoever started it: the last thing on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from crawlproj.formatting import format_count, format_duration, format_when, shorten_line
from crawlproj.frontier.base import Outlook
from crawlproj.scheduling.snapshot import Tally

ENDINGS = {
    "finished": "nothing more is due soon",
    "shutdown": "it was stopped; what it knows is safe, and the next run goes on from here",
    "cancelled": "the spider ended it",
    "closespider_timeout": "the time that it was given is over",
    "closespider_timeout_no_item": "no page came for too long",
    "closespider_pagecount": "it has fetched as many pages as it was told to",
    "closespider_itemcount": "it has fetched as many pages as it was told to",
    "closespider_errorcount": "there were too many errors",
    "memusage_exceeded": "it needed too much memory",
    "scheduler_error": "something in the crawler broke (see the log); what it knows is safe",
    "database_lost": "the database was lost; what was not stored is fetched again by the next run",
    "archive_lost": "the archive could not be written; what was not stored is fetched again by the "
    "next run",
}
ADVICE = {
    "forbidden/guard": "private addresses are refused unless GUARD_ALLOW_PRIVATE=1; all others "
    "need ROBOT_CONTACT",
    "failed/dns": "the name of the host could not be resolved",
    "failed/refused": "no server listens there",
    "failed/unreachable": "the server could not be reached",
    "failed/too_big": "longer than DOWNLOAD_MAXSIZE",
}
TOP = 4


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """Everything that the summary is made of."""

    crawl: str
    reason: str
    elapsed_s: float
    tally: Tally
    now: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    outlook: Outlook = field(default_factory=Outlook)
    examples: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


def format_summary(end: CrawlSummary, width: int = 100) -> list[str]:
    why = ENDINGS.get(end.reason, f"reason: {end.reason}")
    lines = ["", f"Crawl {end.crawl} ended after {format_duration(end.elapsed_s)}: {why}.", ""]
    lines += _pages(end, width)
    lines += _known(end)
    lines += ["", *(f"  {name:<10} {place}" for name, place in end.places.items())]
    if end.commands:
        size = max(map(len, end.commands))
        lines += [
            "",
            "Try next:",
            *(f"  {what:<{size}}  {command}" for what, command in end.commands.items()),
        ]
    return lines


def _pages(end: CrawlSummary, width: int) -> list[str]:
    tally = end.tally
    if not tally.urls_ended and not tally.robots_unreachable:
        return ["  Nothing was due, so nothing was fetched."]
    parts = [(tally.new, "new"), (tally.changed, "changed"), (tally.unchanged, "unchanged")]
    detail = ", ".join(f"{number:,} {name}" for number, name in parts if number)
    rate = (
        f", {tally.pages_read / end.elapsed_s:.1f} a second"
        if tally.pages_read and end.elapsed_s >= 1
        else ""
    )
    lines = [f"  {'Pages':<10} {tally.pages_read:>6,}  {detail}{rate}".rstrip()]
    if tally.moved:
        lines.append(
            f"  {'Moved':<10} {tally.moved:>6,}  redirects; where they lead was fetched instead"
        )
    for area, total in (
        ("gone", tally.gone),
        ("forbidden", tally.forbidden),
        ("failed", tally.failed),
    ):
        if total:
            lines += _reasons(end, area, total, width=width)
    if tally.robots_unreachable:
        lines.append(
            f"  {'robots.txt':<10} {tally.robots_unreachable:>6,}  could not be read: these hosts "
            "are left alone for now"
        )
    return lines


def _reasons(end: CrawlSummary, area: str, total: int, width: int) -> list[str]:
    reasons = sorted(end.tally.reasons[area].items(), key=lambda pair: -pair[1])
    lines = []
    label = f"  {area.capitalize():<10} {total:>6,}"
    for reason, number in reasons[:TOP]:
        name = f"{area}/{reason.replace(' ', '_')}"
        example = end.examples.get(name, "")
        advice = f" ({ADVICE[name]})" if name in ADVICE else ""
        text = f"{reason}{advice} {number:,} x" if number > 1 else f"{reason}{advice}"
        text += (
            f", such as {example}" if example and number > 1 else f": {example}" if example else ""
        )
        lines.append(f"{label}  {shorten_line(text, max(40, width - 21))}")
        label = " " * 19
    if len(reasons) > TOP:
        rest = sum(number for _, number in reasons[TOP:])
        lines.append(
            f"{label}  and {rest:,} for {format_count(len(reasons) - TOP, 'other reason')}: see the log"
        )
    return lines


def _known(end: CrawlSummary) -> list[str]:
    counts = end.counts
    outlook = end.outlook
    if not counts:
        return []
    lines = ["", f"  {format_count(counts['known'], 'URL')} known in all. Of them:"]
    first = _first(outlook.next_visit, end.now)
    soon = "" if counts["new"] else _first(outlook.soonest, end.now)
    if counts["new"]:
        lines.append(
            f"    {format_count(counts['new'], 'waits', 'wait')} to be fetched for the first time"
        )
    if counts["waiting"]:
        read = format_count(counts["waiting"], "page was read; it is", "pages were read; they are")
        lines.append(f"    {read} visited again{first}")
    if counts["retry"]:
        lines.append(f"    {counts['retry']:,} failed and will be tried again{soon}")
    ended = {
        "moved": ("has moved", "have moved"),
        "gone": ("is gone", "are gone"),
        "forbidden": ("may not be fetched",) * 2,
        "retired": ("is gone for good", "are gone for good"),
        "dead": ("failed for good",) * 2,
        "ignored": ("is left out (depth or quota)", "are left out (depth or quota)"),
    }
    rest = [
        format_count(counts[state], *words) for state, words in ended.items() if counts.get(state)
    ]
    if rest:
        lines.append(f"    {', '.join(rest)}")
    return lines


def _first(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return f", the first at {format_when(at, now)}" if at > now else ", some are due now"
