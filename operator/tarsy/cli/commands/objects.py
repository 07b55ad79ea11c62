"""Declares `objects`: the configuration objects with their health, and how it changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def objects(
    connection: "ConnectionOptions",
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND[/NAME]]",
            help="Only objects of a kind, as kubectl writes it (mcpserver, chains, tmcp). With a name: how it changed.",
        ),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the objects of all namespaces.")
    ] = False,
    hours: Annotated[int, typer.Option(min=1, max=168, help="Period in which changes are counted.")] = 24,
    limit: Annotated[int, typer.Option(min=1, max=600, help="Maximum number of changes of one object.")] = 100,
    output: OutputOption = "text",
) -> None:
    """List configuration objects with their health, since when, and their last problem; or the changes of one."""
    from tarsy.cli.objects.health import chosen_object

    kind, name = chosen_object(which)

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.health import list_objects, list_transitions

        namespace = None if all_namespaces else client.namespace
        if kind is not None and name is not None:
            return await list_transitions(client, namespace, kind, name, output, limit=limit)
        return await list_objects(client, namespace, kind, hours, output)

    run_with_client(connection, work)
