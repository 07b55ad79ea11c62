"""`kubectl tarsy`: the commands for those who investigate, as kubectl finds them; and what completes them there."""

import sys

import typer

from tarsy.cli.commands import people
from tarsy.cli.version import add_version


def new_app() -> typer.Typer:
    """The commands that need nothing but the API."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Investigations of TARSy: hand alerts in, follow, ask, and see why.",
    )
    add_version(app, "kubectl-tarsy")
    add_people(app)
    return app


def add_people(app: typer.Typer) -> None:
    """Adds these commands to an app."""
    commands = (people.timeline, people.chat, people.trace, people.why, people.usage, people.cancel, people.conclude)
    for command in (*commands, people.completion):
        app.command()(command)
    alerts = typer.Typer(no_args_is_help=True, help="Alerts: hand them in.")
    alerts.command()(people.submit)
    alerts.callback()(_alerts)
    app.add_typer(alerts, name="alerts")


def main() -> None:
    """The entry point `kubectl-tarsy`."""
    run(new_app())


def complete() -> None:
    """The entry point `kubectl_complete-tarsy`, by which kubectl (1.26 and newer) completes `kubectl tarsy`."""
    _complete(new_app(), sys.argv[1:])
    sys.stdout.write(":4\n")  # kubectl's word for: no files


def run(app: typer.Typer) -> None:
    """Runs an app, or says what may come next on its command line, where a shell asks that."""
    from tarsy.cli.completion import ASK

    if sys.argv[1:2] == [ASK]:
        _complete(app, sys.argv[2:])
    else:
        app()


def _alerts() -> None:
    """Alerts: hand them in."""


def _complete(app: typer.Typer, words: list[str]) -> None:
    from tarsy.cli.completion import candidates

    for candidate in candidates(typer.main.get_command(app), words):
        sys.stdout.write(candidate + "\n")
