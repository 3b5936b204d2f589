"""The user that the embedded Postgres runs as: it refuses root, so root has to become another one.

No parent folder is chmodded and no user is added: what cannot be reached is refused with advice.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crawlproj.errors import EmbeddedError
from crawlproj.private_files import allow_passage

NOBODY = 65534
# Inside the namespace we are nobody, outside we stay root: the files keep their owner.
NAMESPACE = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
ADVICE = "set DATABASE_URL, or run as an ordinary user"


@dataclass(frozen=True, slots=True)
class Account:
    """How to run a command: behind `prefix`, and as `uid`/`gid` unless they are ours (None)."""

    name: str
    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def run(
        self, command: Sequence[str], cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in a session of its own: Ctrl-C does not reach it."""
        # PG* variables of the user's shell would change the port, the data folder or the options.
        env = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        return subprocess.run(
            [*self.prefix, *command],
            cwd=cwd,
            env=env | {"LC_ALL": "C"},
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            timeout=timeout_s,
            check=False,
        )

    def chown_folder(self, path: Path) -> None:
        """Give a folder that we have made to this account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def choose_account(crawl_dir: Path, home: Path, bin_dir: Path) -> tuple[Account, int]:
    """The first account that can enter `crawl_dir` and run the binaries; their major version."""
    if not (bin_dir / "postgres").exists():
        raise EmbeddedError(f"no Postgres in {bin_dir}")
    reasons: list[str] = []
    for account in _candidates(home):
        if account.uid is not None:
            allow_passage(crawl_dir, account.uid)
        try:
            enter_and_run = ["/bin/sh", "-c", 'cd "$1" && exec "$2" -V', "sh"]
            probe = account.run(
                [*enter_and_run, str(crawl_dir), str(bin_dir / "postgres")], Path("/"), 60
            )
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"{account.name}: {error}")
            continue
        version = re.search(r"PostgreSQL\) (\d+)", probe.stdout)
        if probe.returncode == 0 and version:
            return account, int(version[1])
        reasons.append(f"{account.name}: {' '.join(probe.stdout.split()) or 'refused'}")
    reason = "; ".join(reasons)
    if os.geteuid() == 0:
        raise EmbeddedError(
            f"Postgres does not run as root and nobody else can use {crawl_dir} ({reason}): "
            f"{ADVICE}"
        )
    raise EmbeddedError(f"cannot run {bin_dir / 'postgres'}: {reason}")


def _candidates(home: Path) -> list[Account]:
    """Accounts to try, best first. A database that exists can only be run by its owner."""
    owner = None
    if home.exists():
        owner = home.stat()
    if os.geteuid() != 0:
        if owner and owner.st_uid != os.geteuid():
            raise EmbeddedError(f"{home} belongs to user id {owner.st_uid}, not to you: {ADVICE}")
        return [Account("yourself")]
    if owner and owner.st_uid != 0:
        return [Account("the owner", uid=owner.st_uid, gid=owner.st_gid)]
    namespace = Account("a user namespace", prefix=NAMESPACE)
    if (home / "data").exists():
        return [namespace]
    return [namespace, Account("nobody", uid=NOBODY, gid=NOBODY)]
