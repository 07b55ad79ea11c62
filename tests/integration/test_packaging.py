"""The package as people get it: sdist, the wheel from that sdist, and what works once only the wheel is there.

The fresh environment sees this one's dependencies through a path file of its own. Path files are not followed twice, so
the editable install beside those dependencies stays out of sight, and what is imported can only be the wheel's.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
SOURCES = (
    "operator",
    "controllers",
    "manifests",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "THIRD_PARTY_LICENSES.md",
)
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
LOOK = """
import importlib, json, pkgutil, sys
from importlib.resources import files

import tarsy.controllers
names = [m.name for m in pkgutil.walk_packages(tarsy.controllers.__path__, "tarsy.controllers.")]
for name in names:
    importlib.import_module(name)

def listing(package, folder, end):
    root = files(package).joinpath(*folder)
    return sorted(str(p.relative_to(root)) for p in root.rglob("*" + end))

print(json.dumps({
    "names": names,
    "from": {n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "tarsy" and m.__file__},
    "bare": sorted(n for n in sys.modules if n.split(".")[0] == "controllers"),
    "operator": sys.modules["operator"].__file__,
    "data": {
        "store": listing("tarsy.store", [], ".sql"),
        "engine/prompts": listing("tarsy.engine.prompts", [], ".txt"),
        "local/model": listing("tarsy_dev.model", [], ".yaml"),
        "manifests": listing("tarsy", ["manifests"], ".yaml"),
        ".": listing("tarsy", [], "py.typed"),
    },
}))
"""

pytestmark = [pytest.mark.timeout(600), pytest.mark.heavy("builds and installs the package")]


@dataclass(frozen=True)
class Installed:
    """The environment with the wheel in it, and an empty folder to run things from."""

    sdist: Path
    wheel: Path
    environment: Path
    empty: Path

    def run(self, *command: str) -> str:
        """The output of a program of the environment, started in the empty folder."""
        program, *arguments = command
        return _run([str(self.environment / "bin" / program), *arguments], self.empty)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    root = tmp_path_factory.mktemp("packaging")
    source, dist, environment, empty = (root / name for name in ("source", "dist", "venv", "empty"))
    source.mkdir()
    empty.mkdir()
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, source / name, symlinks=True, ignore=skip)
        else:
            shutil.copy(CHECKOUT / name, source)
    # Without a choice of formats `build` makes the sdist, and then the wheel from it and from nothing else.
    _run([sys.executable, "-m", "build", "--outdir", str(dist), str(source)], empty)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    _run([sys.executable, *PIP, "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)], empty)
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    folder = Path(_run([str(python), "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))"], empty).strip())
    (folder / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(dependencies)))
    return Installed(sdist, wheel, environment, empty)


@pytest.fixture(scope="module")
def seen(installed: Installed) -> dict[str, Any]:
    """What a program sees that has imported every controller."""
    found: dict[str, Any] = json.loads(installed.run("python", "-Ic", LOOK))
    return found


def test_every_controller_is_imported_from_the_wheel(installed: Installed, seen: dict[str, Any]) -> None:
    there = sorted(f"tarsy.controllers.{path.stem}" for path in (CHECKOUT / "controllers").glob("[!_]*.py"))
    assert sorted(seen["names"]) == there
    outside = {n: path for n, path in seen["from"].items() if not Path(path).is_relative_to(installed.environment)}
    assert outside == {}


def test_no_module_is_loaded_as_top_level_controllers_and_operator_is_the_standard_library_s(
    seen: dict[str, Any],
) -> None:
    assert seen["bare"] == []
    assert Path(seen["operator"]).is_relative_to(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize(
    ("package", "end"),
    [
        ("store", ".sql"),
        ("engine/prompts", ".txt"),
        ("local/model", ".yaml"),
        ("manifests", ".yaml"),
        (".", "py.typed"),
    ],
)
def test_data_of_the_package_is_in_the_wheel(seen: dict[str, Any], package: str, end: str) -> None:
    root = (CHECKOUT / "operator" / "tarsy" / package).resolve()
    there = sorted(str(path.relative_to(root)) for path in root.rglob(f"*{end}"))
    assert there
    assert seen["data"][package] == there


def test_sdist_holds_files_where_the_checkout_has_links(installed: Installed) -> None:
    with tarfile.open(installed.sdist) as archive:
        members = archive.getmembers()
    assert [member.name for member in members if member.issym() or member.islnk()] == []
    names = {member.name.partition("/")[2] for member in members}
    assert {"operator/tarsy/controllers/investigation.py", "operator/tarsy/manifests/base/kustomization.yaml"} <= names


def test_tarsy_crds_of_the_wheel_writes_the_committed_files_from_an_empty_directory(installed: Installed) -> None:
    installed.run("tarsy", "crds", "--out", "out")
    out = installed.empty / "out"
    assert {p.name: p.read_text() for p in out.iterdir()} == {
        p.name: p.read_text() for p in (CHECKOUT / "crds").iterdir()
    }


def _run(command: list[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
