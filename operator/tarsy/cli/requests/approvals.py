"""Prints waiting tool calls (`approvals`), and one of them with everything that matters for a decision."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, place_of_list, write_list
from tarsy.cli.runs.argument_origins import origin_lines
from tarsy.client.api import TarsyClient, approval_path, read_as
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line, plain
from tarsy.client.refusals import READ_APPROVALS
from tarsy.http.views.approvals import ApprovalEvidenceView, ApprovalItem, ApprovalView, CitedResult

_RESULT_LINES = 20
_ACCESS = {"destructive": "bold red", "unknown": "yellow"}
_PHASES = {"Pending": "yellow", "Approved": "green", "Executed": "green"}
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


async def list_waiting(
    client: TarsyClient, namespace: str | None, output: Output, *, decided: bool, now: datetime | None = None
) -> int:
    """Prints the calls that wait for people; returns the exit status.

    Args:
        client: the API.
        namespace: of the runs; None: all.
        output: for people, or the format for programs.
        decided: whether calls that do not wait any more are printed too.
        now: the time; None: of the clock.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await client.approvals(namespace, decided=decided)
    table = partial(approvals_table, now=now or datetime.now(UTC), with_namespace=namespace is None)
    write_list(found, output, table, f"No call waits for approval in {place_of_list(namespace)}.")
    return 0


def approvals_table(items: Sequence[ApprovalItem], now: datetime, *, with_namespace: bool) -> Table:
    """Renders calls as a table.

    Args:
        items: the calls.
        now: the time.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["NAME", "INVESTIGATION", "TOOL", "TARGET", "ACCESS", "NEEDS", "DECISION", "REQUIRED BY"]
    for title in (["NAMESPACE"] if with_namespace else []) + titles:
        table.add_column(title, overflow="fold")
    for one in items:
        cells = [
            one.name,
            one.run.name,
            f"{one.server}.{one.tool}",
            one.target or "-",
            one.access,
            f"{one.approvals} of {one.required}",
            one.phase,
            _until(one, now),
        ]
        styles = {4: _ACCESS.get(one.access, ""), 6: _PHASES.get(one.phase, "")}
        row = [Text(one_line(cell, 260), style=styles.get(n, "")) for n, cell in enumerate(cells)]
        table.add_row(*([Text(one.namespace)] if with_namespace else []), *row)
    return table


async def read_shown(client: TarsyClient, namespace: str, name: str) -> ApprovalView:
    """Reads a call that a person asks for by name.

    Args:
        client: the API.
        namespace: of the ToolApproval.
        name: of it.

    Raises:
        ApiUseError: there is none, or it may not be read.
    """
    try:
        return await client.approval(namespace, name)
    except ApiUseError as error:
        if error.status == 404 and ("not found" in str(error) or "there is no ToolApproval" in str(error)):
            text = (
                f"there is no ToolApproval {namespace}/{name}: `kubectl tarsy approvals -A` lists those that wait; a "
                "decided one is deleted after a week"
            )
            raise ApiUseError(text, 404) from None
        raise


async def read_cited(client: TarsyClient, shown: ApprovalView) -> ApprovalEvidenceView | str:
    """Reads the results that a call cites; a sentence where they cannot be read.

    Args:
        client: the API.
        shown: the call.
    """
    try:
        path = approval_path(shown.namespace, shown.name, "evidence")
        return await read_as(client, ApprovalEvidenceView, path, READ_APPROVALS)
    except ApiUseError as error:
        return str(error)


def render_approval(shown: ApprovalView, evidence: ApprovalEvidenceView | str, now: datetime) -> RenderableType:
    """Renders a call with its change, reason and evidence.

    Args:
        shown: the call.
        evidence: the results that it cites, or why they cannot be read.
        now: the time.
    """
    head = Text(f"{shown.namespace}/{shown.name}", style="bold")
    head.append(f"  {shown.phase}", style=_PHASES.get(shown.phase, "red"))
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("Call", Text(f"{shown.server}.{shown.tool}", style="bold"))
    facts.add_row("Arguments", Text(plain(shown.arguments) or "{}"))
    if shown.provenance:
        lines = [Text(plain(line)) for line in origin_lines([one.model_dump() for one in shown.provenance])]
        facts.add_row("Come from", Group(*lines))
    facts.add_row("Targets", Text(", ".join(map(one_target, _targets(shown))) or "not known", style="bold"))
    if shown.undoes:
        facts.add_row("Undoes", Text(f"the call of ToolApproval {shown.undoes}"))
    facts.add_row("Access", Text(shown.access, style=_ACCESS.get(shown.access, "")))
    facts.add_row("Asked by", Text(f"{shown.run.kind} {shown.run.name}, started by {', '.join(shown.requesters)}"))
    needs = f"{shown.approvals} of {shown.required}, {_until(shown, now)}"
    facts.add_row("Approvals", Text(needs))
    facts.add_row("Digest", Text(shown.arguments_digest, style="dim"))
    blocks: list[RenderableType] = [head, Indented(facts, 2), Text(), _title("Change"), Indented(_change(shown), 2)]
    blocks += [Text(), _title("Undo"), Indented(_undo(shown), 2)]
    blocks += [Text(), _title("Reason (text of a model)"), Indented(Text(plain(shown.claim)), 2)]
    blocks += [Text(), _title("Evidence")]
    if isinstance(evidence, str):
        blocks += [Indented(Text(f"cites {', '.join(shown.evidence)}; not shown: {plain(evidence)}", "yellow"), 2)]
    else:
        blocks += [Indented(_cited(one), 2) for one in evidence.items]
        found = {one.id for one in evidence.items}
        missing = [plain(one) for one in shown.evidence if one not in found]
        if missing:
            blocks.append(Indented(Text(f"no longer on record: {', '.join(missing)}", "yellow"), 2))
    for one in shown.decisions:
        said = f"{one.username}: {one.decision}" + (f" ({one.reason})" if one.reason else "")
        blocks.append(Text(one_line(said, 400), style="dim"))
    return Group(*blocks)


def one_target(named: str) -> str:
    """Returns the name of a target, safe for a terminal."""
    return one_line(named, 300)


def _targets(shown: ApprovalView) -> list[str]:
    listed = [
        f"{one.kind}/{one.name}"
        + (f" in {one.namespace}" if one.namespace else "")
        + (f", managed by {one.managed_by}" if one.managed_by else "")
        for one in shown.targets
    ]
    return listed or ([shown.target] if shown.target else [])


def _title(text: str) -> Text:
    return Text(text, style="bold underline")


def _change(shown: ApprovalView) -> RenderableType:
    note = [Text(plain(shown.preview.note), style="yellow")] if shown.preview.note else []
    if not shown.preview.diff:
        return Group(Text("There is no preview: decide by tool and arguments.", style="yellow"), *note)
    lines = [Text(line, style=_DIFF.get(line[:1], "")) for line in plain(shown.preview.diff).splitlines()]
    remark = (
        "" if shown.preview.kind == "DryRun" else "not a dry run of the tool: the objects as the operator reads them"
    )
    return Group(*([Text(remark, style="dim")] if remark else []), *lines, *note)


def _undo(shown: ApprovalView) -> RenderableType:
    undo = shown.undo
    if undo is None:
        return Text("The MCPServer declares no undo.", style="yellow")
    if undo.tool is None:
        return Text(f"It cannot be undone by a call: {plain(undo.note or 'nobody says why')}", style="yellow")
    return Text(f"{shown.server}.{undo.tool} {plain(undo.arguments or '{}')}", style="dim")


def _cited(one: CitedResult) -> RenderableType:
    head = Text(one_line(one.tool, 200), style="cyan")
    head.append(f"  class {one.integrity.value}  {one_line(one.stage, 60)}/{one_line(one.agent, 60)}  {one.id}", "dim")
    lines = plain(one.result).splitlines()
    kept = [Text(line, style="dim") for line in lines[:_RESULT_LINES]]
    more = len(lines) - _RESULT_LINES
    if more > 0 or one.truncated:
        kept.append(Text(f"… ({max(more, 0)} more lines shown by -o json)", style="dim italic"))
    arguments = one.arguments if one.arguments.strip() not in ("", "{}") else ""
    return Group(head, *([Text(one_line(arguments, 200), style="dim")] if arguments else []), Indented(Group(*kept), 2))


def _until(one: ApprovalItem, now: datetime) -> str:
    if one.phase != "Pending":
        return f"{one.expires_at.astimezone(UTC):%Y-%m-%d %H:%M}Z"
    left = int((one.expires_at - now).total_seconds())
    if left <= 0:
        return "expired"
    minutes = left // 60
    text = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{left} s"
    return f"{one.expires_at.astimezone(UTC):%H:%M}Z (in {text})"
