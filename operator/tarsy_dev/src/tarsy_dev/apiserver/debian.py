"""Builds kube-apiserver from Debian bookworm's own source package; etcd comes from Debian's etcd-server package.

The non-obvious decision: nothing is installed. Packages are downloaded with apt's own checks into private folders and
unpacked there, so this needs no root, starts no service and leaves the machine as it was; the system's list of sources
is read, never written. What the build has to work around:
- the generated OpenAPI code is in no tarball, so only the source's own `make` target works, in GOPATH mode;
- the vendored modern-go/reflect2 1.0.1 crashes under Go 1.18 and newer at the first custom object; Debian's 1.0.2
  takes its whole folder;
- the last step of `make` copies the program with rsync; a two-line stand-in saves four packages.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tarsy_dev.apiserver.binaries import program_version
from tarsy_dev.apiserver.errors import AcquireError
from tarsy_dev.apiserver.progress import BuildProgress, run_logged

RELEASE = "bookworm"
_PACKAGES = (
    "golang-1.19-go",
    "golang-1.19-src",
    "golang-github-modern-go-reflect2-dev",
    "etcd-server",
    "make",
    "patch",
    "xz-utils",
)
_UPDATE_SECONDS, _DOWNLOAD_SECONDS, _UNPACK_SECONDS, _BUILD_SECONDS = 300.0, 900.0, 300.0, 3600.0
_RSYNC = '#!/bin/sh\n# Called as: rsync -pc FILE FOLDER\nexec cp -p "$2" "$3"\n'


def is_supported(os_release: Path = Path("/etc/os-release")) -> bool:
    """Whether this is the Debian release whose source package is known to build."""
    if not os_release.exists():
        return False
    fields = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    return fields.get("ID") == "debian" and fields.get("VERSION_CODENAME") == RELEASE


def build(folder: Path, work: Path, progress: BuildProgress) -> str:
    """Put kube-apiserver and etcd into `folder`, building in the empty folder `work`; returns the version.

    Raises:
        AcquireError: a step failed; with the end of its log.
    """
    apt = apt_options(work, source_files(Path("/etc/apt")))
    packages, tools, source = work / "packages", work / "tools", work / "source"
    for new in (packages, tools, source):
        new.mkdir()

    run_logged(
        ["apt-get", *apt, "update"], work / "update.log", progress, "reading Debian's package lists", _UPDATE_SECONDS
    )
    run_logged(
        ["apt-get", *apt, "download", *_PACKAGES],
        work / "download.log",
        progress,
        "downloading Go and the build tools (90 MB)",
        _DOWNLOAD_SECONDS,
        cwd=packages,
    )
    run_logged(
        ["apt-get", *apt, "source", "--download-only", "kubernetes"],
        work / "source.log",
        progress,
        "downloading the source of Kubernetes (34 MB)",
        _DOWNLOAD_SECONDS,
        cwd=packages,
    )
    for package in sorted(packages.glob("*.deb")):
        name = package.name.split("_", 1)[0]
        run_logged(
            ["dpkg-deb", "-x", package, tools], work / "unpack.log", progress, f"unpacking {name}", _UNPACK_SECONDS
        )
    program = _compile(packages, tools, source, work, progress)
    shutil.copy2(program, folder / "kube-apiserver")
    shutil.copy2(tools / "usr/bin/etcd", folder / "etcd")
    return "v{}.{}.{}".format(*program_version(folder / "kube-apiserver"))


def _compile(packages: Path, tools: Path, source: Path, work: Path, progress: BuildProgress) -> Path:
    environment = _build_environment(tools, source, work)
    unpack = 'tar -xzf "$1"/kubernetes_*.orig.tar.gz --strip-components=1 && tar -xJf "$1"/kubernetes_*.debian.tar.xz'
    patch = 'while read -r name; do patch -p1 < "debian/patches/$name" || exit 1; done < debian/patches/series'
    run_logged(
        ["sh", "-c", f"{unpack} && {patch}", "sh", packages],
        work / "unpack-source.log",
        progress,
        "unpacking the source of Kubernetes",
        _UNPACK_SECONDS,
        cwd=source,
        env=environment,
    )
    reflect2 = source / "vendor/github.com/modern-go/reflect2"
    shutil.rmtree(reflect2)
    shutil.copytree(tools / "usr/share/gocode/src/github.com/modern-go/reflect2", reflect2)
    link = source / ".go/src/k8s.io/kubernetes"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../..")
    run_logged(
        ["nice", "make", "WHAT=cmd/kube-apiserver", "GOLDFLAGS=-s -w"],
        work / "build.log",
        progress,
        "building kube-apiserver (about 6 minutes on 2 cores)",
        _BUILD_SECONDS,
        cwd=source,
        env=environment,
    )
    return source / "_output/bin/kube-apiserver"


def _build_environment(tools: Path, source: Path, work: Path) -> dict[str, str]:
    """Only what the build needs: settings of the caller (GOFLAGS, GOPROXY, MAKEFLAGS) would change what is built."""
    rsync = work / "shims/rsync"
    rsync.parent.mkdir()
    rsync.write_text(_RSYNC)
    rsync.chmod(0o755)
    home = work / "home"
    home.mkdir()
    go_root = tools / "usr/lib/go-1.19"
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "LC_ALL": "C",
        "PATH": f"{rsync.parent}:{go_root}/bin:{tools}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "GOROOT": str(go_root),
        "GOPATH": str(source / ".go"),
        "GOFLAGS": "-p=2",
        "CGO_ENABLED": "0",
    }


def apt_options(work: Path, texts: Mapping[str, str]) -> list[str]:
    """Options that give apt lists, caches and sources of its own; proxies, keys and pins stay the machine's.

    Args:
        work: an empty folder for them.
        texts: the sources, by file name.

    Raises:
        AcquireError: apt is not on this machine, or there are no sources.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise AcquireError(
            "apt-get or dpkg-deb is missing: set KUBEBUILDER_ASSETS to a folder with the binaries instead"
        )
    parts, lists, cache = work / "apt/sources", work / "apt/lists", work / "apt/cache"
    for new in (parts, lists / "partial", cache / "archives/partial"):
        new.mkdir(parents=True)
    if not texts:
        raise AcquireError(
            f"no source of Debian {RELEASE} main under /etc/apt: add Debian's mirror to the machine's apt sources"
        )
    for name, text in texts.items():
        (parts / name).write_text(text)
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": lists,
        "Dir::Cache": cache,
        "Acquire::Retries": 3,
        "Acquire::http::Timeout": 30,
        "Acquire::https::Timeout": 30,
        # The private folders are closed to apt's own user, and an ordinary user cannot change to it anyway.
        "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
        "Dpkg::Use-Pty": 0,
    }
    return ["-q", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]


def source_files(etc_apt: Path) -> dict[str, str]:
    """The machine's own entries for this release with deb-src switched on, by file name; options stay."""
    stanzas: list[str] = []
    lines: list[str] = []
    folder = etc_apt / "sources.list.d"
    for path in sorted(folder.glob("*.sources")):
        stanzas += filter(None, map(_with_sources, re.split(r"\n\s*\n", path.read_text())))
    for path in (etc_apt / "sources.list", *sorted(folder.glob("*.list"))):
        if path.exists():
            lines += _one_line_entries(path.read_text())
    files = {"machine.sources": "\n\n".join(stanzas), "machine.list": "\n".join(lines)}
    return {name: f"{text}\n" for name, text in files.items() if text}


def _with_sources(stanza: str) -> str | None:
    """One deb822 stanza (sources.list(5)) with `Types: deb deb-src`, or None if it is of no use here."""
    kept = "\n".join(line for line in stanza.strip("\n").splitlines() if not line.startswith("#"))
    fields = {name.lower(): value.split() for name, value in re.findall(r"(?m)^([\w-]+):(.*(?:\n[ \t].*)*)", kept)}
    wanted = (
        "deb" in fields.get("types", [])
        and "main" in fields.get("components", [])
        and any(suite.startswith(RELEASE) for suite in fields.get("suites", []))
        and fields.get("enabled", ["yes"]) != ["no"]
    )
    return re.sub(r"(?mi)^types:.*$", "Types: deb deb-src", kept) if wanted else None


def _one_line_entries(text: str) -> Iterator[str]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match and match[3].startswith(RELEASE) and "main" in match[4].split():
            entry = f"{match[1] or ''}{match[2]} {match[3]} {match[4].strip()}"
            yield f"deb {entry}"
            yield f"deb-src {entry}"
