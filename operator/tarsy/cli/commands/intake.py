"""Declares `tarsy route` and `tarsy ledger`, which explain the handling of alerts that arrive over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from tarsy.cli.commands.options import Context, DatabaseUrl, Kubeconfig, LibraryNamespace, TextOrJson, span
from tarsy.cli.running import go
from tarsy.http.intake.body_format import BodyFormat
from tarsy.plan.library import LIBRARY_NAMESPACE


def route(
    body: Annotated[Path, typer.Option("--file", "-f", help="File with the body of the request.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Required: the command only explains, it submits no alert.")
    ],
    config: Annotated[
        list[Path] | None,
        typer.Option(
            help="File or directory with AlertRoutes and Chains. May be repeated. Default: those of the cluster."
        ),
    ] = None,
    source: Annotated[BodyFormat, typer.Option(help="Intake endpoint that the request is for.")] = "alertmanager",
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of the AlertRoutes, as ?namespace= of the request. Default: the library.",
        ),
    ] = None,
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: TextOrJson = "text",
) -> None:
    """Print which AlertRoute and Chain match an alert, and why others do not. Exits with 1 if none matches."""
    from tarsy.cli.plans.route import RouteSource, show_route

    if not dry_run:
        raise typer.BadParameter(
            "is required: the command only explains; send alerts to the operator's /intake/v1", param_hint="--dry-run"
        )
    routes_of = RouteSource(config or [], namespace, library_namespace, kubeconfig, context)
    go(show_route(body, source, routes_of, output))


def ledger(
    database_url: DatabaseUrl,
    since: Annotated[
        str, typer.Option(help="Length of the period up to now: a number with s, m, h, d or w, or forever.")
    ] = "forever",
    output: TextOrJson = "text",
) -> None:
    """Print the outcome of every alert that arrived over HTTP. Exits with 1 if the counts do not balance."""
    from tarsy.app.durations import seconds_or_forever
    from tarsy.cli.reports.ledger import show_ledger

    go(show_ledger(database_url, span(since, "--since", seconds_or_forever), since, output=output))
