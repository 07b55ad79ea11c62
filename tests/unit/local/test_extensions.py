"""Tests that the build of the API extensions server reports why it is impossible, so that tests can be skipped."""

from pathlib import Path

import pytest

from tarsy_dev.apiserver import debian, extensions_build

POLICY = "{name}:\n  Installed: (none)\n  Candidate: {version}\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache, Debian's sources and no programs; returns the folder of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{programs}")
    stanza = f"Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: {debian.RELEASE}\nComponents: main"
    monkeypatch.setattr(debian, "source_files", lambda folder: {"machine.sources": stanza})
    return programs


def _program(folder: Path, name: str, output: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{output}END\n")
    (folder / name).chmod(0o755)


def test_machine_without_apt_is_reported(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extensions_build.main() == 1
    assert "apt-get or dpkg-deb is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({}, "can this machine reach Debian's mirror?"),
        (
            {"golang-k8s-apiextensions-apiserver-dev": "0.37.1-1", "golang-1.26-go": "1.26.2-1"},
            "Debian sid has moved: golang-k8s-apiextensions-apiserver-dev 0.36 and golang-1.26-go are needed, "
            "it has golang-k8s-apiextensions-apiserver-dev 0.37.1-1, golang-1.26-go 1.26.2-1",
        ),
    ],
    ids=["unreachable", "moved"],
)
def test_packages_that_are_not_there_are_reported(
    machine: Path, capsys: pytest.CaptureFixture[str], versions: dict[str, str], reason: str
) -> None:
    for name in ("apt-get", "dpkg-deb"):
        _program(machine, name)
    _program(machine, "apt-cache", "".join(POLICY.format(name=each, version=versions[each]) for each in versions))
    assert extensions_build.main() == 1
    assert reason in capsys.readouterr().err
    assert extensions_build.find_extensions() is None


def test_find_reports_a_server_that_was_not_built_and_does_not_build_it(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["extensions_build", "--find"])
    assert extensions_build.main() == 1
    assert "run `make kube-extensions`" in capsys.readouterr().err
    folder = extensions_build._folder()
    folder.mkdir(parents=True)
    for name in ("apiextensions-apiserver", "etcd"):
        _program(folder, name)
    assert extensions_build.main() == 0
    assert str(folder) in capsys.readouterr().out
