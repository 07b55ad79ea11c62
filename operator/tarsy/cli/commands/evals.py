"""Declares commands about recorded investigations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import Name

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def export_cassette(
    connection: "ConnectionOptions",
    name: Name,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="File to write (case.jsonl.gz).", dir_okay=False),
    ],
) -> None:
    """Write the tool calls of a finished investigation to a file. Requires the role tarsy-tracer."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.evals.cassettes import write_exported

        return await write_exported(client, client.namespace, name, output)

    run_with_client(connection, work)
