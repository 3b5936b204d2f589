"""A network between a worker and Postgres that can be cut: a proxy on loopback in front of the
server's socket.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from select import select

LOOK_S = 0.05
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: a close is a reset


class Wire:
    """`cut`: connections are reset and new ones refused; `hang`: nothing gets through any more, but
    nothing is closed; `deafen`: questions get through, answers don't; `mend`.
    """

    def __init__(self, target: str) -> None:
        """`target` is a socket's path."""
        self._target = target
        self._open, self._cut, self._end, self._deaf = (threading.Event() for _ in range(4))
        self._open.set()
        self.refusals = 0
        """So many of the next that connect hear that the server is just starting up, as Postgres
        says it.
        """
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._cut.set()
        for pair in list(self._pairs):
            for end in pair:
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    end.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        self._open.clear()

    def deafen(self) -> None:
        self._deaf.set()

    def mend(self) -> None:
        self._deaf.clear()
        self._cut.clear()
        self._open.set()

    def close(self) -> None:
        self._end.set()
        self.cut()
        self._open.set()
        self._server.close()

    def _accept(self) -> None:
        while not self._end.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self._cut.is_set():
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            if self.refusals:
                self.refusals -= 1
                _refuse(client)
                return
            try:
                server.connect(self._target)
            except OSError:
                return
            self._pairs.add((client, server))
            with suppress(OSError):
                while self._pump(client, server):
                    pass
            self._pairs.discard((client, server))

    def _pump(self, client: socket.socket, server: socket.socket) -> bool:
        self._open.wait()
        ready, _, _ = select([client, server], [], [], LOOK_S)
        for end in ready:
            if not self._open.is_set():
                break
            data = end.recv(65536)
            if not data or self._cut.is_set():
                return False
            if end is client or not self._deaf.is_set():
                (server if end is client else client).sendall(data)
        return not self._end.is_set()


def _refuse(client: socket.socket) -> None:
    """The client asks for encryption first, is told that there is none, and then says who it is."""
    while int.from_bytes(client.recv(1024)[4:8], "big") in (80877103, 80877104):
        client.sendall(b"N")
    words = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
    client.sendall(b"E" + (len(words) + 4).to_bytes(4, "big") + words)
