"""Runs one sample of a case: the real engine and the real models over a cassette, with the record in memory.

No tool server is connected unless the caller gives one, and nothing is written: what is left of a sample is its result.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from uuid import NAMESPACE_URL, UUID, uuid5

from tarsy.engine.investigation import InvestigationRun, investigate
from tarsy.engine.ports import Models, ObjectReader, Toolboxes
from tarsy.engine.run_context import NoObjects, RunContext, hand_on_nothing
from tarsy.evals.cassette import Cassette
from tarsy.evals.expectations import FinishedRun, Judgement, MadeCall
from tarsy.evals.expectations import judge as judge_run
from tarsy.evals.matching import RecordedAnswer
from tarsy.evals.recorded_changes import recorded_changes
from tarsy.evals.result import CheckResult, SampleResult
from tarsy.evals.suite import SuiteCase
from tarsy.evals.toolbox import ReplayOptions, ReplayToolboxes
from tarsy.masking import InvalidPattern, Maskers, Setting, usable
from tarsy.plan.model import MaskingPlan, Plan
from tarsy.record.finding import Finding
from tarsy.record.history import RunHistory
from tarsy.record.run import Failure, RunOutcome, State
from tarsy.runtime.handed_on import HandedOnToolboxes
from tarsy.runtime.in_process.judging import SuiteJudging
from tarsy.runtime.in_process.record import Record
from tarsy.runtime.in_process.recorder import MemoryRecorder

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case with the plan that is measured with it.

    `objects` are read by stages of kind Changes, `tools` are called by agents; None: the cassette answers.
    """

    case: SuiteCase
    plan: Plan
    objects: ObjectReader | None = None
    tools: Toolboxes | None = None


class CountingToolboxes(ReplayToolboxes):
    """Counts the answers of a replay by rung."""

    def __init__(self, run: UUID, cassette: Cassette, options: ReplayOptions) -> None:
        super().__init__(run, cassette, options)
        self.answered: Counter[bool] = Counter()

    async def answer(self, server: str, tool: str, arguments: str, key: str) -> RecordedAnswer:
        """Returns the recorded answer to a call, and counts whether there was one."""
        found = await super().answer(server, tool, arguments, key)
        self.answered[found.rung.covered] += 1
        return found

    @property
    def coverage(self) -> float | None:
        """Share of the calls that the cassette answered; None: there was no call."""
        return self.answered[True] / self.answered.total() if self.answered else None


class UncontrolledRun:
    """The control of a run that nobody concludes and that no other process can own (`tarsy.engine.ports.Control`)."""

    concluding = False

    @contextmanager
    def when_concluding(self, tell: Callable[[], None]) -> Iterator[None]:
        """Never calls `tell`."""
        yield

    def check(self) -> None:
        """Does nothing."""


async def run_sample(
    planned: PlannedCase, number: int, models: Models, maskers: Maskers, judge: SuiteJudging | None = None
) -> SampleResult:
    """Runs one sample, and judges it.

    Args:
        planned: the case and its plan.
        number: of the sample, which tells its ids apart from those of the others.
        models: clients for the providers of the plan.
        maskers: remove secrets from recorded texts and from what models say.
        judge: answers the checklist of the suite; None: it has none.
    """
    began, case = time.monotonic(), planned.case
    run = uuid5(NAMESPACE_URL, f"tarsy-eval/{case.digest}/{planned.plan.digest}/{number}")
    record = Record(began=case.cassette.header.now)
    replay = CountingToolboxes(run, case.cassette, ReplayOptions(mask_of=maskers.of))
    mask = maskers.of(_masking(planned.plan, maskers))
    recorder = MemoryRecorder(record)
    world = RunContext(
        recorder,
        models,
        planned.tools or replay,
        UncontrolledRun(),
        mask=mask,
        objects=planned.objects or NoObjects(),
        known_changes=recorded_changes(case.cassette) if planned.objects is None else None,
        hand_on=HandedOnToolboxes if planned.tools is not None else hand_on_nothing,
        replay=True,
    )
    header = case.cassette.header
    told = (header.precedents or ()) if planned.plan.precedents is not None else ()
    start = InvestigationRun(run, planned.plan, header.alert.data, header.runbook or "", told)
    outcome = await _investigate(start, world, case.name)
    finished = FinishedRun(
        finding=outcome.finding,
        calls=_calls(record),
        steps=len(record.model_calls),
        cost_usd=_cost(record),
        coverage=replay.coverage,
        failure=_failure(outcome),
    )
    judged = judge_run(finished, case.expectation, case.coverage_min)
    if judge is not None:
        judged = await judge.judged(judged, outcome.finding)
    return _result(finished, judged, record, await recorder.history(), seconds=time.monotonic() - began)


def _result(
    finished: FinishedRun, judged: Judgement, record: Record, used: RunHistory, *, seconds: float
) -> SampleResult:
    finding, citations = finished.finding, _citations(finished.finding)
    return SampleResult(
        outcome=judged.outcome,
        confident_wrong=judged.confident_wrong,
        failure=finished.failure,
        confidence=finding.confidence.value if finding else None,
        summary=finding.summary if finding else "",
        checks=tuple(CheckResult(name=c.name, outcome=c.outcome, sentence=c.sentence) for c in judged.checks),
        coverage=finished.coverage,
        model_calls=finished.steps,
        tool_calls=sum(row.start.made for row in record.tool_calls.values()),
        citations=len(citations),
        held=sum(citations),
        tokens=used.tokens,
        cost_usd=finished.cost_usd,
        spent_usd=used.cost_usd,
        seconds=seconds,
    )


async def _investigate(start: InvestigationRun, world: RunContext, case: str) -> RunOutcome:
    seconds = start.plan.limits.investigation_seconds
    try:
        async with asyncio.timeout(seconds) as limit:
            return await investigate(start, world)
    except TimeoutError:
        if not limit.expired():
            raise
        why = f"The investigation took longer than its limit of {seconds:g} s (timeouts.investigationSeconds)."
        return RunOutcome(state=State.TIMED_OUT, failure=Failure("InvestigationTimeout", why))
    except (Exception, ExceptionGroup) as error:
        _log.exception("a sample of %s failed", case)
        why = f"An error in TARSy itself ended the sample ({type(error).__name__}); its log has the details."
        return RunOutcome(state=State.FAILED, failure=Failure("InternalError", why))


def _failure(outcome: RunOutcome) -> str | None:
    if outcome.state is State.COMPLETED:
        return None
    return outcome.failure.message if outcome.failure else f"The run ended {outcome.state.value}."


def _calls(record: Record) -> tuple[MadeCall, ...]:
    made = sorted((row for row in record.tool_calls.values() if row.start.made), key=lambda row: row.began)
    return tuple(
        MadeCall(f"{row.start.server}.{row.start.tool}", row.result is None or row.result.is_error) for row in made
    )


def _cost(record: Record) -> Decimal | None:
    """Returns the cost of all model calls; None: that of one is not known."""
    costs = [row.result.cost_usd if row.result else None for row in record.model_calls.values() if not row.unsent]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _citations(finding: Finding | None) -> tuple[bool, ...]:
    claims = finding.claims if finding is not None else ()
    return tuple(citation.supported for claim in claims for citation in claim.citations)


def _masking(plan: Plan, maskers: Maskers) -> Setting:
    setting = plan.model_output_masking or MaskingPlan()
    try:
        maskers.of(setting)
    except InvalidPattern as error:
        _log.warning("invalid patterns of modelOutputMasking are ignored: %s", error.sentence)
        return usable(setting)
    return setting
