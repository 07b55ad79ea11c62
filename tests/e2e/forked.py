"""`tarsy` processes of the tests, forked from one that has imported the product (`zygote.py`).

What runs in them is `tarsy run`, `tarsy worker` and the plugin from the command line on. That the same starts as a
program of its own is what `test_demo.py`, `test_upgrade.py` and the first command in `test_plugin.py` show.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tarsy_dev.apiserver.process import end_with_parent

ZYGOTE = Path(__file__).with_name("zygote.py")
TARSY, PLUGIN = "tarsy.cli.main", "tarsy.cli.plugin"
POLL_SECONDS = 0.02
STOP_SECONDS = 10.0
COMMAND_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


class Zygote:
    """The process that forks; started with the first child.

    Args:
        log: gets the output of the zygote itself.
        folder: gets the exit statuses.
    """

    def __init__(self, log: Path, folder: Path) -> None:
        self._log = log
        self._folder = folder
        self._environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._process: subprocess.Popen[str] | None = None
        self._children = 0

    def fork(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        log: Path | None = None,
        before: str = "",
        program: str = TARSY,
        stdin: Path | None = None,
        errors: Path | None = None,
    ) -> tuple[int, Path]:
        """Starts a `tarsy` process; returns its pid, and the file that gets its exit status.

        Args:
            arguments: the command and its options.
            environment: of the process; nothing else but PATH and HOME is passed on.
            log: its output is appended there.
            before: Python that it runs first.
            program: the module whose `main` it runs.
            stdin: its input; None: it has none.
            errors: what it says on standard error is appended there; None: to the log.
        """
        process = self._process = self._process or self._start()
        self._children += 1
        ended = self._folder / f"{self._children}.ended"
        order = {
            "program": program,
            "arguments": list(arguments),
            "environment": {**self._environment, **environment},
            "stdin": str(stdin or os.devnull),
            "log": str(log or self._log),
            "errors": str(errors or log or self._log),
            "before": before,
            "ended": str(ended),
        }
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline()), ended

    def close(self) -> None:
        """Ends the zygote, and with it all children."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> "subprocess.Popen[str]":
        self._folder.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(ZYGOTE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd="/",
                env=self._environment,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGKILL),
            )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", self._log.read_text(errors="replace")[-2000:]
        return process


def exit_status(ended: Path) -> int | None:
    """What a process left in the file for its exit status; None: it still runs."""
    try:
        return int(ended.read_text())
    except FileNotFoundError:
        return None


async def wait_for_end(ended: Path, seconds: float) -> int:
    """Waits for a process to end; its exit status. Raises TimeoutExpired: not within so many seconds."""
    deadline = time.monotonic() + seconds
    while (status := exit_status(ended)) is None:
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired("tarsy", seconds)
        await asyncio.sleep(POLL_SECONDS)
    return status


async def run_forked(
    zygote: Zygote, program: str, arguments: Sequence[str], environment: Mapping[str, str], stdin: str = ""
) -> Answer:
    """Runs a command to its end.

    Args:
        zygote: forks it.
        program: the module whose `main` it runs.
        arguments: of the command.
        environment: of the process; nothing else but PATH and HOME is passed on.
        stdin: its input.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, out, err = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin)
        pid, ended = zygote.fork(arguments, environment, log=out, program=program, stdin=given, errors=err)
        try:
            return Answer(await wait_for_end(ended, COMMAND_SECONDS), out.read_text(), err.read_text())
        finally:
            if exit_status(ended) is None:
                os.kill(pid, signal.SIGKILL)


class ForkedProcess:
    """One `tarsy` process at a time, as `tarsy_dev.operator_process.OperatorProcess` is one."""

    def __init__(
        self, zygote: Zygote, arguments: Sequence[str], environment: Mapping[str, str], log: Path, *, command: str
    ) -> None:
        self._zygote = zygote
        self._order = ([command, *arguments], dict(environment), log)
        self.pid, self._ended = self._fork()

    @property
    def alive(self) -> bool:
        """Whether it runs now."""
        return exit_status(self._ended) is None

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Asks the process to end; `wait` returns when it has."""
        self._signal(signal.SIGTERM)

    def start(self) -> None:
        """Starts the process again, where it has ended."""
        if not self.alive:
            self.pid, self._ended = self._fork()

    async def wait(self, seconds: float) -> int:
        """Waits for the process to end; its exit status. Raises TimeoutExpired: not within so many seconds."""
        return await wait_for_end(self._ended, seconds)

    async def stop(self) -> None:
        """Asks the process to end, and kills it when it has not in time."""
        self.terminate()
        try:
            await self.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            await self.wait(STOP_SECONDS)

    def _fork(self) -> tuple[int, Path]:
        arguments, environment, log = self._order
        return self._zygote.fork(arguments, environment, log=log)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
