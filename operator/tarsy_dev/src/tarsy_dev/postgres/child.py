"""Ends a child process with its parent, however the parent ends.

Linux tells a child when the *thread* that created it ends (PR_SET_PDEATHSIG). So each child is created by a thread of
its own, which then waits for it: the thread lives exactly as long as the child or the process, and callers may start
a child from any thread. Elsewhere (macOS) a child outlives a parent that is killed with SIGKILL.
"""

import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tarsy_dev.apiserver.process import end_with_parent
from tarsy_dev.postgres.binaries import Account


class Child:
    """One process run as `account`, with `log` as its output, in a session of its own (Ctrl-C does not reach it)."""

    def __init__(
        self, command: Sequence[str | Path], *, account: Account, env: Mapping[str, str], log: IO[bytes]
    ) -> None:
        self._command = [str(part) for part in command]
        self._account = account
        self._env = dict(env)
        self._log = log
        self._started = threading.Event()
        self._exited = threading.Event()
        self._failure: BaseException | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Starts the process and returns its id. Raises OSError: it cannot be started."""
        threading.Thread(target=self._keep, name=f"keeper of {Path(self._command[0]).name}", daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self.pid

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    def wait(self, seconds: float) -> int | None:
        """The exit code (negative: the signal), or None when it still runs after so many seconds."""
        return self._process.returncode if self._exited.wait(seconds) and self._process is not None else None

    def stop(self, steps: Sequence[tuple[signal.Signals, float]]) -> None:
        """Sends one signal after the other, each followed by a wait of so many seconds, until the process is gone."""
        for number, seconds in steps:
            if self._process is None or self._exited.is_set():
                return
            self._process.send_signal(number)
            if self._exited.wait(seconds):
                return
        if self._process is not None and not self._exited.is_set():
            raise TimeoutError(f"process {self.pid} did not end")

    def _keep(self) -> None:
        account = self._account
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=self._env,
                user=account.uid if account.switch else None,
                group=account.gid if account.switch else None,
                extra_groups=() if account.switch else None,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGINT),
            )
        except BaseException as error:
            self._failure = error
            return
        finally:
            self._started.set()
        self._process.wait()
        self._exited.set()
