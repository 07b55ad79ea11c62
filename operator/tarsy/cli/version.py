"""Adds the option `--version`."""

from importlib.metadata import version
from typing import Annotated

import typer

PACKAGE = "tarsy-operator"


def say_version(program: str, asked: bool) -> None:
    """Prints the version of the installed package and exits."""
    if asked:
        typer.echo(f"{program} {version(PACKAGE)}")
        raise typer.Exit


def add_version(app: typer.Typer, program: str) -> None:
    """Adds the option `--version` to an app."""

    def tell(asked: bool) -> None:
        say_version(program, asked)

    def main(
        _: Annotated[bool, typer.Option("--version", is_eager=True, callback=tell, help="Print the version.")] = False,
    ) -> None:
        pass

    app.callback()(main)
