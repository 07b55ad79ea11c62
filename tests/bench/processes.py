"""What the kernel says of processes and of the machine. Linux only, as the operator's own image is.

CPU time is user and system time of all threads of a process, without its children.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class MachineTime:
    """Seconds that the machine's CPUs were busy, and all their seconds, since it started."""

    busy: float
    total: float

    def share_since(self, earlier: "MachineTime") -> float:
        """How busy all CPUs together were since then, 0 to 1."""
        return (self.busy - earlier.busy) / max(self.total - earlier.total, 1e-9)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, to a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def thread_cpu_seconds(pid: int) -> float:
    """CPU time of the main thread of a process, to the nanosecond; a process of Postgres has no other."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def tree_cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its descendants, those included that have ended and been waited for."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile: its parent has its time
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICK
    tree, total = [pid], 0.0
    while tree:
        process = tree.pop()
        total += used.get(process, 0.0)
        tree += children.get(process, [])
    return total


def memory(pid: int) -> tuple[float, float]:
    """Resident memory of a process now and at its highest, MiB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, highest = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, highest


def machine_time() -> MachineTime:
    """The machine's CPU time so far."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return MachineTime((sum(fields) - idle) / _TICK, sum(fields) / _TICK)
