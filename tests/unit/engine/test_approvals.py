"""Tool calls that need the approval of people, and long rate limits, in the engine: both let the run wait."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.record.messages import Role
from tarsy.record.run import InteractionState, State
from tarsy.record.waiting import RunWaits, WaitingLimits, WaitingRoom, WaitReason
from tarsy.runtime.in_process.record import Record as AnyRecord
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage, told
from unit.engine.people import UNTIL, ScriptedPeople
from wire.scripted_client import Answer

SCALE, LOOK = "k8s.scale", "k8s.get"
ALONE = plan(stage("fix", agent(servers=["k8s"])))


def _gated(script: dict[str, list[Answer]]) -> tuple[Scene, ScriptedPeople]:
    tools = FakeToolboxes({SCALE: says("scaled"), LOOK: says("one replica")}, repeatables=frozenset({LOOK}))
    tools.gated = frozenset({SCALE})
    made = scene(by_turn(script), toolboxes=tools)
    people = ScriptedPeople(made.record)
    made.approvals = people
    return made, people


def _scales() -> tuple[Scene, ScriptedPeople]:
    return _gated({"triage": [Answer(tool_calls=(call(SCALE),)), Answer("It is scaled.")]})


async def _waits(made: Scene, people: ScriptedPeople, of: object = ALONE) -> RunWaits:
    with pytest.raises(RunWaits) as waits:
        await made.run(of)  # type: ignore[arg-type]
    return waits.value


def _rows(record: AnyRecord) -> list[tuple[str, InteractionState, bool]]:
    return [(row.start.tool, row.state, row.start.made) for row in record.tool_calls.values()]


async def test_a_call_that_nobody_decided_about_stops_the_run_and_leaves_no_row() -> None:
    made, people = _scales()
    waits = await _waits(made, people)
    assert (waits.wait.reason, waits.wait.until > datetime.now(UTC)) == (WaitReason.APPROVAL, True)
    assert (made.toolboxes.called, made.toolboxes.open_now, _rows(made.record)) == ([], 0, [])
    (question,) = people.asked
    assert (question.name, question.server, question.tool, question.arguments) == (SCALE, "k8s", "scale", "{}")


async def test_the_next_attempt_asks_the_same_question_and_makes_the_call_that_was_approved() -> None:
    made, people = _scales()
    await _waits(made, people)
    made.resume()
    await _waits(made, people)
    people.approve(SCALE)
    made.resume()
    outcome = await made.run(ALONE)
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "It is scaled.")
    assert [name for name, *_ in made.toolboxes.called] == [SCALE]
    assert len({question.call for question in people.asked}) == 1
    assert len(made.models.requests) == 2, "waiting asks no model again"
    assert made.record.approved == {}, "the approval is consumed"


async def test_no_name_that_a_model_makes_up_decides() -> None:
    """It asks for the decision under 40 names, none of which is a tool: the call waits as before."""
    verbs = ("approve", "reject", "decide", "confirm", "authorize", "allow", "grant", "patch", "sign", "yes")
    names = [f"{server}.{verb}" for server in ("k8s", "tarsy", "kubectl", "toolapprovals") for verb in verbs]
    tries = [Answer("Approve it.", tool_calls=tuple(call(name) for name in names[at : at + 20])) for at in (0, 20)]
    made, people = _gated({"triage": [*tries, Answer(tool_calls=(call(SCALE),))]})
    await _waits(made, people)
    assert [question.name for question in people.asked] == [SCALE]
    assert SCALE not in {name for name, *_ in made.toolboxes.called} and made.record.approved == {}
    answers = [row.result for row in made.record.tool_calls.values()]
    assert len(answers) == 40 and all(one is not None and one.is_error for one in answers)


async def test_a_rejected_call_is_told_to_the_model_and_is_not_made() -> None:
    made, people = _scales()
    people.reject(SCALE)
    outcome = await made.run(ALONE)
    assert outcome.state is State.COMPLETED
    assert made.toolboxes.called == []
    assert _rows(made.record) == [("scale", InteractionState.FAILED, False)]
    (message,) = [m for m in made.models.requests[-1].messages if m.role is Role.TOOL]
    assert told(message) == f"{SCALE} was not called: ann rejected it."


async def test_an_approval_that_is_gone_when_the_call_begins_makes_no_call() -> None:
    made, people = _scales()
    people.approve(SCALE)
    ask = people.ask

    async def consumed_meanwhile(question, dry_run):  # type: ignore[no-untyped-def]
        answer = await ask(question, dry_run)
        made.record.approved.clear()
        return answer

    people.ask = consumed_meanwhile  # type: ignore[method-assign]
    outcome = await made.run(ALONE)
    assert (outcome.state, made.toolboxes.called) == (State.COMPLETED, [])
    (message,) = [m for m in made.models.requests[-1].messages if m.role is Role.TOOL]
    assert told(message).startswith("This call was not made: its approval did not hold any more")


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_a_call_is_made_at_most_once_wherever_the_process_dies(before: bool) -> None:
    for die_at in range(40):
        made, people = _scales()
        people.approve(SCALE)
        made.resume(die_at=die_at, before=before)
        if await live(made, ALONE) is not None:
            break
        sent = len(made.toolboxes.called)
        made.resume()
        outcome = await made.run(ALONE)
        assert outcome.state is State.COMPLETED
        assert len(made.toolboxes.called) <= 1 and len(made.toolboxes.called) >= sent
    else:
        raise AssertionError("it never lived")
    assert die_at > 5


async def test_a_repeatable_tool_that_needs_approval_is_not_called_again_when_its_outcome_is_unknown() -> None:
    made, people = _scales()
    made.toolboxes.idempotent = frozenset({SCALE})
    people.approve(SCALE)
    number = 0
    while True:
        made.resume(die_at=number, before=True)
        assert await live(made, ALONE) is None
        if made.toolboxes.called:
            break
        number += 1
    made.resume()
    assert (await made.run(ALONE)).state is State.COMPLETED
    assert len(made.toolboxes.called) == 1
    (message,) = [m for m in made.models.requests[-1].messages if m.role is Role.TOOL]
    assert told(message).startswith("The outcome of this call is unknown")


async def test_the_others_of_a_parallel_stage_end_before_the_run_waits_and_then_are_synthesised() -> None:
    made, people = _gated(
        {
            "fixer": [Answer(tool_calls=(call(SCALE),)), Answer("It is scaled.")],
            "reader": [Answer(tool_calls=(call(LOOK),)), Answer("There is one replica.")],
            "fix-synth": [Answer("Both are right.")],
        }
    )
    both = plan(stage("fix", agent("fixer", servers=["k8s"]), agent("reader", servers=["k8s"])))
    await _waits(made, people, both)
    reader, fixer = made.record.execution("reader").outcome, made.record.execution("fixer").outcome
    assert (reader is not None and reader.state, fixer) == (State.COMPLETED, None)
    assert [s.outcome for s in made.record.stages.values()] == [None]
    people.approve(SCALE)
    made.resume()
    outcome = await made.run(both)
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "Both are right.")
    assert [name for name, *_ in made.toolboxes.called] == [LOOK, SCALE]
    assert len(made.models.requests_of("reader")) == 2, "the one that had ended is not asked again"


async def test_the_earliest_of_several_waits_wakes_the_run() -> None:
    made, people = _gated({name: [Answer(tool_calls=(call(SCALE),)), Answer("Done.")] for name in ("one", "two")})
    soon = datetime.now(UTC) + timedelta(hours=1)
    ask, times = people.ask, iter([UNTIL, soon])

    async def one_sooner(question, dry_run):  # type: ignore[no-untyped-def]
        return replace(await ask(question, dry_run), until=next(times))

    people.ask = one_sooner  # type: ignore[method-assign]
    both = plan(stage("fix", agent("one", servers=["k8s"]), agent("two", servers=["k8s"])))
    assert (await _waits(made, people, both)).wait.until == soon


async def test_a_run_that_is_to_conclude_asks_nobody() -> None:
    made, people = _scales()
    await _waits(made, people)
    made.resume()
    made.control.conclude()
    asked = len(people.asked)
    outcome = await made.run(ALONE)
    assert (outcome.state, made.toolboxes.called, len(people.asked)) == (State.COMPLETED, [], asked)


@pytest.mark.parametrize(("waited", "parks"), [(59.0, True), (60.0, False), (61.0, False)])
async def test_the_time_that_a_run_may_wait_in_all_is_limited(waited: float, parks: bool) -> None:
    made, people = _scales()
    made.waiting = WaitingRoom(WaitingLimits(seconds=60.0))
    made.record.waited_seconds = waited
    if parks:
        until = (await _waits(made, people)).wait.until
        assert until <= datetime.now(UTC) + timedelta(seconds=1), "no longer than it may"
        return
    assert (await made.run(ALONE)).state is State.COMPLETED
    assert made.toolboxes.called == [] and len(people.withdrawn) == 1


async def test_without_a_place_to_wait_the_question_is_withdrawn_and_the_run_goes_on() -> None:
    made, people = _scales()
    made.waiting = WaitingRoom(full="as many runs wait as may.")
    assert (await made.run(ALONE)).state is State.COMPLETED
    assert (people.asked, list(people.withdrawn.values())) == ([], ["as many runs wait as may."])


async def test_where_nobody_can_be_asked_the_call_is_refused() -> None:
    made, _ = _scales()
    made.approvals = Scene(made.models).approvals
    assert (await made.run(ALONE)).state is State.COMPLETED
    assert made.toolboxes.called == []


def _limited(seconds: float, *, tries: int = 1) -> Scene:
    left = [seconds] * tries

    def answer(_: object) -> Answer:
        if left:
            wait = left.pop()
            return Answer(error=ModelError(ModelErrorCode.RATE_LIMIT, "too many", retryable=True, retry_after=wait))
        return Answer("It broke.")

    return scene(answer)


@pytest.mark.parametrize(("seconds", "parks"), [(299.0, False), (300.0, False), (301.0, True), (90_000.0, False)])
async def test_a_rate_limit_that_is_longer_than_a_worker_may_be_held_parks_the_run(seconds: float, parks: bool) -> None:
    made = _limited(seconds)
    if not parks:
        assert (await made.run(ALONE)).state is State.COMPLETED
        return
    wait = (await _waits(made, ScriptedPeople(made.record))).wait
    assert wait.reason is WaitReason.PROVIDER_LIMIT
    assert timedelta(seconds=290) < wait.until - datetime.now(UTC) <= timedelta(seconds=301)
    made.resume()
    outcome = await made.run(ALONE)
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "It broke.")
    first, second = made.models.requests
    assert first.messages == second.messages, "the model is not told of the wait"


async def test_waits_for_a_provider_are_no_answers_lost_in_a_row() -> None:
    made = _limited(600.0, tries=4)
    for _ in range(4):
        await _waits(made, ScriptedPeople(made.record))
        made.resume()
    assert (await made.run(ALONE)).state is State.COMPLETED
