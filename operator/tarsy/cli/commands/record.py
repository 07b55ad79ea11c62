"""Declares `tarsy purge`, for administrators of the database."""

from typing import Annotated

import typer

from tarsy.cli.commands.options import DatabaseUrl, TextOrJson, span
from tarsy.cli.running import go


def purge(
    database_url: DatabaseUrl,
    older_than: Annotated[
        str,
        typer.Option(help="Minimum time since the end or the change: a number with s, m, h, d or w, such as 30d."),
    ],
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Delete only records of this namespace. May be repeated. Default: all."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, and delete nothing.")
    ] = False,
    output: TextOrJson = "text",
) -> None:
    """Permanently delete old records of finished investigations, and old recorded changes of objects."""
    from tarsy.app.durations import seconds_of
    from tarsy.cli.purge import purge_records

    seconds = span(older_than, "--older-than", seconds_of)
    go(purge_records(database_url, seconds, older_than, tuple(namespace or ()), dry_run=dry_run, output=output))
