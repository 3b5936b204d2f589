"""Two copies of the code on the path; and what a Python lacks for an egg of ours."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution, version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.install_check import PACKAGES, different_folders, environment_complaint

ROOT = Path(__file__).resolve().parents[2]
folders = st.from_regex(r"/[a-z]{1,8}(/[a-z .]{1,8}){0,3}", fullmatch=True).filter(
    lambda path: str(Path(path)) == path
)


def ask(folder: Path, *path: Path) -> dict[str, str]:
    """What a process says that is started in `folder` with `path` as PYTHONPATH."""
    program = "import json, crawlproj.install_check as c; print(json.dumps(c.different_folders()))"
    env = {"PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@given(folders)
def test_packages_beside_each_other_are_one_copy(folder: str) -> None:
    assert different_folders({name: f"{folder}/{name}/__init__.py" for name in PACKAGES}) == {}


@given(folders, folders, st.sampled_from(PACKAGES))
def test_a_package_from_elsewhere_is_named_with_all_folders(
    here: str, there: str, stranger: str
) -> None:
    files = {name: f"{there if name == stranger else here}/{name}/__init__.py" for name in PACKAGES}
    wanted = (
        {name: there if name == stranger else here for name in PACKAGES} if here != there else {}
    )
    assert different_folders(files) == wanted


@pytest.mark.parametrize("missing", PACKAGES)
def test_a_missing_package_is_named(missing: str) -> None:
    found = different_folders(
        {name: "" if name == missing else f"/x/{name}/__init__.py" for name in PACKAGES}
    )
    assert found[missing] == "nowhere"


def test_this_process_has_one_copy() -> None:
    assert different_folders() == {}


def test_a_spiders_folder_of_another_project_is_found(tmp_path: Path) -> None:
    (tmp_path / "spiders").mkdir()
    (tmp_path / "spiders" / "__init__.py").touch()
    found = ask(tmp_path, ROOT)
    assert found["spiders"] == str(tmp_path.resolve())
    assert {found[name] for name in PACKAGES if name != "spiders"} == {str(ROOT)}


def test_the_same_folder_by_a_link_is_one_copy(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).symlink_to(ROOT / name)
    assert ask(tmp_path, ROOT) == {}


def test_an_egg_is_a_folder_too(tmp_path: Path) -> None:
    egg = tmp_path / "crawlproj.egg"
    empty = tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(egg, "w") as archive:
        for name in PACKAGES:
            archive.write(ROOT / name / "__init__.py", f"{name}/__init__.py")
        archive.write(ROOT / "crawlproj" / "install_check.py", "crawlproj/install_check.py")
    assert ask(empty, egg) == {}
    (empty / "settings").mkdir()
    (empty / "settings" / "__init__.py").touch()
    found = ask(empty, egg)
    assert found["settings"] == str(empty.resolve())
    assert found["crawlproj"] == str(egg.resolve())


def described(folder: Path, *requires: str, python: str = ">=3.11") -> PathDistribution:
    """A package that says what it needs."""
    folder.mkdir()
    lines = ["Name: some", "Version: 1", f"Requires-Python: {python}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    (folder / "PKG-INFO").write_text("\n".join(lines))
    return PathDistribution(folder)


def test_what_a_python_lacks_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    installed = version("scrapy")
    complaint = environment_complaint(
        described(
            tmp_path / "bad",
            "scrapy>=99,<100",
            "No.Such_thing>=1.5",
            f"lxml=={version('lxml')}",
            "not-needed>=2; extra == 'test'",
            "not-here; python_version < '3'",
        )
    )
    assert complaint == (
        f"the Python of this Scrapyd lacks No.Such_thing and has scrapy {installed} instead of "
        f"<100,>=99. Install it there: {sys.executable} -m pip install 'scrapy<100,>=99' "
        "'No.Such_thing>=1.5'"
    )
    assert environment_complaint(described(tmp_path / "good", "scrapy", "lxml>=1")) == ""


def test_a_python_that_is_too_old_is_named(tmp_path: Path) -> None:
    complaint = environment_complaint(described(tmp_path / "old", python=">=99"))
    assert f"is Python {platform.python_version()}, and >=99 is needed" in complaint
