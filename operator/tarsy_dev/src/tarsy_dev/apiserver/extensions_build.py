"""Builds the API extensions server of Kubernetes 1.36 from Debian's packages (`make kube-extensions`).

It is the part of kube-apiserver that serves custom resources: CRDs, CEL rules, server-side apply, selectable fields,
admission policies. Debian's unstable release has its source and that of all it needs as packages, so it is compiled as
it is, without modules and without anything else from a network. As in `debian`, nothing is installed: packages are
downloaded with apt's own checks and unpacked into private folders.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tarsy_dev.apiserver import debian
from tarsy_dev.apiserver.acquire import locked, temporary_folder
from tarsy_dev.apiserver.binaries import architecture, cache_root
from tarsy_dev.apiserver.errors import AcquireError, LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress, run_logged

SERIES = "0.36"
"""Version of the source that is built: Kubernetes 1.36."""

_SUITE = "sid"
_SOURCE = "golang-k8s-apiextensions-apiserver-dev"
_GO = "golang-1.26-go"
_PROGRAM = "apiextensions-apiserver"
_UPDATE_SECONDS, _DOWNLOAD_SECONDS, _UNPACK_SECONDS, _BUILD_SECONDS = 300.0, 1800.0, 900.0, 3600.0


@dataclass(frozen=True)
class ExtensionsBinaries:
    """The two programs and their Kubernetes version, such as (1, 36)."""

    server: Path
    etcd: Path
    version: tuple[int, int]


def find_extensions() -> ExtensionsBinaries | None:
    """Returns the programs that were built on this machine, or None."""
    folder = _folder()
    found = ExtensionsBinaries(folder / _PROGRAM, folder / "etcd", (1, int(SERIES.partition(".")[2])))
    return found if found.server.is_file() and found.etcd.is_file() else None


def require_extensions() -> ExtensionsBinaries:
    """Like `find_extensions`.

    Raises:
        LocalKubernetesError: nothing was built; the message says how to.
    """
    if found := find_extensions():
        return found
    raise LocalKubernetesError(
        f"no API extensions server of Kubernetes {_release()} in {_folder().parent}: run `make kube-extensions`"
    )


def build_extensions(progress: BuildProgress) -> ExtensionsBinaries:
    """Returns the programs, after building them if necessary.

    Raises:
        AcquireError: it cannot be built here; the message says why.
    """
    if found := find_extensions():
        return found
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / ".lock-extensions", progress):
        if find_extensions() is None:
            with temporary_folder(root, ".extensions-") as work:
                made = _build(work, progress)
                shutil.rmtree(_folder(), ignore_errors=True)
                made.rename(_folder())
    return require_extensions()


def _release() -> str:
    return f"1.{SERIES.partition('.')[2]}"


def _folder() -> Path:
    return cache_root() / f"extensions-{SERIES}-{architecture()}"


def _build(work: Path, progress: BuildProgress) -> Path:
    apt = [*debian.apt_options(work, _sources()), *_NOTHING_INSTALLED]
    run_logged(
        ["apt-get", *apt, "update"],
        work / "update.log",
        progress,
        f"reading the package lists of Debian {_SUITE}",
        _UPDATE_SECONDS,
    )
    _check_version(apt)
    run_logged(
        ["apt-get", *apt, "install", "--download-only", "--yes", _SOURCE, _GO, "etcd-server"],
        work / "download.log",
        progress,
        f"downloading the source of Kubernetes {_release()} and Go (410 MB)",
        _DOWNLOAD_SECONDS,
    )
    tools, made = work / "tools", work / "made"
    unpack = 'for package in "$1"/golang-*.deb "$1"/etcd-server_*.deb; do dpkg-deb -x "$package" "$2" || exit 1; done'
    run_logged(
        ["sh", "-c", unpack, "sh", work / "apt/cache/archives", tools],
        work / "unpack.log",
        progress,
        "unpacking",
        _UNPACK_SECONDS,
    )
    made.mkdir()
    go = tools / "usr/lib" / _GO.removesuffix("-go").replace("golang", "go")
    home = work / "home"
    home.mkdir()
    run_logged(
        ["nice", go / "bin/go", "build", "-ldflags", "-s -w", "-o", made / _PROGRAM, "k8s.io/apiextensions-apiserver"],
        work / "build.log",
        progress,
        "building the API extensions server (about 5 minutes on 2 cores)",
        _BUILD_SECONDS,
        env={
            "HOME": str(home),
            "TMPDIR": str(home),
            "LC_ALL": "C",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "GOROOT": str(go),
            "GOPATH": str(tools / "usr/share/gocode"),
            "GO111MODULE": "off",
            "GOFLAGS": "-p=2",
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
        },
    )
    shutil.copy2(tools / "usr/bin/etcd", made / "etcd")
    return made


# All dependencies are downloaded, as if nothing were installed: what this machine has is of another release.
_NOTHING_INSTALLED = ("-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false")


def _check_version(apt: list[str]) -> None:
    """Raises AcquireError if the packages have moved to another version."""
    done = subprocess.run(
        ["apt-cache", *apt, "policy", _SOURCE, _GO], capture_output=True, text=True, timeout=_UPDATE_SECONDS
    )
    candidates = re.findall(r"(?m)^(\S+):\n.*\n\s+Candidate: (\S+)", done.stdout)
    found = dict(candidates)
    if not found:
        raise AcquireError(f"Debian {_SUITE} has neither {_SOURCE} nor {_GO}: can this machine reach Debian's mirror?")
    if not found.get(_SOURCE, "").startswith(f"{SERIES}.") or _GO not in found:
        said = ", ".join(f"{name} {version}" for name, version in candidates)
        raise AcquireError(f"Debian {_SUITE} has moved: {_SOURCE} {SERIES} and {_GO} are needed, it has {said}")


def _sources() -> dict[str, str]:
    """Returns the machine's own source of Debian, for the unstable release."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise AcquireError("apt-get or dpkg-deb is missing, and the server is built from Debian's packages only")
    texts = debian.source_files(Path("/etc/apt"))
    stanzas = [stanza for stanza in texts.get("machine.sources", "").split("\n\n") if _is_main_archive(stanza)]
    if stanzas:
        wanted = re.sub(r"(?mi)^suites:.*$", f"Suites: {_SUITE}", stanzas[0])
        return {"machine.sources": re.sub(r"(?mi)^types:.*$", "Types: deb", wanted) + "\n"}
    for line in texts.get("machine.list", "").splitlines():
        match = re.match(rf"(deb (?:\[[^]]*\]\s+)?\S+) {debian.RELEASE} ", line)
        if match:
            return {"machine.list": f"{match[1]} {_SUITE} main\n"}
    raise AcquireError(
        f"no source of Debian {debian.RELEASE} main under /etc/apt whose archive could have {_SUITE} too: "
        "add Debian's mirror to the machine's apt sources"
    )


def _is_main_archive(stanza: str) -> bool:
    suites = re.search(r"(?mi)^suites:(.*)$", stanza)
    return suites is not None and debian.RELEASE in suites[1].split()


def main() -> int:
    """Builds the programs, or with `--find` only looks for them, and prints their folder.

    Returns 1 and prints the reason to stderr if that fails.
    """
    if sys.argv[1:] == ["--find"]:
        return _find()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    progress = BuildProgress()
    try:
        found = build_extensions(progress)
    except LocalKubernetesError as error:
        progress.say(f"cannot build the API extensions server: {error}")
        return 1
    print(f"API extensions server of Kubernetes {_release()}: {found.server.parent}")
    return 0


def _find() -> int:
    try:
        found = require_extensions()
    except LocalKubernetesError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"API extensions server of Kubernetes {_release()}: {found.server.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
