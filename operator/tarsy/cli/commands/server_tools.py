"""Declares commands about the tools of MCPServers with `spec.pin`."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import object_name, run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="Name of the MCPServer.", callback=object_name)]


@with_connection
def tools(connection: "ConnectionOptions", name: ServerArgument, output: OutputOption = "text") -> None:
    """Print the tools of an MCPServer with spec.pin, and what changed in them. Exits with 1 if some are withheld."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.server_tools import show_tools

        return await show_tools(client, client.namespace, name, output)

    run_with_client(connection, work)


@with_connection
def accept_tools(
    connection: "ConnectionOptions",
    name: ServerArgument,
    tool: Annotated[
        list[str] | None, typer.Option(help="Tool to accept. May be repeated. Default: all withheld tools.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Reason, for others.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: OutputOption = "text",
) -> None:
    """Accept new and changed tools of an MCPServer, as they are printed. Requires the role tarsy-tool-acceptor."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.server_tools import accept_shown_tools

        return await accept_shown_tools(
            client, client.namespace, name, output, tools=tool or (), reason=reason, confirm=not yes
        )

    run_with_client(connection, work)
