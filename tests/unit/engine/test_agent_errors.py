"""Failures of model, tools and record, and what becomes of the agent: retried, told to the model, ended."""

import asyncio

import pytest

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, Strategy
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, State
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import FakeToolboxes, call, plan, scene, stage, until
from unit.engine.clock import in_virtual_time
from unit.engine.one_agent import LOOPS, asks, concludes, run, tools, who
from wire.scripted_client import Answer

CUT = ModelError(ModelErrorCode.PARTIAL_STREAM, "the connection broke", retryable=True, started=True)
SILENT = ModelError(ModelErrorCode.FIRST_TOKEN_TIMEOUT, "the model sent nothing for 120 s.", retryable=True)
TIMEOUTS = {
    ModelErrorCode.TIMEOUT,
    ModelErrorCode.FIRST_TOKEN_TIMEOUT,
    ModelErrorCode.STALL,
    ModelErrorCode.ITERATION_TIMEOUT,
    ModelErrorCode.SILENT,
    ModelErrorCode.CONCLUSION_TIMEOUT,
}


@pytest.mark.parametrize("strategy", LOOPS)
async def test_row_model_call_failure_is_recorded_told_and_the_loop_goes_on(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), Answer(error=CUT), concludes(strategy))

    assert done.outcome.state is State.COMPLETED
    states = [row.state for row in done.scene.record.model_calls.values()]
    assert states == [InteractionState.COMPLETED, InteractionState.FAILED, InteractionState.COMPLETED]
    assert [event.content for event in done.events if event.type is EventType.ERROR] == ["the connection broke"]
    heard = done.scene.models.requests[-1].messages[-1]
    assert heard.role is Role.USER and "the connection broke" in heard.content


@pytest.mark.parametrize("strategy", LOOPS)
async def test_row_tool_failure_is_an_answer_and_the_loop_goes_on(strategy: Strategy) -> None:
    async def fails(_: str) -> ToolOutcome:
        return ToolOutcome("the server went away", is_error=True)

    done = await run(strategy, asks(strategy), concludes(strategy), toolboxes=FakeToolboxes({"k.get": fails}))

    assert done.outcome.state is State.COMPLETED
    (row,) = done.scene.record.tool_calls.values()
    assert row.state is InteractionState.FAILED
    assert "the server went away" in done.scene.models.requests[-1].messages[-1].content


@pytest.mark.parametrize("strategy", LOOPS)
def test_row_tool_timeout_is_an_answer_too(strategy: Strategy) -> None:
    async def never(_: str) -> ToolOutcome:
        await asyncio.Event().wait()
        raise AssertionError

    toolboxes = FakeToolboxes({"k.get": never})
    done = in_virtual_time(run(strategy, *[asks(strategy)] * 3, concludes(strategy), toolboxes=toolboxes))

    assert done.outcome.state is State.COMPLETED
    assert done.scene.record.execution("triage").loop.consecutive_timeouts == 0
    assert "did not answer within 60 s" in done.scene.models.requests[-1].messages[-1].content


async def test_row_malformed_answer_stays_and_hears_what_is_wrong() -> None:
    done = await run(Strategy.REACT, Answer("Thought: hm"), concludes(Strategy.REACT))

    assert done.outcome.state is State.COMPLETED
    (role, kept), (other, feedback), _ = done.scene.record.texts("triage")[2:]
    assert (role, kept, other) == (Role.ASSISTANT, "Thought: hm", Role.USER)
    assert feedback.startswith("FORMAT ERROR: Your answer has only a")


@pytest.mark.parametrize("strategy", LOOPS)
async def test_row_consecutive_timeouts_abort(strategy: Strategy) -> None:
    apart = await run(
        strategy,
        Answer(error=SILENT),
        asks(strategy),
        Answer(error=SILENT),
        concludes(strategy),
    )
    assert apart.outcome.state is State.COMPLETED

    done = await run(strategy, asks(strategy), Answer(error=SILENT), Answer(error=SILENT), concludes(strategy))

    assert done.outcome.state is State.TIMED_OUT
    assert len(done.scene.models.requests) == 3


@pytest.mark.parametrize("strategy", LOOPS)
@pytest.mark.parametrize("by", ["deadline", "user"])
def test_rows_deadline_and_cancellation_leave_the_engine_as_they_came(strategy: Strategy, by: str) -> None:
    async def main() -> None:
        never = asyncio.Event()
        s = scene({"triage": [asks(strategy), Answer("late", wait=never)]}, toolboxes=tools())
        running = asyncio.create_task(s.run(plan(stage("look", who(strategy)))))
        await until(lambda: len(s.models.requests) == 2)
        written = len(s.recorder.calls)
        if by == "user":
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled()
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running, 30)
        assert len(s.recorder.calls) == written, "who is stopped writes nothing more"
        assert all(client.closed for client in s.models.clients)
        assert s.toolboxes.open_now == 0

    in_virtual_time(main())


@pytest.mark.parametrize("strategy", LOOPS)
async def test_row_infrastructure_failure_is_no_outcome_of_an_agent(strategy: Strategy) -> None:
    class NoDisk(Exception):
        pass

    s = scene({"triage": [asks(strategy), concludes(strategy)]}, toolboxes=tools())

    async def refuse(*_: object) -> None:
        raise NoDisk

    s.recorder.tool_call_finished = refuse  # type: ignore[method-assign]
    with pytest.raises(BaseExceptionGroup) as raised:
        await s.run(plan(stage("look", who(strategy))))

    assert raised.group_contains(NoDisk)
    assert all(row.outcome is None for row in s.record.executions.values())


@pytest.mark.parametrize("code", ModelErrorCode)
async def test_only_timeouts_end_an_agent_as_timed_out(code: ModelErrorCode) -> None:
    error = ModelError(code, "a timeout, or so it says", retryable=code in TIMEOUTS)
    done = await run(Strategy.LANGCHAIN, *[Answer("hm", error=error)] * 9, limits=AgentLimits(finding_repairs=0))

    assert done.outcome.state is (State.TIMED_OUT if code in TIMEOUTS else State.FAILED)
    assert done.outcome.failure is not None and done.outcome.failure.reason == code.value
    ended = EventStatus.TIMED_OUT if code in TIMEOUTS else EventStatus.FAILED
    assert ended in {event.status for event in done.events if event.type is EventType.LLM_RESPONSE}


@pytest.mark.parametrize("code", [ModelErrorCode.CREDENTIALS, ModelErrorCode.CREDENTIALS_MISSING])
async def test_an_error_of_credentials_is_returned_at_once(code: ModelErrorCode) -> None:
    done = await run(Strategy.LANGCHAIN, Answer(error=ModelError(code, "no key", retryable=False)))

    assert (done.outcome.state, len(done.scene.models.requests)) == (State.FAILED, 1)


async def test_an_empty_answer_is_asked_again_and_the_model_is_told() -> None:
    done = await run(Strategy.LANGCHAIN, Answer(""), Answer(""), Answer("full"))

    assert (done.outcome.final_analysis, len(done.scene.models.requests)) == ("full", 3)
    assert all("empty" in request.messages[-1].content for request in done.scene.models.requests[1:])


@pytest.mark.parametrize("strategy", LOOPS)
async def test_case_success_keeps_request_and_answer(strategy: Strategy) -> None:
    done = await run(strategy, concludes(strategy))

    (row,) = done.scene.record.model_calls.values()
    assert row.result is not None and row.result.message is not None
    sent = done.scene.record.execution("triage").conversation[: row.start.message_count]
    assert sent == tuple(done.scene.models.requests[0].messages)
    assert (row.result.message.role, row.result.message.content) == (Role.ASSISTANT, concludes(strategy).text)
    assert row.result.failure is None


@pytest.mark.parametrize("strategy", LOOPS)
async def test_case_failure_keeps_the_request_and_the_error_apart_and_no_answer(strategy: Strategy) -> None:
    refused = ModelError(ModelErrorCode.INVALID_REQUEST, "no such model", retryable=False)
    done = await run(strategy, Answer("half", error=refused))

    (row,) = done.scene.record.model_calls.values()
    assert row.result is not None and row.result.failure is not None
    assert (row.result.failure.reason, row.result.message) == ("InvalidRequest", None)
    messages = done.scene.record.execution("triage").conversation
    assert messages == tuple(done.scene.models.requests[0].messages)
    assert {message.role for message in messages} == {Role.SYSTEM, Role.USER}


async def test_a_call_that_cannot_be_made_is_told_to_the_model_with_the_tools_there_are() -> None:
    done = await run(Strategy.REACT, Answer("Thought: t\nAction: k.drop\nAction Input: {}"), concludes(Strategy.REACT))
    assert "k.get: does k.get" in done.scene.record.texts("triage")[3][1]

    other = await run(Strategy.LANGCHAIN, Answer(tool_calls=(call("k.drop"),)), Answer("done"))
    assert "There is no tool k.drop" in other.scene.models.requests[-1].messages[-1].content
