"""scrapy warc: read the archive back, check it, repair it, add to it. The database is needed only
to know what is added.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.check import Problem, check_file, check_revisits
from crawlproj.archive.foreign.importer import import_files
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
    as_line,
    as_values,
    diff_captures,
    find_versions,
    last_two,
    parse_time,
    version_at,
)
from crawlproj.upkeep.imported_history import import_history
from crawlproj.upkeep.warc_rewrite import BUSY

MOST = {
    "check": sys.maxsize,
    "repair": 0,
    "versions": 1,
    "get": 1,
    "diff": 3,
    "import": sys.maxsize,
}
LEAST = {"check": 0, "repair": 0, "versions": 1, "get": 1, "diff": 1, "import": 1}


def _indexed(done: RepairedFile) -> str:
    return (
        f"{done.file}: indexed, {format_count(done.records, 'record')}"
        if done.records
        else f"{done.file}: removed, its file is gone"
    )


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
            "database need not be there."
            " check: exits with 3 if something is wrong. get: writes the page to the screen or to "
            "a file. diff: of the versions in"
            " force at two times; without times, the last two that differ. import: pages and "
            "versions go into the database, too."
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
        if not LEAST.get(verb, 1) <= len(rest) <= MOST.get(verb, 0) or (
            verb == "diff" and len(rest) == 2
        ):
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
        found = [
            problem
            for path in files
            for problem in (check_file if _is_ours(path, config) else check_foreign)(path)
        ]
        found += [] if words else list(check_revisits(archive))
        left = (
            [] if words else sorted(path.name for path in config.warc_dir.glob(f"*{SUFFIX}{OPEN}"))
        )
        if opts.json:
            problems = [
                {"file": problem.file, "offset": problem.offset, "what": problem.what}
                for problem in found
            ]
            print_json({"files": len(files), "open": left, "problems": problems})
        else:
            print_lines(
                [
                    *map(str, found),
                    f"{format_count(len(files), 'file')}, {format_count(len(found), 'problem')}",
                ]
            )
            if left:
                print_lines(
                    f"{format_count(len(left), 'file')} being written, or left open by a kill (scrapy "
                    "warc repair closes those)"
                )
        return RULES_BROKEN if found else FINE

    def _repair(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        folder = config.warc_dir
        broken = 0
        if not folder.is_dir():
            print_lines(f"There is no archive in {folder}.")
            return FINE
        with rewrite_lock(folder, lambda: print_error(BUSY)):
            for done in repair_open_files(folder):
                cut = (
                    f"; {format_count(done.cut_bytes, 'byte')} cut off: {done.why}"
                    if done.cut_bytes
                    else ""
                )
                print_lines(
                    f"{done.file or 'an empty file'}: closed, {format_count(done.records, 'record')}{cut}"
                )
                if done.saved:
                    print_lines(f"{done.saved}: records behind the damage")
            for done in repair_indexes(folder, thorough=True):
                broken += bool(done.why)
                print_error(f"{done.file}: {done.why}") if done.why else print_lines(_indexed(done))
            merge_indexes(folder)
        print_lines("The index is up to date.")
        return RULES_BROKEN if broken else FINE

    def _found(self, config: Config, url: str) -> tuple[Archive, list[IndexEntry]]:
        archive = Archive(config.warc_dir)
        entries = find_versions(archive, url, partial(open_for_reading, config))
        if not entries:
            raise ArchiveError(f"{url} is not in the archive ({config.warc_dir})")
        return archive, entries

    def _versions(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        _, entries = self._found(config, words[0])
        print_json([as_values(entry) for entry in entries]) if opts.json else print_lines(
            [as_line(entry) for entry in entries]
        )
        return FINE

    def _get(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        at = parse_time(opts.at) if opts.at else None
        archive, entries = self._found(config, words[0])
        page = archive.read_capture(version_at(entries, at))
        data = (page.head if opts.headers else b"") + page.content
        if opts.output:
            Path(opts.output).write_bytes(data)
        else:
            sys.stdout.buffer.write(data)
        return FINE

    def _diff(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        times = [parse_time(word) for word in words[1:]]
        archive, entries = self._found(config, words[0])
        chosen = (
            (version_at(entries, times[0]), version_at(entries, times[1]))
            if times
            else last_two(entries)
        )
        if chosen is None:
            print_lines(
                f"All {len(entries):,} versions are the same."
                if len(entries) > 1
                else "There is one version only."
            )
            return FINE
        old, new = map(archive.read_capture, chosen)
        print_lines(diff_captures(old, new, opts.text) or "They are the same.")
        return FINE

    def _import(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        """Without a database, into the archive only."""
        problems = 0

        def told(problem: Problem) -> None:
            nonlocal problems
            problems += 1
            print_error(str(problem))

        with ExitStack() as stack:
            db = None if opts.no_database else self._database(config, stack)
            unwanted = takedown.load_rules(db).is_barred if db is not None else lambda url: False
            name = self.crawl_name(db, opts) if db is not None else ""
            with rewrite_lock(config.warc_dir, lambda: print_error(BUSY)):
                files = [Path(word) for word in words]
                taken = import_files(
                    files,
                    config.warc_dir,
                    told,
                    shape=config.warc or DEFAULT_OPTIONS,
                    unwanted=unwanted,
                )
            forgotten = (
                f", {taken.unwanted} not taken because they were forgotten"
                if taken.unwanted
                else ""
            )
            print_lines(
                f"{format_count(taken.new, 'exchange')} added, {taken.known} there already, "
                f"{taken.left_out} left out{forgotten}"
            )
            if taken.passed:
                kinds = ", ".join(
                    f"{number} {what}" for what, number in taken.passed.most_common(10)
                )
                print_lines(
                    f"{format_count(taken.passed.total(), 'record')} passed over as no pages: {kinds}"
                )
            if db is not None:
                done = import_history(
                    db,
                    open_frontier(db, config, name, make=True),
                    config,
                    archive=Archive(config.warc_dir),
                    keys=taken.keys,
                )
                known = f"{format_count(done.urls, 'URL')} not known before, {done.updated} updated"
                print_lines(
                    f"Crawl {name}: {known}, {format_count(done.versions, 'version')} added"
                )
        return RULES_BROKEN if problems or (db is None and not opts.no_database) else FINE

    def _database(self, config: Config, stack: ExitStack) -> Database | None:
        try:
            return stack.enter_context(open_for_writing(config))
        except DatabaseError as error:
            print_error(
                f"{error}; so the pages go into the archive only: do it again when the database is "
                "there"
            )
            return None


def _is_ours(path: Path, config: Config) -> bool:
    """A file of the archive, or one that has an index as those have."""
    return bool(path.name) and (
        path.resolve().parent == config.warc_dir.resolve() or index_path(path).exists()
    )
