"""Declares `reviews` and `review`: verdicts of people on findings."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tarsy.cli.commands.connection import object_name, run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions

_STATES = {"needs-review": "NeedsReview", "in-progress": "InProgress", "reviewed": "Reviewed"}


def _names(values: list[str]) -> list[str]:
    return [name for value in values if (name := object_name(value)) is not None]


@with_connection
def reviews(
    connection: "ConnectionOptions",
    state: Annotated[
        Literal["needs-review", "in-progress", "reviewed"], typer.Option(help="State of the reviews.")
    ] = "needs-review",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the investigations of all namespaces.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of investigations.")] = 50,
    output: OutputOption = "text",
) -> None:
    """List finished investigations whose findings need a review, or have one."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.reviews import list_reviewable

        where = None if all_namespaces else client.namespace
        return await list_reviewable(client, where, _STATES[state], limit, output)

    run_with_client(connection, work)


@with_connection
def review(
    connection: "ConnectionOptions",
    names: Annotated[
        list[str], typer.Argument(help="Names of investigations that have ended.", callback=_names, metavar="NAME...")
    ],
    verdict: Annotated[
        Literal["Right", "Partly", "Wrong"] | None,
        typer.Option(help="Verdict on the finding: it names the root cause, a part of it, or something else."),
    ] = None,
    root_cause: Annotated[
        str | None,
        typer.Option(metavar="KIND/NAME", help="Object that was the root cause, such as Deployment/checkout."),
    ] = None,
    note: Annotated[str | None, typer.Option(help="Reasons and actions taken, kept on record.")] = None,
    claim: Annotated[bool, typer.Option("--claim", help="Show others that you are reviewing it.")] = False,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Request another review: earlier verdicts no longer count.")
    ] = False,
    as_case: Annotated[
        bool, typer.Option("--as-case", help="Print a case for an EvalSuite that expects the reviewed root cause.")
    ] = False,
    output: OutputOption = "text",
) -> None:
    """Review findings, or print the reviews of one. Writing requires the role tarsy-reviewer."""
    chosen = [claim, reopen, as_case, verdict is not None]
    if sum(chosen) > 1:
        raise typer.BadParameter("give one of --verdict, --claim, --reopen and --as-case")
    if root_cause is not None and verdict is None:
        raise typer.BadParameter("belongs to a verdict; add --verdict", param_hint="--root-cause")
    if not any(chosen) and note is not None:
        raise typer.BadParameter("belongs to --verdict, --claim or --reopen", param_hint="--note")

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.reviews import SaidReview, show_reviews, write_reviews

        if as_case or not any(chosen):
            return await show_reviews(client, client.namespace, names, output, as_case=as_case)
        action: Literal["Claim", "Complete", "Reopen"] = "Claim" if claim else "Reopen" if reopen else "Complete"
        said = SaidReview(action, verdict, root_cause, note)
        return await write_reviews(client, client.namespace, names, said, output)

    run_with_client(connection, work)
