"""Adds the commands of other packages: `tarsy dev`, `tarsy demo` and `tarsy bench` are in the package tarsy-dev.

A package adds a command, or a group of them, by an entry point of the group `tarsy.commands`. The names below are known
here as well, so that a command whose package is not installed names that package instead of being unknown.
"""

from collections.abc import Callable
from importlib.metadata import entry_points

import typer

_GROUP = "tarsy.commands"
PACKAGES = {"dev": "tarsy-dev", "demo": "tarsy-dev", "bench": "tarsy-dev"}
"""Known commands of other packages, with the package of each."""
WHERE = "which no package index has: in a checkout, pip install ./operator/kubeapi ./operator/tarsy_dev"
"""A name that nobody of us has registered must not be asked of an index: anybody may register it."""


def add_installed(app: typer.Typer) -> None:
    """Adds the commands of installed packages, and one that prints the remedy for each that is not usable.

    An installed package that cannot be imported disables only its own commands.
    """
    found = {entry.name: entry for entry in entry_points(group=_GROUP)}
    for name in dict.fromkeys((*PACKAGES, *sorted(found))):
        if name not in found:
            package = PACKAGES[name]
            _add_unusable(app, name, f"is in the package {package}, {WHERE}")
            continue
        try:
            _add(app, name, found[name].load())
        except ImportError as error:
            distribution = found[name].dist
            package = distribution.name if distribution else PACKAGES.get(name, "that adds it")
            _add_unusable(app, name, f"cannot be loaded ({error}): reinstall the package {package}")


def _add(app: typer.Typer, name: str, loaded: Callable[..., None] | typer.Typer) -> None:
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=name)
    else:
        app.command(name)(loaded)


def _add_unusable(app: typer.Typer, name: str, reason: str) -> None:
    def unusable() -> None:
        typer.echo(f"tarsy: the command `tarsy {name}` {reason}", err=True)
        raise typer.Exit(1)

    unusable.__doc__ = f"Not usable here: {reason}."
    app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(unusable)
