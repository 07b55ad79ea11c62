"""Tests the choice of kube-apiserver binaries, and the errors on the way to getting them."""

import hashlib
import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tarsy_dev.apiserver import debian, releases
from tarsy_dev.apiserver.binaries import architecture, cache_root, find_binaries, program_version, require_binaries
from tarsy_dev.apiserver.errors import AcquireError, BinariesNotFound, ChecksumMismatch, LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress, run_logged

BOTH = ("kube-apiserver", "etcd")


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho Kubernetes v1.34.1\n")
        (folder / name).chmod(0o755)
    return folder


def cached(home: Path, version: str, *names: str, complete: bool = True) -> Path:
    folder = programs(home / f".cache/tarsy/kubernetes/{version}-{architecture()}", *names)
    if complete:
        (folder / "manifest.json").write_text("{}")
    return folder


def publish_release(folder: Path) -> tuple[str, str]:
    """A folder with what the release servers hold; the addresses to give in their place."""
    programs(folder, "kube-apiserver", "kubectl", "etcd")
    name = f"etcd-{releases.ETCD_VERSION}-linux-{architecture()}"
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as tar:
        tar.add(folder / "etcd", f"{name}/etcd")
    for path in list(folder.iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        path.with_name(f"{path.name}.sha256").write_text(digest)
        with (folder / "SHA256SUMS").open("a") as sums:
            sums.write(f"{digest}  {path.name}\n")
    address = f"{folder.as_uri()}/{{name}}"
    return address, address


@pytest.fixture
def quiet() -> BuildProgress:
    return BuildProgress(io.StringIO())


def test_kubebuilder_assets_come_before_path_and_path_before_the_cache(tmp_path: Path) -> None:
    assets = programs(tmp_path / "assets", *BOTH, "kubectl")
    on_path = programs(tmp_path / "bin", *BOTH)
    in_cache = cached(tmp_path, "v1.34.1", *BOTH)
    env = {"HOME": str(tmp_path), "PATH": str(on_path), "KUBEBUILDER_ASSETS": str(assets)}
    seen = []
    for variable in ("KUBEBUILDER_ASSETS", "PATH", None):
        found = find_binaries(env)
        assert found is not None
        assert found.kube_apiserver.parent == found.etcd.parent
        seen.append((found.source, found.kube_apiserver.parent))
        if variable:
            del env[variable]
    assert seen == [("KUBEBUILDER_ASSETS", assets), ("PATH", on_path), ("cache", in_cache)]


def test_kubebuilder_assets_without_etcd_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    assets = programs(tmp_path / "assets", "kube-apiserver")
    cached(tmp_path, "v1.34.1", *BOTH)
    with pytest.raises(BinariesNotFound, match=r"KUBEBUILDER_ASSETS=.*unset it"):
        find_binaries({"HOME": str(tmp_path), "PATH": "", "KUBEBUILDER_ASSETS": str(assets)})


def test_empty_kubebuilder_assets_counts_as_unset(tmp_path: Path) -> None:
    on_path = programs(tmp_path / "bin", *BOTH)
    found = find_binaries({"HOME": str(tmp_path), "PATH": str(on_path), "KUBEBUILDER_ASSETS": ""})
    assert found is not None
    assert found.source == "PATH"


def test_pair_is_never_put_together_from_two_places(tmp_path: Path) -> None:
    on_path = programs(tmp_path / "bin", "etcd")
    cached(tmp_path, "v1.34.1", "kube-apiserver")
    assert find_binaries({"HOME": str(tmp_path), "PATH": str(on_path)}) is None


def test_newest_complete_version_in_the_cache_is_taken(tmp_path: Path) -> None:
    cached(tmp_path, "v1.9.0", *BOTH)
    newest = cached(tmp_path, "v1.30.2", *BOTH)
    cached(tmp_path, "v1.36.0", *BOTH, complete=False)
    found = find_binaries({"HOME": str(tmp_path), "PATH": ""})
    assert found is not None
    assert found.kube_apiserver.parent == newest


def test_binaries_of_another_architecture_in_a_shared_cache_are_left_alone(tmp_path: Path) -> None:
    folder = cached(tmp_path, "v1.30.2", *BOTH)
    folder.rename(folder.with_name("v1.30.2-otherchip"))
    assert find_binaries({"HOME": str(tmp_path), "PATH": ""}) is None


def test_kubectl_comes_from_the_pair_or_else_from_path(tmp_path: Path) -> None:
    on_path = programs(tmp_path / "bin", "kubectl")
    folder = cached(tmp_path, "v1.30.2", *BOTH)
    env = {"HOME": str(tmp_path), "PATH": str(on_path)}
    from_path = find_binaries(env)
    programs(folder, "kubectl")
    from_pair = find_binaries(env)
    assert from_path is not None
    assert from_pair is not None
    assert (from_path.kubectl, from_pair.kubectl) == (on_path / "kubectl", folder / "kubectl")


def test_absent_binaries_are_reported_with_the_command_that_gets_them(tmp_path: Path) -> None:
    with pytest.raises(BinariesNotFound, match="make kube-apiserver"):
        require_binaries({"HOME": str(tmp_path), "PATH": ""})


def test_relative_cache_home_is_ignored(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert cache_root({**home, "XDG_CACHE_HOME": "relative"}) == cache_root(home)
    assert cache_root({**home, "XDG_CACHE_HOME": "/elsewhere"}) == Path("/elsewhere/tarsy/kubernetes")


def test_version_is_what_the_program_says(tmp_path: Path) -> None:
    folder = programs(tmp_path, "kube-apiserver")
    assert program_version(folder / "kube-apiserver") == (1, 34, 1)
    (folder / "kube-apiserver").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LocalKubernetesError, match="does not run"):
        program_version(folder / "kube-apiserver")


def test_download_with_another_checksum_is_refused_and_deleted(tmp_path: Path, quiet: BuildProgress) -> None:
    (tmp_path / "published").write_bytes(b"swapped")
    expected = hashlib.sha256(b"original").hexdigest()
    with pytest.raises(ChecksumMismatch, match=expected):
        releases.download((tmp_path / "published").as_uri(), tmp_path / "program", expected, quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["published"]


def test_download_with_its_published_checksum_is_kept(tmp_path: Path, quiet: BuildProgress) -> None:
    (tmp_path / "published").write_bytes(b"original")
    expected = hashlib.sha256(b"original").hexdigest()
    releases.download((tmp_path / "published").as_uri(), tmp_path / "program", expected, quiet)
    assert (tmp_path / "program").read_bytes() == b"original"


def test_release_is_complete_when_every_file_matches_its_checksum(tmp_path: Path, quiet: BuildProgress) -> None:
    kubernetes_url, etcd_url = publish_release(tmp_path / "published")
    folder = tmp_path / "folder"
    folder.mkdir()
    version = releases.download_release(folder, quiet, kubernetes_url, etcd_url)
    assert version == releases.KUBERNETES_VERSION
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
    assert {program_version(path) for path in folder.iterdir()} == {(1, 34, 1)}


def test_release_with_a_swapped_etcd_archive_is_refused(tmp_path: Path, quiet: BuildProgress) -> None:
    kubernetes_url, etcd_url = publish_release(tmp_path / "published")
    next((tmp_path / "published").glob("etcd-*.tar.gz")).write_bytes(b"swapped")
    with pytest.raises(ChecksumMismatch, match=r"etcd-.*tar\.gz"):
        releases.download_release(tmp_path, quiet, kubernetes_url, etcd_url)
    assert not (tmp_path / "etcd").exists()


def test_release_that_cannot_be_reached_is_told_from_a_broken_one(tmp_path: Path, quiet: BuildProgress) -> None:
    with pytest.raises(releases.Offline):
        releases.download_release(tmp_path, quiet, "http://127.0.0.1:1/{name}", "http://127.0.0.1:1/{name}")


def test_published_checksum_is_found_alone_or_by_file_name() -> None:
    one, two = "1" * 64, "2" * 64
    assert releases.published_digest(f"{one}\n", "kube-apiserver") == one
    assert releases.published_digest(f"{one}  etcd-a.tar.gz\n{two}  etcd-b.tar.gz\n", "etcd-b.tar.gz") == two


@pytest.mark.parametrize("text", ["", "<html>not found</html>", "1" * 64 + "  other", "1" * 63])
def test_checksum_file_without_the_wanted_digest_is_an_error(text: str) -> None:
    with pytest.raises(AcquireError, match="no SHA-256 for etcd"):
        releases.published_digest(text, "etcd")


def test_machine_sources_get_deb_src_and_keep_their_key_and_mirror(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "debian.sources").write_text(
        "Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        "Types: deb\nURIs: https://vendor.example/\nSuites: stable\nComponents: main\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://off.example/\nSuites: bookworm\nComponents: main\n"
    )
    (tmp_path / "sources.list").write_text(
        "deb [signed-by=/keys/a.gpg arch=amd64] http://mirror.example/security bookworm-security main # security\n"
        "deb-src http://mirror.example/debian bookworm main\n"
        "# deb http://off.example/ bookworm main\n"
        "deb http://mirror.example/debian trixie main\n"
    )
    files = debian.source_files(tmp_path)
    assert files["machine.sources"].splitlines() == [
        "Types: deb deb-src",
        "URIs: http://mirror.example/debian",
        "Suites: bookworm bookworm-updates",
        "Components: main",
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
    ]
    entry = "[signed-by=/keys/a.gpg arch=amd64] http://mirror.example/security bookworm-security main"
    assert files["machine.list"].splitlines() == [f"deb {entry}", f"deb-src {entry}"]


def test_only_the_debian_release_that_was_tried_is_built_on(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    assert not debian.is_supported(release)
    release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    assert debian.is_supported(release)
    release.write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")
    assert not debian.is_supported(release)


def test_failed_step_is_reported_with_the_end_of_its_log(tmp_path: Path, quiet: BuildProgress) -> None:
    command = ["sh", "-c", "seq 1 100; echo the reason; exit 7"]
    with pytest.raises(AcquireError, match=r"compiling: `sh` ended with 7\n(.*\n)*the reason"):
        run_logged(command, tmp_path / "log", quiet, "compiling", 60)


def ended(pid: int) -> bool:
    """Whether there is no such process any more, or only its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def within_seconds(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold: a killed process is gone a moment after the signal."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def test_step_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path, quiet: BuildProgress) -> None:
    pid_file = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"]
    with pytest.raises(AcquireError, match="not done after"):
        run_logged(command, tmp_path / "log", quiet, "compiling", 3)
    assert within_seconds(60, lambda: ended(int(pid_file.read_text())))


def test_acquire_runs_with_the_standard_library_alone() -> None:
    package = Path(releases.__file__).parents[2]
    program = f"import sys; sys.path.insert(0, {str(package)!r}); import tarsy_dev.apiserver.acquire"
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
