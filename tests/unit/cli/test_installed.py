"""Commands of other packages, found by entry points."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from tarsy.cli import installed


@dataclass(frozen=True)
class _Distribution:
    name: str


def app(monkeypatch: pytest.MonkeyPatch, **commands: str) -> typer.Typer:
    """A command with the entry points given, each by its reference, of a package named extra."""
    found = [
        EntryPoint(name, value, "tarsy.commands")._for(_Distribution("extra"))  # type: ignore[attr-defined]
        for name, value in commands.items()
    ]
    monkeypatch.setattr(installed, "entry_points", lambda group: found if group == "tarsy.commands" else [])
    made = typer.Typer()
    installed.add_installed(made)
    made.command("own")(lambda: typer.echo("own command"))
    return made


def test_a_package_that_cannot_be_imported_takes_only_its_own_command_away(monkeypatch: pytest.MonkeyPatch) -> None:
    made = app(monkeypatch, dev="there_is_no_such_module:dev", demo="tarsy.cli.commands.configuration:crds")
    broken = CliRunner().invoke(made, ["dev", "--keep", "x"])
    assert broken.exit_code == 1
    assert (
        "tarsy: the command `tarsy dev` cannot be loaded (No module named 'there_is_no_such_module')" in broken.stderr
    )
    assert broken.stderr.endswith("reinstall the package extra\n")
    assert CliRunner().invoke(made, ["own"]).stdout == "own command\n"


@pytest.mark.parametrize("name", ["dev", "demo"])
def test_a_command_whose_package_is_missing_names_the_package(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    missing = CliRunner().invoke(app(monkeypatch), [name, "--any", "option"])
    assert (missing.exit_code, missing.stderr) == (
        1,
        f"tarsy: the command `tarsy {name}` is in the package tarsy-dev: pip install tarsy-dev\n",
    )
