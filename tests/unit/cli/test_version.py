"""`--version` of both programs."""

from importlib.metadata import version

from typer.testing import CliRunner

from tarsy.cli.main import app
from tarsy.cli.plugin import new_app


def test_both_programs_say_their_version() -> None:
    for program, name in ((app, "tarsy"), (new_app(), "kubectl-tarsy")):
        result = CliRunner().invoke(program, ["--version"])
        assert (result.exit_code, result.output) == (0, f"{name} {version('tarsy-operator')}\n")
        assert "--version" in CliRunner().invoke(program, ["--help"], env={"COLUMNS": "120"}).output
