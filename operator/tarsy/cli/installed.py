"""Commands of other packages: `tarsy dev` and `tarsy demo` come with the package tarsy-dev.

A package adds a command by an entry point of the group `tarsy.commands`. The names below are known here as well, so
that a command whose package is not installed names that package instead of being unknown.
"""

from collections.abc import Callable
from importlib.metadata import entry_points

import typer

_GROUP = "tarsy.commands"
PACKAGES = {"dev": "tarsy-dev", "demo": "tarsy-dev"}
"""Commands of other packages, with the package of each."""


def add_installed(app: typer.Typer) -> None:
    """Adds the commands of installed packages, and one that names its package for each that is missing."""
    found = {entry.name: entry for entry in entry_points(group=_GROUP)}
    for name in dict.fromkeys((*PACKAGES, *sorted(found))):
        if name in found:
            app.command(name)(found[name].load())
        else:
            app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
                _missing(name)
            )


def _missing(name: str) -> Callable[[], None]:
    package = PACKAGES[name]

    def missing() -> None:
        typer.echo(f"tarsy: the command `tarsy {name}` is in the package {package}: pip install {package}", err=True)
        raise typer.Exit(1)

    missing.__doc__ = f"Needs the package {package}, which is not installed."
    return missing
