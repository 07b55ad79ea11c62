"""Decides whether a stage runs once more with another provider, and which of its two findings counts.

The decision is taken once. It is on record with the begin of the second attempt, or with the begin of whatever comes
after the first one, so an attempt of the run that resumes does not decide again: what it would decide by may have
changed. An expression without a value and a budget without room leave the first attempt as it is, with a notice.

The second attempt counts, unless it ends worse than the first one: it fails, or gives no finding where the first gave
one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tarsy.engine.findings.conclusion import read_finding
from tarsy.engine.findings.repair import checked_finding
from tarsy.engine.limits.budget import UsageEstimate
from tarsy.engine.run_context import RunContext
from tarsy.engine.stage import StageResult
from tarsy.plan.approval_expressions import NotEvaluated
from tarsy.plan.escalation import OUTCOMES, asks_for_escalation
from tarsy.plan.model import StagePlan
from tarsy.record.first_attempt import FirstAttempt
from tarsy.record.history import RunHistory
from tarsy.record.ids import event_id, stage_id
from tarsy.record.run import State
from tarsy.record.timeline import Event, EventStatus, EventType

ESCALATED = "Escalated"
NOT_EVALUATED = "EscalationNotEvaluated"
NO_ROOM = "EscalationOverBudget"
KEPT = "EscalationUnused"
"""Reasons of notices."""


@dataclass(frozen=True, slots=True)
class FirstResult:
    """The first attempt of a stage that may run once more.

    `index` is its place among the stages on record.
    """

    run: UUID
    stage: StagePlan
    result: StageResult
    index: int

    @property
    def second(self) -> int:
        """The place of the second attempt."""
        return self.index + (2 if self.stage.is_joined else 1)

    @property
    def stages(self) -> Sequence[UUID]:
        """The stages on record that are the first attempt: its agents', and the synthesis'."""
        return [stage_id(self.run, place) for place in range(self.index, self.second)]

    @property
    def note(self) -> str:
        """The sentence that the finding of the second attempt has about it."""
        provider = self.stage.attempts[1].agents[0].provider
        return (
            f"Stage {self.stage.name} ran twice: this is the finding of its second attempt, by LLMProvider "
            f"{provider.ref.name} (model {provider.model})."
        )


async def escalated(first: FirstResult, history: RunHistory, world: RunContext) -> RunContext | None:
    """Returns the context of the second attempt; None: there is none.

    Args:
        first: the first attempt.
        history: of earlier attempts of the run.
        world: the run's ports.
    """
    if stage_id(first.run, first.second) in history.stages:
        return _handed_on(world, await world.recorder.first_attempt(first.stages))
    after = first.index + first.stage.places
    begun = any(stage_id(first.run, place) in history.stages for place in range(after, after + _PLACES))
    if begun or first.result.state not in OUTCOMES or world.concluding or not await _asked(first, world):
        return None
    work, provider = await world.recorder.first_attempt(first.stages), first.stage.attempts[1].agents[0].provider
    need = UsageEstimate(work.input_tokens, work.output_tokens, provider.rates)
    if (exceeded := world.meter.fits(need)) is not None:
        told = f"Stage {first.stage.name} does not run once more. {exceeded.message}"
        await _tell(first, NO_ROOM, told, world)
        return None
    told = (
        f"Stage {first.stage.name} runs once more with LLMProvider {provider.ref.name} (model {provider.model}), "
        f"because of its finding. {_counted(len(work.calls))} handed on."
    )
    await _tell(first, ESCALATED, told, world)
    return _handed_on(world, work)


async def better(first: FirstResult, second: StageResult, world: RunContext) -> StageResult:
    """Returns the result of the stage: that of its second attempt, or of the first one, where that ended better."""
    if first.result.state is not State.COMPLETED:
        return second
    if second.state is State.COMPLETED and (_is_structured(second) or not _is_structured(first.result)):
        return second
    why = second.failure.message if second.failure is not None else "It gave no finding."
    told = f"The finding of the first attempt of stage {first.stage.name} counts, because the second has none: {why}"
    await _tell(first, KEPT, told, world)
    return first.result


async def _asked(first: FirstResult, world: RunContext) -> bool:
    """Whether the expression is true; without a value it is not."""
    plan, result, finding = first.stage.escalation, first.result, None
    if plan is None:
        return False
    if result.state is State.COMPLETED:
        finding, _ = await checked_finding(result.text, world)
    try:
        return asks_for_escalation(plan.when, result.state, finding)
    except NotEvaluated as error:
        told = (
            f"Stage {first.stage.name} does not run once more: escalate.when has no value for its finding ({error}). "
            "Correct the expression in the Chain."
        )
        await _tell(first, NOT_EVALUATED, told, world)
        return False


def _handed_on(world: RunContext, work: FirstAttempt) -> RunContext:
    return replace(world, toolboxes=world.hand_on(world.toolboxes, work.calls))


def _counted(calls: int) -> str:
    return "1 result of a tool call is" if calls == 1 else f"{calls} results of tool calls are"


def _is_structured(result: StageResult) -> bool:
    return read_finding(result.text)[0].structured


async def _tell(first: FirstResult, reason: str, told: str, world: RunContext) -> None:
    stage = stage_id(first.run, first.index)
    event = Event(
        id=event_id(stage, f"escalation/{reason}"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=told,
        metadata={"reason": reason},
        stage=stage,
    )
    await world.recorder.write_events([event])


_PLACES = 200
"""Stages on record that may come after one, the executive summary included: more than a chain has."""
