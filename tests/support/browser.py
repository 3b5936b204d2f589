"""A real browser: headless Chromium through a pipe, which is all that its protocol needs, and what
a reader sees in it.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 30.0
SETTLED_S = 0.3
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--window-size=900,600",
)
SEEN = """(() => {
    const replayed = document.querySelector('#replay_iframe');
    const page = replayed ? replayed.contentDocument : document;
    if (!page || !page.body || page.URL === 'about:blank') return '';
    const frames = [...page.querySelectorAll('iframe')].map(frame => frame.contentDocument.body.innerText);
    const images = [...page.images].map(image => [image.naturalWidth, image.naturalHeight]);
    const colour = page.defaultView.getComputedStyle(page.body).color;
    return JSON.stringify([page.readyState, page.title, page.body.innerText, frames, images, colour]);
})()"""
"""Of the page, or of the page that pywb shows in a frame."""


def chromium() -> str:
    """Where it is. Without one: skipped, but in CI a failure, or nobody would notice."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    reason = "no Chromium on the path (apt install chromium)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """As a context manager: nothing of it outlives the block."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [chromium(), *OPTIONS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(3, 4),
            start_new_session=True,
            preexec_fn=partial(_connect, to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._heard: list[dict[str, Any]] = []
        target = self._do("Target.createTarget", {"url": "about:blank"}, "")["targetId"]
        self._session = ""
        self._session = self._do(
            "Target.attachToTarget", {"targetId": target, "flatten": True}, ""
        )["sessionId"]
        self._do("Page.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for _ in range(50):  # its children die a moment later
            shutil.rmtree(self._profile, ignore_errors=True)
            if not Path(self._profile).exists():
                break
            time.sleep(0.1)

    def look(self, url: str, is_it: Callable[[list[Any]], bool] | None = None) -> list[Any]:
        """State, title, visible text, texts of frames, sizes of images, colour of the text: when
        they no longer change, or are what is waited for.
        """
        self._heard.clear()
        went = self._do("Page.navigate", {"url": url})
        assert "errorText" not in went, went
        self._wait(lambda heard: heard.get("method") == "Page.loadEventFired")
        deadline = time.monotonic() + PATIENCE_S
        last = ""
        since = time.monotonic()
        while True:
            answer = self._do("Runtime.evaluate", {"expression": SEEN})["result"].get("value", "")
            if answer != last:
                last = answer
                since = time.monotonic()
            seen = json.loads(answer) if answer else []
            settled = seen and seen[0] == "complete" and time.monotonic() - since > SETTLED_S
            if (settled and (is_it is None or is_it(seen))) or time.monotonic() > deadline:
                return list(seen)
            time.sleep(0.05)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._do("Page.captureScreenshot")["data"]))

    def _do(
        self, method: str, params: dict[str, Any] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session is None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda heard: heard.get("id") == number)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for number, heard in enumerate(self._heard):
                if is_it(heard):
                    del self._heard[: number + 1]
                    return heard
            self._heard = [heard for heard in self._heard if "method" in heard][-200:]
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            assert data, (
                "the browser says nothing more (it is "
                f"{'gone' if self._process.poll() is not None else 'there'})"
            )
            *messages, self._buffer = (self._buffer + data).split(b"\0")
            self._heard += [json.loads(message) for message in messages]


def _connect(to_browser: int, from_browser: int) -> None:
    """Chromium reads from 3 and writes to 4, whatever numbers the pipes have here."""
    reads, writes = (fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (to_browser, from_browser))
    os.dup2(reads, 3)
    os.dup2(writes, 4)
