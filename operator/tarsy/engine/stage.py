"""Runs one stage: its agents concurrently, all to their end; then the success policy decides.

One agent is not a special case, it is N = 1. An agent that fails does not stop the others:
under the policy `Any` their work is what counts, under `All` it is still on record to explain the failure. Nor does one
that waits for people: the run waits when the others have ended.
"""

import asyncio
from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.action import action_event, weigh_action
from tarsy.engine.agent import run_agent
from tarsy.engine.agent_run import AgentResult, AgentRun
from tarsy.engine.run_context import RunContext
from tarsy.engine.task import Task
from tarsy.plan.model import AgentLimits, AgentPlan, StagePlan, SuccessPolicy
from tarsy.record.approvals.acted import StageActed
from tarsy.record.ids import execution_id
from tarsy.record.run import Failure, StageKind, StageOutcome, StageStart, State
from tarsy.record.waiting import RunWaits
from tarsy.record.work import AgentWork


@dataclass(frozen=True, slots=True)
class StageResult:
    """Holds the outcome of a stage. `text` is its conclusion if one agent ran; with several, the synthesis makes it.

    `acted` only of a stage of kind Action.
    """

    stage: UUID
    state: State
    text: str
    agents: tuple[AgentWork, ...]
    failure: Failure | None = None
    acted: StageActed | None = None


@dataclass(frozen=True, slots=True)
class StageRun:
    """The input of a stage: its id, its index among the stages on record, its plan, its task and the run's limits."""

    id: UUID
    index: int
    kind: StageKind
    plan: StagePlan
    task: Task
    limits: AgentLimits


async def run_stage(stage: StageRun, world: RunContext) -> StageResult:
    """Runs a stage, or returns what the record has of it when it is finished already.

    Raises:
        RunWaits: an agent waits, and all others have ended or wait too.
    """
    plan = stage.plan
    record = await world.recorder.begin_stage(
        StageStart(
            id=stage.id,
            index=stage.index,
            name=plan.name,
            kind=stage.kind,
            expected_agents=len(plan.agents),
            parallel=plan.parallel,
            success_policy=plan.success_policy.value,
        )
    )
    results = await _run_agents(stage, world)
    if waits := [result.wait for result in results if result.wait is not None]:
        raise RunWaits(min(waits, key=lambda wait: wait.until))
    state, failure = apply_success_policy(plan, results)
    text = next((r.text for r in results if r.state is State.COMPLETED), "")
    acted = None
    if stage.kind is StageKind.ACTION:
        acted, text = await weigh_action(stage.id, text, world)
    if not record.state.finished:
        told = () if acted is None else (action_event(stage.id, acted),)
        await world.recorder.finish_stage(StageOutcome(stage.id, state, failure, acted), told)
    works = tuple(
        AgentWork(r.execution, a.name, a.strategy.value, a.provider.model, r.state, r.failure)
        for a, r in zip(plan.agents, results, strict=True)
    )
    return StageResult(stage.id, state, text, works, failure, acted)


async def _run_agents(stage: StageRun, world: RunContext) -> list[AgentResult]:
    runs = [
        AgentRun(execution_id(stage.id, index), stage.id, index, agent, stage.task, stage.limits)
        for index, agent in enumerate(stage.plan.agents)
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run_agent(run, world)) for run in runs]
    return [t.result() for t in tasks]


def apply_success_policy(stage: StagePlan, results: list[AgentResult]) -> tuple[State, Failure | None]:
    """Returns the state of a stage from the results of its agents.

    A stage that failed carries the one state all its agents ended in, where that is timed out or cancelled; else it
    is failed.
    """
    done = [r for r in results if r.state is State.COMPLETED]
    if len(done) == len(results) or (done and stage.success_policy is SuccessPolicy.ANY):
        return State.COMPLETED, None
    bad = [(a, r) for a, r in zip(stage.agents, results, strict=True) if r.state is not State.COMPLETED]
    states = {r.state for r in results}
    state = states.pop() if len(states) == 1 else State.FAILED
    return state, _failure(stage.name, bad)


def _failure(stage: str, bad: list[tuple[AgentPlan, AgentResult]]) -> Failure:
    parts = [f"agent {a.name}: {r.failure.message if r.failure else r.state.value}" for a, r in bad]
    reasons = {r.failure.reason if r.failure else "StageFailed" for _, r in bad}
    reason = reasons.pop() if len(reasons) == 1 else "StageFailed"
    return Failure(reason, f"Stage {stage} failed: " + "; ".join(parts))
