"""Commands of other packages, found by entry points."""

from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tarsy.cli import installed


def app(monkeypatch: pytest.MonkeyPatch, place: Path, **commands: str) -> typer.Typer:
    """A command with the entry points given, each by its reference, of a package named extra."""
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1\n", encoding="utf-8")
    entries = "\n".join(f"{name} = {value}" for name, value in commands.items())
    (place / "entry_points.txt").write_text(f"[tarsy.commands]\n{entries}\n", encoding="utf-8")
    found = PathDistribution(place).entry_points
    monkeypatch.setattr(installed, "entry_points", lambda group: found if group == "tarsy.commands" else [])
    made = typer.Typer()
    installed.add_installed(made)
    made.command("own")(lambda: typer.echo("own command"))
    return made


def test_a_package_that_cannot_be_imported_takes_only_its_own_command_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = app(monkeypatch, tmp_path, dev="there_is_no_such_module:dev", demo="tarsy.cli.commands.configuration:crds")
    broken = CliRunner().invoke(made, ["dev", "--keep", "x"])
    assert broken.exit_code == 1
    assert (
        "tarsy: the command `tarsy dev` cannot be loaded (No module named 'there_is_no_such_module')" in broken.stderr
    )
    assert broken.stderr.endswith("reinstall the package extra\n")
    assert CliRunner().invoke(made, ["own"]).stdout == "own command\n"


def test_a_package_adds_a_group_of_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = app(monkeypatch, tmp_path, bench="tarsy_dev.commands:bench")
    refused = CliRunner().invoke(made, ["bench", "cloud-opsbench", str(tmp_path / "absent")])
    assert refused.exit_code == 2
    assert "there is no folder" in refused.output
    assert "cloud-opsbench" in CliRunner().invoke(made, ["bench", "--help"]).output


@pytest.mark.parametrize("name", ["dev", "demo", "bench"])
def test_a_command_whose_package_is_missing_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    missing = CliRunner().invoke(app(monkeypatch, tmp_path), [name, "--any", "option"])
    assert (missing.exit_code, missing.stderr) == (
        1,
        f"tarsy: the command `tarsy {name}` is in the package tarsy-dev, which no package index has: "
        "in a checkout, pip install ./operator/kubeapi ./operator/tarsy_dev\n",
    )
