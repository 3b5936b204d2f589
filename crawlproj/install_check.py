"""Two copies of the code on the path give a mixture that works nearly right: it is refused at
start.

Our packages have plain names, as in any Scrapy project, so another project's `settings` or
`spiders` may come first on the path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import PurePath

PACKAGES = ("crawlproj", "settings", "spiders", "middlewares", "pipelines")
MISSING = "nowhere"


def different_folders(files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Package -> folder (or egg) that it comes from, if that is not one and the same for all of
    them; else nothing.

    `files` gives the path of each package's `__init__.py`, an empty one if there is none; by
    default those that this process uses.
    """
    found = package_files() if files is None else files
    folders = {
        name: str(PurePath(path).parent.parent) if path else MISSING for name, path in found.items()
    }
    return folders if len(set(folders.values())) > 1 else {}


def package_files() -> dict[str, str]:
    """Where this process has, or would have, each package from; links are followed. Nothing is
    imported.
    """
    specs = {name: find_spec(name) for name in PACKAGES}
    return {
        name: os.path.realpath(spec.origin) if spec and spec.origin else ""
        for name, spec in specs.items()
    }
