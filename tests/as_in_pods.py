"""Programs as in a pod: another user, a file system that is read only but for one folder, no capability.

`unshare` gives the program mounts of its own, `setpriv` makes it somebody else. Both need root.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mcp

import tarsy

PATHS = os.pathsep.join(str(Path(str(module.__file__)).parents[1]) for module in (tarsy, mcp))
ENVIRONMENT = {"PYTHONPATH": PATHS, "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
_BECOME = """
mount --make-rprivate / && mount -t tmpfs -o size=64m,mode=1777 tmpfs "$1" && mount -o remount,bind,ro / || exit 97
user=$2 group=$3
shift 3
exec setpriv --reuid="$user" --regid="$group" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
"""


@dataclass(frozen=True, slots=True)
class PodUser:
    """The user and the group of a pod's process."""

    uid: int
    gid: int


SHIPPED = PodUser(65532, 65532)
"""The user of the shipped pods."""
ASSIGNED = PodUser(1_000_680_000, 0)
"""A user as OpenShift assigns one: any high number without a name, in the group root."""


def python_for(user: PodUser) -> str | None:
    """Returns a Python of this version that a user may run with the product; None: there is none."""
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with contextlib.suppress(OSError):
            probe = [program, "-c", "import tarsy, mcp"]
            found = subprocess.run(
                probe,
                cwd="/",
                env=ENVIRONMENT,
                stderr=subprocess.DEVNULL,
                user=user.uid,
                group=user.gid,
                extra_groups=(),
            )
            if found.returncode == 0:
                return program
    return None


def in_pod(command: Sequence[str | Path], user: PodUser, writable: Path) -> list[str]:
    """Returns the command that runs another one as in a pod, in the process that it starts.

    Args:
        command: what runs there.
        user: who it is.
        writable: folder that is empty and writable there, as an emptyDir.
    """
    become = ["sh", "-c", _BECOME, "pod", str(writable), str(user.uid), str(user.gid)]
    return ["unshare", "--mount", *become, *map(str, command)]


def why_not() -> str:
    """Returns why nothing can run as in a pod here; nothing where it can."""
    if os.geteuid() != 0:
        return "needs root to become someone else"
    try:
        done = subprocess.run(["unshare", "--mount", "setpriv", "--version"], capture_output=True, text=True)
    except OSError as error:
        return f"needs unshare and setpriv: {error}"
    return "" if done.returncode == 0 else f"needs mounts of its own: {done.stderr.strip()}"


def status_of(pid: int) -> Mapping[str, str]:
    """Returns what Linux says about a process, by its words."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
