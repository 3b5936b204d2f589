"""A crawler whose event loop is late at random moments, as heavy pages make it, and a server that
notes when it was really reached, by the kernel's word.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Self

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

BLOCK_S = 0.05
EVERY_S = 0.03
LAST_DATA_RECEIVED = 52
LAST_ACK_RECEIVED = 56
TCP_INFO_BYTES = 64
"""Offsets and size of Linux' `struct tcp_info`: milliseconds since data, or an ACK, was received."""
RESET = struct.pack("ii", 1, 0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"


class LateLoop:
    """An extension that blocks the loop for up to `BLOCK_S`, again and again."""

    def __init__(self) -> None:
        self._random = Random(1)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls()
        crawler.signals.connect(extension.start, signal=signals.spider_opened)
        return extension

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(EVERY_S, self._block)

    def _block(self) -> None:
        time.sleep(self._random.random() * BLOCK_S)
        later_s = self._random.random() * EVERY_S
        if later_s < EVERY_S / 2:
            self._loop.call_soon(self._block)
        else:
            self._loop.call_later(later_s, self._block)


class TimedServer:
    """Hosts of one address: `port` serves `pages` pages that link each other, `reset_port` resets
    whatever connects. `arrivals`: when a request, or such a connection, came.
    """

    def __init__(self, address: str, pages: int) -> None:
        self.arrivals: list[float] = []
        self._pages = pages
        self._good = self._listen(address)
        self._bad = self._listen(address)
        self.port: int = self._good.getsockname()[1]
        self.reset_port: int = self._bad.getsockname()[1]

    @staticmethod
    def _listen(address: str) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family)
        sock.bind((address, 0))
        sock.listen(500)
        return sock

    def __enter__(self) -> Self:
        for accept in (self._accept_good, self._accept_bad):
            threading.Thread(target=accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._good, self._bad):
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def gaps(self) -> list[float]:
        """The times between one arrival and the next."""
        ordered = sorted(self.arrivals)
        return [after - before for before, after in pairwise(ordered)]

    def _note(self, connection: socket.socket, offset: int) -> None:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        ago_s = struct.unpack_from("=I", facts, offset)[0] / 1000
        self.arrivals.append(time.monotonic() - ago_s)

    def _accept_good(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._good.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _accept_bad(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._bad.accept()
                self._note(connection, LAST_ACK_RECEIVED)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while head := connection.recv(65_536):
                self._note(connection, LAST_DATA_RECEIVED)
                body = b"User-agent: *\nDisallow:\n"
                path = head.split(b" ")[1]
                if path != b"/robots.txt":
                    links = range(self._pages)
                    body = b"".join(b'<a href="/%d">one more</a>' % number for number in links)
                connection.sendall(HEAD % len(body) + body)
