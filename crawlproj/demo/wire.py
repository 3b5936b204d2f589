"""One connection of the demo server: read requests, write responses or faults, keep records."""

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
TRIES = 5
PROMPT_S = 0.002
LAST_DATA_SENT = 44
LAST_DATA_RECEIVED = 52
TCP_INFO_BYTES = 56
"""Offsets and size of Linux' `struct tcp_info`: milliseconds since data was sent and received."""


def parse_request(head: bytes) -> tuple[DemoRequest, bool]:
    """The request, and whether the connection stays open; ValueError if this is not HTTP/1."""
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


def format_response(response: DemoResponse, method: str, keep_alive: bool) -> bytes:
    """A whole response as bytes."""
    bodiless = response.status in (204, 304) or response.status < 200
    lines = [
        f"HTTP/1.1 {response.status} {responses.get(response.status, 'Unusual')}",
        f"Date: {formatdate(usegmt=True)}",
    ]
    lines += [f"{name}: {value}" for name, value in response.headers]
    if not bodiless:
        lines.append(f"Content-Length: {len(response.body)}")
    if not keep_alive:
        lines.append("Connection: close")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    if bodiless or method == "HEAD":
        return head
    return head + response.body


@dataclass(slots=True)
class DemoConnection:
    """The two directions of one connection, with what the log needs to know about it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int

    async def read_request(self) -> tuple[DemoRequest, bool] | None:
        """The next request, and whether the connection stays open after it.

        None: the client has gone or been silent for too long.
        """
        try:
            head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), IDLE_S)
            request, keep_alive = parse_request(head)
            length = int(request.headers.get("content-length", 0))
            await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            return None
        except (ValueError, asyncio.LimitOverrunError):
            self.writer.write(format_response(DemoResponse(400), "GET", False))
            return None
        return request, keep_alive

    def arrival_time(self) -> tuple[float, float]:
        """When the last bytes of the request came: on the monotonic clock, and in unix time."""
        return self._moment(LAST_DATA_RECEIVED)

    def _moment(self, offset: int) -> tuple[float, float]:
        """When data was last sent or received: on the monotonic clock, and in unix time.

        It is as the kernel saw it, where it says so: this process may have been too busy to look.
        """
        ago_s = 0.0
        now = time.monotonic()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                ago_s, now = self._seconds_since(offset)
        return now - ago_s, time.time() - (time.monotonic() - now) - ago_s

    def _seconds_since(self, offset: int) -> tuple[float, float]:
        """How long ago it was, and when that was asked; once more if we had to wait meanwhile."""
        sock = self.writer.get_extra_info("socket")
        for _ in range(TRIES):
            before = time.monotonic()
            facts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
            after = time.monotonic()
            if after - before < PROMPT_S:
                break
        return struct.unpack_from("=I", facts, offset)[0] / 1000, after

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def play_fault(self, fault: Fault) -> int:
        """Send a fault's chunks and end as it ends; returns the bytes sent.

        The connection is of no use afterwards.
        """
        sent = 0
        for number, chunk in enumerate(fault.chunks()):
            if number and fault.pause_s:
                await asyncio.sleep(fault.pause_s)
            await self.send(chunk)
            sent += len(chunk)
        if fault.end == "hang":
            while await self.reader.read(4096):
                pass
        elif fault.end == "reset":
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
        self, request: DemoRequest, response: DemoResponse, started: tuple[float, float], sent: int
    ) -> AccessRecord:
        """The record of a response that has ended just now."""
        peer_host, peer_port = self.writer.get_extra_info("peername")[:2]
        local_host = self.writer.get_extra_info("sockname")[0]
        header = request.headers.get
        started_s, started_at = started
        ended_s = time.monotonic()
        ended_at = time.time()
        if sent:
            ended_s, ended_at = self._moment(LAST_DATA_SENT)
        retry_after_s = 0.0
        retry_after = dict(response.headers).get("Retry-After", "")
        if retry_after.isdigit():
            retry_after_s = float(retry_after)
        fault = ""
        if response.fault:
            fault = response.fault.name
        return AccessRecord(
            started_s,
            max(started_s, ended_s),
            started_at,
            ended_at=max(started_at, ended_at),
            connection=self.number,
            peer=f"{peer_host}:{peer_port}",
            local=local_host,
            host=request.host,
            method=request.method,
            path=request.target,
            status=response.status,
            bytes_sent=sent,
            user_agent=header("user-agent", ""),
            if_none_match=header("if-none-match", ""),
            if_modified_since=header("if-modified-since", ""),
            accept_encoding=header("accept-encoding", ""),
            cookie=header("cookie", ""),
            retry_after_s=retry_after_s,
            fault=fault,
        )
