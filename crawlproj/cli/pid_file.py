"""The file that says which process runs: for those who want to stop it, or to start only one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crawlproj.errors import CrawlprojError


@contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """A block in which the file names this process. CrawlprojError if it names another that lives.

    It is written at once or not at all, and removed at the end if it is still ours.
    """
    if path is None:
        yield
        return
    try:
        _write(path)
    except OSError as error:
        raise CrawlprojError(f"--pid-file: {path}: {error.strerror or error}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            if _process_in(path) == os.getpid():
                path.unlink()


def _write(path: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        os.write(handle, f"{os.getpid()}\n".encode())
        os.fchmod(handle, 0o644)
        os.close(handle)
        try:
            # Of two that start at once, only one can make the link.
            os.link(name, path)
            return
        except FileExistsError:
            process = _process_in(path)
        if process is not None and process != os.getpid() and _is_alive(process):
            raise CrawlprojError(
                f"--pid-file: {path} names process {process}, which still runs: stop it first, or "
                "give another file"
            )
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _process_in(path: Path) -> int | None:
    """The process that a file names; None if it names none."""
    text = path.read_text(errors="replace").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise CrawlprojError(f"--pid-file: {path} is something else than a file with a process id")
    return int(text)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
