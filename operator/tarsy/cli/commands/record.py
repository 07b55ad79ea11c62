"""`tarsy purge`: for administrators, who have the address of Postgres."""

from typing import Annotated, Literal

import typer

from tarsy.cli.commands.options import DatabaseUrl, span
from tarsy.cli.running import go


def purge(
    database_url: DatabaseUrl,
    older_than: Annotated[
        str, typer.Option(help="How long their runs have ended: a number with s, m, h, d or w; as in 30d.")
    ],
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Only records of this namespace. May be repeated. Default: all."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    output: Annotated[
        Literal["text", "json"], typer.Option("--output", "-o", help="For people, or for programs.")
    ] = "text",
) -> None:
    """Delete the records of investigations that ended long ago, for good; running ones are never touched."""
    from tarsy.app.durations import seconds_of
    from tarsy.cli.purge import purge_records

    seconds = span(older_than, "--older-than", seconds_of)
    go(purge_records(database_url, seconds, older_than, tuple(namespace or ()), dry_run=dry_run, output=output))
