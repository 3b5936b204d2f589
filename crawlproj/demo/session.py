"""The demo web of one folder, the same in every run: its port (which is part of every URL) and its
first moment are saved in a file.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from crawlproj.demo.process import DemoProcess
from crawlproj.demo.profiles import find_profile, loopback_addresses
from crawlproj.demo.server import PortInUse, bind_sockets
from crawlproj.demo.web import Web
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.private_files import open_private

PORTS = range(8780, 8880)
"""Below those that systems give to outgoing connections, so that it is likely to be free the next
time too.
"""


@dataclass(frozen=True, slots=True)
class SavedSession:
    """What must not change between two runs."""

    port: int
    t0: float
    seed: int = 1
    profile: str = "demo"


class DemoSession:
    """The demo web of one folder, served in a child process from `start` to the end of `with`."""

    def __init__(self, file: Path, port: int = 0) -> None:
        self._file = file
        self._port = port
        self._stack = ExitStack()
        self._process: DemoProcess

    def start(self) -> None:
        saved = self._read()
        if saved is None:
            saved = SavedSession(self._port or _free_port(), time.time())
        elif self._port not in (0, saved.port):
            raise ConfigError(
                f"this demo web has port {saved.port} in its URLs: for another port take another "
                "CRAWL_DIR"
            )
        _check_free(saved, self._file)
        process = DemoProcess(saved.profile, t0=saved.t0, seed=saved.seed, port=saved.port)
        try:
            self._process = self._stack.enter_context(process)
        except RuntimeError as error:
            raise CrawlprojError(str(error)) from None
        with open(self._file, "w", opener=open_private) as file:
            file.write(json.dumps(asdict(saved)) + "\n")

    def __enter__(self) -> DemoSession:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def seed_urls(self) -> list[str]:
        """The front pages of all hosts: a crawl stays on the hosts of its seeds."""
        return [self._process.url(spec.name) for spec in self._process.profile.hosts]

    @property
    def web(self) -> Web:
        """What the process serves, as a model."""
        return self._process.web

    @property
    def dns_hosts(self) -> dict[str, str]:
        return self._process.dns_hosts

    @property
    def depth(self) -> int:
        return self._process.profile.depth

    def _read(self) -> SavedSession | None:
        try:
            return SavedSession(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise CrawlprojError(
                f"{self._file} can't be read ({error}): remove it to begin with a new demo web"
            ) from None


def _free_port() -> int:
    for port in PORTS:
        try:
            _try_port(port, "demo")
        except PortInUse:
            continue
        return port
    raise CrawlprojError(
        f"no port from {PORTS.start} to {PORTS.stop - 1} is free for the demo web: give one with "
        "--port"
    )


def _try_port(port: int, name: str) -> None:
    for sock in bind_sockets(loopback_addresses(find_profile(name)), port).values():
        sock.close()


def _check_free(saved: SavedSession, file: Path) -> None:
    try:
        _try_port(saved.port, saved.profile)
    except PortInUse:
        raise CrawlprojError(
            f"port {saved.port} is in use, and the URLs of the demo web contain it: stop what uses "
            "it (another demo?), or begin with a new demo web in another folder: -s "
            f"CRAWL_DIR=FOLDER (the port is kept in {file})"
        ) from None
    except OSError as error:
        raise CrawlprojError(
            f"the demo web can't listen on port {saved.port}: {error.strerror or error}"
        ) from None
