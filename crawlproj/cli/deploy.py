"""`make deploy`: scrapyd-client's deploy, which says in plain words what went wrong.

scrapyd-client prints what Scrapyd answers, a traceback in JSON, and exits with 0; and Scrapyd keeps
an egg that can't run there as its latest version. Here such a version is taken back.

    python -m crawlproj.cli.deploy [TARGET] [all else that scrapyd-deploy takes]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    exit_codes,
    print_error,
    print_lines,
)
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.formatting import format_count

EXAMPLE = "[deploy] with url = http://localhost:6800/ and project = crawlproj"
WHOSE = "crawlproj: "
"""How our own complaint begins, in what Scrapyd quotes of the egg's errors."""


def main(words: Sequence[str]) -> int:
    """Deploy to one target or to all; the exit code."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("target", nargs="?", default="default")
    parser.add_argument("-a", "--deploy-all-targets", action="store_true")
    parser.add_argument("-v", "--version")
    parser.add_argument("-p", "--project")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--build-egg")
    parser.add_argument("--egg")
    given, others = parser.parse_known_args(words)
    if given.help or given.build_egg:
        return subprocess.run(_deploy_command(words)).returncode
    targets = _targets(given)
    version = given.version or str(int(time.time()))
    options = [*others, "--version", version]
    if given.egg:
        options += ["--egg", given.egg]
    code = FINE
    for name, target in targets.items():
        project = given.project or target.get("project")
        if not project or not target.get("url"):
            raise ConfigError(f"the target {name!r} of scrapy.cfg lacks url or project: {EXAMPLE}")
        try:
            spiders = _deploy(name, target["url"], [*options, "--project", project])
        except CrawlprojError as error:
            print_error(str(error))
            _take_back(target, project, version)
            code = COULD_NOT_RUN
            continue
        print_lines(
            f"Deployed {project}, version {version}, to {target['url']}: "
            f"{format_count(spiders, 'spider')}. How to run it: docs/scrapyd.md"
        )
    return code


def _targets(given: argparse.Namespace) -> Mapping[str, Mapping[str, str]]:
    """The targets that are meant, by name; ConfigError if scrapy.cfg has none such."""
    from scrapyd_client.utils import _get_targets  # type: ignore[import-untyped]

    targets: dict[str, Mapping[str, str]] = _get_targets()
    if not targets:
        raise ConfigError(f"scrapy.cfg does not say where to deploy: give it {EXAMPLE}")
    if given.deploy_all_targets:
        return targets
    if given.target not in targets:
        raise ConfigError(
            f"scrapy.cfg has no target {given.target!r}; it has: {', '.join(sorted(targets))}"
        )
    return {given.target: targets[given.target]}


def _deploy(target: str, url: str, options: Sequence[str]) -> int:
    """Deploy to one target, and give the number of spiders; CrawlprojError if it fails."""
    done = subprocess.run(
        _deploy_command([target, *options]), capture_output=True, text=True, errors="replace"
    )
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        answer: dict[str, Any] = json.loads(line)
        if answer.get("status") == "ok":
            return int(answer.get("spiders", 0))
        raise CrawlprojError(f"{url} can't run it: {_reason(str(answer.get('message')))}")
    raise CrawlprojError(f"nothing was deployed: {_failure(url, done.stdout + done.stderr)}")


def _reason(message: str) -> str:
    """Our own complaint in what Scrapyd quotes, or the last line of a traceback."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    for line in lines:
        if WHOSE in line:
            return line.partition(WHOSE)[2]
    return lines[-1] if lines else "it does not say why"


def _failure(url: str, text: str) -> str:
    """Why the egg did not get there, in words."""
    if "Deploy failed (401)" in text or "Deploy failed (403)" in text:
        return f"{url} wants a username and a password (scrapy.cfg, in the section of the target)"
    if "Deploy failed: " in text:
        return f"no Scrapyd answers at {url} (scrapy.cfg says where it is; scrapyd starts one)"
    return _reason(text)


def _take_back(target: Mapping[str, str], project: str, version: str) -> None:
    """Remove a version that failed, so that jobs go on with the one before."""
    from scrapyd_client import ScrapydClient  # type: ignore[import-untyped]
    from scrapyd_client.exceptions import (  # type: ignore[import-untyped]
        ErrorResponse,
        MalformedResponse,
    )

    client = ScrapydClient(target["url"], target.get("username"), target.get("password", ""))
    with suppress(OSError, ErrorResponse, MalformedResponse):  # it may not even answer
        if version in client.versions(project):
            client.delversion(project, version)


def _deploy_command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "scrapyd_client.deploy", *words]


if __name__ == "__main__":
    with exit_codes():
        exit_code = main(sys.argv[1:])
    sys.exit(exit_code)
