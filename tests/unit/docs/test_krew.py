"""The kubectl plugin for krew: its archive, its manifest, and its launcher."""

import copy
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack import krew

VERSION = "1.2.3"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = tmp_path / f"tarsy_operator-{VERSION}-py3-none-any.whl"
    made.write_bytes(b"a wheel")
    return made


@pytest.fixture
def archive(wheel: Path, tmp_path: Path) -> Path:
    return krew.pack_plugin(wheel, VERSION, tmp_path / "plugin.tar.gz")


def test_the_archive_has_what_the_launcher_needs_and_is_the_same_each_time(
    archive: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as opened:
        modes = {entry.name: entry.mode for entry in opened}
    assert modes == {
        "LICENSE": 0o644,
        "VERSION": 0o644,
        "kubectl-tarsy": 0o755,
        "requirements.lock": 0o644,
        wheel.name: 0o644,
    }
    assert krew.pack_plugin(wheel, VERSION, tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    ("base_url", "uri"),
    [("https://x.example/v1/", "https://x.example/v1/plugin.tar.gz"), (None, "plugin.tar.gz"), ("", "plugin.tar.gz")],
)
def test_the_manifest_names_the_archive_and_its_digest(
    archive: Path, tmp_path: Path, base_url: str | None, uri: str
) -> None:
    krew.write(archive, VERSION, base_url, tmp_path / "tarsy.yaml")

    written = yaml.safe_load((tmp_path / "tarsy.yaml").read_text("utf-8"))
    (platform,) = written["spec"]["platforms"]
    assert (platform["uri"], platform["bin"]) == (uri, "kubectl-tarsy")
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert written["spec"]["version"] == "v1.2.3" and written["metadata"]["name"] == "tarsy"
    assert list(krew.problems(written)) == []


def _set(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(made: dict[str, Any]) -> None:
        at: Any = made
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_set("apiVersion", value="krew/v1"), "apiVersion"),
        (_set("kind", value="Tool"), "kind"),
        (_set("metadata", "name", value="kubectl-tarsy"), "metadata.name"),
        (_set("metadata", "name", value="../tarsy"), "metadata.name"),
        (_set("spec", "version", value="1.2.3"), "spec.version"),
        (_set("spec", "shortDescription", value=""), "spec.shortDescription"),
        (_set("spec", "shortDescription", value="x" * 51), "spec.shortDescription"),
        (_set("spec", "platforms", value=[]), "spec.platforms"),
        (_set("spec", "platforms", 0, "uri", value="https://x/plugin.rar"), "spec.platforms[0].uri"),
        (_set("spec", "platforms", 0, "sha256", value="A" * 64), "spec.platforms[0].sha256"),
        (_set("spec", "platforms", 0, "bin", value="../kubectl-tarsy"), "spec.platforms[0].bin"),
        (_set("spec", "platforms", 0, "files", value=[]), "spec.platforms[0].files"),
        (_set("spec", "platforms", 0, "selector", value={"matchLabels": {"cpu": "x"}}), "spec.platforms[0].selector"),
    ],
)
def test_what_krew_refuses_is_named_by_its_field(
    archive: Path, change: Callable[[dict[str, Any]], None], field: str
) -> None:
    made = copy.deepcopy(krew.manifest(archive, VERSION, None))
    change(made)

    (problem,) = krew.problems(made)

    assert problem.startswith(f"{field}: ")


def test_a_short_description_of_fifty_characters_is_taken(archive: Path) -> None:
    made = krew.manifest(archive, VERSION, None)
    made["spec"]["shortDescription"] = "x" * 50

    assert list(krew.problems(made)) == []


# The launcher, which krew links to.


@pytest.fixture
def linked(archive: Path, tmp_path: Path) -> Path:
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "store", filter="data")
    link = tmp_path / "bin" / "kubectl-tarsy"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "store" / "kubectl-tarsy")
    return link


def run(link: Path, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    found = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment}
    return subprocess.run([link, "--version"], env=found, capture_output=True, text=True, timeout=60, check=False)


def test_the_launcher_runs_the_environment_that_is_there(linked: Path, tmp_path: Path) -> None:
    python = tmp_path / ".cache" / "tarsy" / f"plugin-{VERSION}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "ran $3"\n')
    python.chmod(0o755)

    done = run(linked, tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, "ran --version\n", "")


def test_the_launcher_says_which_python_it_needs(linked: Path, tmp_path: Path) -> None:
    done = run(linked, tmp_path, TARSY_PYTHON="/bin/false")

    assert done.returncode == 1
    assert done.stderr == (
        "kubectl tarsy: needs Python 3.11 or newer with venv; install it, or set TARSY_PYTHON to its path\n"
    )


def test_an_installation_that_fails_leaves_nothing_behind(linked: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$1" in -c) exit 0;; esac\nexit 1\n')
    python.chmod(0o755)

    done = run(linked, tmp_path, TARSY_PYTHON=str(python))

    assert done.returncode == 1 and "cannot make an environment" in done.stderr
    assert list((tmp_path / ".cache" / "tarsy").iterdir()) == []


def test_the_launcher_installs_what_is_locked_and_the_wheel_and_resolves_nothing(linked: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    python = tmp_path / "python"
    python.write_text(
        f"""#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
  "-m pip") shift 4; echo "$@" >> {asked};;
esac
"""
    )
    python.chmod(0o755)

    done = run(linked, tmp_path, TARSY_PYTHON=str(python))

    assert (done.returncode, done.stderr.count("installing version 1.2.3 once")) == (0, 1)
    store = tmp_path / "store"
    assert asked.read_text("utf-8").splitlines() == [
        f"install --no-deps --require-hashes -r {store}/requirements.lock",
        f"install --no-deps --no-index {store}/tarsy_operator-{VERSION}-py3-none-any.whl",
    ]
    assert run(linked, tmp_path).stderr == ""
