"""`scrapy warc`: read the archive back, check it, repair it, import WARC files into it.

The database is needed only so that a crawl knows what is imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.check import Problem, check_file, check_revisits
from crawlproj.archive.foreign.importer import ImportCounts, import_files
from crawlproj.archive.foreign.reader import check_foreign
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.locks import rewrite_lock
from crawlproj.archive.open_file import OPEN, SUFFIX, index_path
from crawlproj.archive.recovery import RepairedFile, repair_indexes, repair_open_files
from crawlproj.archive.writer import DEFAULT_OPTIONS
from crawlproj.cli.command import (
    FINE,
    RULES_BROKEN,
    ProjectCommand,
    add_crawl,
    add_json,
    print_error,
    print_json,
    print_lines,
)
from crawlproj.config import Config
from crawlproj.database.connection import Database
from crawlproj.errors import ArchiveError, ConfigError, DatabaseError
from crawlproj.formatting import format_count
from crawlproj.frontier import takedown
from crawlproj.frontier.opening import open_for_reading, open_for_writing, open_frontier
from crawlproj.reports.versions import (
    diff_captures,
    find_versions,
    last_two,
    parse_time,
    version_at,
    version_line,
    version_values,
)
from crawlproj.upkeep.imported_history import import_history
from crawlproj.upkeep.warc_rewrite import BUSY

MAX_WORDS = {
    "check": sys.maxsize,
    "repair": 0,
    "versions": 1,
    "get": 1,
    "diff": 3,
    "import": sys.maxsize,
}
MIN_WORDS = {"check": 0, "repair": 0, "versions": 1, "get": 1, "diff": 1, "import": 1}


def _repaired_index(done: RepairedFile) -> str:
    if not done.records:
        return f"{done.file}: removed, its file is gone"
    return f"{done.file}: indexed, {format_count(done.records, 'record')}"


class Command(ProjectCommand):
    words = (1, sys.maxsize)

    def syntax(self) -> str:
        return (
            "check [FILE...] | repair | versions URL | get URL [--at TIME] | diff URL [TIME "
            "TIME] | import FILE..."
        )

    def short_desc(self) -> str:
        return (
            "Read pages back from the archive, compare versions, check, repair and import WARC "
            "files"
        )

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. The files are in CRAWL_DIR/warc; their indexes are enough, the "
            "database need not be there. check: exits with 3 if something is wrong. get: writes "
            "the page to the screen or to a file. diff: of the versions in force at two times; "
            "without times, the last two that differ. import: pages and versions go into the "
            "database, too."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        parser.add_argument(
            "--at",
            metavar="TIME",
            help="get: the version in force then, such as 2026-03-01 (default: the last)",
        )
        parser.add_argument(
            "--headers", action="store_true", help="get: with the headers of the answer"
        )
        parser.add_argument(
            "--text", action="store_true", help="diff: of what a reader sees, not of the source"
        )
        add_crawl(parser)
        parser.add_argument(
            "--no-database", action="store_true", help="import: into the archive only"
        )
        parser.add_argument("-o", dest="output", metavar="FILE", help="get: write to a file")

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verb, *rest = words
        fits = MIN_WORDS.get(verb, 1) <= len(rest) <= MAX_WORDS.get(verb, 0)
        if not fits or (verb == "diff" and len(rest) == 2):
            raise ConfigError(f"usage: scrapy warc {self.syntax()}")
        verbs = {
            "check": self._check,
            "repair": self._repair,
            "versions": self._versions,
            "get": self._get,
            "diff": self._diff,
            "import": self._import,
        }
        return verbs[verb](config, rest, opts)

    def _check(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        archive = Archive(config.warc_dir)
        files = [Path(word) for word in words] or archive.closed_files()
        found: list[Problem] = []
        for path in files:
            if _is_ours(path, config):
                found.extend(check_file(path))
            else:
                found.extend(check_foreign(path))
        open_files: list[str] = []
        if not words:
            found.extend(check_revisits(archive))
            open_files = sorted(path.name for path in config.warc_dir.glob(f"*{SUFFIX}{OPEN}"))
        if opts.json:
            problems = [
                {"file": problem.file, "offset": problem.offset, "what": problem.what}
                for problem in found
            ]
            print_json({"files": len(files), "open": open_files, "problems": problems})
        else:
            totals = f"{format_count(len(files), 'file')}, {format_count(len(found), 'problem')}"
            print_lines([*map(str, found), totals])
            if open_files:
                print_lines(
                    f"{format_count(len(open_files), 'file')} being written, or left open by a "
                    "kill (scrapy warc repair closes those)"
                )
        if found:
            return RULES_BROKEN
        return FINE

    def _repair(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        folder = config.warc_dir
        if not folder.is_dir():
            print_lines(f"There is no archive in {folder}.")
            return FINE
        exit_code = FINE
        with rewrite_lock(folder, lambda: print_error(BUSY)):
            for done in repair_open_files(folder):
                text = f"{done.file or 'an empty file'}: closed, "
                text += format_count(done.records, "record")
                if done.cut_bytes:
                    text += f"; {format_count(done.cut_bytes, 'byte')} cut off: {done.why}"
                print_lines(text)
                if done.saved:
                    print_lines(f"{done.saved}: records behind the damage")
            for done in repair_indexes(folder, thorough=True):
                if done.why:
                    exit_code = RULES_BROKEN
                    print_error(f"{done.file}: {done.why}")
                else:
                    print_lines(_repaired_index(done))
            merge_indexes(folder)
        print_lines("The index is up to date.")
        return exit_code

    def _find_versions(self, config: Config, url: str) -> tuple[Archive, list[IndexEntry]]:
        archive = Archive(config.warc_dir)
        entries = find_versions(archive, url, partial(open_for_reading, config))
        if not entries:
            raise ArchiveError(f"{url} is not in the archive ({config.warc_dir})")
        return archive, entries

    def _versions(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        _, entries = self._find_versions(config, words[0])
        if opts.json:
            print_json([version_values(entry) for entry in entries])
        else:
            print_lines([version_line(entry) for entry in entries])
        return FINE

    def _get(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        at = None
        if opts.at:
            at = parse_time(opts.at)
        archive, entries = self._find_versions(config, words[0])
        page = archive.read_capture(version_at(entries, at))
        data = page.content
        if opts.headers:
            data = page.head + data
        if opts.output:
            Path(opts.output).write_bytes(data)
        else:
            sys.stdout.buffer.write(data)
        return FINE

    def _diff(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        times = [parse_time(word) for word in words[1:]]
        archive, entries = self._find_versions(config, words[0])
        chosen = last_two(entries)
        if times:
            chosen = (version_at(entries, times[0]), version_at(entries, times[1]))
        if chosen is not None:
            old, new = map(archive.read_capture, chosen)
            print_lines(diff_captures(old, new, opts.text) or "They are the same.")
        elif len(entries) > 1:
            print_lines(f"All {len(entries):,} versions are the same.")
        else:
            print_lines("There is one version only.")
        return FINE

    def _import(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        """Import files into the archive and, if there is one, into the database."""
        exit_code = FINE

        def report_problem(problem: Problem) -> None:
            nonlocal exit_code
            exit_code = RULES_BROKEN
            print_error(str(problem))

        with ExitStack() as stack:
            db = None
            unwanted: Callable[[str], bool] = _never
            name = ""
            if not opts.no_database:
                db = self._open_database(config, stack)
                if db is None:
                    exit_code = RULES_BROKEN
            if db is not None:
                unwanted = takedown.load_rules(db).is_barred
                name = self.crawl_name(db, opts)
            with rewrite_lock(config.warc_dir, lambda: print_error(BUSY)):
                imported = import_files(
                    [Path(word) for word in words],
                    config.warc_dir,
                    report_problem,
                    options=config.warc or DEFAULT_OPTIONS,
                    unwanted=unwanted,
                )
            print_lines(import_lines(imported))
            if db is not None:
                frontier = open_frontier(db, config, name, make=True)
                archive = Archive(config.warc_dir)
                counts = import_history(db, frontier, config, archive=archive, keys=imported.keys)
                print_lines(
                    f"Crawl {name}: {format_count(counts.urls, 'URL')} not known before, "
                    f"{counts.updated} updated, {format_count(counts.versions, 'version')} added"
                )
        return exit_code

    def _open_database(self, config: Config, stack: ExitStack) -> Database | None:
        try:
            return stack.enter_context(open_for_writing(config))
        except DatabaseError as error:
            print_error(
                f"{error}; so the pages go into the archive only: do it again when the database is "
                "there"
            )
            return None


def import_lines(imported: ImportCounts) -> list[str]:
    """What came of an import into the archive."""
    text = (
        f"{format_count(imported.new, 'exchange')} added, {imported.known} there already, "
        f"{imported.left_out} left out"
    )
    if imported.unwanted:
        text += f", {imported.unwanted} not taken because they were forgotten"
    lines = [text]
    if imported.skipped:
        kinds = ", ".join(f"{number} {what}" for what, number in imported.skipped.most_common(10))
        total = format_count(imported.skipped.total(), "record")
        lines.append(f"{total} passed over as no pages: {kinds}")
    return lines


def _never(url: str) -> bool:
    return False


def _is_ours(path: Path, config: Config) -> bool:
    """Whether it is a file of the archive, or one that has an index as those have."""
    if not path.name:
        return False
    return path.resolve().parent == config.warc_dir.resolve() or index_path(path).exists()
