"""Caches the results that a writer records, so that they need not be read back.

A first attempt of an investigation puts every result of its run on record itself: what its agents may know of is known
without asking Postgres at each call. A later attempt, and an answer to a question, also know of results of others, and
read them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.record.approvals.provenance import RESULTS_A_PAGE, ToldResult
from tarsy.record.boundaries import ToolCallResult, ToolCallStart
from tarsy.record.ids import call_ref
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.run import ExecutionStart, StageStart
from tarsy.record.text import clean

MOST_KEPT = 8_000_000
"""Maximum characters of results that are kept; where a run has more, they are read."""

_OF_THE_RUN = -1  # place of an investigation among those whose results a question is told


@dataclass(frozen=True, slots=True)
class _Agent:
    """The stage and the place of an execution in it; `family` is the agent whose sub-agents know its results."""

    stage: int
    index: int
    family: UUID


class WrittenResults:
    """Results of tools by the agents that may know of them, from the steps of the only writer of a run.

    Args:
        complete: whether the steps are all that the agents may know of; results are read where they are not.
        most: characters of results that are kept.
    """

    def __init__(self, *, complete: bool = True, most: int = MOST_KEPT) -> None:
        self._room = most
        self._stages: dict[UUID, int] = {}
        self._agents: dict[UUID, _Agent] = {}
        self._open: dict[UUID, ToolCallStart] = {}
        self._closed: list[tuple[_Agent, ToldResult]] = []
        self._complete = complete

    def stage_begun(self, stage: StageStart) -> None:
        """Notes the place of a stage."""
        self._stages[stage.id] = stage.index

    def execution_begun(self, execution: ExecutionStart) -> None:
        """Notes the place of an agent execution."""
        if execution.stage not in self._stages:
            self.unknown()
            return
        stage, family = self._stages[execution.stage], execution.parent or execution.id
        self._agents[execution.id] = _Agent(stage, execution.index, family)

    def call_begun(self, call: ToolCallStart) -> None:
        """Notes a call that is on record as begun."""
        if self._complete:
            self._open[call.id] = call

    def call_ended(self, result: ToolCallResult) -> None:
        """Keeps the result of a call, if models may be told it."""
        if not self._complete:
            return
        call, agent = self._open.pop(result.id, None), self._agents.get(result.execution)
        if call is None or agent is None:
            self.unknown()
        elif call.made and not result.interrupted:
            self._room -= len(result.result)
            if self._room < 0:
                self.unknown()
            else:
                self._closed.append((agent, _told(call, result, agent)))

    def unknown(self) -> None:
        """Notes that the record may contain another result: from now on results are read."""
        self._complete = False
        self._open.clear()
        self._closed.clear()

    def told(self, execution: UUID, known: Collection[UUID], *, sensitive: bool) -> Sequence[ToldResult] | None:
        """Returns the next page of results that the model of an execution may know of; None: they must be read.

        Args:
            execution: of the agent.
            known: ids of those that the caller has.
            sensitive: only those whose text must not leave.
        """
        me = self._agents.get(execution)
        if not self._complete or me is None:
            return None
        found = [
            one
            for agent, one in self._closed
            if (agent.family == me.family or agent.stage < me.stage)
            and one.id not in known
            and (one.marks.sensitive or not sensitive)
        ]
        return sorted(found, key=lambda one: one.id)[:RESULTS_A_PAGE]


def _told(call: ToolCallStart, result: ToolCallResult, agent: _Agent) -> ToldResult:
    """Returns a result as the record gives it back."""
    server, tool = clean(call.server), clean(call.tool)
    return ToldResult(
        id=call.id,
        ref=call_ref(call.idempotency_key),
        tool=f"{server}.{tool}" if server else tool,
        arguments=clean(call.call.arguments),
        text=clean(result.result),
        marks=result.marks or EvidenceMarks(),
        place=(_OF_THE_RUN, agent.stage, agent.index, call.message_seq, call.index),
    )
