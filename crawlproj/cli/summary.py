"""The summary of a crawl that has ended: the last thing on the screen."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from textwrap import wrap

from crawlproj.articles.delays import Delays
from crawlproj.formatting import (
    format_count,
    format_duration,
    format_share,
    format_when,
    printable,
    shorten_line,
)
from crawlproj.frontier.base import Outlook
from crawlproj.scheduling.snapshot import Tally
from crawlproj.scheduling.time_use import Use, percentages

ENDINGS = {
    "finished": "nothing more was due",
    "unresolved": "no name of a host could be resolved; the next run tries again",
    "shutdown": "it was stopped; what it knows is safe, and the next run goes on from here",
    "cancelled": "the spider ended it",
    "closespider_timeout": "the time that it was given is over",
    "closespider_timeout_no_item": "no item came for too long",
    "closespider_pagecount": "it has fetched as many pages as it was told to",
    "closespider_pagecount_no_item": "too many pages came without an item",
    "closespider_itemcount": "it has as many items as it was told to collect",
    "closespider_errorcount": "there were too many errors",
    "memusage_exceeded": "it needed too much memory",
    "scheduler_error": "something in the crawler broke (see the log); what it knows is safe",
    "database_lost": "the database was lost; what was not stored is fetched again by the next run",
    "archive_lost": "the archive could not be written; what was not stored is fetched again by the "
    "next run",
}
ADVICE = {
    "forbidden/status_401": "the server wants a password",
    "forbidden/status_403": "the server refuses",
    "forbidden/status_407": "a proxy wants a password",
    "forbidden/status_451": "the server refuses, for legal reasons",
    "forbidden/guard": "private addresses are refused unless GUARD_ALLOW_PRIVATE=1; all others "
    "need ROBOT_CONTACT",
    "forbidden/port": "browsers refuse this port too: what listens there is no web server",
    "failed/dns": "the name of the host could not be resolved",
    "failed/refused": "no server listens there",
    "failed/unreachable": "the server could not be reached",
    "failed/too_big": "longer than DOWNLOAD_MAXSIZE",
}
ENDED_WORDS = {
    "moved": ("has moved", "have moved"),
    "gone": ("is gone", "are gone"),
    "forbidden": ("is refused (by server or robots.txt)", "are refused (by server or robots.txt)"),
    "retired": ("is gone for good", "are gone for good"),
    "dead": ("failed for good", "failed for good"),
    "ignored": (
        "is left out (depth, quota, scope, or no articles there)",
        "are left out (depth, quota, scope, or no articles there)",
    ),
}
"""States in which URLs are not fetched again soon: what one does, what several do."""
COLUMNS = re.compile(r" *[A-Z][\w.]* +(?:[\d,]+  )?| *")
"""The first columns of a line: a label, and perhaps a number."""
USES = {
    Use.SERVERS: "waiting for servers",
    Use.CLOCKS: "in politeness pauses",
    Use.READING: "reading pages",
    Use.DATABASE: "waiting for the database",
    Use.STORING: "storing",
    Use.IDLE: "nothing due",
}
SLOW = 3
"""So many sites are named whose articles were fetched latest."""
SOURCES = {"sitemap index": "sitemap indexes"}
"""Kinds of sources whose plural is irregular."""
EXAMPLES = {"Silent": "sources/silent", "Lacking": "sources/disagreeing"}
TOP = 4
"""How many reasons are listed in each area."""


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """Everything that the summary is made of.

    `counts` are URLs by state, `examples` a URL for each `area/reason`, `locations` where log,
    archive and database are, `commands` what a user may type next.
    """

    crawl: str
    reason: str
    elapsed_s: float
    tally: Tally
    now: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0
    """Hosts that links lead to and that are not part of the crawl."""
    outlook: Outlook = field(default_factory=Outlook)
    examples: Mapping[str, str] = field(default_factory=dict)
    locations: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    freshness: float | None = None
    age_s: float | None = None
    """How fresh the copies are by estimate; None: nobody has looked."""
    delays: Delays | None = None
    """How soon new articles were fetched; None: nobody can tell."""
    slow_sites: Sequence[tuple[str, Delays]] = ()
    """The same of each site, the slowest first."""
    articles_of_day: int | None = None
    """How many articles the crawl has found in the last 24 hours."""
    source_kinds: Mapping[str, int] = field(default_factory=dict)
    """How many sources it has of each kind."""
    notices: Sequence[str] = ()
    """What is different in this run."""
    time_use: Mapping[Use, float] = field(default_factory=dict)
    """Seconds that were used for this and that."""


def format_summary(summary: CrawlSummary, width: int = 100) -> list[str]:
    """The lines of a summary, none longer than `width` but for a path or command, which stay whole
    so that they can be copied.
    """
    why = ENDINGS.get(summary.reason, f"reason: {summary.reason}")
    elapsed = format_duration(summary.elapsed_s)
    lines = ["", f"Crawl {summary.crawl} ended after {elapsed}: {why}.", ""]
    lines += _visited_lines(summary, width)
    lines += _delay_lines(summary.delays, summary.slow_sites)
    lines += _freshness_lines(summary)
    lines += _source_lines(summary)
    lines += _time_lines(summary.time_use, width)
    lines += _known_lines(summary)
    lines += [f"  {'Note':<10} {'':>6}  {notice}" for notice in summary.notices]
    lines.append("")
    for name, location in summary.locations.items():
        lines.append(f"  {name:<10} {location}")
    wrapped = [part for line in lines for part in _wrap_line(line, width)]
    return wrapped + _command_lines(summary.commands, width)


def _wrap_line(line: str, width: int) -> list[str]:
    """The line in several, if it is too long: those that follow begin below its text."""
    if len(line) <= width:
        return [line]
    columns = COLUMNS.match(line)
    indent = 0
    if columns is not None:
        indent = min(columns.end(), width // 2)
    return textwrap.wrap(
        line,
        width,
        drop_whitespace=True,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command_lines(commands: Mapping[str, str], width: int) -> list[str]:
    """What to type next: in two columns; a command that does not fit is below what it is for."""
    if not commands:
        return []
    size = max(map(len, commands))
    lines = ["", "Try next:"]
    for what, command in commands.items():
        if size + len(command) + 4 <= width:
            lines.append(f"  {what:<{size}}  {command}")
        else:
            lines += [f"  {what}:", f"    {command}"]
    return lines


def _visited_lines(summary: CrawlSummary, width: int) -> list[str]:
    """What came of this crawl's visits."""
    tally = summary.tally
    if not tally.urls_ended and not tally.robots_unreachable:
        return ["  Nothing was due, so nothing was fetched."]
    parts = [(tally.new, "new"), (tally.changed, "changed"), (tally.unchanged, "unchanged")]
    detail = ", ".join(f"{number:,} {name}" for number, name in parts if number)
    if tally.pages_read and summary.elapsed_s >= 1:
        detail += f", {tally.pages_read / summary.elapsed_s:.1f} a second"
    lines = [f"  {'Pages':<10} {tally.pages_read:>6,}  {detail}".rstrip()]
    if tally.articles.found:
        lines.append(_article_line(tally, summary.articles_of_day))
    if tally.copies:
        number = sum(tally.copies.values())
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.copies.items())
        lines.append(f"  {'Copies':<10} {number:>6,}  of other pages: {kinds}")
    if tally.moved:
        lines.append(
            f"  {'Moved':<10} {tally.moved:>6,}  redirects; where they lead was fetched instead"
        )
    if tally.gone:
        lines += _reason_lines(summary, "gone", tally.gone, width=width)
    if tally.forbidden:
        lines += _reason_lines(summary, "forbidden", tally.forbidden, width=width)
    if tally.failed:
        lines += _reason_lines(summary, "failed", tally.failed, width=width)
    label = "Limited"
    for words, number in tally.limited.items():
        lines.append(f"  {label:<10} {number:>6,}  {words}: see the log")
        label = ""
    if tally.media:
        lines.append(
            f"  {'Media':<10} {tally.media:>6,}  links to pictures, archives and the like: "
            "recorded, not fetched"
        )
    if tally.robots_unreachable:
        lines.append(
            f"  {'robots.txt':<10} {tally.robots_unreachable:>6,}  could not be read: these hosts "
            "are left alone for now"
        )
    return lines


def _freshness_lines(summary: CrawlSummary) -> list[str]:
    """How fresh the copies are, and how many revisits were worth it."""
    tally = summary.tally
    lines = []
    if summary.freshness is not None and summary.age_s is not None:
        share = format_share(summary.freshness)
        age = format_duration(summary.age_s)
        lines.append(
            f"  {'Fresh':<10} {'':>6}  {share} of the copies are up to date by estimate, their "
            f"mean age is {age} (age: how long a copy has lacked a change, 0 if it lacks none)"
        )
    if tally.revisits:
        text = f"{tally.changed:,} found a change, {tally.unchanged:,} wasted "
        text += f"({format_share(tally.unchanged / tally.revisits)})"
        if tally.noise:
            text += f", {tally.noise:,} of them met only clocks, adverts and the like"
        if tally.change_ratio is not None:
            text += f"; change ratio by weight {format_share(tally.change_ratio)}"
        lines.append(f"  {'Revisits':<10} {tally.revisits:>6,}  {text}")
    if tally.set_aside:
        lines.append(
            f"  {'Set aside':<10} {tally.set_aside:>6,}  answers that can't be the page (walls, "
            "soft 404): what is stored stays"
        )
    return lines


def _delay_lines(delays: Delays | None, slow_sites: Sequence[tuple[str, Delays]]) -> list[str]:
    """How soon new articles were fetched after they were published."""
    if delays is None:
        return []
    half = format_duration(delays.p50_s)
    most = format_duration(delays.p95_s)
    if delays.number == 1:
        text = f"the new article was fetched {half} after its publication"
    else:
        text = f"half of {delays.number:,} new articles were fetched within {half} of their "
        text += f"publication, 95 % within {most}"
    lines = [f"  {'Delay':<10} {'':>6}  {text}"]
    if len(slow_sites) > 1:
        names = (
            f"{printable(site)} {format_duration(own.p50_s)}" for site, own in slow_sites[:SLOW]
        )
        lines.append(f"{'':<19}  half within, the slowest sites: {', '.join(names)}")
    return lines


def _source_lines(summary: CrawlSummary) -> list[str]:
    """Where new pages are found, and which sources may miss some."""
    tally = summary.tally
    lines = []
    if summary.source_kinds:
        kinds = ", ".join(
            format_count(number, kind, SOURCES.get(kind, ""))
            for kind, number in summary.source_kinds.items()
        )
        number = sum(summary.source_kinds.values())
        lines.append(f"  {'Sources':<10} {number:>6,}  where new pages are found: {kinds}")
    missing = [
        ("Silent", tally.silent_sources, "brings nothing any more", "bring nothing any more"),
        (
            "Lacking",
            tally.disagreeing_sources,
            "lists nothing of what others of its site bring",
            "list nothing of what others of their sites bring",
        ),
    ]
    for label, number, one, many in missing:
        if not number:
            continue
        text = f"{'source' if number == 1 else 'sources'} {one if number == 1 else many}"
        example = summary.examples.get(EXAMPLES[label], "")
        if example:
            text += f": {example}" if number == 1 else f", such as {example}"
        lines.append(f"  {label:<10} {number:>6,}  {text}")
    if tally.missed_links:
        missed = format_count(tally.missed_links, "link")
        lines.append(f"{'':<19}  about {missed} missed by estimate")
    return lines


def _article_line(tally: Tally, of_day: int | None) -> str:
    """How many articles there are, and how much of what was fetched brought one."""
    articles = tally.articles
    parts = [
        (articles.new, "new", "new"),
        (articles.versions, "new version", "new versions"),
        (articles.same, "known by another address", "known by another address"),
        (articles.failed, "could not be read", "could not be read"),
        (articles.alarms, "alarm of a selector: see the log", "alarms of selectors: see the log"),
    ]
    detail = ", ".join(format_count(*part) for part in parts if part[0])
    if tally.useful_share is not None:
        detail += f"; {tally.useful_share:.0%} of all responses brought one"
    if of_day is not None:
        detail += f"; {of_day:,} new in the last 24 hours"
    return f"  {'Articles':<10} {articles.new + articles.versions:>6,}  {detail}"


def _time_lines(time_use: Mapping[Use, float], width: int) -> list[str]:
    """Where the time went."""
    shares = percentages(time_use)
    if not shares:
        return []
    text = ", ".join(f"{share}% {USES[use]}" for use, share in shares.items())
    first, *rest = wrap(text, max(40, width - 21))
    return [f"  {'Time':<17}  {first}", *(f"{'':<19}  {line}" for line in rest)]


def _reason_lines(summary: CrawlSummary, area: str, total: int, width: int) -> list[str]:
    """The most frequent reasons why URLs ended in this area, each with an example."""
    reasons = Counter(summary.tally.reasons[area]).most_common()
    lines = []
    label = f"  {area.capitalize():<10} {total:>6,}"
    for reason, number in reasons[:TOP]:
        text = _reason_words(summary, area, reason, number=number)
        lines.append(f"{label}  {shorten_line(text, max(40, width - 21))}")
        label = " " * 19
    if len(reasons) > TOP:
        rest = sum(number for _, number in reasons[TOP:])
        others = format_count(len(reasons) - TOP, "other reason")
        lines.append(f"{label}  and {rest:,} for {others}: see the log")
    return lines


def _reason_words(summary: CrawlSummary, area: str, reason: str, number: int) -> str:
    name = f"{area}/{reason.replace(' ', '_')}"
    text = reason
    if name in ADVICE:
        text += f" ({ADVICE[name]})"
    example = summary.examples.get(name, "")
    if number > 1:
        text += f" {number:,} x"
        if example:
            text += f", such as {example}"
    elif example:
        text += f": {example}"
    return text


def _known_lines(summary: CrawlSummary) -> list[str]:
    """What is known after all crawls so far, and what is due next."""
    counts = summary.counts
    if not counts:
        return []
    lines = ["", f"  {format_count(counts['known'], 'URL')} known in all. Of them:"]
    if counts["new"]:
        lines.append(
            f"    {format_count(counts['new'], 'waits', 'wait')} to be fetched for the first time"
        )
    if counts["waiting"]:
        read = format_count(counts["waiting"], "page was read; it is", "pages were read; they are")
        first = _first_due(summary.outlook.next_visit, summary.now)
        lines.append(f"    {read} visited again{first}")
    if counts["retry"]:
        first = ""
        if not counts["new"]:  # else the soonest URL is a new one, which says nothing of retries
            first = _first_due(summary.outlook.soonest, summary.now)
        lines.append(f"    {counts['retry']:,} failed and will be tried again{first}")
    ended = [
        format_count(counts[state], one, many)
        for state, (one, many) in ENDED_WORDS.items()
        if counts.get(state)
    ]
    if ended:
        lines.append(f"    {', '.join(ended)}")
    if summary.left_out:
        hosts = format_count(
            summary.left_out, "host that links lead to is", "hosts that links lead to are"
        )
        lines.append(f"  {hosts} not part of the crawl: scrapy explain HOST says why")
    return lines


def _first_due(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    if (at - now).total_seconds() >= 1:
        return f", the first at {format_when(at, now)}"
    return ", some are due now"
