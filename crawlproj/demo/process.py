"""The demo web in a child process: for tests that kill, and to keep its CPU time out of a
crawler's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import crawlproj
from crawlproj.demo.log import AccessRecord, read_access_log
from crawlproj.demo.model import Profile
from crawlproj.demo.profiles import find_profile
from crawlproj.demo.web import Web


class DemoProcess:
    """Like `DemoServer`, for a named profile, in a process that ends with the `with` block or with
    us.

    `frozen=True`: its time stands still and moves only by `advance`. The log is read back from its
    file.
    """

    def __init__(
        self,
        web: str = "demo",
        *,
        t0: float | None = None,
        speed: float = 1.0,
        seed: int = 1,
        port: int = 0,
        frozen: bool = False,
        log_path: Path | None = None,
    ) -> None:
        self.profile: Profile = find_profile(web)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if log_path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="demo-web-")
            log_path = Path(self._folder.name) / "demo.jsonl"
        self.log_path = log_path
        self._arguments = [
            "--profile",
            web,
            "--speed",
            str(speed),
            "--seed",
            str(seed),
            "--port",
            str(port),
        ]
        self._arguments += ["--log", str(self.log_path), "--control"]
        if frozen:
            self._arguments.append("--freeze")
        if t0 is not None:
            self._arguments += ["--t0", repr(t0)]

    def __enter__(self) -> DemoProcess:
        command = [sys.executable, "-m", "crawlproj.demo", *self._arguments]
        root = Path(crawlproj.__path__[0]).parent
        # A session of its own: Ctrl-C is for the crawler, which still has responses to read.
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            start_new_session=True,
        )
        hello = self._read()
        self.pid: int = self.child.pid
        self.port: int = hello["port"]
        self.dns_hosts: dict[str, str] = hello["hosts"]
        self.web = Web(
            self.profile, seed=hello["seed"], t0=hello["t0"], speed=hello["speed"], port=self.port
        )
        return self

    def __exit__(self, *error: object) -> None:
        if self.child.stdin:
            self.child.stdin.close()
        self.child.wait(timeout=20)
        if self.child.stdout:
            self.child.stdout.close()
        if self._folder:
            self._folder.cleanup()

    def url(self, name: str, path: str = "/") -> str:
        return self.web.url(name, path)

    def now(self) -> float:
        """The time of the child's clock."""
        return self._command("now")

    def advance(self, seconds: float) -> float:
        """Move a frozen clock on; returns the new time."""
        return self._command(f"advance {seconds!r}")

    def records(self) -> tuple[AccessRecord, ...]:
        """All records so far; whoever has read a response finds it here."""
        if self.child.poll() is None:
            self.now()
        return tuple(read_access_log(self.log_path))

    def _command(self, command: str) -> float:
        """Send a command to the child and return the time that it replies with."""
        assert self.child.stdin
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        reply = self._read()
        if "error" in reply:
            raise ValueError(reply["error"])
        return float(reply["now"])

    def _read(self) -> dict[str, Any]:
        assert self.child.stdout
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(
                f"the demo web did not start (exit code {self.child.wait()}); see its error output"
            )
        reply: dict[str, Any] = json.loads(line)
        return reply
