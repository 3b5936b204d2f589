"""What it costs to ask for pages again that have not changed: `python -m benchmarks.unchanged`.

    [--rounds 3] [--hosts 27] [--pages 75] [--changed | --deaf] [--tree FOLDER]

The web of `benchmarks.cost`, on a server that honours ETags, is crawled twice by all that crawlproj
does unless it is told otherwise. The second pass must send less than 5 % of the bytes of the first
one, and take less than 35 % of its CPU; Postgres and the reader of languages count. `--changed`:
all pages have changed instead, by a sentence each; then nothing is promised.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cost import BENCH_DIR, OURS, REVISITS, ROOT, THEIRS, crawl
from crawlproj.database.embedded.server import EmbeddedPostgres

BYTES_BAR = 0.05
CPU_BAR = 0.35
TAG = re.compile(rb'\r\nETag: ("[^"]*")\r\n')
ASKED_TAG = re.compile(rb"\r\nif-none-match:\s*([^\r]*)", re.IGNORECASE)
NEW_SENTENCE = b"A sentence that was not there before, number %d. "
REPORT = "/_sent"
CHANGE = "/_change"
DEAF = "/_deaf"


class HonestServer:
    """The responses of a web by host and path, with 304 for who has them; it counts what it
    sends.
    """

    def __init__(self, web: Any) -> None:
        self.web = web
        self.sent = 0
        self.deaf = False

    def response_to(self, host: str, request: bytes) -> bytes:
        path = request.split(b" ", 2)[1].decode("latin-1").partition("?")[0]
        if path == REPORT:
            text: bytes = self.web.answer(json.dumps({"sent": self.sent}), "application/json")
            return text
        if path == CHANGE:
            self.change_pages()
            return self.response_to(host, b"GET " + REPORT.encode() + b" HTTP/1.1")
        if path == DEAF:
            self.deaf = True
            return self.response_to(host, b"GET " + REPORT.encode() + b" HTTP/1.1")
        response: bytes = self.web.answers.get((host, path), self.web.missing)
        tag = TAG.search(response)
        asked = ASKED_TAG.search(request)
        if tag and asked and not self.deaf and tag[1] in asked[1]:
            response = b"HTTP/1.1 304 Not Modified\r\nETag: " + tag[1] + b"\r\n\r\n"
        self.sent += len(response)
        return response

    def change_pages(self) -> None:
        """Each page gets a new first sentence."""
        for number, (place, response) in enumerate(list(self.web.answers.items())):
            body = response.partition(b"\r\n\r\n")[2]
            mark = body.find(b'data-n="0">')
            if mark < 0:
                continue
            cut = mark + len(b'data-n="0">')
            text = body[:cut] + NEW_SENTENCE % number + body[cut:]
            self.web.answers[place] = self.web.answer(text.decode())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                writer.write(self.response_to(host, request))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def run_server(port: int, hosts: int, pages: int) -> None:
    spec = importlib.util.spec_from_file_location("newsweb", BENCH_DIR / "newsweb.py")
    assert spec is not None and spec.loader is not None
    newsweb = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(newsweb)
    honest = HonestServer(newsweb.Web(port, hosts, pages))
    server = await asyncio.start_server(honest.serve, "0.0.0.0", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


@contextmanager
def honest_web(port: int, hosts: int, pages: int) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.unchanged", "--serve", str(port)]
    command += ["--hosts", str(hosts), "--pages", str(pages)]
    os.sched_setaffinity(0, THEIRS)
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(0, OURS)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        yield
    finally:
        server.kill()
        server.wait()


def ask_server(port: int, path: str) -> int:
    with urllib.request.urlopen(f"http://127.0.1.1:{port}{path}") as response:
        sent: int = json.load(response)["sent"]
    return sent


def crawl_twice(port: int, hosts: int, pages: int, before_second: str, tree: Path = ROOT) -> Any:
    """Both passes: CPU per page, and bytes that the server has sent."""
    folder = Path(tempfile.mkdtemp(prefix="unchanged-"))
    again = {**REVISITS, "CLOSESPIDER_PAGECOUNT": str(hosts * pages)}
    if tree == ROOT:
        again["REVISIT_POLICY"] = "optimal"
    passes = []
    try:
        with EmbeddedPostgres(folder / "db") as postgres:
            url = postgres.start()
            for number, settings in enumerate(({}, again)):
                if number and before_second:
                    ask_server(port, before_second)
                before = ask_server(port, REPORT)
                result = crawl(
                    port, folder, url, database=folder / "db", tree=tree, settings=settings,
                    hosts=hosts,
                )  # fmt: skip
                result["sent"] = ask_server(port, REPORT) - before
                passes.append(result)
                print(json.dumps(result), flush=True)
                time.sleep(1)
    finally:
        shutil.rmtree(folder)
    return passes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=27)
    parser.add_argument("--pages", type=int, default=75)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument(
        "--tree", type=Path, default=ROOT, help="crawl with the code of another checkout"
    )
    parser.add_argument("--port", type=int, default=8973)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    if given.serve:
        asyncio.run(run_server(given.serve, given.hosts, given.pages))
        return 0
    before_second = ""
    if given.changed:
        before_second = CHANGE
    elif given.deaf:
        before_second = DEAF
    cpu = []
    sent = []
    for _ in range(given.rounds):
        with honest_web(given.port, given.hosts, given.pages):
            first, second = crawl_twice(
                given.port, given.hosts, given.pages, before_second, given.tree
            )
        cpu.append(second["cpu_us_per_page"] / first["cpu_us_per_page"])
        sent.append(second["sent"] / second["pages"] / (first["sent"] / first["pages"]))
        print(
            f"of the first pass: {sent[-1]:.1%} of the bytes, {cpu[-1]:.1%} of the CPU", flush=True
        )
    print(
        f"median: {statistics.median(sent):.1%} of the bytes, {statistics.median(cpu):.1%} of the CPU"
    )
    missed = statistics.median(sent) > BYTES_BAR or statistics.median(cpu) > CPU_BAR
    return int(missed and not before_second)


if __name__ == "__main__":
    sys.exit(main())
