"""Declares `skills list`, `skills show` and `skills import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import object_name, run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def list_command(connection: "ConnectionOptions", output: OutputOption = "text") -> None:
    """List the skills of a namespace, with their digests."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.skills import list_skills

        return await list_skills(client, client.namespace, output)

    run_with_client(connection, work)


@with_connection
def show_command(
    connection: "ConnectionOptions",
    name: Annotated[str, typer.Argument(help="Name of the Skill.", callback=object_name)],
    output: OutputOption = "text",
) -> None:
    """Print the text of a skill as the next run gets it. Exits with 1 if it cannot be read."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.objects.skills import show_skill

        return await show_skill(client, client.namespace, name, output)

    run_with_client(connection, work)


def import_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with SKILL.md, or a folder of such folders.")],
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the manifests. Default: none.", callback=object_name),
    ] = None,
    without_allowed_tools: Annotated[
        bool, typer.Option("--without-allowed-tools", help="Leave allowed-tools of the files out.")
    ] = False,
) -> None:
    """Print Skills for folders in the format of agentskills.io. Exits with 1 and prints no Skill if one has an
    error."""
    from tarsy.cli.objects.skills_import import import_skills

    raise typer.Exit(import_skills(folder, namespace=namespace, without_tools=without_allowed_tools))
