"""A check that all our packages come from one folder: a mixture would work nearly right.

They have plain names, as in any Scrapy project, so another project's `settings` or `spiders` may
come first on the path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import PurePath

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
