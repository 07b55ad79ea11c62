"""Declares `queue` (waiting runs), `workers`, and `plan` (the plan of an alert)."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def queue(
    connection: "ConnectionOptions",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the queue of all namespaces.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of items.")] = 100,
    output: OutputOption = "text",
) -> None:
    """List waiting alerts and runs, for how long and why they wait: for a worker, a decision, a provider, a quota
    or a chain."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.queue import show_queue

        return await show_queue(client, None if all_namespaces else client.namespace, limit, output)

    run_with_client(connection, work)


@with_connection
def workers(connection: "ConnectionOptions", output: OutputOption = "text") -> None:
    """List the workers with their load, last heartbeat and release."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.queue import list_workers

        return await list_workers(client, output)

    run_with_client(connection, work)


@with_connection
def plan(
    connection: "ConnectionOptions",
    alert_type: Annotated[str, typer.Argument(help="Type of the alert.", metavar="ALERT-TYPE")],
    chain: Annotated[str | None, typer.Option(help="Name of the chain. Selected by the type when omitted.")] = None,
    output: OutputOption = "text",
) -> None:
    """Show the plan that an alert of a type would follow now, without starting anything.

    It exits with 1 if no investigation would start.
    """

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.plans.in_cluster import show_planned

        return await show_planned(client, alert_type, chain, output)

    run_with_client(connection, work)
