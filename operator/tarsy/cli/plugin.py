"""Runs `kubectl tarsy`, the plugin with the commands for those who investigate, and its completion."""

import sys

import typer

from tarsy.cli.commands import (
    approvals,
    calibration,
    evals,
    evidence,
    objects,
    queue,
    quotas,
    reviews,
    schedules,
    scores,
    server_tools,
    skills,
)
from tarsy.cli.commands import investigations as commands
from tarsy.cli.version import add_version


def new_app() -> typer.Typer:
    """Returns the app with the commands that need only the API."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Submit alerts, follow investigations, ask about them and inspect their evidence.",
    )
    add_version(app, "kubectl-tarsy")
    add_investigation_commands(app)
    app.command()(queue.plan)  # `tarsy plan` plans from files
    return app


def add_investigation_commands(app: typer.Typer) -> typer.Typer:
    """Adds the commands that need only the API to an app; returns the group `eval`, for further commands."""
    added = (
        commands.timeline,
        commands.chat,
        commands.trace,
        commands.precedents,
        commands.verify,
        server_tools.tools,
        server_tools.accept_tools,
        commands.why,
        commands.compare,
        commands.replay,
        commands.retry,
        commands.usage,
        evidence.changes,
        evidence.triage,
        evidence.verdict,
        approvals.approvals,
        approvals.approve,
        approvals.reject,
        reviews.reviews,
        reviews.review,
        calibration.calibration,
        quotas.quota,
        queue.queue,
        queue.workers,
        objects.objects,
        scores.score,
        scores.scores,
        schedules.schedules,
        commands.cancel,
        commands.conclude,
        commands.completion,
    )
    for command in added:
        app.command()(command)
    alerts = typer.Typer(no_args_is_help=True, help="Submit alerts.")
    alerts.command()(commands.submit)
    alerts.callback()(_alerts)
    app.add_typer(alerts, name="alerts")
    texts = typer.Typer(no_args_is_help=True, help="List, print and import skills of agents.")
    texts.command("list")(skills.list_command)
    texts.command("show")(skills.show_command)
    texts.command("import")(skills.import_command)
    texts.callback()(_skills)
    app.add_typer(texts, name="skills")
    cases = typer.Typer(no_args_is_help=True, help="Export recorded investigations to replay them.")
    cases.command(name="export")(evals.export_cassette)
    cases.callback()(_evals)
    app.add_typer(cases, name="eval")
    return cases


def main() -> None:
    """Runs the command `kubectl-tarsy`."""
    run_app(new_app())


def complete() -> None:
    """Runs `kubectl_complete-tarsy`, with which kubectl (1.26 and newer) completes `kubectl tarsy`."""
    _complete(new_app(), sys.argv[1:])
    sys.stdout.write(":4\n")  # directive for kubectl: no file names


def run_app(app: typer.Typer) -> None:
    """Runs an app or, for the completion script of a shell, prints the candidates for the command line."""
    from tarsy.app.garbage import collect_less_often
    from tarsy.cli.completion import ASK

    collect_less_often()
    if sys.argv[1:2] == [ASK]:
        _complete(app, sys.argv[2:])
    else:
        app()


def _alerts() -> None:
    """Submit alerts."""


def _evals() -> None:
    """Export recorded investigations to replay them."""


def _skills() -> None:
    """List, print and import skills of agents."""


def _complete(app: typer.Typer, words: list[str]) -> None:
    from tarsy.cli.completion import candidates

    for candidate in candidates(typer.main.get_command(app), words):
        sys.stdout.write(candidate + "\n")
