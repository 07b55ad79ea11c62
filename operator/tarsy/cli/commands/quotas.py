"""Declares `quota`: spending limits and usage of a namespace."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def quota(
    connection: "ConnectionOptions",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the quotas of all namespaces.")
    ] = False,
    output: OutputOption = "text",
) -> None:
    """List quotas with what is spent (#) and reserved (+) in the current period."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.quotas import list_quotas

        return await list_quotas(client, None if all_namespaces else client.namespace, output)

    run_with_client(connection, work)
