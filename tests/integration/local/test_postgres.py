"""Tests LocalPostgres with real servers: every source of binaries, every way to end, every refusal."""

import asyncio
import contextlib
import inspect
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tarsy_dev.postgres import DATABASE_URL, LocalPostgres, PostgresError
from tarsy_dev.postgres import server as module
from tarsy_dev.postgres.binaries import PostgresBinaries, find_postgres, system_binaries, wheel_binaries

SOURCES = {"system": system_binaries, "wheel": wheel_binaries}
UNKNOWN_UID = 54321
rare = pytest.mark.heavy("a server of its own for a rare case")


@contextlib.contextmanager
def open_room() -> Iterator[Path]:
    """A directory that every user may enter (pytest's own is closed to others, and the server is not root)."""
    path = Path(tempfile.mkdtemp(prefix="tarsy-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def room() -> Iterator[Path]:
    """Such a directory."""
    with open_room() as path:
        yield path


@pytest.fixture
def postgres() -> Iterator[Callable[..., LocalPostgres]]:
    """Makes servers that are fast and are stopped."""
    made: list[LocalPostgres] = []

    def make(
        data_dir: Path | None = None, *, environ: dict[str, str] | None = None, **options: object
    ) -> LocalPostgres:
        made.append(LocalPostgres(data_dir, fsync=False, environ=environ or {}, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for server in made:
        server.stop()


def sql(dsn: str, statement: str) -> object:
    async def run() -> object:
        connection = await asyncpg.connect(dsn, timeout=60)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())


def gone(pid: int, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def parent(code: str, *, uid: int | None = None) -> "subprocess.Popen[str]":
    """Another process that runs a LocalPostgres and then waits; as another user if told, with a Python he can run."""
    rooms = str(Path(inspect.getfile(LocalPostgres)).parents[3])
    account: dict[str, Any] = {} if uid is None else {"user": uid, "extra_groups": ()}
    environ = {"PYTHONPATH": rooms, "PATH": os.defpath}
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            probe = [python, "-c", "import tarsy_dev.postgres"]
            if (
                subprocess.run(
                    probe, cwd="/", env=environ, stderr=subprocess.DEVNULL, check=False, **account
                ).returncode
                == 0
            ):
                break
    else:
        pytest.skip("no Python and checkout that another user can read")
    return subprocess.Popen(
        [python, "-c", f"from tarsy_dev.postgres import *\nfrom pathlib import Path\n{code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environ,
        **account,
    )


@pytest.mark.parametrize("source", ["system", pytest.param("wheel", marks=rare)])
def test_each_source_of_binaries_gives_a_working_server(source: str, postgres: Callable[..., LocalPostgres]) -> None:
    binaries = next(iter(SOURCES[source]()), None)
    if binaries is None:
        pytest.skip(f"no binaries of the {source}")
    server = postgres(binaries=binaries)
    assert str(sql(server.start(), "SHOW server_version")).startswith(str(binaries.major))
    assert sql(server.dsn, "SHOW server_encoding") == "UTF8"


@rare
def test_binaries_that_the_servers_user_cannot_reach_are_copied(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    wheel = next(iter(wheel_binaries()), None)
    if wheel is None or os.geteuid() != 0:
        pytest.skip("needs the wheel and root")
    hidden = room / "hidden"
    hidden.mkdir(mode=0o700)
    trees = tuple(Path(shutil.copytree(tree, hidden / tree.name, symlinks=True)) for tree in wheel.trees)
    binaries = PostgresBinaries(trees[0] / wheel.bin.relative_to(wheel.trees[0]), wheel.major, trees)
    assert sql(postgres(binaries=binaries).start(), "SELECT 1") == 1
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[LocalPostgres, Path]]:
    """A server that no test stops, with its directory."""
    with open_room() as room, LocalPostgres(room / "data", fsync=False, environ={}) as server:
        yield server, room / "data"


@rare
def test_it_listens_on_loopback_only_and_wants_its_password(started: tuple[LocalPostgres, Path]) -> None:
    dsn = started[0].dsn
    assert "@127.0.0.1:" in dsn
    assert sql(dsn, "SHOW listen_addresses") == "127.0.0.1"
    with pytest.raises(asyncpg.InvalidPasswordError):
        sql(dsn.replace("postgres:", "postgres:not", 1), "SELECT 1")


def test_the_password_is_in_a_private_file_and_in_no_argument(started: tuple[LocalPostgres, Path]) -> None:
    server, data = started
    password = (data / "password").read_text()
    assert stat.S_IMODE((data / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) & 0o066 == 0
    assert password not in (data / "postgres.log").read_text()
    if sys.platform == "linux":
        assert password.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert password.encode() not in Path(f"/proc/{server.pid}/environ").read_bytes()
    assert password not in repr(server)


@rare
def test_data_survives_stop_and_start_and_the_temporary_kind_leaves_nothing(
    room: Path, postgres: Callable[..., LocalPostgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    kept = postgres(room / "deep" / "data")
    sql(kept.start(), "CREATE TABLE t AS SELECT 42 AS answer")
    kept.stop()
    assert sql(postgres(room / "deep" / "data").start(), "SELECT answer FROM t") == 42
    temporary = postgres()
    temporary.start()
    temporary.stop()
    temporary.stop()
    assert [path.name for path in room.iterdir()] == ["deep"]


@rare
def test_restart_keeps_data_and_address_of_a_temporary_server(postgres: Callable[..., LocalPostgres]) -> None:
    server = postgres()
    dsn = server.start()
    sql(dsn, "CREATE TABLE t AS SELECT 42 AS answer")
    first = server.pid
    assert server.restart() == dsn
    assert server.pid != first
    assert sql(dsn, "SELECT answer FROM t") == 42


@rare
def test_a_server_that_was_killed_can_be_restarted(postgres: Callable[..., LocalPostgres]) -> None:
    server = postgres()
    sql(server.start(), "CREATE TABLE t AS SELECT 42 AS answer")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert sql(server.restart(), "SELECT answer FROM t") == 42


def test_a_second_start_over_the_same_directory_is_refused_by_name(
    started: tuple[LocalPostgres, Path], postgres: Callable[..., LocalPostgres]
) -> None:
    server, data = started
    with pytest.raises(PostgresError, match=f"is in use: process {os.getpid()}"):
        postgres(data).start()
    with pytest.raises(PostgresError, match="started already"):
        server.start()
    assert sql(server.dsn, "SELECT 1") == 1


@pytest.mark.heavy("a server of its own for a rare case")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's end")
def test_a_killed_parent_leaves_no_server_and_the_next_start_takes_the_data_over(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    code = f"""
import sys, threading
server = LocalPostgres(Path({str(room / "data")!r}), fsync=False, environ={{}})
thread = threading.Thread(target=server.start)  # a thread that ends: the server must not end with it
thread.start(); thread.join()
print(server.pid, server.dsn, flush=True)
sys.stdin.read()
"""
    with parent(code) as process:
        assert process.stdout is not None
        pid, dsn = process.stdout.readline().split()
        sql(dsn, "CREATE TABLE t AS SELECT 42 AS answer")
        process.kill()
    successor = postgres(room / "data")
    assert sql(successor.start(), "SELECT answer FROM t") == 42
    assert gone(int(pid))


@rare
def test_a_stale_pid_file_whose_pid_is_another_program_is_no_obstacle(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    server = postgres(room / "data")
    server.start()
    pid_file = room / "data" / "pgdata" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert sql(postgres(room / "data").start(), "SELECT 1") == 1


@rare
def test_a_half_made_database_is_made_again(room: Path, postgres: Callable[..., LocalPostgres]) -> None:
    (room / "data" / "pgdata.new").mkdir(parents=True)
    (room / "data" / "pgdata.new" / "PG_VERSION").write_text("15\n")
    (room / "data" / "password").touch()
    assert sql(postgres(room / "data").start(), "SELECT 1") == 1


def test_a_given_url_is_used_and_nothing_is_started(room: Path, postgres: Callable[..., LocalPostgres]) -> None:
    url = "postgresql://someone@db.example:5432/tarsy"
    server = postgres(room / "data", environ={DATABASE_URL: url})
    assert (server.start(), server.dsn, server.restart(), server.pid) == (url, url, url, None)
    server.stop()
    assert not (room / "data").exists()


def test_a_given_url_of_this_machine_where_nothing_runs_is_refused_with_the_remedy(
    postgres: Callable[..., LocalPostgres],
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        url = f"postgresql://postgres:pass-word@127.0.0.1:{port}/postgres?sslmode=disable"
        server = postgres(environ={DATABASE_URL: url})
        with pytest.raises(PostgresError, match=rf"127\.0\.0\.1:{port}.*`unset TARSY_DATABASE_URL`") as refused:
            server.start()
        assert "pass-word" not in str(refused.value)
        listening.listen()
        assert server.start() == url


@rare
def test_a_server_that_cannot_start_says_why_with_the_end_of_its_log(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    server = postgres(room / "data", settings={"max_connections": "many"})
    with pytest.raises(PostgresError, match='invalid value for parameter "max_connections"'):
        server.start()
    assert sql(postgres(room / "data").start(), "SELECT 1") == 1


@rare
def test_a_start_that_takes_too_long_is_ended(room: Path, postgres: Callable[..., LocalPostgres]) -> None:
    with pytest.raises(PostgresError, match=r"initdb took too long"):
        postgres(room / "data", start_timeout=0.01).start()
    assert sql(postgres(room / "data").start(), "SELECT 1") == 1


@rare
def test_a_port_taken_between_choice_and_start_is_chosen_again(
    postgres: Callable[..., LocalPostgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free = module._free_port
        ports = iter([taken.getsockname()[1]])
        monkeypatch.setattr(module, "_free_port", lambda: next(ports, None) or free())
        assert sql(postgres().start(), "SELECT 1") == 1


def test_a_directory_with_other_files_is_refused_and_left_alone(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    (room / "data").mkdir()
    (room / "data" / "letters.txt").write_text("dear")
    with pytest.raises(PostgresError, match="holds other files"):
        postgres(room / "data").start()
    assert [path.name for path in (room / "data").iterdir()] == ["letters.txt"]


@rare
def test_data_of_a_version_that_is_not_installed_names_both_versions(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    server = postgres(room / "data")
    server.start()
    server.stop()
    (room / "data" / "pgdata" / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresError, match=rf"written by PostgreSQL 9, .* {find_postgres().major} \("):
        postgres(room / "data").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
@rare
def test_an_ordinary_user_runs_it_as_himself(room: Path) -> None:
    shutil.chown(room, "nobody")
    code = f"""
import os
with LocalPostgres(Path({str(room / "data")!r}), fsync=False, environ={{}}) as server:
    print(os.stat(f"/proc/{{server.pid}}").st_uid == os.geteuid() != 0)
"""
    with parent(code, uid=pwd.getpwnam("nobody").pw_uid) as process:
        out, err = process.communicate(timeout=60)
    assert out.strip() == "True", err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
def test_a_user_without_an_entry_gets_a_clear_sentence() -> None:
    with parent("LocalPostgres(environ={}).start()", uid=UNKNOWN_UID) as process:
        _, err = process.communicate(timeout=60)
    assert f"user id {UNKNOWN_UID} has no entry in the user database" in err
    assert "TARSY_DATABASE_URL" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a server of another user")
@rare
def test_under_root_the_servers_user_owns_only_the_database(room: Path, postgres: Callable[..., LocalPostgres]) -> None:
    server = postgres(room / "data")
    server.start()
    owners = {path.name: path.stat().st_uid for path in (room / "data").iterdir()}
    assert server.pid is not None and Path(f"/proc/{server.pid}").stat().st_uid == owners.pop("pgdata") != 0
    assert owners.pop("password") != 0
    assert {*owners.values(), (room / "data").stat().st_uid} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_a_directory_of_another_user_is_refused(room: Path, postgres: Callable[..., LocalPostgres]) -> None:
    (room / "data").mkdir()
    shutil.chown(room / "data", "nobody")
    with pytest.raises(PostgresError, match=r"belongs to user id \d+, and this is user id 0"):
        postgres(room / "data").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a server of another user")
def test_a_directory_out_of_reach_of_the_servers_user_is_named(
    room: Path, postgres: Callable[..., LocalPostgres]
) -> None:
    (room / "private").mkdir(mode=0o700)
    with pytest.raises(PostgresError, match=r"cannot reach .*/private/data"):
        postgres(room / "private" / "data").start()
