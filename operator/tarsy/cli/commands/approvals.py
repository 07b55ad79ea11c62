"""Declares `approvals`, `approve` and `reject`: calls of tools that wait for people."""

from typing import TYPE_CHECKING, Annotated

import typer

from tarsy.cli.commands.connection import object_name, run_with_client, with_connection
from tarsy.cli.commands.investigations import OutputOption

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.client.opening import ConnectionOptions
    from tarsy.http.decision_entry import Verdict

ApprovalName = Annotated[
    str, typer.Argument(help="Name of the ToolApproval, as `approvals` prints it.", callback=object_name)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Reason = Annotated[str | None, typer.Option(help="Reason for the decision, kept on record.")]


@with_connection
def approvals(
    connection: "ConnectionOptions",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the calls of all namespaces.")
    ] = False,
    decided: Annotated[bool, typer.Option("--decided", help="Also list calls that no longer wait.")] = False,
    output: OutputOption = "text",
) -> None:
    """List tool calls that wait for approval. Requires the role tarsy-approver or tarsy-tracer."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.approvals import list_waiting

        where = None if all_namespaces else client.namespace
        return await list_waiting(client, where, output, decided=decided)

    run_with_client(connection, work)


@with_connection
def approve(
    connection: "ConnectionOptions",
    name: ApprovalName,
    yes: Yes = False,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the target of a destructive call, to confirm it together with --yes."
        ),
    ] = None,
    reason: Reason = None,
    output: OutputOption = "text",
) -> None:
    """Show a waiting call with its change and evidence, and approve it. Requires the role tarsy-approver."""
    _decide(connection, name, "Approve", yes=yes, target=target, reason=reason, output=output)


@with_connection
def reject(
    connection: "ConnectionOptions",
    name: ApprovalName,
    yes: Yes = False,
    reason: Reason = None,
    output: OutputOption = "text",
) -> None:
    """Show a waiting call and reject it: the run continues without it. Requires the role tarsy-approver."""
    _decide(connection, name, "Reject", yes=yes, target=None, reason=reason, output=output)


def _decide(
    connection: "ConnectionOptions",
    name: str,
    decision: "Verdict",
    *,
    yes: bool,
    target: str | None,
    reason: str | None,
    output: OutputOption,
) -> None:
    if reason is not None and len(reason) > 1024:
        raise typer.BadParameter("a reason has at most 1,024 characters", param_hint="--reason")

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.deciding import Confirmation, decide_call

        confirmation = Confirmation(yes, target)
        return await decide_call(
            client, client.namespace, name, decision, output, reason=reason, confirmation=confirmation
        )

    run_with_client(connection, work)
