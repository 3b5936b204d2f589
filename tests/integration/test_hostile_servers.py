"""A hostile web, crawled for real: every exchange is in the archive as it came, also those that
failed on their way, and every page ends as it should. Cases and what must come of them:
tests/support/hostile.py.
"""

from __future__ import annotations

import base64
import re
import socket
from collections import defaultdict
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.http import heads
from tests.integration.test_archive_crawl import sound
from tests.integration.test_archive_mixed import told, unmodified_warcio
from tests.support.crawling import Result, run_crawl
from tests.support.hostile import CASES, NOTHING, Hostile, serving
from tests.support.wayback import replaying
from tests.support.webs import make_due, rows

pytestmark = pytest.mark.proof

HOSTS = 12
LATE_S = 5.0


def crawl(web: Hostile, database_url: str, folder: Path) -> Result:
    names = [*CASES, *NOTHING]
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "FRONTIER_RETRY_DELAY": "1h",
        "REVISIT_INTERVAL": "1h",
        "DOWNLOAD_MAXSIZE": 70_000,
        "DOWNLOAD_TIMEOUT": 4,
        "FRONTIER_LEASE": "60s",
        "POLITENESS_MAX_DELAY": 0,
        "POLITENESS_PAUSE_AFTER": 0,
        "DNS_HOSTS": {f"h{n}.test": "127.0.0.1" for n in range(HOSTS)},
    }
    seeds = "seeds=" + ",".join(
        f"http://h{n % HOSTS}.test:{web.port}/{name}" for n, name in enumerate(names)
    )
    result = run_crawl(["site", "-a", seeds], settings, folder, 120)
    assert result.code == 0 and "Traceback" not in result.stderr + result.log, (
        result.stderr + result.log
    )
    return result


def exchanges(archive: Archive) -> dict[str, list[dict[str, StoredRecord]]]:
    """Records of each exchange by the name of its case, in the order of time."""
    found: dict[str, list[dict[str, StoredRecord]]] = defaultdict(list)
    for _, record in archive.iter_records():
        name = record.url.rpartition("/")[2]
        if record.kind in ("response", "revisit", "resource"):
            found[name].append({"answer": record})
        elif record.kind != "warcinfo":
            # What is learned later, such as that a page is a copy, has a record of its own.
            found[name][-1].setdefault(record.kind, record)
    return found


def head_of(exchange: dict[str, StoredRecord]) -> bytes:
    """As it came: from the metadata if it had to be changed."""
    kept = re.search(rb"httpHeadBase64: (\S+)", exchange["metadata"].block)
    return (
        base64.b64decode(kept[1])
        if kept
        else exchange["answer"].head.replace(b"X-Crawler-Transfer-", b"Transfer-")
    )


def check_first(name: str, exchange: dict[str, StoredRecord]) -> None:
    case = CASES[name]
    answer = exchange["answer"]
    assert (answer.kind, answer.fields.get("warc-truncated")) == (case.kind, case.truncated)
    if case.kind == "resource":
        assert answer.body == case.sent
        return
    assert answer.body == case.body
    head = head_of(exchange)
    sent = case.sent
    if name.startswith("early-hints"):
        sent = case.pieces[1]
    assert sent.startswith(head)
    assert head.endswith(b"\n") or case.truncated, "a whole head"
    assert heads.parse_status(answer.head) == heads.parse_status(sent)


def replayed(archive: Archive, folder: Path) -> dict[str, tuple[int, int]]:
    """The status of each capture, and the one that pywb answers with."""
    found = {}
    with replaying(archive.folder, folder) as base:
        port = int(base.split(":")[2].partition("/")[0])
        path = base.partition("//")[2].partition("/")[2]
        for entry in archive.iter_entries():
            with socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(
                    f"GET /{path}{entry.timestamp}mp_/{entry.url} HTTP/1.0\r\n\r\n".encode()
                )
                line = connection.makefile("rb").readline()
            found[f"{entry.url} {entry.timestamp}"] = (
                archive.read_capture(entry).status,
                heads.parse_status(line),
            )
    return found


def test_every_exchange_with_a_hostile_web_is_kept_and_ends_as_it_should(
    database_url: str, tmp_path: Path
) -> None:
    with serving() as web:
        first = crawl(web, database_url, tmp_path)
        states = {
            url.rpartition("/")[2]: (row.state, row.status, row.why)
            for url, row in rows(database_url).items()
        }
        assert {name: states[name] for name in CASES} == {
            name: (c.state, c.status, c.why) for name, c in CASES.items()
        }
        make_due(database_url)
        second = crawl(web, database_url, tmp_path)
    archive = sound(tmp_path / "warc")
    found = exchanges(archive)
    asked = defaultdict(list)
    for note in web.asked:
        asked[note.name].append(note)
    for name in asked.keys() - NOTHING.keys():
        assert len(found[name]) == len(asked[name]), name
        for exchange, note in zip(
            found[name], sorted(asked[name], key=lambda note: note.at), strict=True
        ):
            answer = exchange["answer"]
            assert answer.fields["warc-ip-address"] == "127.0.0.1", name
            assert -0.1 < note.at - answer.at.timestamp() < LATE_S, name
            assert name == "robots.txt" or exchange["request"].block == note.request, name
    for name in CASES:
        check_first(name, found[name][0])
    assert not found.keys() & NOTHING.keys(), "of nothing there is nothing to keep"
    kept = first.stats["warc/exchanges"] + second.stats["warc/exchanges"]
    assert (
        kept
        == sum(map(len, found.values()))
        == len(web.asked) - sum(len(asked[name]) for name in NOTHING)
    )
    revisits = [record for _, record in archive.iter_records() if record.kind == "revisit"]
    assert len(revisits) > 40 and all(
        archive.find_original(record).kind == "response" for record in revisits
    )
    for path in archive.closed_files():
        unmodified_warcio(path)
        assert told(path).total() == sum(path == file for file, _ in archive.iter_records())
    shown = replayed(archive, tmp_path / "pywb")
    assert len(shown) > 100 and not {url: pair for url, pair in shown.items() if pair[0] != pair[1]}
