"""Finds Prometheus and Alertmanager, and gets them from Debian's packages: `python -m tarsy_dev.monitoring.binaries`.

Decision: as in `tarsy_dev.apiserver.debian`, nothing is installed. The two packages are downloaded with apt's own
checks into a private folder and unpacked; both programs need no library but libc. No service is started, and no root is
needed. Debian's Alertmanager reads its templates from a fixed folder below /usr: in the copy of the cache, that path is
replaced by one of equal length that means the working directory, which is where the templates are.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tarsy_dev.apiserver import debian
from tarsy_dev.apiserver.acquire import locked, temporary_folder
from tarsy_dev.apiserver.binaries import architecture, cache_root
from tarsy_dev.apiserver.errors import AcquireError, BinariesNotFound, LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress, run_logged

PROMETHEUS, ALERTMANAGER = "prometheus", "prometheus-alertmanager"
"""Names of Debian's packages, and of the programs in them."""
REMEDY = "install the packages prometheus and prometheus-alertmanager, or put both programs on the PATH"

_FIXED = b"/usr/share/prometheus/alertmanager"
_WORKING_DIRECTORY = b"/proc/self/cwd".ljust(len(_FIXED), b"/")
_UPDATE_SECONDS, _DOWNLOAD_SECONDS, _UNPACK_SECONDS = 300.0, 600.0, 120.0


@dataclass(frozen=True, slots=True)
class MonitoringBinaries:
    """The two programs."""

    prometheus: Path
    alertmanager: Path


def find_monitoring(env: Mapping[str, str] = os.environ) -> MonitoringBinaries | None:
    """Returns the programs of the PATH, else those of the user's cache; None if there are none."""
    path = env.get("PATH", "")
    prometheus = shutil.which(PROMETHEUS, path=path)
    alertmanager = shutil.which(ALERTMANAGER, path=path) or shutil.which("alertmanager", path=path)
    if prometheus and alertmanager:
        return MonitoringBinaries(Path(prometheus), Path(alertmanager))
    kept = _folder(env)
    found = MonitoringBinaries(kept / PROMETHEUS, kept / ALERTMANAGER)
    return found if found.prometheus.is_file() and found.alertmanager.is_file() else None


def require_monitoring(env: Mapping[str, str] = os.environ) -> MonitoringBinaries:
    """Like `find_monitoring`.

    Raises:
        BinariesNotFound: there are none; the message says how to get them.
    """
    if found := find_monitoring(env):
        return found
    raise BinariesNotFound(f"there is no Prometheus and Alertmanager here: run `make monitoring-servers`, or {REMEDY}")


def acquire_monitoring(progress: BuildProgress) -> MonitoringBinaries:
    """Returns the programs, after fetching them if necessary.

    Raises:
        AcquireError: they cannot be had here; the message says why, and what to do.
    """
    if found := find_monitoring():
        return found
    if not debian.is_supported():
        raise AcquireError(f"this is not Debian {debian.RELEASE}, whose packages could be fetched: {REMEDY}")
    kept = _folder()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with locked(kept.parent / ".lock", progress):
        if find_monitoring() is None:
            with temporary_folder(kept.parent, ".fetch-") as work:
                made = _fetch(work, progress)
                shutil.rmtree(kept, ignore_errors=True)
                made.rename(kept)
    return require_monitoring()


def _folder(env: Mapping[str, str] = os.environ) -> Path:
    return cache_root(env).parent / "monitoring" / f"{debian.RELEASE}-{architecture()}"


def _fetch(work: Path, progress: BuildProgress) -> Path:
    """Puts both programs into a folder below an empty one, and returns it."""
    apt = debian.apt_options(work, debian.source_files(Path("/etc/apt")))
    packages, unpacked, made = work / "packages", work / "unpacked", work / "made"
    for new in (packages, unpacked, made):
        new.mkdir()
    run_logged(
        ["apt-get", *apt, "update"], work / "update.log", progress, "reading Debian's package lists", _UPDATE_SECONDS
    )
    run_logged(
        ["apt-get", *apt, "download", PROMETHEUS, ALERTMANAGER],
        work / "download.log",
        progress,
        "downloading Prometheus and Alertmanager (30 MB)",
        _DOWNLOAD_SECONDS,
        cwd=packages,
    )
    for package in sorted(packages.glob("*.deb")):
        run_logged(
            ["dpkg-deb", "-x", package, unpacked],
            work / "unpack.log",
            progress,
            f"unpacking {package.name.partition('_')[0]}",
            _UNPACK_SECONDS,
        )
    shutil.copy2(unpacked / "usr/bin" / PROMETHEUS, made)
    _move_templates(unpacked, made)
    made.chmod(0o755)
    return made


def _move_templates(unpacked: Path, made: Path) -> None:
    """Copies Alertmanager with its templates, and lets it read them from its working directory."""
    program = (unpacked / "usr/bin" / ALERTMANAGER).read_bytes()
    if _FIXED not in program:
        raise AcquireError(f"Debian's Alertmanager has its templates in a place that is not known: {REMEDY}")
    (made / ALERTMANAGER).write_bytes(program.replace(_FIXED, _WORKING_DIRECTORY))
    (made / ALERTMANAGER).chmod(0o755)
    for template in (unpacked / "usr/share/prometheus/alertmanager").glob("*.tmpl"):
        shutil.copy2(template, made)


def main() -> int:
    """Gets the programs and prints their paths; returns 1 and prints the reason to stderr if that fails."""
    progress = BuildProgress()
    try:
        found = acquire_monitoring(progress)
    except LocalKubernetesError as error:
        progress.say(f"cannot get Prometheus and Alertmanager: {error}")
        return 1
    print(f"{found.prometheus}\n{found.alertmanager}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
