"""Creates and checks a data directory: owner, contents, version.

It is guarded by a lock of ours beside the server's own pid file. A free lock over a pid file means that the owner was
killed: its server is on its way out, so the next start waits for it instead of being refused; a pid that by now belongs
to another program (a container's first pids do) is recognised and its file removed.

The server's user owns only the database files: under root everything else stays root's, so that nothing root writes
here (log, lock, copied binaries) goes where that user wants it.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

from tarsy_dev.postgres.binaries import Account, PostgresBinaries
from tarsy_dev.postgres.child import Child
from tarsy_dev.postgres.errors import PostgresError

LOCALE = "C.UTF-8" if sys.platform == "linux" else "C"
TAIL = 2000


class DataDirectory:
    """An open data directory: `pgdata`, `password`, `postgres.log`, `lock`. Made by `open`, ended by `close`."""

    def __init__(self, path: Path, account: Account, *, temporary: bool, lock: IO[bytes]) -> None:
        self.path = path
        self.data = path / "pgdata"
        self.log = path / "postgres.log"
        self._account = account
        self._temporary = temporary
        self._lock = lock

    @classmethod
    def open(cls, given: Path | None, account: Account) -> Self:
        """Creates the directory as needed (a temporary one when none is given) and locks it.

        Raises PostgresError: it is in use, belongs to someone else, holds other things, or cannot be reached.
        """
        path = Path(tempfile.mkdtemp(prefix="tarsy-postgres-")) if given is None else given.absolute()
        if given is not None:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        _claim(path, account)
        lock = (path / "lock").open("a+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().decode(errors="replace").strip()
            lock.close()
            raise PostgresError(
                f"{path} is in use: process {owner or '(unknown)'} runs a PostgreSQL over it; "
                "stop that one first, or choose another directory"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        return cls(path, account, temporary=given is None, lock=lock)

    def unlock(self) -> None:
        """Lets others use the directory."""
        self._lock.close()

    def close(self) -> None:
        """Unlocks the directory and removes it when it is temporary."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self.unlock()

    @property
    def major(self) -> int | None:
        """The PostgreSQL version that wrote the data, None when there is none yet."""
        with contextlib.suppress(FileNotFoundError):
            return int((self.data / "PG_VERSION").read_text())
        return None

    def password(self) -> str:
        """The superuser's password; made at the first call and kept in a file of mode 0600."""
        path = self.path / "password"
        with contextlib.suppress(FileNotFoundError):
            if kept := path.read_text():
                return kept
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            if self._account.switch:
                os.fchown(descriptor, self._account.uid, self._account.gid)
            file.write(secrets.token_hex(24))
        return path.read_text()

    def reachable(self, binaries: PostgresBinaries) -> PostgresBinaries:
        """These binaries, or a copy in this directory when the server's user cannot run them where they are.

        Raises PostgresError: it cannot, and they are not of a kind that runs from elsewhere.
        """
        if self._may_use(binaries.bin / "postgres"):
            return binaries
        if not binaries.trees:
            raise PostgresError(
                f"user {self._account.name} may not run {binaries.bin / 'postgres'}: open its directories"
            )
        return binaries.copied_to(self.path / "binaries")

    def check_reachable(self) -> None:
        """Raises PostgresError: the server's user cannot get to this directory."""
        if not self._may_use(self.path):
            raise PostgresError(
                f"PostgreSQL runs as user {self._account.name}, who cannot reach {self.path}: choose a directory whose "
                "parents others may enter (not below /root), or run as an ordinary user"
            )

    def wait_for_orphan(self, deadline: float) -> None:
        """Waits until the server of an owner that was killed is gone, at most to `deadline` (monotonic seconds).

        Raises PostgresError: it still runs.
        """
        file = self.data / "postmaster.pid"
        while (pid := _pid_in(file)) is not None and _alive(pid):
            if (there := _working_directory(pid)) is not None and there != self.data:
                file.unlink(missing_ok=True)
                return
            if time.monotonic() > deadline:
                raise PostgresError(
                    f"process {pid} is a PostgreSQL over {self.data} whose owner is gone, and it does not end: "
                    f"end it with `kill -INT {pid}`"
                )
            time.sleep(0.05)  # not our child: there is no event to wait for

    def initialise(
        self, binaries: PostgresBinaries, env: Mapping[str, str], log: IO[bytes], *, sync: bool, timeout: float
    ) -> None:
        """Makes the database files, all or nothing: a start that is killed half-way is begun again.

        Raises PostgresError: initdb failed or took longer than `timeout` seconds.
        """
        if self.major is not None:
            return
        draft = self.path / "pgdata.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self._account.switch:
            os.chown(draft, self._account.uid, self._account.gid)
        child = Child(
            [
                binaries.bin / "initdb",
                *("-D", draft, "-U", "postgres", "-E", "UTF8", f"--locale={LOCALE}", "-A", "scram-sha-256"),
                f"--pwfile={self.path / 'password'}",
                *(() if sync else ("--no-sync",)),
            ],
            account=self._account,
            env=env,
            log=log,
        )
        child.start()
        try:
            code = child.wait(timeout)
        finally:
            child.stop([(signal.SIGINT, 2.0), (signal.SIGKILL, 5.0)])
        if code != 0:
            what = "took too long" if code is None else f"failed with exit code {code}"
            raise PostgresError(f"initdb {what} in {self.path}:\n{self.tail()}")
        shutil.rmtree(self.data, ignore_errors=True)
        draft.rename(self.data)

    def ready(self, pid: int) -> bool:
        """Whether the server with this process id takes connections (its pid file says so on line eight)."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"
        return False

    def tail(self) -> str:
        """The end of the server's log."""
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_bytes()[-TAIL:].decode(errors="replace").strip()
        return ""

    def _may_use(self, path: Path) -> bool:
        if not self._account.switch:
            return os.access(path, os.X_OK)
        asked = subprocess.run(
            ["/bin/sh", "-c", 'test -x "$0"', str(path)],
            cwd="/",
            user=self._account.uid,
            group=self._account.gid,
            extra_groups=(),
            check=False,
        )
        return asked.returncode == 0


def _claim(path: Path, account: Account) -> None:
    """Makes a new directory ours, entered by the server's user; refuses one that is not ours or holds other things."""
    try:
        held = {entry.name for entry in path.iterdir()}
    except PermissionError:
        raise PostgresError(f"{path} may not be read by user {account.name}: choose another directory") from None
    owner = path.stat().st_uid
    if held and not held & {"lock", "pgdata", "password"}:
        raise PostgresError(f"{path} holds other files, and a data directory must be new or empty: choose another one")
    if owner != os.geteuid():
        raise PostgresError(
            f"{path} belongs to user id {owner}, and this is user id {os.geteuid()}: "
            "start as the user who made it, or choose another directory"
        )
    path.chmod(0o711 if account.switch else 0o700)


def _pid_in(file: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
        return int(file.read_text().splitlines()[0])
    return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _working_directory(pid: int) -> Path | None:
    """Returns the working directory of the process, which is the data directory of a server; None if unknown."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink()
    return None
