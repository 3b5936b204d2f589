"""Checks of the installation, before anything of it is used.

All our packages must come from one folder: a mixture would work nearly right. They have plain
names, as in any Scrapy project, so another project's `settings` or `spiders` may come first on the
path. And where an egg of ours runs (Scrapyd), its Python must have what we need: nobody has
installed it there for us.

This module imports nothing that may be missing: Scrapy itself needs `packaging`.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import zipfile
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, version
from importlib.util import find_spec
from pathlib import Path, PurePath

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PACKAGES = ("crawlproj", "settings", "spiders", "middlewares", "pipelines")
MISSING = "nowhere"


def different_folders(files: Mapping[str, str] | None = None) -> dict[str, str]:
    """The folder (or egg) of each package if they differ; empty if all come from one.

    `files` gives the path of each package's `__init__.py`, "" for a missing one; by default those
    that this process uses.
    """
    if files is None:
        files = package_files()
    folders = {}
    for name, path in files.items():
        folders[name] = str(PurePath(path).parent.parent) if path else MISSING
    if len(set(folders.values())) == 1:
        return {}
    return folders


def package_files() -> dict[str, str]:
    """The `__init__.py` from which this process has, or would have, each package; "" if none.

    Links are followed; nothing is imported.
    """
    files = {}
    for name in PACKAGES:
        spec = find_spec(name)
        files[name] = ""
        if spec and spec.origin:
            files[name] = os.path.realpath(spec.origin)
    return files


def check_egg(path: str) -> None:
    """End the program with one line if the egg that holds this file can't run in this Python.

    Scrapyd shows that line to whoever deploys. Nothing is checked outside of an egg.
    """
    metadata = _egg_metadata(Path(path).parent.parent)
    if metadata is None:
        return
    complaint = environment_complaint(metadata)
    if complaint:
        raise SystemExit(f"crawlproj: {complaint}")


def _egg_metadata(egg: Path) -> Distribution | None:
    if egg.is_file():
        return PathDistribution(zipfile.Path(egg, "EGG-INFO/"))
    if (egg / "EGG-INFO").is_dir():
        return PathDistribution(egg / "EGG-INFO")
    return None


def environment_complaint(metadata: Distribution) -> str:
    """What is wrong with this Python for a package, and the command that helps; empty if nothing
    is.
    """
    wanted = metadata.metadata["Requires-Python"]
    if wanted and platform.python_version() not in SpecifierSet(wanted, prereleases=True):
        return (
            f"{sys.executable} is Python {platform.python_version()}, and {wanted} is needed: run "
            "Scrapyd with another one"
        )
    unmet = unmet_requirements(metadata.requires or ())
    if not unmet:
        return ""
    parts = []
    missing = [need.name for need, found in unmet if not found]
    if missing:
        parts.append(f"lacks {', '.join(missing)}")
    other = [f"{need.name} {found} instead of {need.specifier}" for need, found in unmet if found]
    if other:
        parts.append(f"has {', '.join(other)}")
    packages = shlex.join(str(requirement) for requirement, _ in unmet)
    return (
        f"the Python of this Scrapyd {' and '.join(parts)}. Install it there: "
        f"{shlex.quote(sys.executable)} -m pip install {packages}"
    )


def unmet_requirements(requirements: Iterable[str]) -> list[tuple[Requirement, str]]:
    """Requirements that this Python does not meet, each with the version that it has; "": none."""
    unmet = []
    for line in requirements:
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        requirement.marker = None
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            found = ""
        if not found or not requirement.specifier.contains(found, prereleases=True):
            unmet.append((requirement, found))
    return unmet
