"""Ends a process with its parent, in whatever way the parent ends."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Lets the kernel kill this process when its parent ends; elsewhere than on Linux the caller has to notice.

    Linux means the thread that started this process: start it from one that lives as long as the parent.

    Args:
        parent: process id of the parent.

    Raises:
        SystemExit: the parent has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def end_like_parent() -> None:
    """Ends this process at once: its parent has ended, and what it holds is for others to take over."""
    os.kill(os.getpid(), signal.SIGKILL)
