"""Runs the operator or a worker as a process of its own, and restarts it when it exits, as a kubelet would.

`tarsy dev`, the demo, the end-to-end and the chaos tests all run it this way, so what they show is `tarsy run` (and
`tarsy worker`) itself, and killing it with SIGKILL is a thing one can do by hand.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tarsy_dev.apiserver.process import Spawner, end

RESTART_SECONDS = 0.2
_STOP_SECONDS = 10.0
ON_THIS_MACHINE = ("--stdio-tools", "--url-host=localhost", "--url-host=127.0.0.0/8", "--health-port=0")
"""Options for a local process only: run commands, and connect to servers on loopback."""


class OperatorProcess:
    """Runs one process of a `tarsy` command at a time.

    Args:
        arguments: of the command.
        environment: of the process; nothing else but PATH and HOME is passed on.
        log: its output is appended there.
        command: `run`, or `worker`.

    `on_restart`, where set, is called with the exit status of one that died, before the next starts.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, *, command: str = "run"
    ) -> None:
        self._command = [sys.executable, "-m", "tarsy.cli", command, *arguments]
        self._environment = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ} | dict(environment)
        self._log = log
        self.on_restart: Callable[[int], None] | None = None
        self._spawner = Spawner()
        self._process = self._spawner.spawn(self._command, log, self._environment)

    @property
    def pid(self) -> int:
        """The id of the running process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """Sends SIGTERM; use `wait` to wait for the end."""
        self._process.terminate()

    async def keep_running(self) -> None:
        """Restarts the operator whenever it ends, until cancelled."""
        while True:
            status = await asyncio.to_thread(self._process.wait)
            if self.on_restart:
                self.on_restart(status)
            await asyncio.sleep(RESTART_SECONDS)
            self.start()

    def start(self) -> None:
        """Starts the operator if it has ended."""
        if self._process.poll() is not None:
            self._process = self._spawner.spawn(self._command, self._log, self._environment)

    async def wait(self, seconds: float) -> int:
        """Waits for the process to end; returns its exit status."""
        return await asyncio.to_thread(self._process.wait, seconds)

    async def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL after a grace period."""
        await asyncio.to_thread(end, self._process, _STOP_SECONDS)
        self._spawner.close()
