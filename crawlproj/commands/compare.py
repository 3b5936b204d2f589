"""`scrapy compare`: which of several captures of a page would count as changes, and why not."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crawlproj.cli.command import FINE, ProjectCommand, add_json, print_json, print_lines
from crawlproj.cli.page_source import SourcePage, read_file
from crawlproj.config import Config
from crawlproj.content.changes import NO_CHANGE, Change, Masked, MaskReason, judge_change
from crawlproj.content.feeds import sniff_kind
from crawlproj.content.html import parse_page
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count, format_table, shorten_line

SHOWN = 80
"""Characters that are shown of a text."""
WHAT_IS_MASKED = {
    MaskReason.PATH_NOISE: "it stands where the page changes all the time",
    MaskReason.HOST_NOISE: "it stands where pages of the host change all the time",
    MaskReason.COUNT_RANGE: "it came and went in the captures before",
    MaskReason.BOILERPLATE: "text in navigation, footers, asides or lists of links differs",
    MaskReason.RELATIVE_TIME: "it says how long ago something was",
}
_ANY_TAG = re.compile(rb"<[A-Za-z!]")


class CaptureVerdict(NamedTuple):
    """What is said of one capture: the files are those of the capture before and its own."""

    before: str
    now: str
    change: Change


class Command(ProjectCommand):
    words = (2, sys.maxsize)

    def syntax(self) -> str:
        return "FILE FILE... [--url URL] [--json]"

    def short_desc(self) -> str:
        return "Which captures of a page count as changes, and what was taken for noise"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. The files are captures of one page in their order, HTML or HTML "
            "packed by gzip; each is judged by all before it, as in a crawl."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--url", metavar="URL", help="the address of the page")
        add_json(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        pages = [read_page(name, opts.url or "") for name in words]
        verdicts = list(compare_captures(words, pages))
        if opts.json:
            print_json(list(map(as_object, verdicts)))
        else:
            print_lines(as_text(verdicts))
        return FINE


def read_page(name: str, url: str) -> SourcePage:
    """An HTML page in a file; ConfigError if it is something else.

    An empty file is an empty page.
    """
    page = read_file(name, url)
    kind = sniff_kind(page.body)
    is_page = kind == "html" or (kind == "text" and _ANY_TAG.search(page.body))
    if page.body.strip() and not is_page:
        raise ConfigError(f"{name} is not HTML")
    return page


def compare_captures(names: Sequence[str], pages: Sequence[SourcePage]) -> Iterator[CaptureVerdict]:
    """A verdict on each capture but the first."""
    state: bytes | None = None
    before: tuple[str, bytes] | None = None
    for name, page in zip(names, pages, strict=True):
        if before is not None and page.body == before[1]:
            yield CaptureVerdict(before[0], name, NO_CHANGE)
        else:
            document = parse_page(page.body, page.url, page.charset or None)
            judged = judge_change(document.blocks, state, page.url)
            state = judged.state
            if before is not None:
                yield CaptureVerdict(before[0], name, judged.change)
        before = (name, page.body)


def as_object(verdict: CaptureVerdict) -> dict[str, Any]:
    """A verdict as JSON."""
    change = verdict.change
    return {
        "from": verdict.before,
        "to": verdict.now,
        "changed": change.changed,
        "kind": change.kind.value,
        "new_letters": change.new_letters,
        "gone_letters": change.gone_letters,
        "masked": [
            {"reason": mask.reason.value, "new": mask.new, "text": mask.text, "path": mask.path}
            for mask in change.masked
        ],
    }


def as_text(verdicts: Sequence[CaptureVerdict]) -> list[str]:
    """A table of the verdicts; below it, what did not count."""
    rows = [
        [
            now,
            "yes" if change.changed else "no",
            change.kind.value,
            f"{change.new_letters:,}",
            f"{change.gone_letters:,}",
            ", ".join(dict.fromkeys(mask.reason.value for mask in change.masked)),
        ]
        for _, now, change in verdicts
    ]
    lines = format_table(
        ["capture", "changed", "kind", "new letters", "gone letters", "masked"], rows
    )
    for _, now, change in verdicts:
        lines += [f"{now}: {describe_mask(mask)}" for mask in change.masked]
    changed = sum(verdict.change.changed for verdict in verdicts)
    lines.append(f"{format_count(len(verdicts), 'step')}, {changed} changed.")
    return lines


def describe_mask(mask: Masked) -> str:
    """What differed and why it does not count; of what went only its place is known."""
    why = WHAT_IS_MASKED[mask.reason]
    if mask.reason is MaskReason.BOILERPLATE:
        return f"{mask.reason.value}: {why}"
    if mask.text:
        what = f"{shorten_line(mask.text, SHOWN)!r} came"
    else:
        what = "a text came" if mask.new else "a text went"
    place = f" at {mask.path.rpartition('/')[2]}" if mask.path else ""
    return f"{mask.reason.value}: {what}{place}; {why}"
