"""A hostile web and an honest one on loopback, each a process of its own, so that what they cost
does not disturb the crawl that is measured.

By hand:
    python -m tests.support.hostile_web --list
    python -m tests.support.hostile_web --kinds classes,links-*      # one crawl of these
    python -m tests.support.hostile_web --each 1 --kinds classes,...   # one crawl for each
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fnmatch
import itertools
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from crawlproj.demo.log import AccessLog, AccessRecord, read_access_log
from crawlproj.demo.model import DemoRequest, DemoResponse
from crawlproj.demo.server import bind_sockets
from crawlproj.demo.wire import MAX_HEAD_BYTES, DemoConnection
from crawlproj.demo.words import RandomText
from tests.support.crawling import ROOT
from tests.support.hostile_kinds import KINDS, RULES, Answer, Kind, Site, page

HONEST_HOSTS = 5
HONEST_PAGES = 200
PER_ADDRESS = 2
"""Hostile hosts share their addresses."""


class Host(Protocol):
    """Something that answers."""

    @property
    def host(self) -> str: ...
    def respond(self, site: Site, path: str) -> Answer: ...


class HonestHost:
    """A host of so many ordinary pages, which all link to some others; two clicks lead to each."""

    def __init__(self, number: int, pages: int) -> None:
        self.host = f"honest{number}.test"
        text = RandomText(random.Random(number))
        self._answers = {"/robots.txt": page(RULES, type="text/plain")}
        for n in range(pages):
            links = [f"/p{(n * 14 + i) % pages}" for i in range(1, 15)]
            self._answers[f"/p{n}" if n else "/"] = page(honest_text(n, links, text))

    @property
    def paths(self) -> set[str]:
        return self._answers.keys() - {"/robots.txt"}

    def respond(self, site: Site, path: str) -> Answer:
        return self._answers.get(path) or page(b"no such page", status="404 Not Found")


def honest_text(number: int, links: Sequence[str], text: RandomText) -> bytes:
    navigation = "".join(f'<li><a href="{"/" if x == "/p0" else x}">To {x}</a></li>' for x in links)
    words = "".join(f"<p>{text.paragraph()}</p>" for _ in range(25))
    return (
        f"<!doctype html><html lang=en><head><title>Page {number}</title></head><body>"
        f"<nav><ul>{navigation}</ul></nav><main><h1>Page {number}</h1>{words}</main></body></html>"
    ).encode()


def honest_hosts(hosts: int = HONEST_HOSTS, pages: int = HONEST_PAGES) -> list[HonestHost]:
    return [HonestHost(number, pages) for number in range(1, hosts + 1)]


class Server:
    """Serves hosts until it is cancelled, and logs what it sees."""

    def __init__(self, hosts: dict[str, Host], addresses: dict[str, str], log_path: Path) -> None:
        self._hosts = hosts
        self._sockets = bind_sockets(tuple(set(addresses.values())), 0)
        self.port = next(iter(self._sockets.values())).getsockname()[1]
        self._log = AccessLog(log_path)
        self._numbers = itertools.count(1)
        for host in hosts.values():  # what is made once is made now
            for path in ("/robots.txt", "/", "/a1"):
                host.respond(Site(host.host, self.port), path)

    async def serve(self) -> None:
        servers = [
            await asyncio.start_server(self._connected, sock=sock, limit=MAX_HEAD_BYTES)
            for sock in self._sockets.values()
        ]
        await asyncio.gather(*(server.serve_forever() for server in servers))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = DemoConnection(reader, writer, next(self._numbers))
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while await self._exchange(connection):
                pass
        await connection.close()

    async def _exchange(self, connection: DemoConnection) -> bool:
        received = await connection.read_request()
        if received is None:
            return False
        request = received[0]
        started = connection.arrival_time()
        answer = self._answer(request)
        headers = (("Retry-After", f"{answer.retry_after_s:.0f}"),) if answer.retry_after_s else ()
        sent = 0
        try:
            for number, data in enumerate(answer.chunks()):
                if number and answer.pause_s and await _has_gone(connection, answer.pause_s):
                    break
                await connection.send(data)
                sent += len(data)
            if answer.end == "hang":
                while await connection.reader.read(4096):
                    pass
        finally:
            response = DemoResponse(answer.status, headers)
            self._log.add(connection.make_record(request, response, started, sent=sent))
        if answer.end == "reset":
            connection._reset()
        return answer.end == "keep"

    def _answer(self, request: DemoRequest) -> Answer:
        name = request.host.partition(":")[0].lower()
        host = self._hosts.get(".".join(name.split(".")[-2:]))
        if host is None:
            return page(b"no such host", status="404 Not Found")
        return host.respond(Site(name, self.port), request.target)


async def _has_gone(connection: DemoConnection, pause_s: float) -> bool:
    """Pause; True as soon as the client has hung up: what is sent later it does not see."""
    with contextlib.suppress(TimeoutError):
        return not await asyncio.wait_for(connection.reader.read(1), pause_s)
    return False


def addresses_of(hosts: Sequence[str], network: int, per_address: int) -> dict[str, str]:
    """Host -> address, so many hosts on each."""
    return {
        host: f"127.{network}.{number // per_address // 200}.{number // per_address % 200 + 1}"
        for number, host in enumerate(hosts)
    }


class WebProcess:
    """A web that is served by a process of its own until the `with` block ends."""

    def __init__(self, log_path: Path, *, kinds: Sequence[str] = (), honest: int = 0) -> None:
        self._log_path = log_path
        self._arguments = ["--log", str(log_path)]
        if kinds:
            self.hosts = [KINDS[name].host for name in kinds]
            self._arguments += ["--serve", "hostile", "--kinds", ",".join(kinds)]
            self.addresses = addresses_of(self.hosts, 10, PER_ADDRESS)
        else:
            self.hosts = [host.host for host in honest_hosts(honest, 1)]
            self._arguments += ["--serve", "honest", "--honest", str(honest)]
            self.addresses = addresses_of(self.hosts, 9, 1)

    def __enter__(self) -> WebProcess:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hostile_web", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self._child.stdout
        self.port = int(self._child.stdout.readline())
        return self

    def __exit__(self, *error: object) -> None:
        assert self._child.stdin
        self._child.stdin.close()
        self._child.wait(timeout=20)

    @property
    def dns_hosts(self) -> dict[str, str]:
        """With all names below each host."""
        return self.addresses | {f"*.{host}": where for host, where in self.addresses.items()}

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}:{self.port}/" for host in self.hosts]

    def records(self) -> list[AccessRecord]:
        return list(read_access_log(self._log_path))


def serve(hosts: Sequence[Host], addresses: dict[str, str], log_path: Path) -> None:
    """Say the port on standard output, then serve until standard input ends."""
    server = Server({host.host: host for host in hosts}, addresses, log_path)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(server.serve())
        ended: Callable[[], object] = task.cancel
        loop.add_reader(sys.stdin.fileno(), ended)
        print(server.port, flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--kinds", default="*")
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--honest", type=int, default=HONEST_HOSTS)
    parser.add_argument("--pages", type=int, default=HONEST_PAGES)
    parser.add_argument("--serve", choices=("hostile", "honest"))
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    names = [name for form in options.kinds.split(",") for name in fnmatch.filter(KINDS, form)]
    kinds: list[Kind] = [KINDS[name] for name in names]
    if options.list:
        print("\n".join(KINDS))
    elif options.serve == "hostile":
        serve(kinds, addresses_of([kind.host for kind in kinds], 10, PER_ADDRESS), options.log)
    elif options.serve == "honest":
        honest = honest_hosts(options.honest, options.pages)
        serve(honest, addresses_of([host.host for host in honest], 9, 1), options.log)
    else:
        from tests.support.campaign import run_by_hand

        run_by_hand(names, each=options.each, honest=options.honest)


if __name__ == "__main__":
    main()
