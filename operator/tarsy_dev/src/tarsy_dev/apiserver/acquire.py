"""Gets kube-apiserver and etcd into the cache: `python -m tarsy_dev.apiserver.acquire`.

Official binaries where there is Internet, else a build from Debian's source package. Only the standard library is
imported here and below, so that this can run before anything is installed. A version folder appears in the cache by one
rename of a complete folder: whoever finds it can use it. A file lock keeps two runs from building twice; the second
waits and takes what the first has made.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tarsy_dev.apiserver import debian, releases
from tarsy_dev.apiserver.binaries import (
    MANIFEST,
    Binaries,
    architecture,
    cache_root,
    find_binaries,
    program_version,
    require_binaries,
)
from tarsy_dev.apiserver.errors import AcquireError, ChecksumMismatch, LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress

_LOCK_WAIT_SECONDS = 5400.0
_LOCK_POLL_SECONDS = 0.5
_LOCK_BEAT_SECONDS = 15.0


def acquire(progress: BuildProgress) -> Binaries:
    """Returns the machine's binaries, after getting them if there are none.

    Raises:
        LocalKubernetesError: there is no way to get them here; the message says why, and what would help.
    """
    if found := find_binaries():
        return found
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / ".lock", progress):
        if found := find_binaries():
            return found
        for left_behind in (*root.glob(".stage-*"), *root.glob(".build-*")):
            shutil.rmtree(left_behind)
        _fill(root, progress)
    return require_binaries()


def _fill(root: Path, progress: BuildProgress) -> None:
    if sys.platform != "linux":
        raise AcquireError(
            "kube-apiserver is released for Linux only: set KUBEBUILDER_ASSETS to what setup-envtest leaves"
        )
    with temporary_folder(root, ".stage-") as stage:
        try:
            version = releases.download_release(stage, progress)
            _install(stage, root, version, "official release", "")
            return
        except ChecksumMismatch:
            raise
        except AcquireError as error:
            reason = str(error)
            progress.say(f"no official binaries: {reason}")
    if not debian.is_supported():
        raise AcquireError(
            f"{reason}; and this is not Debian {debian.RELEASE}, whose source package could be built without it: "
            "set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd"
        )
    with temporary_folder(root, ".stage-") as stage, temporary_folder(root, ".build-") as work:
        version = debian.build(stage, work, progress)
        _install(stage, root, version, f"Debian {debian.RELEASE} source package", "-debian")


def _install(stage: Path, root: Path, version: str, origin: str, suffix: str) -> None:
    """Check that the programs run here, describe them, and let them appear in the cache in one step."""
    etcd = "v{}.{}.{}".format(*program_version(stage / "etcd"))
    program_version(stage / "kube-apiserver")
    date = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = {"version": version, "etcd": etcd, "origin": origin, "date": date}
    (stage / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    stage.chmod(0o755)
    target = root / f"{version}{suffix}-{architecture()}"
    if target.exists():  # it was there and held no complete set
        shutil.rmtree(target)
    stage.rename(target)


@contextmanager
def temporary_folder(root: Path, prefix: str) -> Iterator[Path]:
    """A new folder below `root`, which is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(path: Path, progress: BuildProgress) -> Iterator[None]:
    """Holds the lock file; flock has no timeout of its own, so this polls twice a second."""
    with path.open("w") as handle:
        deadline = time.monotonic() + _LOCK_WAIT_SECONDS
        next_word = time.monotonic()
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                now = time.monotonic()
                if now > deadline:
                    raise AcquireError(f"another run has held {path} for {_LOCK_WAIT_SECONDS:.0f} s") from None
                if now >= next_word:
                    progress.say("another run is getting the Kubernetes API server: waiting for it")
                    next_word = now + _LOCK_BEAT_SECONDS
                time.sleep(_LOCK_POLL_SECONDS)
        yield


def main() -> int:
    """Gets the binaries and prints their folder; returns 1 and prints the reason to stderr if that fails."""
    # `kill` must end a running build as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    progress = BuildProgress()
    try:
        found = acquire(progress)
        version = "v{}.{}.{}".format(*program_version(found.kube_apiserver))
    except LocalKubernetesError as error:
        progress.say(f"cannot get a Kubernetes API server: {error}")
        return 1
    print(f"kube-apiserver {version} ({found.source}): {found.kube_apiserver.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
