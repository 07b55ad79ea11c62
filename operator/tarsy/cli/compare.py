"""Prints two investigations side by side (`compare A B`): outcome, finding, cost, and the first calls that differ.

Decision: agents are paired by stage and name, and their tool calls in their order. Agents of a stage run in parallel,
so the order of calls across agents is chance.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.trace import read_trace
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_TIMELINE, READ_TRACE
from tarsy.evals.divergence import ToolStep, canonical_arguments, find_divergence
from tarsy.http.models import View
from tarsy.http.views.common import Spent
from tarsy.http.views.timeline import ReplayView, RunHead, TimelineView
from tarsy.http.views.trace import AgentTrace, StageTrace, ToolCallDetails, TraceView
from tarsy.record.finding import Confidence
from tarsy.record.run import State
from tarsy.record.words import phase_of

MOST_CALLS = 1_000
"""Maximum tool calls of each run."""

_AT_ONCE = 4
_TEXT = 400
_CALL = 200


class ComparedRun(View):
    """One side of a comparison."""

    namespace: str
    name: str
    state: State
    alert_type: str
    chain: str
    seconds: float | None = Field(description="Duration in seconds. Null before the end.")
    spent: Spent
    model_calls: int
    tool_calls: int
    confidence: Confidence | None
    summary: str | None = Field(description="Summary of the finding. Null without one.")
    claims: tuple[str, ...] = Field(description="Claims that their citations support.")
    failure: str | None
    replay: ReplayView | None = Field(description="How far it kept to its record. Null if it is no replay.")


class StepView(View):
    """A tool call."""

    tool: str
    arguments: str


class AgentDivergence(View):
    """The calls of an agent in both runs."""

    stage: str
    agent: str
    same: int = Field(description="Calls that are the same in both runs, from the first one on.")
    first: StepView | None = Field(description="First call that differs, of the first run. Null if it made none.")
    second: StepView | None = Field(description="First call that differs, of the second run. Null if it made none.")
    only_in: str | None = Field(description="`first` or `second` if only that run has the agent.")


class Comparison(View):
    """Two investigations side by side."""

    first: ComparedRun
    second: ComparedRun
    agents: tuple[AgentDivergence, ...]


_Calls = Mapping[tuple[str, str], Sequence[ToolStep]]


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
    (ours, our_calls), (theirs, their_calls) = await asyncio.gather(
        _read(client, namespace, first), _read(client, namespace, second)
    )
    comparison = Comparison(first=ours, second=theirs, agents=compare_calls(our_calls, their_calls))
    if for_programs(output):
        write_output(comparison, output)
    else:
        printer().print(_rendered(comparison))
    return 0


def compare_calls(first: _Calls, second: _Calls) -> tuple[AgentDivergence, ...]:
    """Compares the calls of two runs agent by agent, in the order of the first run, then of the second.

    Args:
        first: calls by stage and agent.
        second: calls by stage and agent.
    """
    found: list[AgentDivergence] = []
    for key in dict.fromkeys((*first, *second)):
        ours, theirs = first.get(key, ()), second.get(key, ())
        apart = find_divergence(ours, theirs)
        only = None if key in first and key in second else ("first" if key in first else "second")
        found.append(
            AgentDivergence(
                stage=key[0],
                agent=key[1],
                same=len(ours) if apart is None else apart.index,
                first=_step(apart.first if apart else None),
                second=_step(apart.second if apart else None),
                only_in=only,
            )
        )
    return tuple(found)


def _step(step: ToolStep | None) -> StepView | None:
    return None if step is None else StepView(tool=step.tool, arguments=step.arguments)


async def _read(client: TarsyClient, namespace: str, name: str) -> tuple[ComparedRun, _Calls]:
    page = await read_as(client, TimelineView, run_path(namespace, name, "timeline"), READ_TIMELINE, {"limit": "1"})
    trace = await read_trace(client, namespace, name)
    made = sum(len(agent.mcp) for _, agent in _agents(trace))
    if made > MOST_CALLS:
        raise ApiUseError(f"{namespace}/{name} made {made:,} tool calls; at most {MOST_CALLS:,} can be compared")
    return _side(page.investigation, trace), await _calls(client, page.investigation, trace)


def _agents(trace: TraceView) -> Sequence[tuple[StageTrace, AgentTrace]]:
    return [(stage, agent) for stage in trace.stages for agent in stage.agents]


def _side(run: RunHead, trace: TraceView) -> ComparedRun:
    agents = [agent for _, agent in _agents(trace)]
    finding = run.finding
    return ComparedRun(
        namespace=run.namespace,
        name=run.name,
        state=run.state,
        alert_type=run.alert_type,
        chain=run.chain,
        seconds=_seconds(run.started_at, run.finished_at),
        spent=_sum(agent.spent for agent in agents),
        model_calls=sum(len(agent.llm) for agent in agents),
        tool_calls=sum(len(agent.mcp) for agent in agents),
        confidence=finding.confidence if finding else None,
        summary=finding.summary if finding else None,
        claims=tuple(claim.text for claim in finding.claims if claim.supported) if finding else (),
        failure=run.failure.message if run.failure else None,
        replay=run.replay,
    )


async def _calls(client: TarsyClient, run: RunHead, trace: TraceView) -> _Calls:
    """Reads the calls of each agent as the model asked for them; of a call that was tried again, the last try."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def read(call: UUID) -> ToolCallDetails:
        async with places:
            path = run_path(run.namespace, run.name, f"trace/mcp/{call}")
            return await read_as(client, ToolCallDetails, path, READ_TRACE, {"uid": str(run.uid)})

    found: dict[tuple[str, str], list[ToolStep]] = {}
    for stage, agent in _agents(trace):
        details = await asyncio.gather(*(read(call.id) for call in agent.mcp))
        found[stage.name, agent.name] = [
            ToolStep(f"{one.server}.{one.tool}", canonical_arguments(one.arguments))
            for one in details
            if not one.tries or one.tries[-1] == one.id
        ]
    return found


def _sum(spent: Iterable[Spent]) -> Spent:
    parts = list(spent)
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return Spent(
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        thinking_tokens=sum(part.thinking_tokens for part in parts),
        cached_tokens=sum(part.cached_tokens for part in parts),
        total_tokens=sum(part.total_tokens for part in parts),
        usage_complete=all(part.usage_complete for part in parts),
        cost_usd=sum(costs) if costs else None,
        cost_complete=all(part.cost_complete for part in parts),
    )


def _seconds(started: datetime | None, finished: datetime | None) -> float | None:
    return (finished - started).total_seconds() if started and finished else None


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
        run.confidence.value if run.confidence else "none",
        one_line(run.summary, _TEXT) if run.summary else "none",
        f"{run.seconds:,.1f} s" if run.seconds is not None else "not finished",
        f"{run.model_calls:,} to models, {run.tool_calls:,} to tools",
        f"{least}{run.spent.total_tokens:,}",
        cost + ("" if run.spent.cost_complete else "+"),
    )


def _agent(agent: AgentDivergence, found: Comparison) -> list[RenderableType]:
    head = Text(f"{one_line(agent.stage, 100)}/{one_line(agent.agent, 100)}", style="bold")
    if agent.only_in:
        run = found.first if agent.only_in == "first" else found.second
        return [head.append(f"  only in {run.name}", style="yellow")]
    if agent.first is None and agent.second is None:
        return [head.append(f"  {agent.same} tool calls, the same in both", style="green")]
    head.append(f"  the first {agent.same} tool calls are the same; call {agent.same + 1} differs", style="yellow")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold", ratio=1)
    table.add_row(found.first.name, _step_text(agent.first))
    table.add_row(found.second.name, _step_text(agent.second))
    return [head, table]


def _step_text(step: StepView | None) -> str:
    return "made no further call" if step is None else f"{one_line(step.tool, _CALL)} {one_line(step.arguments, _CALL)}"
