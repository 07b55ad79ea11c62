"""Reads the limits of the pod (or machine) that this process runs in: CPU cores and memory.

The limits are those of the control group, version 2 or 1, and of its parents: in a container its own group is the root
of what it sees, elsewhere it is named in /proc/self/cgroup. The CPUs that this process may run on bound the cores.
"""

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_UNLIMITED_BYTES = 1 << 60
"""Version 1 has no word for unlimited memory, but a number about as large as the address space."""


def cores(groups: Path = _GROUPS, own: Path = _OWN, cpus: int | None = None) -> int:
    """Returns the cores of the pod: its CPU limit rounded up, at most the CPUs that it may run on; at least 1.

    Args:
        groups: where the control groups are mounted.
        own: the file that names the group of this process.
        cpus: number of CPUs that this process may run on; None: ask the system.
    """
    limits = [*_limits(groups, own, "", _quota_v2), *_limits(groups, own, "cpu", _quota_v1)]
    usable = _usable_cpus() if cpus is None else cpus
    return max(1, min([usable, *(math.ceil(limit) for limit in limits)]))


def memory_bytes(groups: Path = _GROUPS, own: Path = _OWN) -> int | None:
    """Returns the memory limit of the pod in bytes; None: it has none.

    Args:
        groups: where the control groups are mounted.
        own: the file that names the group of this process.
    """
    limits = [*_limits(groups, own, "", _memory_v2), *_limits(groups, own, "memory", _memory_v1)]
    return min((int(limit) for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits(groups: Path, own: Path, controller: str, read: Callable[[Path], float | None]) -> Iterator[float]:
    """Yields the limits of the group of this process and of its parents.

    Args:
        groups: where the control groups are mounted.
        own: the file that names the group of this process.
        controller: of version 1; empty: version 2.
        read: reads the limit of a group; None: unlimited.
    """
    mount = groups / controller if controller else groups
    folder = mount / _group(own, controller).lstrip("/")
    while folder.is_relative_to(mount):
        try:
            limit = read(folder)
        except (OSError, ValueError):
            limit = None
        if limit is not None:
            yield limit
        folder = folder.parent


def _group(own: Path, controller: str) -> str:
    """Returns the path of the group of this process; `/` where it is not named."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return "/"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path if ".." not in path else "/"
    return "/"


def _quota_v2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    return None if quota <= 0 else quota / int((folder / "cpu.cfs_period_us").read_text())


def _memory_v2(folder: Path) -> float | None:
    text = (folder / "memory.max").read_text().strip()
    return None if text == "max" else int(text)


def _memory_v1(folder: Path) -> float | None:
    return int((folder / "memory.limit_in_bytes").read_text())
