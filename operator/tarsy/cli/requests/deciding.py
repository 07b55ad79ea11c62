"""Shows a call that waits, asks for confirmation, and appends the decision (`approve NAME`, `reject NAME`).

Decision: the digest that is sent is that of what was printed. A destructive call asks for the name of its target to be
typed, because `y` becomes a habit. Without a terminal nothing is decided unless an option says so.
"""

import asyncio
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from tarsy.cli.errors import CommandError
from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.cli.requests.approvals import read_cited, read_shown, render_approval
from tarsy.client.api import TarsyClient
from tarsy.client.plain_text import one_line
from tarsy.http.decision_entry import Verdict, why_undecidable
from tarsy.http.views.approvals import ApprovalView

LOOKS = 20
LOOK_SECONDS = 1.0
"""Looks for what the operator makes of a decision, and the seconds between them."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Options that replace the questions of a terminal."""

    yes: bool = False
    target: str | None = None


async def decide_call(
    client: TarsyClient,
    namespace: str,
    name: str,
    decision: Verdict,
    output: Output,
    *,
    reason: str | None = None,
    confirmation: Confirmation = Confirmation(),
) -> int:
    """Shows a call and decides about it; returns the exit status: 0 if the decision is written.

    Args:
        client: the API.
        namespace: of the ToolApproval.
        name: of it.
        decision: of the user.
        output: for people, or the format for programs.
        reason: of the user; None: none.
        confirmation: what the user confirmed beforehand.

    Raises:
        ApiUseError: the call does not exist, does not wait any more, or the user may not decide about it.
        CommandError: the user did not confirm.
    """
    shown = await read_shown(client, namespace, name)
    if (why := why_undecidable(shown, decision, "", datetime.now(UTC))) is not None:
        raise CommandError(why)
    console = beside() if for_programs(output) else printer()
    console.print(render_approval(shown, await read_cited(client, shown), datetime.now(UTC)))
    await confirm(shown, decision, confirmation)
    written = await client.decide(shown, decision, reason)
    told = await _outcome(client, written, decision)
    if for_programs(output):
        write_output(told, output)
    else:
        printer().print(f"toolapproval.tarsy.dev/{name} {describe_outcome(told, decision)}")
    return 0


async def confirm(shown: ApprovalView, decision: Verdict, given: Confirmation) -> None:
    """Demands the confirmation of a decision, by options or at the terminal.

    Args:
        shown: the call as it was printed.
        decision: of the user.
        given: what the options confirm.

    Raises:
        CommandError: it is not confirmed.
    """
    demanded = demanded_name(shown) if decision == "Approve" and shown.access == "destructive" else None
    if given.target is not None and demanded is not None and given.target != demanded:
        raise CommandError(f"--target {one_line(given.target, 100)} is not the target of the call, {demanded}")
    if given.yes and (demanded is None or given.target == demanded):
        return
    if not sys.stdin.isatty():
        needed = "--yes" if demanded is None else f"--yes --target {demanded}"
        raise CommandError(
            f"nothing is decided: there is no terminal for the confirmation; give {needed} if you have read the above"
        )
    if demanded is not None:
        typed = await _asked(f"This call is destructive. Type the name of its target, {demanded}, to approve it: ")
        if typed != demanded:
            raise CommandError("nothing is decided: that is not the name of the target")
    elif (await _asked(f"{decision} this call? [y/N] ")).lower() not in ("y", "yes"):
        raise CommandError("nothing is decided")


def demanded_name(shown: ApprovalView) -> str:
    """Returns the name that a person types to approve a destructive call: of the first target, else the tool."""
    return (shown.target or f"{shown.server}.{shown.tool}").rpartition("/")[2]


def describe_outcome(told: ApprovalView, decision: Verdict) -> str:
    """Returns what became of a decision, as the end of a sentence about the object."""
    enforced = told.condition("ApprovalsEnforced")
    if told.phase == "Pending" and enforced is not None and enforced.status == "False":
        return f"has your decision, but it does not count and nothing is called: {one_line(enforced.message, 500)}"
    if told.phase == "Pending" and decision == "Approve" and told.approvals < told.required:
        return f"has {told.approvals} of {told.required} approvals and waits for more"
    if told.phase == "Pending":
        return "has your decision; the operator has not taken it yet: `kubectl get tapp` shows when it has"
    return f"is {told.phase.lower()}. {one_line(told.outcome or '', 500)}".rstrip()


async def _outcome(client: TarsyClient, written: ApprovalView, decision: Verdict) -> ApprovalView:
    """Looks for some seconds what the operator makes of the decision."""
    if decision == "Approve" and written.approvals < written.required:
        return written
    told = written
    with beside().status("the operator checks the decision"):
        for _ in range(LOOKS):
            enforced = told.condition("ApprovalsEnforced")
            if told.phase != "Pending" or (enforced is not None and enforced.status == "False"):
                break
            await asyncio.sleep(LOOK_SECONDS)
            told = await client.approval(written.namespace, written.name)
    return told


async def _asked(question: str) -> str:
    """Reads a line from the terminal; an interrupted command does not wait for it."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    sys.stderr.write(question)
    sys.stderr.flush()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline().strip()
