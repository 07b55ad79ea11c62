"""Binds a replay to its record: its tools, how its agents begin, and its report.

The record was frozen at the acceptance of the replay, so an attempt that resumes answers from the same cassette; what
it has answered before is read from its own tool calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, cast
from uuid import UUID

from tarsy.engine.ports import Recorder, Toolboxes
from tarsy.evals.cassette import AgentRecord, Cassette, CassetteError, read_cassette
from tarsy.evals.recorded_changes import recorded_changes
from tarsy.evals.report import replay_report, too_little_covered
from tarsy.evals.toolbox import ReplayOptions, ReplayToolboxes
from tarsy.masking import Maskers
from tarsy.plan.model import MaskingPlan, ReplayPlan
from tarsy.record.boundaries import OfferedTools
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.replay import KnownChanges, ReplayReport, Rung
from tarsy.record.run import ExecutionRecord, ExecutionStart, RunOutcome, StageRecord, StageStart
from tarsy.store.judging.replays import Replays
from tarsy.store.runs.claims import ClaimedRun

_MADE_UP = "A model made up the answers to {made_up} of {calls} tool calls of this replay; they support no claim."


class ReplayUnreadable(Exception):
    """The record of a replay cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class BoundReplay:
    """A replay with its record.

    `source` is the recorded run, where the replay is to be deleted with it. `toolboxes` answer its tool calls,
    `known_changes` its stages of kind Changes.
    """

    run: UUID
    source: UUID | None
    cassette: Cassette
    toolboxes: ReplayToolboxes
    known_changes: Callable[[str], KnownChanges]
    replays: Replays

    def recorder(self, recorder: Recorder) -> Recorder:
        """Returns a recorder whose agents begin as the recorded ones began."""
        return cast(Recorder, _RecordedBeginnings(recorder, self.cassette))

    async def concluded(self, outcome: RunOutcome) -> RunOutcome:
        """Returns the outcome with the report of the replay; with too little coverage, the finding is Inconclusive."""
        report = await _report(self.cassette, self.run, self.source, self.replays)
        finding = None if outcome.finding is None else weighed(outcome.finding, report)
        return replace(outcome, replay=report, finding=finding)


async def bind_replay(
    claimed: ClaimedRun, plan: ReplayPlan, replays: Replays, toolboxes: Toolboxes, maskers: Maskers
) -> BoundReplay:
    """Reads the record of a replay.

    Args:
        claimed: the replay.
        plan: how it answers.
        replays: reads the store.
        toolboxes: opens tool servers; used for `Live` only.
        maskers: make maskers from settings.

    Raises:
        ReplayUnreadable: the record cannot be read.
        StoreError: Postgres is unavailable or refused.
    """
    cassette = await _cassette(claimed.id, plan, replays)
    asked = await replays.asked(claimed.id)

    def mask_of(setting: MaskingPlan) -> Callable[[str], str]:
        return maskers.of(setting)

    options = ReplayOptions(
        plan.on_miss,
        served=[call.line for call in asked.calls if call.line is not None],
        mask_of=mask_of,
        live=toolboxes if plan.on_miss == "Live" else None,
    )
    opened = await asyncio.to_thread(ReplayToolboxes, claimed.id, cassette, options)
    return BoundReplay(claimed.id, plan.of, cassette, opened, recorded_changes(cassette), replays)


async def reported(outcome: RunOutcome, claimed: ClaimedRun, replays: Replays) -> RunOutcome:
    """Returns the outcome with the report of the replay also where that was cut short, by its limit or by people.

    Args:
        outcome: of the run.
        claimed: the run; one that is no replay has no report.
        replays: reads the store.

    Raises:
        StoreError: Postgres is unavailable or refused.
    """
    plan = claimed.plan.replay
    if plan is None or outcome.replay is not None:
        return outcome
    try:
        cassette = await _cassette(claimed.id, plan, replays)
    except ReplayUnreadable:
        return outcome
    return replace(outcome, replay=await _report(cassette, claimed.id, plan.of, replays))


async def _cassette(run: UUID, plan: ReplayPlan, replays: Replays) -> Cassette:
    data = await replays.cassette(run)
    if data is None:
        raise ReplayUnreadable("The record of this replay is no longer in the database; create the replay again.")
    try:
        return await asyncio.to_thread(read_cassette, data, plan.source)
    except CassetteError as error:
        raise ReplayUnreadable(str(error)) from error


async def _report(cassette: Cassette, run: UUID, source: UUID | None, replays: Replays) -> ReplayReport:
    report = replay_report(cassette, await replays.asked(run))
    return report.model_copy(update={"source": source})


def weighed(finding: Finding, report: ReplayReport) -> Finding:
    """Returns the finding of a replay: Inconclusive, with the reason, where too few calls were recorded.

    Made up answers are noted.
    """
    notes = finding.notes
    if (made_up := report.rungs.get(Rung.SIMULATED.value, 0)) > 0:
        notes = (*notes, _MADE_UP.format(made_up=made_up, calls=report.calls))
    why = too_little_covered(report)
    if why is None:
        return finding.model_copy(update={"notes": notes})
    return finding.model_copy(update={"confidence": Confidence.INCONCLUSIVE, "notes": (*notes, why)})


class _RecordedBeginnings:
    """Tells agents that they begin when the recorded ones began, and with the tools that were left; the record has the
    true times.
    """

    def __init__(self, recorder: Recorder, cassette: Cassette) -> None:
        self._recorder = recorder
        self._now = cassette.header.now
        self._agents = {(agent.stage, agent.agent): agent for agent in cassette.header.agents}
        self._stages: dict[UUID, int] = {}
        self._executions: dict[UUID, AgentRecord] = {}

    def __getattr__(self, name: str) -> Any:
        forwarded: Callable[..., Awaitable[Any]] = getattr(self._recorder, name)

        @wraps(forwarded)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await forwarded(*args, **kwargs)

        return call

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        self._stages[stage.id] = stage.index
        return await self._recorder.begin_stage(stage)

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        record = await self._recorder.begin_execution(execution)
        place = (self._stages.get(execution.stage, 0), execution.index)
        agent = self._agents.get(place)
        if agent is not None:
            self._executions[execution.id] = agent
        return replace(record, started_at=self._now if agent is None else agent.began)

    async def pin_tools(
        self, found: Mapping[str, Mapping[str, str]], offered: OfferedTools
    ) -> Mapping[str, Mapping[str, str]]:
        """Returns other digests for the tools that had changed when the recorded agent began, so that it loses them."""
        pinned = await self._recorder.pin_tools(found, offered)
        agent = self._executions.get(offered.execution)
        changed = (agent.changed if agent is not None else None) or {}
        return {
            server: {tool: "" if tool in changed.get(server, ()) else digest for tool, digest in tools.items()}
            for server, tools in pinned.items()
        }
