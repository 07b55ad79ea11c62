"""Prints two investigations side by side (`compare A B`): outcome, finding, cost, and the first calls that differ."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_TRACE
from tarsy.http.views.comparison import ComparedAgent, ComparedRun, Comparison, StepView
from tarsy.http.views.timeline import ReplayView
from tarsy.record.words import phase_of

_TEXT = 400
_CALL = 200


async def compare_runs(client: TarsyClient, namespace: str, first: str, second: str, output: Output) -> int:
    """Prints two investigations side by side; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of both investigations.
        first: the name of the first investigation.
        second: the name of the second investigation.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: an investigation is not on record, may not be read, or made too many calls.
    """
    path = run_path(namespace, first, "trace/comparison")
    comparison = await read_as(client, Comparison, path, READ_TRACE, {"other": second})
    if for_programs(output):
        write_output(comparison, output)
    else:
        printer().print(_rendered(comparison))
    return 0


def _rendered(found: Comparison) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for run in (found.first, found.second):
        table.add_column(run.name, overflow="fold", ratio=1)
    for title, ours, theirs in zip(_TITLES, _cells(found.first), _cells(found.second), strict=True):
        table.add_row(Text(title, style="dim"), ours, theirs, style="" if ours == theirs else "yellow")
    blocks: list[RenderableType] = [table]
    for run in (found.first, found.second):
        if run.replay is not None:
            blocks += [Text(), *_replay(run.name, run.replay)]
    for agent in found.agents:
        blocks += [Text(), *_agent(agent, found)]
    if not found.agents:
        blocks += [Text(), Text("Neither run has called a tool.")]
    return Group(*blocks)


def _replay(name: str, replay: ReplayView) -> list[RenderableType]:
    rungs = ", ".join(f"{one_line(rung, 20)} {count:,}" for rung, count in replay.rungs.items()) or "no calls"
    head = Text(f"{name} is a replay", style="bold")
    head.append(f"  coverage {replay.coverage:.0%} ({rungs}); {replay.unused_calls:,} recorded calls are not used")
    apart = replay.divergence
    first = f"First divergence: {one_line(apart, _TEXT)}" if apart else "Its tool calls are those of the record."
    return [head, Text(f"  {first}", style="yellow" if apart else "green")]


_TITLES = ("Alert type", "Chain", "Outcome", "Confidence", "Finding", "Time", "Calls", "Tokens", "Cost")


def _cells(run: ComparedRun) -> tuple[str, ...]:
    outcome = phase_of(run.state) + (f": {one_line(run.failure, _TEXT)}" if run.failure else "")
    least = "" if run.spent.usage_complete else "≥ "
    cost = "unknown" if run.spent.cost_usd is None else f"${run.spent.cost_usd:,.4f}"
    return (
        one_line(run.alert_type, _TEXT),
        one_line(run.chain, _TEXT),
        outcome,
        one_line(run.shown_confidence or run.confidence, _TEXT) if run.confidence else "none",
        one_line(run.summary, _TEXT) if run.summary else "none",
        f"{run.seconds:,.1f} s" if run.seconds is not None else "not finished",
        f"{run.model_calls:,} to models, {run.tool_calls:,} to tools",
        f"{least}{run.spent.total_tokens:,}",
        cost if run.spent.cost_usd is None or run.spent.cost_complete else f"{cost}+",
    )


def _agent(agent: ComparedAgent, found: Comparison) -> list[RenderableType]:
    head = Text(f"{one_line(agent.stage, 100)}/{one_line(agent.agent, 100)}", style="bold")
    if agent.only_in:
        run = found.first if agent.only_in == "first" else found.second
        return [head.append(f"  only in {run.name}", style="yellow")]
    if not agent.first and not agent.second:
        same = f"{_count(agent.same)}, the same in both" if agent.same else "no tool call in either"
        return [head.append(f"  {same}", style="green")]
    before = f"{_count(agent.same)} the same, then call {agent.same + 1}" if agent.same else "the first tool call"
    head.append(f"  {before} differs", style="yellow")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold", ratio=1)
    table.add_row(found.first.name, _step_text(agent.first))
    table.add_row(found.second.name, _step_text(agent.second))
    return [head, table]


def _count(calls: int) -> str:
    return f"{calls:,} tool call{'' if calls == 1 else 's'}"


def _step_text(steps: tuple[StepView, ...]) -> str:
    if not steps:
        return "made no further call"
    return f"{one_line(steps[0].tool, _CALL)} {one_line(steps[0].arguments, _CALL)}"
