"""Runs one investigation: the stages of a plan in order, then the executive summary.

This is the whole of the product in one page. A stage that fails ends the chain (fail fast); a stage with more than one
agent is followed by its synthesis, whose result replaces theirs; the conclusion of a stage is context for the next one.
Nothing here knows whether it runs for the first time or resumes: every step asks the record first, and a step that is
already there is not taken again. Cancellation and the investigation's deadline arrive as task cancellation; the runner
of the investigation closes the record then.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tarsy.engine.changes_stage import NO_FURTHER_MODEL, NO_MODEL, ChangesResult, ChangesRun, run_changes_stage
from tarsy.engine.escalation import FirstResult, better, escalated
from tarsy.engine.findings.repair import checked_finding, without_evidence
from tarsy.engine.limits.budget import BudgetTracker
from tarsy.engine.precedents import told_event, told_text
from tarsy.engine.prompts.context import StageConclusion
from tarsy.engine.prompts.precedents import precedent_lines
from tarsy.engine.run_context import RunContext
from tarsy.engine.stage import StageResult, StageRun, run_stage
from tarsy.engine.task import Task
from tarsy.engine.tool_calls.loop_guard import LoopGuard
from tarsy.plan.model import AgentPlan, ChangesPlan, Plan, StagePlan
from tarsy.record.approvals.git_change import distinct_changes
from tarsy.record.approvals.provenance import Origin
from tarsy.record.history import RunHistory
from tarsy.record.ids import stage_id
from tarsy.record.judging.precedent import Precedent
from tarsy.record.quota import QUOTA_EXCEEDED
from tarsy.record.run import Failure, RunOutcome, StageKind, State


@dataclass(frozen=True, slots=True)
class InvestigationRun:
    """The input of an investigation: its id, its frozen plan, the alert with its runbook as text, and precedents.

    With `triage_for`, a sentence with the reason, no model is asked: only stages of kind Changes run.
    """

    id: UUID
    plan: Plan
    alert_data: str
    runbook: str = ""
    precedents: Sequence[Precedent] = ()
    triage_for: str | None = None


async def investigate(investigation: InvestigationRun, world: RunContext) -> RunOutcome:
    """Runs the plan to its end.

    Returns the outcome, with the changes that belong into Git in its finding; a failed stage is an outcome, not an
    exception.

    Raises:
        LeaseLost: another attempt owns the run.
        StoreError (and others of the recorder): the record cannot be written.
        RunWaits: the run can go no further before something outside has happened.
    """
    outcome = await _run_stages(investigation, world)
    if outcome.finding is None or not _has_approvals(investigation.plan):
        return outcome
    changes = distinct_changes(await world.recorder.changes_for_git())
    if not changes:
        return outcome
    return replace(outcome, finding=outcome.finding.model_copy(update={"changes_for_git": changes}))


async def _run_stages(investigation: InvestigationRun, world: RunContext) -> RunOutcome:
    plan = investigation.plan
    history = await world.recorder.history()
    texts = [(Origin.ALERT, investigation.alert_data), (Origin.ALERT, investigation.runbook)]
    world = restore_limits(investigation.id, plan, history, world)
    told = precedent_lines(investigation.precedents)
    if told and not history.stages:
        await world.recorder.write_events([told_event(investigation.id, investigation.precedents)])
    world = replace(
        world,
        alert=investigation.alert_data,
        prompt_texts=texts,
        skills=plan.skills,
        precedents=told_text(investigation.id, told) if told else None,
        replay=world.replay or plan.replay is not None,
    )
    conclusions: list[StageConclusion] = []
    evidence: list[StageConclusion] = []  # those of them that no model concluded
    index = 0  # of the stage in the plan: one that is skipped leaves its number free
    last = next((stage for stage in reversed(plan.stages) if not stage.acts), None)
    for stage in plan.stages:
        begun = stage_id(investigation.id, index) in history.stages
        if len(conclusions) > len(evidence) and world.control.concluding:
            break
        if conclusions and world.meter.exceeded and not begun:
            break
        if stage.changes is not None:
            known = await _read_changes(investigation, index, stage.name, stage.changes, world)
            index += stage.places
            conclusions.append(known.conclusion)
            evidence.append(known.conclusion)
            if known.certain and stage.changes.stop_when == "Certain":
                asked = NO_MODEL if len(conclusions) == len(evidence) else NO_FURTHER_MODEL
                return await _settled(evidence, asked, plan, world)
            continue
        if investigation.triage_for is not None:
            index += stage.places
            continue
        _reserve_budget(plan, stage, world)
        task = Task(
            plan.alert_type,
            investigation.alert_data,
            investigation.runbook,
            tuple(conclusions),
            stage.name,
            concludes=len(stage.agents) == 1 and not stage.acts,
            last=stage is last,
            precedents="" if stage.acts else told,
            acts=bool(stage.acts),
        )
        result, note = await _attempts(investigation, index, stage, task, history, world)
        index += stage.places
        if result.state is not State.COMPLETED:
            return await _failed(result, conclusions, evidence, world)
        acted = None if result.acted is None else result.acted.whole_sentence
        conclusions.append(StageConclusion(stage.name, result.text, acted=acted, note=note))
    if investigation.triage_for is not None:
        return await _triaged(investigation.triage_for, evidence, plan, world)
    return await _concluded(investigation, conclusions, evidence, world)


async def _concluded(
    investigation: InvestigationRun,
    conclusions: list[StageConclusion],
    evidence: list[StageConclusion],
    world: RunContext,
) -> RunOutcome:
    """Ends a run whose stages are done, or are not to be done any more, with its finding and the summary."""
    plan, analysis = investigation.plan, _last(conclusions)
    acted = [c.acted for c in conclusions if c.acted]
    if not analysis:
        return RunOutcome(
            state=State.FAILED, failure=Failure("NoAnalysis", "No stage of the chain produced a final analysis.")
        )
    finding, analysis = await checked_finding(analysis, world, computed=_is_computed(conclusions, evidence))
    if note := next(one.note for one in reversed(_investigated(conclusions)) if one.text.strip()):
        finding = finding.model_copy(update={"notes": (*finding.notes, note)})
    if world.concluding and not finding.structured and (known_before := _last(evidence)):
        # The model was cut off before it concluded: what is known without it stands beside its last words.
        finding, told = await checked_finding(known_before, world, computed=True)
        analysis = f"{analysis}\n\n{told}"
    if not await _has_looked(plan, world) and _has_tools(plan):
        finding = without_evidence(finding)
    summary, error = None, None
    if plan.executive_summary:
        index = sum(stage.places for stage in plan.stages)
        told = "\n\n".join([analysis, *acted])
        summary, error = await _summarise(investigation, index, plan.executive_summary, told, world)
        if summary is None and world.control.concluding:
            summary = finding.summary  # a conclusion was asked for, so there is one
    return RunOutcome(
        state=State.COMPLETED,
        final_analysis=analysis,
        finding=finding,
        executive_summary=summary,
        executive_summary_error=error,
    )


async def _read_changes(
    investigation: InvestigationRun, index: int, name: str, changes: ChangesPlan, world: RunContext
) -> ChangesResult:
    plan, identity = investigation.plan, stage_id(investigation.id, index)
    run = ChangesRun(identity, index, name, changes, plan.namespace, investigation.alert_data, plan.limits)
    return await run_changes_stage(run, world)


async def _triaged(why: str, evidence: list[StageConclusion], plan: Plan, world: RunContext) -> RunOutcome:
    """Ends a run that may ask no model, with what its stages of kind Changes found; without one nothing is known."""
    asked = f"{NO_MODEL} {why}"
    if not evidence:
        missing = f"Chain {plan.chain.name} has no stage of kind Changes, which would answer without a model."
        return RunOutcome(State.FAILED, failure=Failure(QUOTA_EXCEEDED, f"{asked} {missing}"), cut=True)
    return await _settled(evidence, asked, plan, world)


async def _settled(evidence: list[StageConclusion], asked: str, plan: Plan, world: RunContext) -> RunOutcome:
    """Ends a run with what rules found, and a sentence about models: none is asked any more."""
    finding, analysis = await checked_finding(evidence[-1].text, world, computed=True)
    summary = f"{finding.summary} {asked}" if plan.executive_summary is not None else None
    return RunOutcome(
        state=State.COMPLETED,
        final_analysis=f"{analysis}\n\n{asked}",
        finding=finding.model_copy(update={"notes": (*finding.notes, asked)}),
        executive_summary=summary,
    )


async def _failed(
    result: StageResult, conclusions: list[StageConclusion], evidence: list[StageConclusion], world: RunContext
) -> RunOutcome:
    """Ends a run whose stage failed; where there is evidence, with the finding of its last conclusion.

    A stage of kind Action that failed leaves the finding as it is.
    """
    finding, analysis = None, _last(conclusions)
    if analysis and (evidence or result.acted is not None):
        computed = _is_computed(conclusions, evidence)
        finding, analysis = await checked_finding(analysis, world, computed=computed)
    return RunOutcome(state=result.state, failure=result.failure, final_analysis=analysis, finding=finding)


def _is_computed(conclusions: list[StageConclusion], evidence: list[StageConclusion]) -> bool:
    """Whether no model concluded after the last evidence, so that rules wrote the last conclusion."""
    return bool(evidence) and _investigated(conclusions)[-1] is evidence[-1]


def restore_limits(run: UUID, plan: Plan, history: RunHistory, world: RunContext) -> RunContext:
    """Returns the context with the budget and the loop guard of a run, as its earlier attempts have left them.

    Args:
        run: the id of the run.
        plan: with the limits.
        history: of the run's earlier attempts.
        world: the run's ports.
    """
    clock = asyncio.get_running_loop().time
    meter = BudgetTracker(run, plan.budget, history, clock)
    guard = LoopGuard(history.calls, seconds=plan.limits.repeat_seconds, clock=clock)
    waiting = replace(world.waiting, waited_seconds=history.waited_seconds)
    return replace(world, meter=meter, guard=guard, waiting=waiting)


def _has_approvals(plan: Plan) -> bool:
    """Whether a server of a plan declares what its calls change, so that one may have been refused for GitOps."""
    agents = [agent for stage in plan.stages for agent in stage.members]
    return any(server.approval is not None for agent in agents for server in agent.servers)


async def _has_looked(plan: Plan, world: RunContext) -> bool:
    """Whether agents that investigate called a tool; what an action stage looks at supports no finding."""
    if not world.meter.tool_calls or not any(stage.acts for stage in plan.stages):
        return world.meter.tool_calls > 0
    return world.meter.tool_calls > (await world.recorder.history()).action_calls


def _has_tools(plan: Plan) -> bool:
    """Whether agents of a plan have tool servers, and no tools of their provider, whose use is not counted."""
    agents = [agent for stage in plan.stages for agent in stage.members]
    return any(agent.servers for agent in agents) and not any(agent.native_tools for agent in agents)


def _reserve_budget(plan: Plan, stage: StagePlan, world: RunContext) -> None:
    """Reserves the budget that the run needs after a stage, for the synthesis and the executive summary."""
    synthesis, summary = stage.synthesis if len(stage.agents) > 1 else None, plan.executive_summary
    world.meter.ahead(
        synthesis=() if synthesis is None else (synthesis.provider.rates,),
        summary=() if summary is None else (summary.provider.rates,),
    )


async def _attempts(
    investigation: InvestigationRun, index: int, stage: StagePlan, task: Task, history: RunHistory, world: RunContext
) -> tuple[StageResult, str]:
    """Runs a stage, and once more where its finding asks for it; returns the result that counts, with a note."""
    plans = stage.attempts
    kind = StageKind.ACTION if stage.acts else StageKind.INVESTIGATION
    result = await _attempt(investigation, index, kind, plans[0], task, world)
    if len(plans) == 1:
        return result, ""
    first = FirstResult(investigation.id, stage, result, index)
    again = await escalated(first, history, world)
    if again is None:
        return result, ""
    _reserve_budget(investigation.plan, plans[1], world)
    second = await _attempt(investigation, first.second, StageKind.ESCALATION, plans[1], task, again)
    counts = await better(first, second, world)
    return counts, first.note if counts is second else ""


async def _attempt(
    investigation: InvestigationRun, index: int, kind: StageKind, stage: StagePlan, task: Task, world: RunContext
) -> StageResult:
    """Runs the agents of a stage, then their synthesis."""
    result = await _run(investigation, index, kind, stage, task, world)
    if result.state is not State.COMPLETED or not stage.is_joined or stage.synthesis is None:
        return result
    synthesis = StagePlan(name=f"{stage.name}-synthesis", agents=(stage.synthesis,))
    task = task.to_synthesise(result.stage, result.agents)
    return await _run(investigation, index + 1, StageKind.SYNTHESIS, synthesis, task, world)


async def _run(
    investigation: InvestigationRun, index: int, kind: StageKind, stage: StagePlan, task: Task, world: RunContext
) -> StageResult:
    identity = stage_id(investigation.id, index)
    return await run_stage(StageRun(identity, index, kind, stage, task, investigation.plan.limits), world)


async def _summarise(
    investigation: InvestigationRun, index: int, agent: AgentPlan, analysis: str, world: RunContext
) -> tuple[str | None, str | None]:
    """Fails open: the run has its analysis, so a missing summary is noted and nothing more."""
    stage = StagePlan(name="executive-summary", agents=(agent,))
    task = Task(investigation.plan.alert_type, "", "", (), stage.name).to_summarise(analysis)
    result = await _run(investigation, index, StageKind.EXECUTIVE_SUMMARY, stage, task, world)
    if result.state is State.COMPLETED:
        return result.text, None
    return None, result.failure.message if result.failure else "The executive summary did not complete."


def _last(conclusions: list[StageConclusion]) -> str | None:
    return next((c.text for c in reversed(_investigated(conclusions)) if c.text.strip()), None)


def _investigated(conclusions: list[StageConclusion]) -> list[StageConclusion]:
    """Those of stages that investigate: what an action stage says is never part of the finding."""
    return [c for c in conclusions if c.acted is None]
