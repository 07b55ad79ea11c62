"""The packages as people get them: sdist, the wheel from that sdist, and what works where only wheels are installed.

The fresh environment sees this one's dependencies through a folder of links, which has none for the packages of this
checkout. What is imported of those can only be a wheel's.
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
OWN = ("__editable__", "tarsy", "embedded_kubeapi")
"""How the names of this checkout's packages begin among the installed ones."""
NO_BUILD = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
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
    "modules": sorted(m.name for m in pkgutil.walk_packages(tarsy.__path__, "tarsy.", onerror=lambda name: None)),
    "bare": sorted(n for n in sys.modules if n.split(".")[0] == "controllers"),
    "operator": sys.modules["operator"].__file__,
    "data": {
        "store": listing("tarsy.store", [], ".sql"),
        "engine/prompts": listing("tarsy.engine.prompts", [], ".txt"),
        "manifests": listing("tarsy", ["manifests"], ".yaml"),
        ".": listing("tarsy", [], "py.typed"),
    },
}))
"""

FIXTURE = """
import importlib.util

from kubernetes import client, config


def test_a_namespace_is_made(kubernetes_api):
    assert importlib.util.find_spec("tarsy") is None
    core = client.CoreV1Api(config.new_client_from_config(str(kubernetes_api.kubeconfig)))
    core.create_namespace({"metadata": {"name": "shop"}})
    assert core.read_namespace("shop").status.phase == "Active"
"""

pytestmark = [pytest.mark.timeout(600), pytest.mark.heavy("builds and installs the package")]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with this one's dependencies and none of this checkout's packages."""

    root: Path
    empty: Path
    """An empty folder to run things from."""

    @classmethod
    def make(cls, root: Path) -> "Environment":
        made = cls(root / "venv", root / "empty")
        made.empty.mkdir(parents=True)
        venv.create(made.root, with_pip=False, symlinks=True)
        dependencies = root / "dependencies"
        dependencies.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if not entry.name.startswith(OWN):
                (dependencies / entry.name).symlink_to(entry)
        packages = Path(made.run("python", "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        (packages / "dependencies.pth").write_text(f"{dependencies}\n")
        return made

    def add(self, package: Path) -> None:
        """Installs a wheel or a source folder, without its dependencies."""
        target = ("--python", str(self.root / "bin" / "python"))
        _run([sys.executable, *PIP, *target, "install", "--quiet", "--no-deps", str(package)], self.empty)

    def run(self, *command: str) -> str:
        """Returns the output of a program of the environment, started in the empty folder."""
        program, *arguments = command
        return _run([str(self.root / "bin" / program), *arguments], self.empty)


@dataclass(frozen=True)
class Installed(Environment):
    """An environment with the operator's wheel in it."""

    sdist: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    root = tmp_path_factory.mktemp("packaging")
    source, dist = root / "source", root / "dist"
    source.mkdir()
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, source / name, symlinks=True, ignore=NO_BUILD)
        else:
            shutil.copy(CHECKOUT / name, source)
    # Without a choice of formats `build` makes the sdist, and then the wheel from it and from nothing else.
    _run([sys.executable, "-m", "build", "--outdir", str(dist), str(source)], root)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    made = Environment.make(root / "environment")
    made.add(wheel)
    return Installed(made.root, made.empty, sdist)


@pytest.fixture(scope="module")
def seen(installed: Installed) -> dict[str, Any]:
    """What a program sees that has imported every controller."""
    found: dict[str, Any] = json.loads(installed.run("python", "-Ic", LOOK))
    return found


def test_every_controller_is_imported_from_the_wheel(installed: Installed, seen: dict[str, Any]) -> None:
    controllers = CHECKOUT / "controllers"
    paths = [path.relative_to(controllers) for path in controllers.rglob("*.py") if path != controllers / "__init__.py"]
    parts = [path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts for path in paths]
    there = sorted(".".join(("tarsy.controllers", *part)) for part in parts)
    assert sorted(seen["names"]) == there
    outside = {n: path for n, path in seen["from"].items() if not Path(path).is_relative_to(installed.root)}
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


def test_the_wheel_has_no_module_of_the_development_packages(seen: dict[str, Any]) -> None:
    rooms = {name.split(".")[1] for name in seen["modules"]}
    there = {path.name for path in (CHECKOUT / "operator" / "tarsy").iterdir() if (path / "__init__.py").exists()}
    assert rooms == there
    assert not any("tests" in name or "tarsy_dev" in name or "embedded" in name for name in seen["modules"])


def test_a_command_of_the_development_package_names_it_until_it_is_there(installed: Installed, tmp_path: Path) -> None:
    command = [str(installed.root / "bin" / "tarsy"), "demo"]
    absent = subprocess.run(command, cwd=installed.empty, capture_output=True, text=True, timeout=60)
    assert absent.returncode == 1
    assert absent.stderr.endswith("in a checkout, pip install ./operator/kubeapi ./operator/tarsy_dev\n")
    assert "pip install tarsy-dev" not in absent.stderr
    for folder in ("kubeapi", "tarsy_dev"):
        installed.add(shutil.copytree(CHECKOUT / "operator" / folder, tmp_path / folder, ignore=NO_BUILD))
    assert "--keep" in installed.run("tarsy", "demo", "--help")
    installed.run("python", "-Ic", "import tarsy_dev.demo, tarsy_dev.develop")


def test_the_embedded_kubernetes_api_works_where_nothing_of_tarsy_is(tmp_path: Path) -> None:
    environment = Environment.make(tmp_path / "environment")
    environment.add(shutil.copytree(CHECKOUT / "operator" / "kubeapi", tmp_path / "kubeapi", ignore=NO_BUILD))
    (environment.empty / "test_fixture.py").write_text(FIXTURE)
    assert "1 passed" in environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")


def _run(command: list[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
