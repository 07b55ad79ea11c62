"""Starts child processes that cannot outlive this one, and finds free ports on 127.0.0.1.

Linux kills a child with its parent on request (PR_SET_PDEATHSIG), but "parent" there is the *thread* that forked. A
thread of a pool may end long before the process does, so one thread, owned by the `Spawner`, does all the forking.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tarsy_dev.apiserver.errors import ServerStartError

_PR_SET_PDEATHSIG = 1
_LOWEST_PORT = 20000
_USUAL_EPHEMERAL_START = 32768
_PORT_TRIES = 200


class Spawner:
    """Starts children from one thread that lives until `close`, or as long as this process."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tarsy-spawner")

    def spawn(
        self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start one child, its output appended to `log`; it gets SIGKILL when this process ends in whatever way.

        Its environment is `environment`, or this process's own.

        Raises:
            ServerStartError: the program cannot be executed.
        """
        return self._thread.submit(self._fork, [str(part) for part in command], log, environment).result()

    def close(self) -> None:
        """End the thread, and with it every child still alive."""
        self._thread.shutdown()

    @staticmethod
    def _fork(command: list[str], log: Path, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            try:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    env=environment,
                    # A group of its own: Ctrl-C in the terminal must reach us first and them in order.
                    start_new_session=True,
                    preexec_fn=end_with_parent(signal.SIGKILL),
                )
            except OSError as error:
                raise ServerStartError(f"{command[0]} cannot be executed: {error}") from error


def end_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Prepares a child between fork and exec (after a change of user, which would undo it) to end with the thread
    that forked it, by this signal; None where no such thing exists.
    """
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return in_child


def end(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Ask a child to end, and kill it when it has not within the grace."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody has now, from below the kernel's range for outgoing connections.

    From inside that range, a client that retries while its server is away can be given the server's port as its own,
    connect to itself, and keep the server from coming back.
    """
    for _ in range(_PORT_TRIES):
        port = random.randrange(_LOWEST_PORT, max(_ephemeral_start(), _LOWEST_PORT + 1000))
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServerStartError(f"no free port on 127.0.0.1 from {_LOWEST_PORT} up after {_PORT_TRIES} tries")


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return _USUAL_EPHEMERAL_START
