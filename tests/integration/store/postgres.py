"""A Postgres of this test session's own: the server, a migrated template, one database a test.

The databases are copies of the template, so a test costs milliseconds and sees nobody else's rows.
"""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate

TEMPLATE = "tarsy_template"


class Server:
    """One Postgres in a temporary folder on a free port; it can be stopped and started again."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="tarsy-postgres-"))
        self._user: dict[str, int] = {}
        if os.geteuid() == 0:  # Postgres refuses root
            account = pwd.getpwnam("postgres")
            self._user = {"user": account.pw_uid, "group": account.pw_gid}
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", self._data, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-N")

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _run(self, *command: str) -> None:
        subprocess.run(
            [str(self._binaries / command[0]), *command[1:]],
            check=True,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            **self._user,  # type: ignore[call-overload]
        )

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres:unused-password@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "100",
            "deadlock_timeout": "100ms",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", self._data, *settings],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                **self._user,  # type: ignore[arg-type]
            )
        ready = Path(self._data) / "postmaster.pid"
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if ready.exists() and ready.read_text().rstrip().endswith("ready"):
                return
            time.sleep(0.02)
        raise RuntimeError((self._folder / "log").read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # SIGINT: fast shutdown
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log(self) -> str:
        return (self._folder / "log").read_text()


def start_server() -> Server:
    """A running server with the template in it; skips the test where there are no binaries."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    if not folders:
        pytest.skip("no Postgres server binaries")
    server = Server(folders[0])
    server.start()
    asyncio.run(_make_template(server))
    return server


async def _make_template(server: Server) -> None:
    connection = await asyncpg.connect(server.dsn("postgres"))
    await connection.execute(f"CREATE DATABASE {TEMPLATE}")
    await connection.close()
    pool = await open_pool(server.dsn(TEMPLATE), max_size=1)
    await migrate(pool)
    await pool.close()


async def create_database(server: Server, template: str = TEMPLATE) -> str:
    """The address of a new database."""
    name = f"test_{uuid4().hex}"
    connection = await asyncpg.connect(server.dsn("postgres"))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    finally:
        await connection.close()
    return server.dsn(name)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = start_server()
    yield running
    running.remove()


@pytest.fixture
async def dsn(server: Server) -> str:
    return await create_database(server)


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    opened = await open_pool(dsn, min_size=1, max_size=12)
    yield opened
    await opened.close()
