"""Manages the folder of one control plane: a given folder, or a temporary one that is removed with its owner.

A process that is killed cannot remove its folder, so each temporary folder holds a lock file that lives as long as its
owner, and whoever makes the next folder first removes those whose lock nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

_PREFIX = "tarsy-kubernetes-"
_LOCK = "owner.lock"
_YOUNG_SECONDS = 60.0


class StateFolder:
    """A folder, and whether to remove it on `close`."""

    def __init__(self, given: Path | None) -> None:
        self._temporary = given is None
        if given is None:
            remove_abandoned(Path(tempfile.gettempdir()))
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        else:
            self.path = given.absolute()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = (self.path / _LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise

    def close(self) -> None:
        """Let go of the folder; a temporary one is removed."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def remove_abandoned(parent: Path) -> None:
    """Remove this user's temporary folders in `parent` whose owner is gone."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            status = folder.lstat()
            # One that was made a moment ago may not have its lock yet.
            young = time.time() - status.st_mtime < _YOUNG_SECONDS
            if young or status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
                continue
            with (folder / _LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its owner lives, or another process is removing it
            continue
