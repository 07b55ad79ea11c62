"""Death at every step of a run, before and after it is on record: the resumed run is the same run."""

import asyncio

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, RunOutcome
from tarsy.record.timeline import EventStatus
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage, told, until
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer

SCRIPT = {
    "a": [
        Answer("looking", thinking="hm", tool_calls=(call("k.get", "c1"), call("k.logs", "c2"))),
        Answer(tool_calls=(call("k.get", "c3"),)),
        Answer("a found a full node"),
    ],
    "b": [Answer(""), Answer(tool_calls=(call("k.get", "c1"),)), Answer("b found nothing")],
    "look-synth": [Answer("the node is full", usage=Usage(input_tokens=5, output_tokens=2))],
    "fixer": [Answer(tool_calls=(call("k.logs", "c1"),)), Answer("clean the node")],
    "summary": [Answer("Full node.")],
}
PLAN = plan(stage("look", agent("a"), agent("b")), stage("fix", agent("fixer")), summary=True)
STEPS = 72
"""More than the run has recorder calls: a death past its end is no death."""


def start(*, repeatable: bool) -> Scene:
    boxes = FakeToolboxes(
        {"k.get": says("node: full"), "k.logs": says("No space left")},
        unavailable={"logs": "it did not start"},
        repeatables=frozenset({"k.get", "k.logs"} if repeatable else ()),
    )
    return scene(by_turn(SCRIPT), toolboxes=boxes)


def executions(s: Scene) -> dict[str, object]:
    """What each agent said and did. The synthesis reads the timeline, which also tells of an interrupted try."""
    return {
        row.start.display_name: (
            row.outcome,
            row.loop.model_copy(update={"tokens_per_byte": None}),
            row.conversation if row.start.display_name != "look-synth" else (),
        )
        for row in s.record.executions.values()
    }


@pytest.fixture(scope="module")
def whole() -> tuple[Scene, RunOutcome | None]:
    """The run as it is when nobody dies."""
    s = start(repeatable=True)
    return s, in_virtual_time(live(s, PLAN))


async def test_the_run_has_the_steps_the_sweep_assumes() -> None:
    s = start(repeatable=True)

    assert await live(s, PLAN) is not None
    assert 40 < len(s.recorder.calls) < STEPS


@pytest.mark.parametrize("hold", [False, True], ids=["written at once", "held"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
async def test_a_death_at_any_step_changes_nothing_and_repeats_only_what_was_in_flight(
    step: int, before: bool, hold: bool, whole: tuple[Scene, RunOutcome | None]
) -> None:
    unharmed, expected = whole
    s = start(repeatable=True)
    s.resume(die_at=step, before=before, hold=hold)

    outcome = await live(s, PLAN)
    if outcome is None:
        s.resume()
        outcome = await live(s, PLAN)

    assert outcome == expected
    assert executions(s) == executions(unharmed)
    in_flight = [row for row in s.record.model_calls.values() if row.state is InteractionState.INTERRUPTED]
    assert len(in_flight) <= 2  # two agents side by side
    assert len(s.models.requests) <= len(unharmed.models.requests) + len(in_flight)
    again = [row for row in s.record.tool_calls.values() if row.state is InteractionState.INTERRUPTED]
    assert len(again) <= 2
    assert len(s.toolboxes.called) <= len(unharmed.toolboxes.called) + len(again)
    assert InteractionState.STARTED not in {row.state for row in s.record.model_calls.values()}
    assert InteractionState.STARTED not in {row.state for row in s.record.tool_calls.values()}
    assert EventStatus.STREAMING not in {event.status for event in s.record.events.values()}
    done = [e for e in s.record.events.values() if e.status is EventStatus.COMPLETED]
    assert sorted(e.content for e in done) == sorted(
        e.content for e in unharmed.record.events.values() if e.status is EventStatus.COMPLETED
    )


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(0, STEPS, 3))
async def test_two_deaths_are_as_good_as_none(step: int, before: bool, whole: tuple[Scene, RunOutcome | None]) -> None:
    s = start(repeatable=True)
    s.resume(die_at=step, before=before)

    outcome = await live(s, PLAN)
    for again in (0, 2):
        if outcome is None:
            s.resume(die_at=again, before=not before)
            outcome = await live(s, PLAN)
    if outcome is None:
        s.resume()
        outcome = await live(s, PLAN)

    assert outcome == whole[1]


@pytest.mark.parametrize("hold", [False, True], ids=["written at once", "held"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
async def test_a_tool_that_must_not_be_called_twice_never_is(
    step: int, before: bool, hold: bool, whole: tuple[Scene, RunOutcome | None]
) -> None:
    s = start(repeatable=False)
    s.resume(die_at=step, before=before, hold=hold)

    outcome = await live(s, PLAN)
    if outcome is None:
        s.resume()
        outcome = await live(s, PLAN)

    assert outcome == whole[1]  # the scripted model draws no conclusion from an unknown outcome
    keys = [key for _, _, key in s.toolboxes.called]
    assert len(keys) == len(set(keys))


async def interrupted(*, repeatable: bool) -> Scene:
    """A run that died while its only tool call was under way, resumed to its end."""
    script = {"triage": [Answer(tool_calls=(call("k.act"), call("k.look", "c2"))), Answer("done")]}
    s = scene(by_turn(script))

    async def act(_: str) -> ToolOutcome:
        if not s.recorder.dead and len(s.toolboxes.called) == 1:
            s.recorder.die()
        return ToolOutcome("acted")

    s.toolboxes.functions = {"k.act": act, "k.look": says("seen")}
    s.toolboxes.repeatables = frozenset({"k.act"} if repeatable else ())
    of = plan(stage("look", agent()))
    assert await live(s, of) is None
    s.resume()
    assert await live(s, of) is not None
    return s


async def test_the_model_is_told_that_the_outcome_of_an_interrupted_call_is_unknown() -> None:
    s = await interrupted(repeatable=False)

    answers = [told(m) for m in s.models.requests[-1].messages if m.role is Role.TOOL]
    assert "outcome of this call is unknown" in answers[0]
    assert answers[1] == "seen"
    assert [name for name, _, _ in s.toolboxes.called] == ["k.act", "k.look"]
    states = [row.state for row in s.record.tool_calls.values()]
    assert states == [InteractionState.INTERRUPTED, InteractionState.COMPLETED]


async def test_an_interrupted_call_that_may_be_repeated_is_made_again_with_its_key() -> None:
    s = await interrupted(repeatable=True)

    answers = [told(m) for m in s.models.requests[-1].messages if m.role is Role.TOOL]
    assert answers == ["acted", "seen"]
    (first, _, key), (second, _, same) = s.toolboxes.called[:2]
    assert (first, key) == (second, same)
    tries = [(row.start.attempt, row.state) for row in s.record.tool_calls.values() if row.start.tool == "act"]
    assert tries == [(0, InteractionState.INTERRUPTED), (1, InteractionState.COMPLETED)]


async def test_a_model_call_under_way_at_a_death_is_made_again_and_listed_as_interrupted() -> None:
    never = asyncio.Event()
    answers = [Answer("half of it", wait=never), Answer("whole")]
    s = scene({"triage": answers})
    of = plan(stage("look", agent()))
    first = asyncio.create_task(s.run(of))
    await until(lambda: s.models.requests)
    first.cancel()
    await asyncio.wait([first])

    s.resume()
    outcome = await live(s, of)

    assert outcome is not None and outcome.final_analysis == "whole"
    states = [(row.start.number, row.state) for row in s.record.model_calls.values()]
    assert states == [(0, InteractionState.INTERRUPTED), (1, InteractionState.COMPLETED)]
    assert [list(r.messages) for r in s.models.requests[:1]] == [list(r.messages) for r in s.models.requests[1:]]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(14))
async def test_a_lost_answer_survives_a_death_and_never_becomes_the_analysis(step: int, before: bool) -> None:
    def answer(request: GenerateRequest) -> Answer:
        if s.record.execution("triage").loop.consecutive_timeouts == 0:
            return Answer("half of", cut=True)
        return Answer("whole")

    s = scene(answer)
    of = plan(stage("look", agent()))
    s.resume(die_at=step, before=before)

    outcome = await live(s, of)
    if outcome is None:
        s.resume()
        outcome = await live(s, of)

    assert outcome is not None and outcome.final_analysis == "whole"
    roles = [role for role, _ in s.record.texts("triage")]
    assert roles == [Role.SYSTEM, Role.USER, Role.USER, Role.ASSISTANT]
    note, whole = s.record.execution("triage").conversation[2:]
    assert "half of" in note.content and whole.content == "whole"
    assert s.models.requests[-1].messages[2] == note, "whoever asks again, tells of the loss"


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(24))
async def test_a_forced_conclusion_survives_a_death(step: int, before: bool) -> None:
    def answer(request: GenerateRequest) -> Answer:
        return Answer("guess", tool_calls=(call("k.look"),))

    s = scene(answer, toolboxes=FakeToolboxes({"k.look": says("seen")}))
    of = plan(stage("look", agent(iterations=2)))
    s.resume(die_at=step, before=before)

    outcome = await live(s, of)
    if outcome is None:
        s.resume()
        outcome = await live(s, of)

    assert outcome is not None and outcome.final_analysis == "guess"
    asked = [text for role, text in s.record.texts("triage") if role is Role.USER and "iterations" in text]
    assert len(asked) == 1
    completed = [r for r in s.record.model_calls.values() if r.state is InteractionState.COMPLETED]
    assert len(completed) == 3
