"""One connection of the demo server: read a request, write an answer or play a fault, write down
what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import time
from dataclasses import dataclass
from email.utils import formatdate
from http.client import responses

from crawlproj.demo.log import AccessRecord
from crawlproj.demo.model import DemoRequest, DemoResponse, Fault

MAX_HEAD_BYTES = 64 * 1024
IDLE_S = 75.0
LAST_DATA_SENT = 44
LAST_DATA_RECEIVED = 52
TCP_INFO_BYTES = 56
"""Where Linux' `struct tcp_info` holds the milliseconds since data went and came."""


def parse_request(head: bytes) -> tuple[DemoRequest, bool]:
    """The request and whether the connection stays open after it; ValueError: this is
    not HTTP/1.
    """
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"not HTTP/1: {version[:20]!r}")
    headers = {}
    for line in filter(None, lines[1:]):
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"a header without a colon: {name[:60]!r}")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    keep = "close" not in connection and (version != "HTTP/1.0" or "keep-alive" in connection)
    host = headers.get("host", "")
    if target.startswith("http://"):
        host, _, target = target[7:].partition("/")
        target = f"/{target}"
    return DemoRequest(host, target.partition("#")[0], method, headers=headers), keep


def format_response(answer: DemoResponse, method: str, keep: bool) -> bytes:
    """A whole answer as bytes."""
    bodiless = answer.status in (204, 304) or answer.status < 200
    lines = [
        f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unusual')}",
        f"Date: {formatdate(usegmt=True)}",
    ]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [] if bodiless else [f"Content-Length: {len(answer.body)}"]
    lines += [] if keep else ["Connection: close"]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if bodiless or method == "HEAD" else head + answer.body


@dataclass(slots=True)
class DemoConnection:
    """The two directions of one connection, with what the log wants to know about it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int

    async def read_request(self) -> tuple[DemoRequest, bool] | None:
        """The next request; None: the client has gone or been silent for too long."""
        try:
            head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), IDLE_S)
            request = parse_request(head)
            length = int(request[0].headers.get("content-length", 0))
            await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            return None
        except (ValueError, asyncio.LimitOverrunError):
            self.writer.write(format_response(DemoResponse(400), "GET", False))
            return None
        return request

    def arrival_time(self) -> tuple[float, float]:
        """When the last bytes of the request came."""
        return self._moment(LAST_DATA_RECEIVED)

    def _moment(self, place: int) -> tuple[float, float]:
        """On the monotonic clock and in unix time: as the kernel saw it, where it tells, since this
        process may have been too busy to look.
        """
        ago_s = 0.0
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                facts = self.writer.get_extra_info("socket").getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES
                )
                ago_s = struct.unpack_from("=I", facts, place)[0] / 1000
        return time.monotonic() - ago_s, time.time() - ago_s

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def play_fault(self, fault: Fault) -> int:
        """Send a fault's chunks and end as it ends; returns the bytes sent. The connection is then
        of no use.
        """
        sent = 0
        for number, chunk in enumerate(fault.chunks()):
            if number and fault.pause_s:
                await asyncio.sleep(fault.pause_s)
            await self.send(chunk)
            sent += len(chunk)
        if fault.then == "hang":
            while await self.reader.read(4096):
                pass
        elif fault.then == "reset":
            self._reset()
        return sent

    def _reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError, TimeoutError):
            await self.writer.wait_closed()

    def make_record(
        self, ask: DemoRequest, answer: DemoResponse, started: tuple[float, float], sent: int
    ) -> AccessRecord:
        peer = self.writer.get_extra_info("peername")
        local = self.writer.get_extra_info("sockname")
        header = ask.headers.get
        replied = dict(answer.headers)
        wait = replied.get("Retry-After", "")
        ended = self._moment(LAST_DATA_SENT) if sent else (time.monotonic(), time.time())
        return AccessRecord(
            started[0],
            max(started[0], ended[0]),
            started[1],
            ended_at=max(started[1], ended[1]),
            connection=self.number,
            peer=f"{peer[0]}:{peer[1]}",
            local=local[0],
            host=ask.host,
            method=ask.method,
            path=ask.target,
            status=answer.status,
            bytes_sent=sent,
            user_agent=header("user-agent", ""),
            if_none_match=header("if-none-match", ""),
            if_modified_since=header("if-modified-since", ""),
            accept_encoding=header("accept-encoding", ""),
            cookie=header("cookie", ""),
            retry_after_s=float(wait) if wait.isdigit() else 0.0,
            fault=answer.fault.name if answer.fault else "",
        )
