"""Declares `schedules`: alerts that are created by the clock."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def schedules(
    connection: "ConnectionOptions",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the schedules of all namespaces.")
    ] = False,
    output: OutputOption = "text",
) -> None:
    """List alert schedules with their last and next times, and why the latest time has no alert."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.schedules import list_schedules

        return await list_schedules(client, None if all_namespaces else client.namespace, output)

    run_with_client(connection, work)
