"""Reports progress on stderr with the elapsed time, at least every 15 seconds.

Commands run with their output in a file and not on the screen: a build prints thousands of lines that matter only
when it fails, and then the end of the file is part of the error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tarsy_dev.apiserver.errors import AcquireError

_BEAT_SECONDS = 15.0
_TAIL_LINES = 30


@dataclass
class BuildProgress:
    """Lines `[mm:ss] what` on a stream; the clock starts when the object is made."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print one line with the time since the start."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"[{minutes:02d}:{seconds:02d}] {text}", file=self.stream, flush=True)


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    progress: BuildProgress,
    what: str,
    timeout_seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run one command to its end, its output in `log`, a line of progress every 15 seconds.

    The command gets a process group of its own, so that a timeout or Ctrl-C ends all it has started.

    Raises:
        AcquireError: it could not start, failed, or took too long; with the end of its log.
    """
    progress.say(what)
    deadline = time.monotonic() + timeout_seconds
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise AcquireError(f"{what}: cannot run {command[0]}: {error}") from error
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AcquireError(f"{what}: not done after {timeout_seconds:.0f} s\n{tail(log)}")
                try:
                    code = process.wait(min(_BEAT_SECONDS, left))
                    break
                except subprocess.TimeoutExpired:
                    progress.say(f"{what} ... {_last_line(log)}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        raise AcquireError(f"{what}: `{Path(str(command[0])).name}` ended with {code}\n{tail(log)}")


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log file, or a word that there are none."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(its log is empty)"


def _last_line(log: Path) -> str:
    return tail(log, 1).strip()[:100]
