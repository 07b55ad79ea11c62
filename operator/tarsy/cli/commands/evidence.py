"""Declares commands that compute evidence from the objects of a cluster, without a model and without TARSy in it."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import with_connection
from tarsy.cli.commands.investigations import OutputOption
from tarsy.cli.commands.options import span
from tarsy.cli.running import go

if TYPE_CHECKING:
    from tarsy.client.opening import ConnectionOptions

Target = Annotated[
    str | None,
    typer.Argument(
        help="Object that fails, such as deploy/checkout or checkout. Default: everything in the namespace."
    ),
]


@with_connection
def changes(
    connection: "ConnectionOptions",
    target: Target = None,
    since: Annotated[
        str, typer.Option(help="Period before the first failure in which changes count: a number with s, m, h or d.")
    ] = "4h",
    output: OutputOption = "text",
) -> None:
    """Print what changed before a target failed, the likeliest cause first.

    Reads the cluster with your kubeconfig and calls no model.
    """
    from datetime import timedelta

    from tarsy.app.durations import seconds_of

    window = timedelta(seconds=span(since, "--since", seconds_of))

    async def work() -> int:
        from tarsy.cli.runs.evidence import show_changes
        from tarsy.client.opening import open_cluster

        async with open_cluster(connection) as (client, namespace):
            return await show_changes(client, namespace, target, window, output)

    go(work())


@with_connection
def triage(connection: "ConnectionOptions", target: Target = None, output: OutputOption = "text") -> None:
    """Print the well-known faults that rules find in the objects of a namespace.

    Reads the cluster with your kubeconfig and calls no model.
    """

    async def work() -> int:
        from tarsy.cli.runs.evidence import show_triage
        from tarsy.client.opening import open_cluster

        async with open_cluster(connection) as (client, namespace):
            return await show_triage(client, namespace, target, output)

    go(work())


@with_connection
def verdict(
    connection: "ConnectionOptions",
    target: Annotated[
        str, typer.Option("--for", metavar="OBJECT", help="Object to judge, such as deploy/checkout or checkout.")
    ],
    output: OutputOption = "text",
) -> None:
    """Print whether rules find a fault in an object. Exits with 0 if Healthy, 3 if Faulty, 4 if Inconclusive.

    Reads the cluster with your kubeconfig and calls no model.
    """

    async def work() -> int:
        from tarsy.cli.runs.evidence import show_verdict
        from tarsy.client.opening import open_cluster

        async with open_cluster(connection) as (client, namespace):
            return await show_verdict(client, namespace, target, output)

    go(work())
