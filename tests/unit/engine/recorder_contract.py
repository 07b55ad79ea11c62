"""Contract of `engine.ports.Recorder`: cases that the recorder in memory and the one on Postgres both pass.

A test module subclasses `RecorderContract` and provides the fixture `subject`: a run without stages, the recorder of
its first attempt, and ways to look at it. So a test of the engine on the recorder in memory holds for the store too.
"""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from integration.store.build import (
    PROMPT,
    event,
    execution,
    model_call,
    model_result,
    stage,
    tool_call,
    tool_result,
)
from tarsy.engine.ports import Recorder
from tarsy.record.approvals.acted import ModelWord, StageActed
from tarsy.record.approvals.git_change import CHANGE_FOR_GIT, ChangeForGit, ManagedObject
from tarsy.record.boundaries import ModelCallStart, OfferedTools
from tarsy.record.dispatch import HypothesisVerdict, VerdictValue, child_index
from tarsy.record.finding import Evidence
from tarsy.record.history import BudgetExceeded, BudgetLimit, RunHistory
from tarsy.record.ids import call_ref, idempotency_key, stage_id, tool_call_id
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import Access, Message, Role, ToolCall, ToolOutcome
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionStart,
    Failure,
    InteractionState,
    LeaseLost,
    LoopState,
    ModelCallKind,
    StageKind,
    StageOutcome,
    State,
)
from tarsy.record.timeline import RETRYING, WAITING, EventStatus, EventType, TimelineEvent
from tarsy.record.usage import Usage

CALLS = (ToolCall("c1", "kubernetes.get", '{"a": 1'), *(ToolCall(f"c{n}", "kubernetes.get", "{}") for n in (2, 3)))
ANSWER = Message(Role.ASSISTANT, "let me look", CALLS, provider_state={"signature": "AAECAw=="})
TOOL = Message(Role.TOOL, "a pod", tool_call_id="c1", tool_name="kubernetes.get")
REQUEST = (Message(Role.SYSTEM, "you shorten"), Message(Role.USER, "a long result"))
FAILURE = Failure("StreamStalled", "no token for a minute")
OLD, NEW = {"get": "1", "scale": "1"}, {"get": "2"}


class Subject(ABC):
    """A run, and the recorder of its first attempt."""

    run: UUID
    recorder: Recorder
    holds: bool = False
    """Whether the recorder holds the end of a call for the next step of its execution."""

    @abstractmethod
    async def next_attempt(self) -> Recorder:
        """The recorder of another attempt, which takes the run over from the first one; nothing is held then."""

    @abstractmethod
    async def timeline(self) -> Sequence[TimelineEvent]:
        """All events of the run, in order."""

    @abstractmethod
    async def missing(self) -> Mapping[str, str]:
        """The evidence that was noted as missing."""


Step = Callable[[Recorder, UUID], Awaitable[Any]]


def _of(run: UUID) -> UUID:
    return execution(run).id


WRITES: dict[str, Step] = {
    "begin_stage": lambda w, run: w.begin_stage(stage(run, 1)),
    "finish_stage": lambda w, run: w.finish_stage(StageOutcome(stage(run).id, State.FAILED), [event(run, "x")]),
    "begin_execution": lambda w, run: w.begin_execution(execution(run)),
    "finish_execution": lambda w, run: w.finish_execution(ExecutionOutcome(_of(run), State.FAILED)),
    "model_call_started": lambda w, run: w.model_call_started(model_call(_of(run), 1, 3)),
    "model_call_finished": lambda w, run: w.model_call_finished(model_result(_of(run)), [event(run, "x")]),
    "tool_call_started": lambda w, run: w.tool_call_started(tool_call(_of(run), attempt=1), [event(run, "x")]),
    "tool_call_answered": lambda w, run: w.tool_call_answered(
        tool_call(_of(run)).id, ToolOutcome("a pod"), 3, [event(run, "x")]
    ),
    "tool_call_finished": lambda w, run: w.tool_call_finished(tool_result(_of(run)), [event(run, "x")]),
    "write_events": lambda w, run: w.write_events([event(run, "open"), event(run, "x")]),
    "budget_exceeded": lambda w, run: w.budget_exceeded(BudgetExceeded(BudgetLimit.TOKENS, "out"), [event(run, "x")]),
    "degrade_evidence": lambda w, run: w.degrade_evidence({"kubernetes": "away"}),
    "pin_tools": lambda w, run: w.pin_tools({"kubernetes": {"get": "1"}}, OfferedTools(_of(run))),
}
HELD = ("model_call_finished", "tool_call_finished")
READS: dict[str, Step] = {
    "stage_timeline": lambda w, run: w.stage_timeline(stage(run).id),
    "history": lambda w, _: w.history(),
    "is_confirmed": lambda w, _: w.is_confirmed(),
    "changes_for_git": lambda w, _: w.changes_for_git(),
    "actions": lambda w, run: w.actions(stage(run).id),
    "told_results": lambda w, run: w.told_results(_of(run)),
    "first_attempt": lambda w, run: w.first_attempt([stage(run).id]),
    "evidence": lambda w, run: w.evidence([str(tool_call(_of(run)).id)]),
}


async def begun(subject: Subject, index: int = 0) -> ExecutionStart:
    """An agent of the first stage has begun."""
    agent = execution(subject.run, index)
    await subject.recorder.begin_stage(stage(subject.run))
    await subject.recorder.begin_execution(agent)
    return agent


async def asked(subject: Subject, index: int = 0) -> ExecutionStart:
    """A model was asked, and wants three tools called."""
    agent = await begun(subject, index)
    await subject.recorder.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await subject.recorder.model_call_finished(model_result(agent.id, message=ANSWER))
    return agent


def untimed(history: RunHistory) -> RunHistory:
    """A history without the times at which it was read."""
    return replace(history, seconds=0.0, calls=tuple(replace(call, age_seconds=0.0) for call in history.calls))


class RecorderContract:
    """The cases; see the module."""

    # Fences

    def test_every_method_of_the_port_is_known_to_write_or_only_to_read(self) -> None:
        methods = {name for name, _ in inspect.getmembers(Recorder, inspect.iscoroutinefunction)}
        assert methods == set(WRITES) | set(READS)

    @pytest.mark.parametrize("method", WRITES)
    async def test_an_attempt_that_lost_its_run_writes_nothing(self, subject: Subject, method: str) -> None:
        agent = await asked(subject)
        await subject.recorder.tool_call_started(tool_call(agent.id))
        await subject.recorder.write_events([event(subject.run, "open", content="old")])
        again = await subject.next_attempt()
        before = await self._all(subject, again)
        with pytest.raises(LeaseLost):
            await WRITES[method](subject.recorder, subject.run)
            assert subject.holds and method in HELD, "it is raised at once"
            await subject.recorder.history()
        assert await self._all(subject, again) == before

    @pytest.mark.parametrize("method", READS)
    async def test_an_attempt_that_lost_its_run_may_still_read(self, subject: Subject, method: str) -> None:
        agent = await asked(subject)
        await subject.recorder.tool_call_started(tool_call(agent.id))
        await subject.next_attempt()
        await READS[method](subject.recorder, subject.run)

    # Boundaries and what another attempt finds of them

    async def test_a_new_execution_is_running_and_empty(self, subject: Subject) -> None:
        agent = execution(subject.run)
        begun = await subject.recorder.begin_stage(stage(subject.run))
        fresh = await subject.recorder.begin_execution(agent)
        assert (begun.id, begun.state, begun.failure) == (agent.stage, State.RUNNING, None)
        assert (fresh.id, fresh.state, fresh.messages, fresh.ahead) == (agent.id, State.RUNNING, (), {})
        assert (fresh.loop, fresh.model_calls, fresh.unanswered, fresh.result) == (LoopState(), 0, (), None)

    async def test_a_conversation_is_found_again_exactly_as_it_was_written(self, subject: Subject) -> None:
        agent = await asked(subject)
        await subject.recorder.tool_call_started(tool_call(agent.id))
        await subject.recorder.tool_call_finished(tool_result(agent.id))
        left = await (await subject.next_attempt()).begin_execution(agent)
        assert left.messages == (*PROMPT, ANSWER, TOOL)
        assert left.loop == LoopState(iteration=1, tool_calls=1)
        assert (left.model_calls, left.unanswered) == (1, ())

    async def test_a_sub_agent_is_found_as_it_ended_and_shares_the_results_of_its_parent(
        self, subject: Subject
    ) -> None:
        parent, write = await asked(subject), subject.recorder
        beside = await begun(subject, 1)
        child = replace(
            execution(subject.run, child_index(parent.index, 1)),
            parent=parent.id,
            dispatched_by=UUID(idempotency_key(parent.id, 2, 1)),
            task="look",
            hypothesis="it is full",
        )
        await write.begin_execution(child)
        await write.tool_call_started(tool_call(parent.id))
        await write.tool_call_finished(tool_result(parent.id))
        verdict = HypothesisVerdict(verdict=VerdictValue.UNRESOLVED, stated="Supported", reason="it cites nothing")

        await write.finish_execution(ExecutionOutcome(child.id, State.COMPLETED, "full", verdict=verdict))
        again = await subject.next_attempt()
        found = await again.begin_execution(child)

        assert (found.state, found.result, found.verdict) == (State.COMPLETED, "full", verdict)
        told = [len(await again.told_results(one.id)) for one in (parent, child, beside)]
        assert told == [1, 1, 0]

    async def test_what_is_said_of_sub_agents_is_no_evidence(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        call = ToolCall("c1", "dispatch_agent", "{}")
        start = replace(tool_call(agent.id), call=call, server="", tool="dispatch_agent", made=False)
        await write.tool_call_started(start)
        await write.tool_call_finished(tool_result(agent.id))

        assert await write.evidence([str(start.id), call_ref(start.idempotency_key)]) == {}

    async def test_a_repeated_step_changes_nothing(self, subject: Subject) -> None:
        agent, write = execution(subject.run), subject.recorder
        events = [event(agent.id, "a", execution=agent.id), event(agent.id, "a", content="the last wins")]
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: write.begin_stage(stage(subject.run)),
            lambda: write.begin_execution(agent),
            lambda: write.model_call_started(model_call(agent.id, 0, 0, PROMPT)),
            lambda: write.model_call_finished(model_result(agent.id, message=ANSWER), events),
            lambda: write.tool_call_started(tool_call(agent.id), events),
            lambda: write.tool_call_answered(tool_call(agent.id).id, ToolOutcome("a pod"), 3),
            lambda: write.tool_call_finished(tool_result(agent.id), events),
            lambda: write.budget_exceeded(BudgetExceeded(BudgetLimit.COST, "spent")),
            lambda: write.degrade_evidence({"kubernetes": "did not start"}),
            lambda: write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, "done"), events),
            lambda: write.finish_stage(StageOutcome(agent.stage, State.COMPLETED), events),
        ]
        for step in steps:
            await step()
            await step()
        before = await self._all(subject, write)
        for step in steps:
            await step()
        assert await self._all(subject, write) == before
        assert [shown.content for shown in await subject.timeline()] == ["the last wins"]
        assert (await write.history()).tool_calls == 1

    async def test_a_model_call_left_open_is_interrupted_with_its_events(self, subject: Subject) -> None:
        agent = await begun(subject)
        call = model_call(agent.id, 0, 0, PROMPT)
        told = event(call.id, status=EventStatus.STREAMING, execution=agent.id, stage=agent.stage)
        await subject.recorder.model_call_started(call, [told])
        again = await subject.next_attempt()
        left = await again.begin_execution(agent)
        assert (left.messages, left.model_calls) == (PROMPT, 1)
        assert [shown.status for shown in await subject.timeline()] == [EventStatus.INTERRUPTED]
        await again.model_call_started(model_call(agent.id, 1, 2))
        await again.model_call_finished(model_result(agent.id, 1, message=ANSWER))
        assert (await again.begin_execution(agent)).messages == (*PROMPT, ANSWER)

    async def test_a_number_that_was_taken_is_not_given_again(self, subject: Subject) -> None:
        agent = await begun(subject)
        await subject.recorder.model_call_started(model_call(agent.id, 2, 0, PROMPT))
        assert (await (await subject.next_attempt()).begin_execution(agent)).model_calls == 3

    async def test_a_note_about_a_lost_answer_is_found_as_the_user_message_it_was(self, subject: Subject) -> None:
        agent, note = await begun(subject), Message(Role.USER, "your answer was lost")
        await subject.recorder.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await subject.recorder.model_call_finished(model_result(agent.id, 0, 2, note, failure=FAILURE))
        assert (await (await subject.next_attempt()).begin_execution(agent)).messages == (*PROMPT, note)

    async def test_the_answer_to_a_tool_call_keeps_its_role(self, subject: Subject) -> None:
        agent, observation = await begun(subject), Message(Role.USER, "Observation: a pod")
        answer = Message(Role.ASSISTANT, "Action: kubernetes.get")
        await subject.recorder.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await subject.recorder.model_call_finished(model_result(agent.id, 0, 2, answer))
        await subject.recorder.tool_call_started(tool_call(agent.id))
        await subject.recorder.tool_call_finished(tool_result(agent.id, message=observation))
        assert (await subject.recorder.begin_execution(agent)).messages == (*PROMPT, answer, observation)

    async def test_a_tool_call_is_unanswered_until_its_latest_try_is_closed(self, subject: Subject) -> None:
        agent = await asked(subject)
        assert (await subject.recorder.begin_execution(agent)).unanswered == ()  # it was never begun
        await subject.recorder.tool_call_started(tool_call(agent.id))
        write = await subject.next_attempt()
        (left,) = (await write.begin_execution(agent)).unanswered
        assert (left.message_seq, left.index, left.attempt, left.state) == (2, 0, 0, InteractionState.STARTED)
        assert (left.made, left.result, left.summary) == (True, None, None)
        await write.tool_call_started(tool_call(agent.id, attempt=1))
        assert [open_call.attempt for open_call in (await write.begin_execution(agent)).unanswered] == [1]
        await write.tool_call_finished(tool_result(agent.id, attempt=1))
        after = await write.begin_execution(agent)
        assert (after.unanswered, len(after.messages)) == ((), 4)

    async def test_a_refused_call_left_open_is_known_not_to_have_been_made(self, subject: Subject) -> None:
        agent = await asked(subject)
        await subject.recorder.tool_call_started(replace(tool_call(agent.id), made=False, refused="ToolPolicy"))
        left = await (await subject.next_attempt()).begin_execution(agent)
        assert [tool.made for tool in left.unanswered] == [False]

    async def test_a_call_answered_before_an_earlier_one_is_found_in_its_place(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        await asyncio.gather(*(write.tool_call_started(tool_call(agent.id, index=index)) for index in range(3)))
        await asyncio.gather(*(write.tool_call_finished(tool_result(agent.id, index=index)) for index in (2, 1)))
        again = await subject.next_attempt()
        left = await again.begin_execution(agent)
        assert (len(left.messages), left.ahead) == (3, {4: TOOL, 5: TOOL})
        assert [(call.message_seq, call.index) for call in left.unanswered] == [(2, 0)]
        await again.tool_call_started(tool_call(agent.id, attempt=1))
        await again.tool_call_finished(tool_result(agent.id, attempt=1))
        whole = await again.begin_execution(agent)
        assert (len(whole.messages), whole.ahead, whole.unanswered) == (6, {}, ())

    async def test_results_of_calls_that_no_message_made_are_the_first_messages(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        for index in (0, 1):
            await write.tool_call_started(tool_call(agent.id, message_seq=-1, index=index))
        await write.tool_call_finished(tool_result(agent.id, message_seq=-1))
        assert (await write.begin_execution(agent)).messages == (TOOL,)
        again = await subject.next_attempt()
        (left,) = (await again.begin_execution(agent)).unanswered
        assert (left.message_seq, left.index, left.attempt) == (-1, 1, 0)
        await again.tool_call_started(tool_call(agent.id, message_seq=-1, index=1, attempt=1))
        await again.tool_call_finished(tool_result(agent.id, message_seq=-1, index=1, attempt=1))
        whole = await again.begin_execution(agent)
        assert (whole.messages, whole.ahead, whole.unanswered) == ((TOOL, TOOL), {}, ())
        refs = {call_ref(idempotency_key(agent.id, -1, index)) for index in (0, 1)}
        assert (await again.evidence(refs)).keys() == refs

    async def test_loop_state_is_that_of_the_last_boundary_that_had_one(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        found = []
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT, LoopState(fallback=1)))
        found.append((await write.begin_execution(agent)).loop)
        await write.model_call_started(replace(model_call(agent.id, 1, 2), loop=None))
        found.append((await write.begin_execution(agent)).loop)
        await write.model_call_finished(model_result(agent.id, 1, message=ANSWER, loop=LoopState(iteration=1)))
        found.append((await write.begin_execution(agent)).loop)
        await write.tool_call_started(tool_call(agent.id))
        await write.tool_call_finished(tool_result(agent.id, loop=LoopState(iteration=1, masked_calls=(2,))))
        found.append((await write.begin_execution(agent)).loop)
        assert found == [
            LoopState(fallback=1),
            LoopState(fallback=1),
            LoopState(iteration=1),
            LoopState(iteration=1, masked_calls=(2,)),
        ]

    async def test_of_what_was_compacted_the_latest_call_counts(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        await write.tool_call_started(tool_call(agent.id))
        await write.tool_call_finished(tool_result(agent.id))
        await write.model_call_started(replace(model_call(agent.id, 1, 4), superseded={3: "a …", 2: "let me"}))
        await write.model_call_started(replace(model_call(agent.id, 2, 4), superseded={3: "…"}))
        left = await (await subject.next_attempt()).begin_execution(agent)
        assert left.messages == (*PROMPT, ANSWER, TOOL)
        assert left.superseded == {2: "let me", 3: "…"}

    # Ends

    async def test_finished_stages_and_executions_stay_as_they_were_first_finished(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        failure = Failure("Policy", "one agent failed")
        await write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, "it was the probe"))
        await write.finish_stage(StageOutcome(agent.stage, State.FAILED, failure))
        again = await subject.next_attempt()
        await again.finish_execution(ExecutionOutcome(agent.id, State.FAILED, failure=failure))
        await again.finish_stage(StageOutcome(agent.stage, State.COMPLETED))
        old_stage, old_agent = await again.begin_stage(stage(subject.run)), await again.begin_execution(agent)
        assert (old_stage.state, old_stage.failure) == (State.FAILED, failure)
        assert (old_agent.state, old_agent.result, old_agent.failure) == (State.COMPLETED, "it was the probe", None)

    @pytest.mark.parametrize(
        ("state", "status"),
        [(State.TIMED_OUT, EventStatus.TIMED_OUT), (State.COMPLETED, EventStatus.INTERRUPTED)],
    )
    async def test_a_finished_execution_leaves_nothing_open(
        self, subject: Subject, state: State, status: EventStatus
    ) -> None:
        agent, write = await asked(subject), subject.recorder
        call, tool = model_call(agent.id, 1, 3), tool_call(agent.id)
        place = {"execution": agent.id, "stage": agent.stage}
        await write.tool_call_started(tool, [event(tool.id, status=EventStatus.STREAMING, **place)])
        await write.model_call_started(call, [event(call.id, status=EventStatus.STREAMING, **place)])
        own = event(agent.id, "own", EventStatus.STREAMING, **place)
        await write.finish_execution(ExecutionOutcome(agent.id, state), [own])
        assert [shown.status for shown in await subject.timeline()] == [status, status, EventStatus.STREAMING]
        left = await write.begin_execution(agent)
        assert left.unanswered == ()
        assert [past.usable for past in (await write.history()).calls] == [False]

    # Timeline

    async def test_an_event_is_replaced_in_its_place_and_a_closed_one_is_not_opened_again(
        self, subject: Subject
    ) -> None:
        write, run = subject.recorder, subject.run
        await write.write_events([event(run, "first", EventStatus.STREAMING), event(run, "second")])
        await write.write_events([event(run, "first", content="all of it")])
        await write.write_events([event(run, "first", EventStatus.STREAMING, content="late")])
        await write.write_events([])
        first, second = await subject.timeline()
        assert (first.content, first.status, second.content) == ("all of it", EventStatus.COMPLETED, "second")
        assert first.seq < second.seq

    async def test_a_stage_timeline_has_the_events_of_each_agent_in_order_with_their_names(
        self, subject: Subject
    ) -> None:
        for index in (0, 1):
            agent = await begun(subject, index)
            place = {"execution": agent.id, "stage": agent.stage}
            await subject.recorder.write_events([event(agent.id, part, **place) for part in ("one", "two")])
        await subject.recorder.write_events([event(subject.run, "of the run")])
        timeline = await subject.recorder.stage_timeline(stage(subject.run).id)
        assert [[shown.content for shown in events] for events in timeline.values()] == [["one", "two"]] * 2
        assert [events[0].agent_name for events in timeline.values()] == ["triage-1", "triage-2"]
        assert timeline[execution(subject.run).id][0].stage_name == "stage-0"

    # Results that wait for their summary

    async def test_a_result_that_waits_for_its_summary_is_found_by_another_attempt(self, subject: Subject) -> None:
        agent = await self._answered(subject)
        write = await subject.next_attempt()
        (waiting,) = (left := await write.begin_execution(agent)).unanswered
        assert (waiting.result, waiting.state, waiting.attempt) == ("a long result", InteractionState.STARTED, 0)
        assert len(left.messages) == 3
        await write.tool_call_finished(tool_result(agent.id, result="a long result", duration_ms=0))
        assert (await write.begin_execution(agent)).unanswered == ()

    @pytest.mark.parametrize("status", [EventStatus.COMPLETED, EventStatus.FAILED, EventStatus.STREAMING])
    async def test_a_summary_that_was_made_is_found_by_another_attempt(
        self, subject: Subject, status: EventStatus
    ) -> None:
        agent = await self._answered(subject)
        call = summary(model_call(agent.id, 1, 3))
        told = {"type": EventType.MCP_TOOL_SUMMARY, "execution": agent.id, "tool_call": tool_call(agent.id).id}
        await subject.recorder.model_call_started(call, [event(call.id, "summary", EventStatus.STREAMING, **told)])
        if status is not EventStatus.STREAMING:
            done = replace(model_result(agent.id, 1), message=None, message_seq=None)
            await subject.recorder.model_call_finished(done, [event(call.id, "summary", status, **told)])
        (waiting,) = (await (await subject.next_attempt()).begin_execution(agent)).unanswered
        assert waiting.summary == ("summary" if status is EventStatus.COMPLETED else None)

    async def test_a_call_with_a_request_of_its_own_leaves_conversation_and_state_alone(self, subject: Subject) -> None:
        agent, write = await self._answered(subject), subject.recorder
        before = await write.begin_execution(agent)
        await write.model_call_started(summary(model_call(agent.id, 1, 3)))
        assert (await write.begin_execution(agent)).loop == before.loop
        loop = LoopState(iteration=1, usage=Usage(input_tokens=100))
        done = replace(model_result(agent.id, 1, loop=loop), message=None, message_seq=None)
        await write.model_call_finished(done)
        after = await write.begin_execution(agent)
        assert after.messages == before.messages and after.loop == loop

    async def test_a_call_that_waits_is_no_evidence_and_its_first_result_stays(self, subject: Subject) -> None:
        agent, write = await self._answered(subject), subject.recorder
        ref = str(tool_call(agent.id).id)
        assert await write.evidence([ref]) == {}
        await write.tool_call_finished(tool_result(agent.id, result="another result"))
        assert (await write.evidence([ref]))[ref].result == "a long result"

    # Evidence

    async def test_a_closed_call_is_evidence_by_its_reference_and_by_its_row(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        call = tool_call(agent.id)
        await write.tool_call_started(call)
        await write.tool_call_finished(tool_result(agent.id, result="exit code 137"))
        row, ref = tool_call_id(agent.id, 2, 0, 0), call_ref(idempotency_key(agent.id, 2, 0))
        found = await write.evidence([ref, str(row), "call_000000000000", "", "x' OR true --"])
        evidence = Evidence(row, "stage-0", "triage-1", "kubernetes.get", "exit code 137", call.call.arguments)
        assert found == {ref: evidence, str(row): evidence}
        assert await write.evidence([]) == {}

    async def test_the_classes_of_a_result_are_kept_and_confirm_a_run(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        marks = EvidenceMarks(Integrity.A, ((0, 9), (10, 13)), state=True)
        for index, found in enumerate((None, EvidenceMarks(Integrity.X), marks)):
            assert not await write.is_confirmed()
            await write.tool_call_started(tool_call(agent.id, index=index))
            result = tool_result(agent.id, index=index, result="exit code 137")
            await write.tool_call_finished(replace(result, marks=found))
        refs = [call_ref(idempotency_key(agent.id, 2, index)) for index in range(3)]
        evidence = await write.evidence(refs)
        assert [evidence[ref].marks for ref in refs] == [EvidenceMarks(), EvidenceMarks(Integrity.X), marks]
        assert await write.is_confirmed()

    async def test_changes_of_refused_calls_are_read_in_the_order_of_their_events(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        assert await write.changes_for_git() == []
        managed = ManagedObject(object="Deployment shop/checkout", managed_by="Helm (release shop)")
        changes = [ChangeForGit.limited("k8s.scale", [managed], f"+ replicas: {number}") for number in range(2)]
        for index, change in enumerate(changes):
            metadata = {CHANGE_FOR_GIT: change.model_dump(mode="json", by_alias=True)}
            told = replace(event(subject.run, f"call-{index}"), type=EventType.LLM_TOOL_CALL, metadata=metadata)
            await write.write_events([replace(told, execution=agent.id)])
        assert await write.changes_for_git() == changes

    async def test_calls_of_an_action_stage_are_told_from_others_and_act_only_with_an_approval(
        self, subject: Subject
    ) -> None:
        write = subject.recorder
        acting = replace(stage(subject.run), kind=StageKind.ACTION)
        agent = execution(subject.run)
        await write.begin_stage(acting)
        await write.begin_execution(agent)
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_finished(model_result(agent.id, message=ANSWER))
        await write.tool_call_started(tool_call(agent.id))
        await write.tool_call_finished(tool_result(agent.id, result="a pod"))
        history = await write.history()
        assert (history.tool_calls, history.action_calls, [call.acts for call in history.calls]) == (1, 1, [True])
        assert list(await write.actions(acting.id)) == []
        acted = StageActed(ModelWord.NO)
        await write.finish_stage(StageOutcome(acting.id, State.COMPLETED, acted=acted))

    async def test_results_that_models_may_have_seen_are_read_a_page_at_a_time(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        marks = EvidenceMarks(Integrity.X)
        for attempt in range(2):
            await write.tool_call_started(tool_call(agent.id, attempt=attempt))
        await write.tool_call_finished(replace(tool_result(agent.id, attempt=1, result="a pod"), marks=marks))
        assert await write.told_results(agent.id, sensitive=True) == []
        await write.tool_call_started(replace(tool_call(agent.id, index=1), made=False))
        await write.tool_call_finished(tool_result(agent.id, index=1, result="not made", is_error=True))
        await write.tool_call_started(tool_call(agent.id, index=2))
        (found,) = await write.told_results(agent.id)
        ref = call_ref(idempotency_key(agent.id, 2, 0))
        assert (found.ref, found.tool, found.text, found.marks) == (ref, "kubernetes.get", "a pod", marks)
        assert (found.arguments, found.place) == ('{"kind": "Pod"}', (-1, 0, 0, 2, 0))
        assert await write.told_results(agent.id, {found.id}) == []

    async def test_sensitive_results_are_read_alone(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        marks = EvidenceMarks(Integrity.A, sensitive=True)
        for index, found in enumerate((None, EvidenceMarks(), marks)):
            await write.tool_call_started(tool_call(agent.id, index=index))
            await write.tool_call_finished(replace(tool_result(agent.id, index=index), marks=found))
        (found_,) = await write.told_results(agent.id, sensitive=True)
        assert found_.marks == marks and len(await write.told_results(agent.id)) == 3

    async def test_an_agent_knows_results_of_earlier_stages_and_none_of_agents_beside_it(
        self, subject: Subject
    ) -> None:
        agent, write = await asked(subject), subject.recorder
        await write.tool_call_started(tool_call(agent.id))
        await write.tool_call_finished(tool_result(agent.id, result="a pod"))
        beside = await begun(subject, 1)
        later = execution(subject.run, 0, 1)
        await write.begin_stage(stage(subject.run, 1))
        await write.begin_execution(later)
        assert [len(await write.told_results(one.id)) for one in (agent, beside, later)] == [1, 0, 1]

    async def test_a_first_attempt_is_its_calls_that_did_well_and_its_usage(self, subject: Subject) -> None:
        agent = await asked(subject)
        marks = EvidenceMarks(Integrity.K, ((0, 5),), state=True)
        for index, failed in enumerate((False, True)):
            await subject.recorder.tool_call_started(tool_call(agent.id, index=index))
            done = replace(tool_result(agent.id, index=index), is_error=failed, marks=marks)
            await subject.recorder.tool_call_finished(done)
        await subject.recorder.tool_call_started(tool_call(agent.id, index=2))

        found = await subject.recorder.first_attempt([stage(subject.run).id])

        call, result = tool_call(agent.id), tool_result(agent.id)
        assert [(one.server, one.tool, one.arguments) for one in found.calls] == [
            (call.server, call.tool, call.call.arguments)
        ]
        assert [(one.result, one.marks) for one in found.calls] == [(result.result, marks)]
        usage = model_result(agent.id).usage
        assert usage is not None
        assert (found.input_tokens, found.output_tokens) == (usage.input_tokens, usage.output_tokens)
        others = await subject.recorder.first_attempt([stage(subject.run, 1).id])
        assert (list(others.calls), others.input_tokens, others.output_tokens) == ([], 0, 0)

    async def test_a_failed_call_is_evidence_and_an_open_or_interrupted_one_is_not(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        refs = [call_ref(idempotency_key(agent.id, 2, index)) for index in range(3)]
        for index in range(3):
            await write.tool_call_started(tool_call(agent.id, index=index))
        await write.tool_call_finished(tool_result(agent.id, index=0, result="no such pod", is_error=True))
        await write.tool_call_finished(tool_result(agent.id, index=1, result="who knows", interrupted=True))
        found = await write.evidence(refs)
        assert {name: evidence.result for name, evidence in found.items()} == {refs[0]: "no such pod"}

    async def test_of_several_tries_of_a_call_the_last_is_evidence(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        for attempt in range(2):
            await write.tool_call_started(tool_call(agent.id, attempt=attempt))
        await write.tool_call_finished(tool_result(agent.id, attempt=1, result="second try"))
        ref = call_ref(idempotency_key(agent.id, 2, 0))
        assert (await write.evidence([ref]))[ref].interaction == tool_call_id(agent.id, 2, 0, 1)

    # Steps that are held

    async def test_a_read_sees_what_is_held(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        await write.tool_call_started(tool_call(agent.id))
        shown = event(agent.id, "call", stage=agent.stage, execution=agent.id)
        await write.tool_call_finished(tool_result(agent.id), [shown])
        ref = str(tool_call(agent.id).id)
        assert list(await write.evidence([ref])) == [ref]
        await write.model_call_started(model_call(agent.id, 1, 4))
        await write.model_call_finished(model_result(agent.id, 1, 4))
        assert (await write.history()).tokens == 240
        timeline = await write.stage_timeline(agent.stage)
        assert [told.id for told in timeline[agent.id]] == [shown.id]

    async def test_steps_that_follow_each_other_leave_what_they_leave_alone(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        place = {"stage": agent.stage, "execution": agent.id}
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_finished(model_result(agent.id, message=ANSWER), [event(agent.id, "answer", **place)])
        await write.tool_call_started(
            tool_call(agent.id),
            [
                event(agent.id, "call", EventStatus.STREAMING, **place),
                event(agent.id, "answer", EventStatus.STREAMING, content="never opened again", **place),
            ],
        )
        await write.tool_call_finished(tool_result(agent.id), [event(agent.id, "call", **place)])
        await write.tool_call_started(tool_call(agent.id, index=1))
        await write.tool_call_finished(tool_result(agent.id, index=1), [event(agent.id, "second", **place)])
        note = Message(Role.USER, "your answer was lost")
        await write.model_call_started(model_call(agent.id, 1, 5, loop=LoopState(iteration=1, tool_calls=2)))
        await write.model_call_finished(model_result(agent.id, 1, 5, note, failure=FAILURE))
        await write.model_call_started(replace(model_call(agent.id, 2, 6), loop=None))
        await write.model_call_finished(model_result(agent.id, 2, 6, loop=LoopState(iteration=7)))
        again = await subject.next_attempt()
        left = await again.begin_execution(agent)
        answer = model_result(agent.id).message
        assert left.messages == (*PROMPT, ANSWER, TOOL, TOOL, note, answer)
        assert (left.loop, left.model_calls, left.unanswered) == (LoopState(iteration=7), 3, ())
        assert [(told.content, told.status) for told in await subject.timeline()] == [
            (content, EventStatus.COMPLETED) for content in ("answer", "call", "second")
        ]
        history = await again.history()
        assert (history.tokens, history.tool_calls) == (360, 2)

    async def test_of_two_agents_each_holds_its_own(self, subject: Subject) -> None:
        agents, write = [await begun(subject, index) for index in range(2)], subject.recorder
        for agent in agents:
            await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        for agent in agents:
            await write.model_call_finished(model_result(agent.id, message=ANSWER))
        for agent in agents:
            await write.tool_call_started(tool_call(agent.id))
        again = await subject.next_attempt()
        for agent in agents:
            left = await again.begin_execution(agent)
            assert (left.messages, len(left.unanswered)) == ((*PROMPT, ANSWER), 1)

    # History

    async def test_history_sums_known_usage_and_estimates_the_rest(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_finished(model_result(agent.id, message=ANSWER, cost_usd=Decimal("0.1")))
        known = await write.history()
        await write.model_call_started(model_call(agent.id, 1, 3))
        lost = replace(model_result(agent.id, 1), usage=None, message=None, message_seq=None, failure=FAILURE)
        await write.model_call_finished(replace(lost, estimated_tokens=70, estimated_cost_usd=Decimal("0.05")))
        found = await write.history()
        assert (known.tokens, known.cost_usd, known.estimated) == (120, Decimal("0.1"), False)
        assert (found.tokens, found.cost_usd, found.estimated) == (190, Decimal("0.15"), True)
        assert found.stages == {stage_id(subject.run, 0)}

    async def test_history_has_the_longest_calls(self, subject: Subject) -> None:
        agent, write = await begun(subject), subject.recorder
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_finished(replace(model_result(agent.id, message=ANSWER), duration_ms=1500))
        for index, made in enumerate((True, True, False)):
            await write.tool_call_started(replace(tool_call(agent.id, index=index), made=made))
            await write.tool_call_finished(tool_result(agent.id, index=index, duration_ms=(index + 1) * 500))
        found = await write.history()
        assert (found.model_seconds, found.tool_seconds, found.tool_calls) == (1.5, 1.0, 2)

    async def test_a_model_call_left_open_counts_as_it_was_estimated(self, subject: Subject) -> None:
        agent = await begun(subject)
        opened = replace(model_call(agent.id, 0, 0, PROMPT), estimated_tokens=500, estimated_cost_usd=Decimal("0.25"))
        await subject.recorder.model_call_started(opened)
        again = await subject.next_attempt()
        before = untimed(await again.history())
        await again.begin_execution(agent)
        assert (before.tokens, before.cost_usd, before.estimated) == (500, Decimal("0.25"), True)
        assert untimed(await again.history()) == before

    @pytest.mark.parametrize(
        ("told", "tokens"),
        [
            ([], 500),
            ([(WAITING, EventStatus.STREAMING)], 0),
            ([(WAITING, EventStatus.COMPLETED)], 500),
            ([(RETRYING, EventStatus.COMPLETED), (WAITING, EventStatus.STREAMING)], 500),
        ],
        ids=["without a limit", "waiting", "after its turn came", "before another try"],
    )
    @pytest.mark.parametrize("cut_by", ["another attempt", "the end of its execution"])
    async def test_a_model_call_that_is_cut_before_it_was_sent_used_nothing(
        self, subject: Subject, cut_by: str, told: list[tuple[str, EventStatus]], tokens: int
    ) -> None:
        agent, write = await begun(subject), subject.recorder
        call = replace(model_call(agent.id, 0, 0, PROMPT), estimated_tokens=500)
        place = {"type": EventType.NOTICE, "execution": agent.id, "model_call": call.id}
        events = [event(call.id, reason, status, metadata={"reason": reason}, **place) for reason, status in told]
        await write.model_call_started(call, events)
        if cut_by == "another attempt":
            write = await subject.next_attempt()
            await write.begin_execution(agent)
        else:
            await write.finish_execution(ExecutionOutcome(agent.id, State.TIMED_OUT))
        found = await write.history()
        assert (found.tokens, found.estimated) == (tokens, tokens > 0)

    async def test_only_calls_that_were_made_count_and_repetitions_name_their_original(self, subject: Subject) -> None:
        agent, write = await asked(subject), subject.recorder
        first = replace(tool_call(agent.id), access=Access.READ_ONLY)
        again = replace(tool_call(agent.id, index=1), access=Access.READ_ONLY, made=False, repeated_of=first.id)
        await write.tool_call_started(first)
        await write.tool_call_finished(tool_result(agent.id))
        await write.tool_call_started(again)
        await write.tool_call_finished(tool_result(agent.id, index=1))
        history = await write.history()
        one, two = history.calls
        assert history.tool_calls == 1
        assert (one.id, one.usable, one.repeated_of) == (first.id, True, None)
        assert (two.id, two.usable, two.repeated_of) == (again.id, False, first.id)
        assert (one.server, one.tool, one.arguments) == ("kubernetes", "get", '{"kind": "Pod"}')
        assert (one.execution, one.message_seq, one.index) == (agent.id, 2, 0)
        assert 0 <= one.age_seconds < 60

    @pytest.mark.parametrize(
        ("access", "ended", "usable"),
        [
            (Access.READ_ONLY, {}, True),
            (Access.READ_ONLY, {"is_error": True}, False),
            (Access.READ_ONLY, {"interrupted": True}, False),
            (Access.UNKNOWN, {}, False),
            (Access.CHANGES, {}, False),
        ],
    )
    async def test_only_a_call_that_read_and_did_well_is_usable(
        self, subject: Subject, access: Access, ended: dict[str, bool], usable: bool
    ) -> None:
        agent, write = await asked(subject), subject.recorder
        await write.tool_call_started(replace(tool_call(agent.id), repeatable=True, access=access))
        await write.tool_call_finished(tool_result(agent.id, **ended))
        assert [call.usable for call in (await write.history()).calls] == [usable]

    @pytest.mark.parametrize(
        ("order", "usable"), [("call change", False), ("change call", True), ("call open", False), ("open call", False)]
    )
    async def test_a_call_is_usable_while_no_other_can_have_changed_its_result(
        self, subject: Subject, order: str, usable: bool
    ) -> None:
        agent, other, write = await asked(subject), await asked(subject, 1), subject.recorder
        for step in order.split():
            if step == "call":
                await write.tool_call_started(replace(tool_call(agent.id), access=Access.READ_ONLY))
                await write.tool_call_finished(tool_result(agent.id))
            else:
                await write.tool_call_started(tool_call(other.id))
            if step == "change":
                await write.tool_call_finished(tool_result(other.id))
                await write.history()  # a change that is held ends when it is written
        found = {call.execution: call.usable for call in (await write.history()).calls}
        assert found[agent.id] is usable

    # The run as a whole

    async def test_the_first_limit_that_is_reached_stays(self, subject: Subject) -> None:
        first = BudgetExceeded(BudgetLimit.COST, "The run's budget of US$ 1 is reached.")
        assert (await subject.recorder.history()).exceeded is None
        told = event(subject.run, "budget", type=EventType.NOTICE, content=first.message)
        await subject.recorder.budget_exceeded(first, [told])
        await subject.recorder.budget_exceeded(BudgetExceeded(BudgetLimit.TOKENS, "another"), [told])
        assert (await (await subject.next_attempt()).history()).exceeded == first
        assert [shown.content for shown in await subject.timeline()] == [first.message]

    async def test_the_tools_that_a_run_first_saw_stay(self, subject: Subject) -> None:
        agent = await begun(subject)
        offered = OfferedTools(agent.id)
        assert await subject.recorder.pin_tools({"k": OLD, "empty": {}}, offered) == {"k": OLD, "empty": {}}
        assert await subject.recorder.pin_tools({"k": NEW, "m": NEW}, offered) == {"k": OLD, "m": NEW}
        again = await subject.next_attempt()
        assert await again.pin_tools({"k": NEW, "m": OLD, "empty": NEW}, offered) == {"k": OLD, "m": NEW, "empty": {}}

    async def test_missing_evidence_is_gathered(self, subject: Subject) -> None:
        await subject.recorder.degrade_evidence({"kubernetes": "did not start"})
        await subject.recorder.degrade_evidence({"logs": "away", "kubernetes": "is away"})
        await subject.recorder.degrade_evidence({})
        assert await subject.missing() == {"kubernetes": "is away", "logs": "away"}

    async def _answered(self, subject: Subject) -> ExecutionStart:
        """A tool has answered, and its call stays open."""
        agent = await asked(subject)
        await subject.recorder.tool_call_started(tool_call(agent.id))
        await subject.recorder.tool_call_answered(tool_call(agent.id).id, ToolOutcome("a long result"), 7)
        return agent

    async def _all(self, subject: Subject, reader: Recorder) -> tuple[object, ...]:
        """Everything that can be read of the run without changing it."""
        events = [replace(shown, revision=0, updated_at=shown.created_at) for shown in await subject.timeline()]
        return events, untimed(await reader.history()), await subject.missing()


def summary(of: ModelCallStart) -> ModelCallStart:
    """The call as one that makes a summary: with a request of its own, and without tools."""
    return replace(of, kind=ModelCallKind.SUMMARIZATION, request=REQUEST, loop=None, tools=())
