"""Declares `calibration`: how often the findings of Chains were right."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def calibration(
    connection: "ConnectionOptions",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Include the findings of all namespaces.")
    ] = False,
    output: OutputOption = "text",
) -> None:
    """List how often findings were right according to reviews, by Chain and confidence."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.calibration import list_calibration

        return await list_calibration(client, None if all_namespaces else client.namespace, output)

    run_with_client(connection, work)
