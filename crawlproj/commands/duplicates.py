"""`scrapy duplicates`: which pages are copies of which."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    ProjectCommand,
    add_crawl,
    add_json,
    print_json_list,
    print_lines,
    read_urls,
)
from crawlproj.cli.next_commands import option_words, scrapy_program
from crawlproj.config import Config
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count, format_share, printable
from crawlproj.frontier.base import DuplicateKind
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_frontier
from crawlproj.reports.duplicates import (
    EXCERPT,
    Copy,
    CopyCluster,
    SimilarPage,
    biggest_clusters,
    count_kinds,
    iterate_clusters,
    iterate_copies,
    iterate_similar,
    why_no_cluster,
)
from crawlproj.reports.facts import PageRow, crawls_knowing, find_page
from crawlproj.urls.canonical import url_key

DEFAULT_LIMIT = 20
SHOWN_COPIES = 10
"""Copies that are shown of each cluster, unless the cluster of a page is asked for."""
KEPT = "  (kept)"
"""After the page that stands for its cluster."""
KINDS = tuple(kind.value for kind in DuplicateKind)


class Command(ProjectCommand):
    words = (0, 1)

    def syntax(self) -> str:
        return "[URL] [--kind KIND] [--similar D] [--limit N] [--json] [--crawl NAME]"

    def short_desc(self) -> str:
        return "Which pages are copies of which, and how much of them is the same"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. With a URL: the copies of that page, or the page that it is a "
            "copy of and its other copies; exits with 1 if the crawl does not know the URL."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--kind", metavar="KIND", help=f"only copies of {', '.join(KINDS)}")
        parser.add_argument(
            "--similar",
            metavar="D",
            help="pages of whose long paragraphs at least so much (0 to 1) stands on others",
        )
        parser.add_argument(
            "--limit",
            metavar="N",
            help="how many clusters or pages, the biggest first (default: "
            f"{DEFAULT_LIMIT}, with --json all)",
        )
        add_json(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        request = _read_request(words, opts)
        try:
            with open_for_reading(config) as database:
                name = self._choose_crawl(database, opts, request.url)
                crawl = open_frontier(database, config, name).crawl_id
                if request.url:
                    return _show_page(database, name, request)
                if request.least is not None:
                    _show_similar(database, config, name, request)
                elif request.json:
                    print_json_list(_copies_as_json(database, crawl, request))
                elif _show_clusters(database, name, crawl, request):
                    print_lines(self._next_commands(config, name))
        except NoCrawlYet as no_crawl:
            if request.json:
                print_json_list([])
            else:
                print_lines(str(no_crawl))
        return FINE

    def _choose_crawl(self, database: Database, opts: argparse.Namespace, url: str) -> str:
        """The name of the crawl: the only one that knows the URL, if none was given."""
        assert self.settings is not None
        if url and not opts.crawl and not self.settings.get("CRAWL_NAME"):
            knowing = crawls_knowing(database, url)
            if len(knowing) == 1:
                return knowing[0]
        return self.crawl_name(database, opts)

    def _next_commands(self, config: Config, name: str) -> list[str]:
        scrapy = scrapy_program()
        rest = f" --crawl {shlex.quote(name)}{option_words(config, self.settings)}"
        return [
            "",
            "Try next:",
            f"  one page and all its copies       {scrapy} duplicates URL{rest}",
            f"  why a page is where it is         {scrapy} explain URL{rest}",
            f"  pages whose paragraphs are known  {scrapy} duplicates --similar 0.5{rest}",
        ]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; `least` is the D of --similar."""

    url: str
    kind: str | None
    least: float | None
    limit: int | None
    json: bool


def _read_request(words: list[str], opts: argparse.Namespace) -> Request:
    url = ""
    if words:
        url = read_urls(words)[0]
    if opts.kind is not None and opts.kind not in KINDS:
        raise ConfigError(f"--kind {opts.kind}: one of {', '.join(KINDS)}")
    if opts.similar is not None and (url or opts.kind is not None):
        raise ConfigError("--similar goes with neither a URL nor --kind")
    return Request(url, opts.kind, _read_share(opts.similar), _read_limit(opts.limit), opts.json)


def _read_share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ConfigError(f"--similar {text}: a number above 0, up to 1")
    return share


def _read_limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise ConfigError(f"--limit {text}: a whole number from 1 on")
    return int(text)


def _copies_as_json(database: Database, crawl: int, request: Request) -> Iterator[dict[str, Any]]:
    """All copies, or those of the biggest clusters."""
    originals: list[int | None] = [None]
    if request.limit is not None:
        originals = list(biggest_clusters(database, crawl, request.kind, request.limit))
    for original in originals:
        for copy in iterate_copies(database, original=original, crawl=crawl, kind=request.kind):
            yield copy.as_json()


def _show_clusters(database: Database, name: str, crawl: int, request: Request) -> bool:
    """Print the biggest clusters, and how many copies there are of each kind. False: there are
    none.
    """
    kinds = count_kinds(database, crawl)
    if request.kind is not None:
        kinds = {kind: number for kind, number in kinds.items() if kind == request.kind}
    if not kinds:
        of_kind = f" of the kind {request.kind}" if request.kind else ""
        print_lines(f"Crawl {name} has no page that is a copy{of_kind} of another.")
        return False
    shown = 0
    clusters = iterate_clusters(
        database,
        crawl,
        kind=request.kind,
        count=request.limit or DEFAULT_LIMIT,
        shown=SHOWN_COPIES,
    )
    for cluster in clusters:
        print_lines([*_cluster_lines(cluster), ""])
        shown += cluster.size
    total = sum(kinds.values())
    by_kind = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    print_lines(f"{format_count(total, 'copy', 'copies')} in crawl {name}: {by_kind}.")
    if shown < total:
        print_lines(f"The biggest clusters have {shown:,} of them; --limit N shows more.")
    return True


def _cluster_lines(cluster: CopyCluster) -> list[str]:
    copies = cluster.copies
    lines = [_original_line(copies[0]), *map(_copy_line, copies)]
    if cluster.size > len(copies):
        lines.append(f"{'':<11}{'':>7}  and {cluster.size - len(copies):,} more")
        if copies[0].kept and not _shows_kept(copies):
            lines.append(f"{'':<11}{'':>7}  {copies[0].kept}{KEPT}")
    return lines


def _shows_kept(copies: list[Copy]) -> bool:
    return copies[0].kept_id == copies[0].original_id or any(copy.is_kept for copy in copies)


def _original_line(copy: Copy) -> str:
    kept = KEPT if copy.kept_id == copy.original_id else ""
    original = copy.original or "(not known any more)"
    return f"{'original':<11}{'':>7}  {original}{kept}"


def _copy_line(copy: Copy) -> str:
    kept = KEPT if copy.is_kept else ""
    same = "" if copy.similarity is None else format_share(copy.similarity)
    return f"{copy.kind:<11}{same:>7}  {copy.url}{kept}"


def _show_page(database: Database, crawl: str, request: Request) -> int:
    """Print the cluster of one page, or why it has none."""
    key = url_key(crawl, request.url)
    known = bool(database.fetch_rows("crawls_with_url", ids=[key]))
    page = find_page(database, key)
    original = key
    if page is not None and page.duplicate_of is not None:
        original = page.duplicate_of
    copies = iterate_copies(database, original=original, kind=request.kind, most=request.limit)
    if request.json:
        print_json_list(copy.as_json() for copy in copies)
    elif not known:
        print_lines([request.url, f"  Crawl {crawl} does not know it."])
    else:
        _print_copies(request, copies, page)
    return FINE if known else COULD_NOT_RUN


def _print_copies(request: Request, copies: Iterator[Copy], page: PageRow | None) -> None:
    first = next(copies, None)
    if first is None and page is not None and (page.copies or page.duplicate_of is not None):
        print_lines([request.url, f"  None of its copies is of the kind {request.kind}."])
    elif first is None:
        print_lines([request.url, f"  {why_no_cluster(page)}"])
    else:
        print_lines(_original_line(first))
        for copy in chain([first], copies):
            print_lines(_copy_line(copy))


def _show_similar(database: Database, config: Config, name: str, request: Request) -> None:
    """Print pages of whose paragraphs much stands elsewhere."""
    assert request.least is not None
    limit = request.limit
    if limit is None and not request.json:
        limit = DEFAULT_LIMIT
    pages = iterate_similar(database, name, config.duplicates, least=request.least, most=limit)
    if request.json:
        print_json_list(page.as_json() for page in pages)
        return
    found = False
    for page in pages:
        print_lines(_similar_lines(page))
        found = True
    if not found:
        share = format_share(request.least)
        print_lines(
            f"Crawl {name} has no page of whose long paragraphs {share} or more stand on others."
        )


def _similar_lines(page: SimilarPage) -> list[str]:
    lines = [f"{format_share(page.known_share):>7}  {page.url}"]
    if page.duplicate_kind:
        lines.append(f"{'':>9}a copy ({page.duplicate_kind}) of {page.duplicate_of}")
    for url, number in page.others.items():
        lines.append(f"{'':>9}{format_count(number, 'paragraph')} also on {url}")
    for text in page.paragraphs:
        dots = "..." if len(text) == EXCERPT else ""
        lines.append(f'{"":>9}"{printable(text)}{dots}"')
    return lines
