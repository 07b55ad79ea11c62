"""Models of two investigations side by side, and their comparison.

Decision: agents are paired by stage and name, and their tool calls in their order. Agents of a stage run in parallel,
so the order of calls across agents is chance. Calls are compared, prose never.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, Self

from pydantic import Field

from tarsy.evals.divergence import Divergence, ToolStep, canonical_arguments, find_divergence
from tarsy.http.models import View
from tarsy.http.views.common import SHOWN_CONFIDENCE, STATE, Spent
from tarsy.http.views.timeline import FindingView, ReplayView
from tarsy.record.finding import Confidence
from tarsy.record.reading.trace import AgentDetail, PlacedCall, StageDetail
from tarsy.record.run import InvestigationRecord, State
from tarsy.record.usage import Usage

MOST_STEPS: Final = 20
"""Calls of each run that are shown from the first difference on, by agent."""
MOST_ARGUMENTS: Final = 500
"""Characters of the arguments of a call that are shown."""

Calls = Mapping[tuple[str, str], Sequence[ToolStep]]
"""Tool calls by stage and agent."""


class ComparedRun(View):
    """One side of a comparison."""

    namespace: str
    name: str
    state: State = Field(description=STATE)
    alert_type: str
    chain: str
    seconds: float | None = Field(description="Duration in seconds. Null before the end.")
    spent: Spent
    model_calls: int
    tool_calls: int
    confidence: Confidence | None
    shown_confidence: str | None = Field(default=None, description=SHOWN_CONFIDENCE)
    summary: str | None = Field(description="Summary of the finding. Null without one.")
    claims: tuple[str, ...] = Field(description="Claims that their citations support.")
    unsupported_claims: int = Field(default=0, description="Number of claims that no citation supports.")
    failure: str | None
    replay: ReplayView | None = Field(description="How far it kept to its record. Null if it is no replay.")

    @classmethod
    def of(cls, record: InvestigationRecord, stages: Sequence[StageDetail]) -> Self:
        """Converts a recorded run and its agents."""
        agents = [agent for stage in stages for agent in stage.agents]
        outcome = record.outcome
        finding = FindingView.of(outcome.finding, record.high_verdicts) if outcome else None
        return cls(
            namespace=record.namespace,
            name=record.name,
            state=record.state,
            alert_type=record.alert_type,
            chain=record.chain,
            seconds=_seconds(record.started_at, record.finished_at),
            spent=_sum(agents),
            model_calls=sum(agent.model_calls for agent in agents),
            tool_calls=sum(agent.tool_calls for agent in agents),
            confidence=finding.confidence if finding else None,
            shown_confidence=finding.shown_confidence if finding else None,
            summary=finding.summary if finding else None,
            claims=tuple(claim.text for claim in finding.claims if claim.supported) if finding else (),
            unsupported_claims=sum(not claim.supported for claim in finding.claims) if finding else 0,
            failure=outcome.failure.message if outcome and outcome.failure else None,
            replay=ReplayView.of(outcome.replay) if outcome else None,
        )


class StepView(View):
    """A tool call."""

    tool: str
    arguments: str = Field(description=f"Arguments as JSON with sorted keys, at most {MOST_ARGUMENTS} characters.")


class ComparedAgent(View):
    """The calls of an agent in both runs."""

    stage: str
    agent: str
    same: int = Field(description="Calls that are the same in both runs, from the first one on.")
    first: tuple[StepView, ...] = Field(
        description=f"Calls of the first run from the first difference on, at most {MOST_STEPS}."
    )
    second: tuple[StepView, ...] = Field(
        description=f"Calls of the second run from the first difference on, at most {MOST_STEPS}."
    )
    first_calls: int = Field(description="Number of calls of the first run.")
    second_calls: int = Field(description="Number of calls of the second run.")
    only_in: str | None = Field(description="`first` or `second` if only that run has the agent.")


class Comparison(View):
    """Two investigations side by side."""

    first: ComparedRun
    second: ComparedRun
    agents: tuple[ComparedAgent, ...]


def calls_by_agent(stages: Iterable[StageDetail], calls: Iterable[PlacedCall]) -> Calls:
    """Groups the tool calls of a run by stage and agent; an agent without a call has an empty group.

    Args:
        stages: the stages of the run with their agents.
        calls: its calls in their order.
    """
    found: dict[tuple[str, str], list[ToolStep]] = {
        (stage.name, agent.display_name): [] for stage in stages for agent in stage.agents
    }
    for call in calls:
        found.setdefault((call.stage, call.agent), []).append(ToolStep(call.tool, canonical_arguments(call.arguments)))
    return found


def compare_calls(first: Calls, second: Calls) -> tuple[ComparedAgent, ...]:
    """Compares the calls of two runs agent by agent, in the order of the first run, then of the second.

    Args:
        first: calls of the first run.
        second: calls of the second run.
    """
    return tuple(_compared(key, first, second) for key in dict.fromkeys((*first, *second)))


def _compared(key: tuple[str, str], first: Calls, second: Calls) -> ComparedAgent:
    ours, theirs = first.get(key, ()), second.get(key, ())
    apart = find_divergence(ours, theirs) or Divergence(max(len(ours), len(theirs)), None, None)
    return ComparedAgent(
        stage=key[0],
        agent=key[1],
        same=apart.index,
        first=_steps(ours[apart.index :]),
        second=_steps(theirs[apart.index :]),
        first_calls=len(ours),
        second_calls=len(theirs),
        only_in=None if key in first and key in second else ("first" if key in first else "second"),
    )


def _steps(steps: Sequence[ToolStep]) -> tuple[StepView, ...]:
    return tuple(StepView(tool=one.tool, arguments=_shortened(one.arguments)) for one in steps[:MOST_STEPS])


def _shortened(arguments: str) -> str:
    return arguments if len(arguments) <= MOST_ARGUMENTS else f"{arguments[: MOST_ARGUMENTS - 1]}…"


def _sum(agents: Sequence[AgentDetail]) -> Spent:
    costs = [agent.cost_usd for agent in agents if agent.cost_usd is not None]
    usage = sum((agent.usage for agent in agents), Usage())
    return Spent.of(usage, sum(costs, Decimal()) if costs else None, all(agent.cost_complete for agent in agents))


def _seconds(started: datetime | None, finished: datetime | None) -> float | None:
    return (finished - started).total_seconds() if started and finished else None
