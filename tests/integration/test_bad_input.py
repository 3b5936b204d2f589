"""Whatever is wrong is said in one clear line, before anything starts; a bad page never stops a
crawl.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawlproj.database.connection import Database
from crawlproj.demo import DemoServer
from tests.support.crawling import ROOT, Result, run_command, run_crawl

pytestmark = pytest.mark.proof

HERE = "seeds=http://127.0.0.1:9/"
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE = 1


def complaint(result: Result, code: int) -> str:
    """The one line; nothing else may be said, and nothing may have been crawled."""
    assert result.code == code, result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("crawlproj: ")
    assert "Traceback" not in result.stderr
    assert result.stats == {}
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("FRONTIER_ORDER", "zig", "one of best, bfs, dfs"),
        ("POLITENESS_DELAY", "-1", 'a duration such as "90s"'),
        ("REVISIT_POLICY", "foo", "one of uniform, adaptive"),
        ("DNS_HOSTS", "{", "JSON such as"),
        ("DNS_HOSTS", '{"a.test": "home"}', "is not an IP address"),
        ("PANEL", "blink", "one of auto, live, lines, log, off"),
        ("LOG_LEVEL", "loud", "DEBUG, INFO"),
        ("DATABASE_URL", "mysql://here/", "DATABASE_URL is not a Postgres URL"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_what_would(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    line = complaint(run_crawl(["site", "-a", HERE], {name: value}, tmp_path), 2)
    assert name in line
    assert says in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["nosuch", "-a", HERE],
            "there is no spider 'nosuch'; there are: echo, lantern, news, ridgeway, site",
        ),
        (
            ["site", "-a", HERE, "-a", "dept=3"],
            "unknown argument 'dept'; there are: seeds, seeds_file",
        ),
        (["site", "-a", HERE, "-a", "depth=deep"], "depth = 'deep' makes no sense"),
        (["site", "-a", HERE, "-a", "include=("], "not a regular expression"),
        (["site", "-a", "seeds=http://"], "not a web address: seeds, number 1"),
        (["site", "-a", "seeds=http://127.0.0.1/" + "x" * 10_000], "not a web address"),
        (["site", "-a", HERE, "--fast"], "unknown option --fast"),
        (["site", "other"], "usage: scrapy crawl"),
        ([], "usage: scrapy crawl"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    tmp_path: Path, words: list[str], says: str
) -> None:
    assert says in complaint(run_crawl(words, {}, tmp_path), 2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (bytes(range(256)), "it is not UTF-8 text"),
        (b"http://127.0.0.1/\n# good\nht tp://bad\n", "line 3: 'ht tp://bad'"),
        (b"# nothing\n\n", "has no URLs"),
    ],
    ids=["missing", "binary", "bad line", "empty"],
)
def test_a_bad_seeds_file_is_refused_with_the_place(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    file = tmp_path / "seeds.txt"
    if content is not None:
        file.write_bytes(content)
    line = complaint(run_crawl(["site", "-a", f"seeds_file={file}"], {}, tmp_path / "crawl"), 2)
    assert str(file) in line
    assert says in line


def test_a_crawl_without_seeds_says_how_to_give_some(tmp_path: Path, database_url: str) -> None:
    assert "scrapy seeds add" in complaint(
        run_crawl(["site"], {"DATABASE_URL": database_url}, tmp_path), 2
    )


@pytest.mark.parametrize(
    ("settings", "seed", "says"),
    [
        ({"GUARD_ALLOW_PRIVATE": False}, "http://www.test/", "say who crawls"),
        (
            {"DNS_HOSTS": {"www.test": "192.0.2.1"}},
            "http://www.test/",
            "only this machine may be crawled, not www.test",
        ),
        ({}, "http://192.0.2.1/", "not 192.0.2.1"),
        (
            {"GUARD_ALLOW_PRIVATE": False, "ROBOT_CONTACT": "mailto:a@b.test"},
            "http://127.0.0.1/",
            "private address",
        ),
    ],
)
def test_without_contact_only_this_machine_may_be_crawled(
    tmp_path: Path, settings: dict[str, object], seed: str, says: str
) -> None:
    assert says in complaint(run_crawl(["site", "-a", f"seeds={seed}"], settings, tmp_path), 2)


def test_a_database_that_can_not_be_reached_is_named(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    settings = {"DATABASE_URL": f"postgresql://me:topsecret@127.0.0.1:{port}/news"}
    for words in (["crawl", "site", "-a", HERE], ["status"], ["push", "http://127.0.0.1/"]):
        line = complaint(run_command(words, tmp_path, settings), 1)
        assert f"cannot reach Postgres at 127.0.0.1:{port}/news" in line
        assert "topsecret" not in line


@pytest.fixture
def old_postgres() -> Iterator[str]:
    """A server that says hello as Postgres 9.6 did, and no more."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    status = {
        "server_version": "9.6.24",
        "server_encoding": "UTF8",
        "client_encoding": "UTF8",
        "DateStyle": "ISO, DMY",
    }
    hello = message(b"R", struct.pack("!i", 0))
    hello += b"".join(
        message(b"S", f"{name}\0{value}\0".encode()) for name, value in status.items()
    )
    hello += message(b"K", struct.pack("!ii", 1, 1)) + message(b"Z", b"I")

    def serve(server: socket.socket) -> None:
        try:
            while True:
                client, _ = server.accept()
                with client:
                    while data := client.recv(4096):
                        encryption = (
                            len(data) == 8 and data[4:6] == b"\x04\xd2"
                        )  # asks for TLS or GSS first
                        client.sendall(b"N" if encryption else hello)
        except OSError:
            return

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"postgresql://me@127.0.0.1:{server.getsockname()[1]}/news"
        server.shutdown(socket.SHUT_RDWR)


def test_a_postgres_that_is_too_old_is_refused_with_the_version_that_is_needed(
    tmp_path: Path, old_postgres: str
) -> None:
    line = complaint(run_crawl(["site", "-a", HERE], {"DATABASE_URL": old_postgres}, tmp_path), 1)
    assert "is version 9.6" in line
    assert "14 or newer is needed" in line


def test_two_copies_of_the_code_are_refused_with_both_places(tmp_path: Path) -> None:
    copy = tmp_path / "old"
    shutil.copytree(ROOT / "spiders", copy / "spiders")
    result = run_crawl(
        ["site", "-a", HERE],
        {},
        tmp_path / "crawl",
        env={"PYTHONPATH": str(copy), "PYTHONSAFEPATH": "1"},
    )
    line = complaint(result, 1)
    assert f"spiders from {copy}" in line
    assert f"crawlproj from {ROOT}" in line


def test_a_crawl_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert f"cannot write to {file}: it is not a folder" in complaint(
        run_crawl(["site", "-a", HERE], {}, file), 1
    )


def test_a_log_file_that_can_not_be_written_is_refused(tmp_path: Path) -> None:
    settings = {"LOG_FILE": tmp_path / "nowhere" / "x.log"}
    assert "LOG_FILE: cannot write to" in complaint(
        run_crawl(["site", "-a", HERE], settings, tmp_path), 1
    )


def test_what_breaks_while_the_crawl_is_set_up_is_one_line_too(
    tmp_path: Path, database_url: str
) -> None:
    settings = {"DATABASE_URL": database_url, "CONCURRENT_REQUESTS": "many"}
    result = run_crawl(["site", "-a", HERE], settings, tmp_path)
    assert result.code == 1
    assert result.stderr.startswith("crawlproj: the crawl could not start: ValueError")
    assert len(result.stderr.splitlines()) == 1


def without_power() -> None:
    """Before exec, in the child: even root may then not write where the permissions say so."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        os._exit(77)


def test_a_crawl_dir_without_write_permission_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir(mode=0o555)
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "site",
        "-a",
        HERE,
        "-s",
        "GUARD_ALLOW_PRIVATE=1",
    ]
    for place in (folder, folder / "crawl"):
        done = subprocess.run(
            [*command, "-s", f"CRAWL_DIR={place}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=without_power,
        )
        assert "Permission denied" in complaint(
            Result(done.returncode, done.stdout, done.stderr), 1
        )


def test_the_demo_says_so_when_its_port_is_in_use(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        line = complaint(run_command(["demo", "--port", str(port)], tmp_path), 1)
    assert f"port {port} is in use" in line


def test_a_seed_that_nobody_answers_is_exit_code_3(tmp_path: Path, database_url: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        seed = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    settings = {"DATABASE_URL": database_url, "FRONTIER_RETRY_DELAY": "1h", "CRAWL_PATIENCE": 1}
    result = run_crawl(["site", "-a", f"seeds={seed}"], settings, tmp_path)
    assert result.code == 3
    assert result.stderr == "crawlproj: nothing could be fetched\n"
    assert result.stats["failed/refused"] == 1
    assert f"refused (no server listens there): {seed}" in result.stdout


def test_bad_pages_are_counted_and_named_in_the_log_and_the_crawl_goes_on(
    tmp_path: Path, database_url: str
) -> None:
    names = ("huge", "bomb", "bomb-twice", "binary", "nuls", "utf-16", "long-url", "ok")
    with DemoServer("faults") as demo:
        urls = {name: demo.url(f"{name}.fault", f"/{name}") for name in names}
        settings = {"DATABASE_URL": database_url, "DNS_HOSTS": demo.dns_hosts, "CRAWL_PATIENCE": 1}
        result = run_crawl(["site", "-a", "seeds=" + ",".join(urls.values())], settings, tmp_path)
    assert result.code == 0, result.stderr
    stats = result.stats
    assert stats["failed/too_big"] == 1
    assert stats["failed/decompression"] == 2
    assert stats["pages/binary"] == 2  # the page of NULs is the other one
    assert stats["links/too_long"] >= 1
    assert stats["end/dead"] == 3
    log = result.log
    assert f"Dead (too big): {urls['huge']}" in log
    assert f"Dead (decompression): {urls['bomb']}" in log
    assert f"Sent as text/html; charset=utf-8, but it is no text: {urls['binary']}" in log
    assert "longer than 2000 characters and left out" in log
    assert "Traceback" not in log
    read = titles(database_url)
    assert {urls[name] for name in ("binary", "nuls", "utf-16", "long-url", "ok")} <= read.keys()
    assert read[urls["utf-16"]] == "Zwölf"


def titles(database_url: str) -> dict[str, str]:
    with closing(Database(database_url)) as database:
        rows = database.run_script(
            "select u.canonical, p.title from crawlproj.page p join crawlproj.url u on u.id = p.url"
        )
    return dict(rows)
