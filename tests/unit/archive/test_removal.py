"""Whatever is taken out of whatever archive: it is gone, and all else can be read as before."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file, check_revisits
from crawlproj.archive.exchange import Original
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.removal import (
    delete_old_files,
    refresh_index,
    remove_records,
    rewrite_file,
    survey_files,
    unfinished_rewrites,
)
from crawlproj.archive.writer import WarcWriter, WriterOptions
from tests.support.archiving import START, exchange, head

NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
BODIES = (b"one", b"two", b"three" * 2000, b"")
Visit = tuple[int, int, bool]
visits = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, len(BODIES)), st.booleans()), max_size=25
)


def made(folder: Path, plan: list[Visit]) -> Archive:
    """Visits of few pages with few bodies: whole, or as revisits of what any page had before; the
    last body means a 304.
    """
    writer = WarcWriter(folder, "x", "w", {}, WriterOptions(max_bytes=4000))
    seen: dict[int, Original] = {}
    for number, (page, body, repeat) in enumerate(plan):
        at = START + timedelta(hours=number)
        same = body == len(BODIES)
        original = seen.get(page if same else body + 100) if repeat or same else None
        if same and original is None:
            continue
        top, data = (NOT_MODIFIED, b"") if same else (head(), BODIES[body])
        receipt = writer.put(exchange(page, data, top, at=at), original)
        writer.flush().result(10)
        assert receipt.record_location is not None and receipt.record_location.original is not None
        if not same:
            seen[page] = seen[body + 100] = receipt.record_location.original
    writer.close()
    if folder.is_dir():
        merge_indexes(folder)
    return Archive(folder)


def contents(archive: Archive) -> Counter[tuple[str, datetime, int, bytes]]:
    return Counter((page.url, page.at, page.status, page.content) for page in archive.captures())


def is_sound(archive: Archive) -> bool:
    problems = [str(problem) for path in archive.closed_files() for problem in check_file(path)]
    problems += map(str, check_revisits(archive))
    assert not problems
    return True


Named = Callable[[str, datetime], str]


def files_of(archive: Archive) -> dict[tuple[str, datetime], str]:
    return {
        (record.url, record.at): path.name for path, record in archive.iter_records() if record.url
    }


def remove(archive: Archive, gone: Named) -> None:
    """As a run does it: what a kill left comes first, and nothing is dropped before all
    is written.
    """
    left = list(unfinished_rewrites(archive))
    lost = {capture: name for each in left for capture, name in each.lost.items()}
    old = {each.old for each in left}
    found = survey_files([path for path in archive.closed_files() if path not in old], gone, lost)
    done = [
        rewrite_file(archive, archive.folder / name, gone, here.dependents, {}, START)
        for name, here in found.items()
    ]
    delete_old_files([*left, *done])
    if archive.closed_files():
        refresh_index(archive.folder)


@settings(max_examples=80, deadline=None)
@given(visits, st.sets(st.integers(0, 24)), st.sets(st.integers(0, 4)), st.sets(st.integers(0, 6)))
def test_what_stays_has_the_same_bytes(
    plan: list[Visit], hours: set[int], pages: set[int], kill: set[int]
) -> None:
    """Single captures are to go, but it is killed when some of the files are written; then pages
    go.
    """

    def first(url: str, at: datetime) -> str:
        return "hours" if round((at - START) / timedelta(hours=1)) in hours else ""

    def second(url: str, at: datetime) -> str:
        return "pages" if int(url.rpartition("/")[2]) in pages else ""

    with tempfile.TemporaryDirectory() as folder:
        archive = made(Path(folder) / "warc", plan)
        before = contents(archive)
        files = files_of(archive)
        names = set[str]()
        found = survey_files(archive.closed_files(), first)
        for number, path in enumerate(archive.closed_files()):
            if path.name in found and number in kill:
                rewrite_file(archive, path, first, found[path.name].dependents, {}, START)
                names.add(path.name)
        remove(archive, second)

        def went(url: str, at: datetime) -> bool:
            return bool(second(url, at) or (first(url, at) and files[url, at] in names))

        assert contents(archive) == {
            key: number for key, number in before.items() if not went(key[0], key[1])
        }
        assert is_sound(archive)
        assert not [
            record
            for _, record in archive.iter_records()
            if record.url and went(record.url, record.at)
        ]
        assert not list(remove_records(archive, second, {}, START)) and not list(
            unfinished_rewrites(archive)
        )
