"""`tarsy route` and `tarsy ledger`: what comes in over HTTP, for those who let it in."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tarsy.cli.commands.options import Context, DatabaseUrl, Kubeconfig, LibraryNamespace, span
from tarsy.cli.running import go
from tarsy.plan.library import LIBRARY_NAMESPACE

Output = Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="For people, or for programs.")]


def route(
    body: Annotated[Path, typer.Option("--file", "-f", help="File with the body that would be sent.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of it; nothing else is done.")],
    config: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder with AlertRoutes and Chains; may be repeated; else those of the cluster."),
    ] = None,
    source: Annotated[
        Literal["alertmanager", "json", "text"], typer.Option(help="To which address it would be sent.")
    ] = "alertmanager",
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Whose routes are asked, as ?namespace= says; else the library's."),
    ] = None,
    library_namespace: LibraryNamespace = LIBRARY_NAMESPACE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = "text",
) -> None:
    """Print which route and chain an alert would take, and why not the others; ends 1 where none takes it."""
    from tarsy.cli.route import show_route

    if not dry_run:
        raise typer.BadParameter(
            "alerts are sent to the operator's /intake/v1; this only tells", param_hint="--dry-run"
        )
    go(
        show_route(
            body,
            config or [],
            source=source,
            namespace=namespace,
            library_namespace=library_namespace,
            kubeconfig=kubeconfig,
            context=context,
            output=output,
        )
    )


def ledger(
    database_url: DatabaseUrl,
    since: Annotated[str, typer.Option(help="How far back: a number with s, m, h, d or w; or: forever.")] = "forever",
    output: Output = "text",
) -> None:
    """Print what became of every alert that came in over HTTP; ends 1 where that does not balance."""
    from tarsy.app.durations import seconds_or_forever
    from tarsy.cli.ledger import show_ledger

    go(show_ledger(database_url, span(since, "--since", seconds_or_forever), since, output=output))
