"""Runs the server as a child process over a data directory, between `start` and `stop`.

Only TCP on 127.0.0.1 with a password, no Unix socket: a socket's path would have to be short, reachable by the server's
user and safe from others at once, which a temporary directory is not on every system.
"""

import os
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import urlsplit

from tarsy_dev.postgres.binaries import Account, PostgresBinaries, find_postgres, server_account
from tarsy_dev.postgres.child import Child
from tarsy_dev.postgres.directory import LOCALE, DataDirectory
from tarsy_dev.postgres.errors import PostgresError

DATABASE_URL = "TARSY_DATABASE_URL"
SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "shared_buffers": "32MB"}
NO_FSYNC = {"fsync": "off", "full_page_writes": "off"}
PORT_TRIES = 5
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANSWER_SECONDS = 5.0
FAST_THEN_HARD = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))


class LocalPostgres:
    """A Postgres for one machine: that of TARSY_DATABASE_URL if it is set, else a child process on 127.0.0.1.

    `data_dir` is created as needed and kept; without it a temporary one is made and removed by `stop`. `fsync=False`
    is for tests: fast, outlives a killed server, lost with the machine. `settings` are further server settings,
    `start_timeout` is in seconds, `binaries` replaces the search for them. The port is kept over `restart`. Blocking:
    from asyncio, call it in a thread.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        fsync: bool = True,
        settings: Mapping[str, str] | None = None,
        start_timeout: float = 60.0,
        binaries: PostgresBinaries | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._given = data_dir
        self._settings = {**SETTINGS, **({} if fsync else NO_FSYNC), **(settings or {})}
        self._fsync = fsync
        self._timeout = start_timeout
        self._binaries = binaries
        self._environ = environ
        self._directory: DataDirectory | None = None
        self._child: Child | None = None
        self._port: int | None = None

    def start(self) -> str:
        """Starts the server and returns its DSN once it takes connections.

        Raises PostgresError: no binaries, no permission, the directory in use, or no start in time (with the log); or
            TARSY_DATABASE_URL names a server of this machine that does not run.
        """
        if url := self._environ.get(DATABASE_URL):
            _require_running(url)
            return url
        if self._directory is not None:
            raise PostgresError(f"the PostgreSQL over {self._directory.path} was started already: stop it first")
        account = server_account()
        try:
            self._directory = DataDirectory.open(self._given, account)
            self._launch(self._directory, account)
        except OSError as error:
            self.stop()
            raise PostgresError(f"PostgreSQL cannot be started as user {account.name}: {error}") from error
        except BaseException:
            self.stop()
            raise
        return self.dsn

    def stop(self) -> None:
        """Stops the server (a fast shutdown, then harder) and removes a temporary directory; again does nothing."""
        self._halt()
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def restart(self) -> str:
        """Stops and starts the server over the same data, on the same port unless someone took it meanwhile.

        Raises PostgresError: as `start`; then the server is stopped.
        """
        if self._directory is None:
            return self.start()
        self._halt()
        try:
            self._launch(self._directory, server_account())
        except BaseException:
            self.stop()
            raise
        return self.dsn

    @property
    def dsn(self) -> str:
        """Returns the connection URL with the password: not for logs. Raises PostgresError: not started.

        No client offers TLS, which a server on this machine does not have: to prepare it costs each connection
        milliseconds, and a question to the server.
        """
        if url := self._environ.get(DATABASE_URL):
            return url
        if self._directory is None:
            raise PostgresError("PostgreSQL is not started: call start() first")
        return f"postgresql://postgres:{self._directory.password()}@127.0.0.1:{self._port}/postgres?sslmode=disable"

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs as our child."""
        return self._child.pid if self._child is not None and self._child.wait(0) is None else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, directory: DataDirectory, account: Account) -> None:
        deadline = time.monotonic() + self._timeout
        directory.check_reachable()
        directory.wait_for_orphan(deadline)
        binaries = directory.reachable(self._binaries or find_postgres(directory.major))
        directory.password()
        env = {"PATH": os.defpath, "LC_ALL": LOCALE, "TZ": "UTC"}
        if directory.log.exists():
            directory.log.replace(directory.log.with_suffix(".log.1"))
        with directory.log.open("ab") as log:
            remaining = deadline - time.monotonic()
            directory.initialise(binaries, env, log, sync=self._fsync, timeout=remaining)
            for attempt in range(1, PORT_TRIES + 1):
                port = self._port or _free_port()
                if self._serve(directory, binaries, account, env, log, port, deadline):
                    self._port = port
                    return
                self._port = None
                if attempt == PORT_TRIES:
                    raise PostgresError(f"PostgreSQL found its port taken {attempt} times:\n{directory.tail()}")

    def _serve(
        self,
        directory: DataDirectory,
        binaries: PostgresBinaries,
        account: Account,
        env: Mapping[str, str],
        log: IO[bytes],
        port: int,
        deadline: float,
    ) -> bool:
        """Starts the process and waits until it is ready; False when its port was taken meanwhile."""
        options = [
            part for key, value in {**self._settings, "port": str(port)}.items() for part in ("-c", f"{key}={value}")
        ]
        child = self._child = Child(
            [binaries.bin / "postgres", "-D", directory.data, *options], account=account, env=env, log=log
        )
        pid = child.start()
        while not directory.ready(pid):
            if child.wait(0.02) is not None:
                said = directory.tail()
                if "could not create any TCP/IP sockets" in said:
                    return False
                raise PostgresError(f"PostgreSQL ended while starting in {directory.path}:\n{said}")
            if time.monotonic() > deadline:
                raise PostgresError(
                    f"PostgreSQL was not ready within {self._timeout:g} s in {directory.path}; "
                    f"its log ends:\n{directory.tail()}"
                )
        return True

    def _halt(self) -> None:
        if self._child is not None:
            self._child.stop(FAST_THEN_HARD)
            self._child = None


def _require_running(url: str) -> None:
    """Refuses the address of a server on this machine where nothing listens: that of an earlier `tarsy dev`, mostly."""
    server = urlsplit(url)
    if server.hostname not in LOOPBACK:
        return
    try:
        socket.create_connection((server.hostname, server.port or 5432), ANSWER_SECONDS).close()
    except OSError as error:
        where = f"{server.hostname}:{server.port or 5432}"
        raise PostgresError(
            f"{DATABASE_URL} names a PostgreSQL at {where} that does not run ({error}): "
            f"`unset {DATABASE_URL}` to get one of its own, or start that one"
        ) from None


def _free_port() -> int:
    """A port nobody listens on now; the caller tries again when that changed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
