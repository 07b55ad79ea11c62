"""The story of a model call beyond its answer: waits for its turn, new tries, empty answers, what is told aside."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    RetryChunk,
    TextChunk,
    WaitChunk,
)
from tarsy.plan.model import AgentLimits, Plan, PlannedRates, ProviderPlan
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.usage import Usage
from unit.engine.build import Scene, agent, plan, scene, stage
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer

BUSY = ModelError(ModelErrorCode.RATE_LIMIT, "provider local: slow down.", retryable=True)
WAIT = WaitChunk("tokensPerMinute", 30_000)
LIMITS = AgentLimits(finding_repairs=0)
Step = Chunk | float


class Steps:
    """A client whose calls are steps: a chunk, or seconds in which nothing comes."""

    def __init__(self, *calls: Sequence[Step]) -> None:
        self.calls = list(calls)
        self.requests: list[GenerateRequest] = []

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield self

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        for step in self.calls.pop(0):
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    async def aclose(self) -> None:
        pass


def with_steps(*calls: Sequence[Step]) -> Scene:
    made = scene({})
    made.models = Steps(*calls)  # type: ignore[assignment]
    return made


def one(limits: AgentLimits = LIMITS) -> Plan:
    return plan(stage("look", agent()), limits=limits)


def run(s: Scene, of: Plan | None = None) -> RunOutcome:
    return in_virtual_time(s.run(of or one()))


def notices(s: Scene, reason: str) -> list[TimelineEvent]:
    return [e for e in s.record.events.values() if e.metadata.get("reason") == reason]


DONE = (TextChunk("done"), EndChunk("stop"))


def test_a_wait_for_a_turn_is_one_event_that_says_how_long_and_for_which_limit() -> None:
    s = with_steps([WAIT, 90.0, WaitChunk("tokensPerMinute", 30_000, over=True), *DONE])
    written: list[tuple[EventStatus, str]] = []
    write = s.recorder.write_events

    async def noted(events: Sequence[TimelineEvent]) -> None:
        written.extend((e.status, e.content) for e in events if e.type is EventType.NOTICE)
        await write(events)

    s.recorder.write_events = noted  # type: ignore[method-assign,assignment]
    assert run(s).state is State.COMPLETED

    (event,) = notices(s, "ProviderLimit")
    why = "provider local has spec.limits.tokensPerMinute 30,000."
    assert written == [
        (EventStatus.STREAMING, f"Waiting for its turn: {why}"),
        (EventStatus.COMPLETED, f"Waited 90.0 s for its turn: {why}"),
    ]
    assert (event.status, event.metadata["limit"], event.metadata["seconds"]) == (
        EventStatus.COMPLETED,
        "tokensPerMinute",
        90.0,
    )
    (row,) = s.record.model_calls.values()
    assert row.result is not None
    assert row.result.response_metadata["waits"] == [{"limit": "tokensPerMinute", "seconds": 90.0}]
    assert row.result.duration_ms == 0


def test_a_wait_takes_no_time_of_the_call_the_iteration_or_the_first_token() -> None:
    limits = AgentLimits(
        finding_repairs=0, iteration_seconds=20, model_call_seconds=10, first_token_seconds=5, stall_seconds=5
    )
    over = WaitChunk("tokensPerMinute", 30_000, over=True)
    s = with_steps([WAIT, 3600.0, over, 4.0, TextChunk("do"), 4.0, TextChunk("ne"), EndChunk("stop")])
    assert run(s, one(limits)).final_analysis == "done"

    late = with_steps(*[[WAIT, 3600.0, over, 6.0, *DONE]] * 2)
    outcome = run(late, one(limits))
    assert outcome.failure is not None and outcome.failure.reason == "FirstTokenTimeout"


def test_a_run_that_is_stopped_stops_waiting_at_once() -> None:
    s = with_steps([WAIT, 3600.0, *DONE])

    async def stopped() -> float:
        async def main() -> None:
            await s.run(one())

        task = asyncio.create_task(main())
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    assert in_virtual_time(stopped()) == 5
    (event,) = notices(s, "ProviderLimit")
    assert event.status is EventStatus.STREAMING, "the end of the run closes it"


def test_a_request_says_how_much_it_is_expected_to_use() -> None:
    s = with_steps([*DONE])
    run(s)
    (row,) = s.record.model_calls.values()
    models: Steps = s.models  # type: ignore[assignment]
    assert models.requests[0].tokens == row.start.estimated_tokens > 0


def test_each_new_try_is_told_with_the_words_of_the_provider() -> None:
    s = with_steps([RetryChunk(BUSY, 2.0), RetryChunk(BUSY, 4.0), *DONE])
    run(s)
    told = notices(s, "Retrying")
    assert [e.content for e in told] == [
        "provider local: slow down. It is asked again in 2.0 s.",
        "provider local: slow down. It is asked again in 4.0 s.",
    ]
    assert all(e.type is EventType.NOTICE and e.metadata["error"] == "RateLimited" for e in told)


async def test_an_empty_answer_that_is_asked_for_again_is_told_and_the_last_one_is_the_failure() -> None:
    s = scene({"triage": [Answer(" "), Answer("done")]})
    await s.run(one())
    assert [e.content for e in notices(s, "Retrying")] == ["Model scripted gave an empty answer. It is asked again."]

    never = scene({"triage": [Answer("")] * 3})
    outcome = await never.run(one(AgentLimits(finding_repairs=0, empty_answers=1)))
    assert outcome.state is State.FAILED
    assert len(notices(never, "Retrying")) == 1 and len(notices(never, "EmptyAnswer")) == 1


def test_what_a_client_wants_people_to_know_is_told_once_an_agent() -> None:
    note = NoticeChunk("NativeToolsOff", "They are off.")
    s = with_steps([note, TextChunk(" "), EndChunk("stop")], [note, *DONE])
    run(s)
    assert [e.content for e in notices(s, "NativeToolsOff")] == ["They are off."]


def test_a_provider_that_sends_a_long_tool_call_does_not_stand_still() -> None:
    limits = AgentLimits(finding_repairs=0, stall_seconds=5, first_token_seconds=5, consecutive_timeouts=1)
    busy: list[Step] = [step for _ in range(10) for step in (4.0, ActivityChunk())]
    assert run(with_steps([*busy, *DONE]), one(limits)).final_analysis == "done"

    outcome = run(with_steps([*busy, 6.0, *DONE]), one(limits))
    assert outcome.failure is not None and outcome.failure.reason == "StreamStalled"


def test_how_a_model_was_asked_is_no_work_for_a_synthesis() -> None:
    over = WaitChunk("tokensPerMinute", 30_000, over=True)
    first = [WAIT, 1.0, over, RetryChunk(BUSY, 2.0), *DONE]
    s = with_steps(first, first, [*DONE])
    run(s, plan(stage("look", agent("a"), agent("b")), limits=LIMITS))
    models: Steps = s.models  # type: ignore[assignment]
    assert notices(s, "ProviderLimit") and notices(s, "Retrying")
    asked = "".join(message.content for message in models.requests[-1].messages)
    assert "slow down" not in asked and "its turn" not in asked


@pytest.mark.parametrize(
    ("answer", "usage", "estimated"),
    [
        pytest.param(Answer(error=BUSY), Usage(), False, id="refused"),
        pytest.param(
            Answer("half", error=ModelError(ModelErrorCode.CONTENT_FILTER, "no", retryable=False, started=True)),
            None,
            True,
            id="stopped in the middle",
        ),
        pytest.param(
            Answer(error=ModelError(ModelErrorCode.EMPTY, "nothing", retryable=False)), None, True, id="empty"
        ),
        pytest.param(
            Answer(usage=Usage(input_tokens=7), error=ModelError(ModelErrorCode.EMPTY, "nothing", retryable=False)),
            Usage(input_tokens=7),
            False,
            id="empty, but counted",
        ),
    ],
)
async def test_a_refused_call_is_known_to_have_used_nothing_and_others_are_not(
    answer: Answer, usage: Usage | None, estimated: bool
) -> None:
    rated = agent().provider.model_copy(update={"rates": PlannedRates(input=1, output=1)})
    s = scene({"triage": [answer] * 2})
    await s.run(plan(stage("look", agent().model_copy(update={"provider": rated})), limits=LIMITS))
    row = list(s.record.model_calls.values())[-1]
    assert row.result is not None and row.result.failure is not None
    assert row.result.usage == usage
    assert (row.result.estimated_tokens > 0) is estimated
    assert (row.result.cost_usd is None) is (usage is None)
    if usage == Usage():
        assert row.result.cost_usd == Decimal(0) and row.result.loop.usage.complete


async def test_a_synthesis_reads_the_finding_in_words_and_not_its_block() -> None:
    block = '```finding\n{"summary": "It broke", "claims": []}\n```'
    s = scene({"a": [Answer(f"Look.\n\n{block}")], "b": [Answer("Nothing.")], "look-synth": [Answer("Both.")]})
    await s.run(plan(stage("look", agent("a"), agent("b")), limits=LIMITS))
    (request,) = s.models.requests_of("look-synth")
    told = request.messages[-1].content
    assert "Look.\n\nFinding, confidence Inconclusive: It broke" in told and "```" not in told
