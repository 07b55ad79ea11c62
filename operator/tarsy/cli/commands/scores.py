"""Declares `score` and `scores`: judgements of suites on the quality of investigations."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import run_with_client, with_connection
from tarsy.cli.commands.investigations import Name, OutputOption
from tarsy.resources.v1alpha1.scoring import MAX_RESCORE_DAYS

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions


@with_connection
def score(
    connection: "ConnectionOptions",
    name: Name,
    again: Annotated[bool, typer.Option("--again", help="Request another score, within the budget.")] = False,
    output: OutputOption = "text",
) -> None:
    """Print the scores of an investigation, or request another one. A score is advice: nothing depends on it."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.scores import ask_again, show_score

        if again:
            return await ask_again(client, client.namespace, name)
        return await show_score(client, client.namespace, name, output)

    run_with_client(connection, work)


@with_connection
def scores(
    connection: "ConnectionOptions",
    suite: Annotated[str, typer.Argument(help="Name of the EvalSuite.", metavar="SUITE")],
    again: Annotated[
        bool,
        typer.Option("--again", help="Request new scores for recently finished investigations, within the budget."),
    ] = False,
    days: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_RESCORE_DAYS, help="With --again: number of days in which the investigations finished."
        ),
    ] = 7,
    output: OutputOption = "text",
) -> None:
    """Print the scores of a suite by chain: points, failure tags, missing tools."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.scores import ask_suite_again, show_suite

        if again:
            return await ask_suite_again(client, client.namespace, suite, days)
        return await show_suite(client, client.namespace, suite, output)

    run_with_client(connection, work)
