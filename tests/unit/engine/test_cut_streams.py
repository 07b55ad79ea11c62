"""Answers that repeat themselves are cut, and what a model says is cleaned where it comes in."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tarsy.llm.protocol import (
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from tarsy.plan.model import AgentLimits, AgentPlan, ProviderPlan, Strategy
from tarsy.record.messages import Role, ToolCall, ToolOutcome
from tarsy.record.run import InteractionState, RunOutcome, State
from tarsy.record.text import clean
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import Answer, FakeToolboxes, Scene, agent, by_turn, call, plan, says, scene, single, stage
from unit.engine.clock import in_virtual_time
from unit.engine.memory import Crash

PHRASE = "The pod restarts because the node has no memory left. "
START = "What I know so far: " + ", ".join(f"pod {i} is down" for i in range(60)) + ".\n"
KEPT = START + PHRASE
LOOP = Answer(START + PHRASE * 500)
END = "Final Answer: no memory"
WHO = [
    pytest.param(agent(), id="langchain"),
    pytest.param(agent(strategy=Strategy.REACT), id="react"),
    pytest.param(agent(strategy=Strategy.NATIVE_THINKING), id="native-thinking"),
    pytest.param(single("triage", Strategy.SINGLE_CALL), id="single-call"),
]


def assistant(s: Scene) -> list[str]:
    return [text for role, text in s.record.texts("triage") if role is Role.ASSISTANT]


@pytest.mark.parametrize("who", WHO)
async def test_an_answer_that_repeats_itself_is_cut_and_the_model_is_told(who: AgentPlan) -> None:
    s = scene({"triage": [LOOP, Answer(END)]})

    outcome = await s.run(plan(stage("look", who)))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis in (END, "no memory")
    assert assistant(s) == [KEPT, END]
    assert "repeated itself" in s.models.requests[1].messages[-1].content
    row, _ = s.record.model_calls.values()
    assert row.state is InteractionState.COMPLETED, "an answer is there: nothing was lost, nobody falls back"
    assert row.result is not None
    assert row.result.response_metadata == {"finish_reason": "repeated_text"}
    (event,) = [e for e in s.record.events.values() if e.type is EventType.LLM_RESPONSE]
    assert (event.content, event.metadata, event.status) == (KEPT, {"cut": "repeated_text"}, EventStatus.COMPLETED)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(("limit", "asked"), [(1, 1), (2, 2), (3, 3)])
async def test_the_text_up_to_the_first_repetition_is_the_answer_of_a_model_that_does_not_stop(
    who: AgentPlan, limit: int, asked: int
) -> None:
    s = scene(lambda request: LOOP)

    outcome = await s.run(plan(stage("look", who), limits=AgentLimits(consecutive_timeouts=limit, finding_repairs=0)))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis == KEPT.strip()
    assert len(s.models.requests) == asked
    finals = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert [(e.content, e.metadata["cut"]) for e in finals] == [(KEPT, "repeated_text")]


async def test_an_answer_in_between_forgives_a_repetition() -> None:
    s = scene({"triage": [LOOP, Answer(tool_calls=(call("k.a"),)), LOOP, Answer("done")]})
    s.toolboxes.functions = {"k.a": says("x")}

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.final_analysis == "done"


async def test_a_forced_conclusion_that_repeats_itself_is_told_once_and_not_towards_tools() -> None:
    s = scene({"triage": [Answer(tool_calls=(call("k.a"),)), LOOP, LOOP]})
    s.toolboxes.functions = {"k.a": says("x")}

    outcome = await s.run(plan(stage("look", agent(iterations=1))))

    assert outcome.final_analysis == KEPT.strip()
    assert "without calling tools" in s.models.requests[-1].messages[-1].content
    assert [r.offers_tools for r in s.models.requests] == [True, False, False]


async def test_thoughts_that_repeat_themselves_leave_an_empty_answer() -> None:
    s = scene({"triage": [Answer("never said", thinking=START + PHRASE * 500), Answer("done")]})

    outcome = await s.run(plan(stage("look", agent(strategy=Strategy.NATIVE_THINKING))))

    assert outcome.final_analysis == "done"
    assert assistant(s) == ["", "done"]
    (thought,) = [e for e in s.record.events.values() if e.type is EventType.LLM_THINKING]
    assert thought.content == KEPT
    assert s.record.execution("triage").loop.empty_answers == 1


@dataclass
class Raw:
    """Streams of chunks, one a call; how far each was read, and whether it was closed."""

    streams: Sequence[Sequence[Chunk]]
    read: list[int] = field(default_factory=list)
    closed: int = 0
    requests: list[GenerateRequest] = field(default_factory=list)

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield self

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        self.read.append(0)
        try:
            for chunk in self.streams[len(self.requests) - 1]:
                self.read[-1] += 1
                yield chunk
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        pass


def raw(*streams: Sequence[Chunk]) -> tuple[Raw, Scene]:
    models, s = Raw(streams), scene({}, toolboxes=FakeToolboxes({"k.a": says("x")}))
    s.models = models  # type: ignore[assignment]
    return models, s


async def test_a_cut_stream_is_closed_at_once_and_its_tool_calls_are_not_made() -> None:
    looping = [ToolCallChunk(call("k.a")), *[TextChunk(PHRASE)] * 10_000, EndChunk("stop", {"signature": "AA"})]
    models, s = raw(looping, [TextChunk("done"), EndChunk("stop")])

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.final_analysis == "done"
    assert models.closed == 2
    assert models.read[0] * len(PHRASE) < 3_000
    assert s.toolboxes.called == []
    (first, _) = [m for m in s.record.execution("triage").conversation if m.role is Role.ASSISTANT]
    assert (first.content, first.tool_calls, first.provider_state) == (PHRASE, (), None)


STEPS = 16


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
def test_a_cut_answer_survives_a_death(step: int, before: bool, who: AgentPlan) -> None:
    of = plan(stage("look", who))

    async def live(s: Scene) -> RunOutcome | None:
        try:
            return await s.run(of)
        except (Crash, BaseExceptionGroup):
            s.resume()
            return await s.run(of)

    unharmed = scene(by_turn({"triage": [LOOP, LOOP]}))
    expected = in_virtual_time(live(unharmed))
    assert len(unharmed.recorder.calls) < STEPS
    s = scene(by_turn({"triage": [LOOP, LOOP]}))
    s.resume(die_at=step, before=before)

    assert in_virtual_time(live(s)) == expected
    assert s.record.execution("triage").conversation == unharmed.record.execution("triage").conversation
    assert s.record.execution("triage").loop == unharmed.record.execution("triage").loop


DIRTY = "a\x00b\x1b[31mc\ud83d"
CLEAN = clean(DIRTY)


async def test_what_a_model_says_is_sent_back_as_it_is_stored() -> None:
    """The store strips control characters: an attempt that resumes would else send other bytes than the first."""
    models, s = raw(
        [
            ThinkingChunk(DIRTY),
            CodeExecutionChunk(DIRTY, DIRTY, DIRTY),
            TextChunk(DIRTY),
            ToolCallChunk(ToolCall(DIRTY, f"k.a{DIRTY}", f'{{"x": "{DIRTY}"}}')),
            EndChunk("tool_calls"),
        ],
        [TextChunk("done"), EndChunk("stop")],
    )

    await s.run(plan(stage("look", agent())), alert=DIRTY)

    assistant_message = models.requests[1].messages[2]
    assert assistant_message.content == CLEAN
    assert assistant_message.tool_calls == (ToolCall(CLEAN, f"k.a{CLEAN}", f'{{"x": "{CLEAN}"}}'),)
    for message in models.requests[1].messages:
        assert message.content == clean(message.content)
    for event in s.record.events.values():
        assert event.content == clean(event.content)
        assert all(value == clean(value) for value in event.metadata.values() if isinstance(value, str))


async def test_what_a_tool_says_is_sent_as_it_is_stored() -> None:
    async def dirty(_: str) -> ToolOutcome:
        return ToolOutcome(DIRTY)

    s = scene(by_turn({"triage": [Answer(tool_calls=(call("k.a"),)), Answer("done")]}))
    s.toolboxes.functions = {"k.a": dirty}

    await s.run(plan(stage("look", agent())))

    assert s.models.requests[1].messages[-1].content.endswith(CLEAN)


async def test_a_partial_answer_is_cleaned_before_it_is_told_again() -> None:
    s = scene({"triage": [Answer(DIRTY, cut=True), Answer("done")]})

    await s.run(plan(stage("look", agent())))

    note = s.models.requests[1].messages[-1].content
    assert CLEAN in note and note == clean(note)
