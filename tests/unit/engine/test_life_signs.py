"""Life signs: silence, the first piece of an answer, a stall and the whole call are limits of their own."""

import pytest

from tarsy.llm.protocol import (
    ActivityChunk,
    EndChunk,
    LifeChunk,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    RetryChunk,
    TextChunk,
    WaitChunk,
)
from tarsy.plan.model import AgentLimits, AgentPlan, CallTimeouts
from tarsy.record.run import RunOutcome, State
from unit.engine.build import agent, plan, stage
from unit.engine.clock import in_virtual_time
from unit.engine.test_asking import Step, with_steps

WAITS = CallTimeouts(silence=20, first_token=100, stall=30, call=400, iteration=1_000)
DONE: list[Step] = [TextChunk("done"), EndChunk("stop")]
LIFE = LifeChunk()


def of(waits: CallTimeouts | None, **limits: float) -> tuple[AgentPlan, AgentLimits]:
    who = agent()
    provider = who.provider.model_copy(update={"timeouts": waits})
    found = AgentLimits(consecutive_timeouts=1, finding_repairs=0, **limits)  # type: ignore[arg-type]
    return who.model_copy(update={"provider": provider}), found


def run(*steps: Step, waits: CallTimeouts | None = WAITS, **limits: float) -> RunOutcome:
    who, found = of(waits, **limits)
    return in_virtual_time(with_steps(steps).run(plan(stage("look", who), limits=found)))


def reason(outcome: RunOutcome) -> str | None:
    return outcome.failure.reason if outcome.failure else None


@pytest.mark.parametrize(("seconds", "expected"), [(19.9, None), (20.1, "ServerSilent")])
def test_a_server_that_sends_nothing_at_all_is_given_up_first(seconds: float, expected: str | None) -> None:
    outcome = run(seconds, *DONE)
    assert reason(outcome) == expected
    if expected:
        assert outcome.state is State.TIMED_OUT and outcome.failure is not None
        assert "sent nothing at all for 20 s" in outcome.failure.message
        assert "spec.timeouts.silenceSeconds of LLMProvider local" in outcome.failure.message


@pytest.mark.parametrize("life", [LIFE, NoticeChunk("X", "x"), WaitChunk("maxConcurrent", 1)])
def test_every_sign_of_life_lets_the_silence_begin_anew(life: Step) -> None:
    over: list[Step] = [WaitChunk("maxConcurrent", 1, over=True)] if isinstance(life, WaitChunk) else []
    assert reason(run(19.0, life, *over, 19.0, *DONE)) is None
    assert reason(run(19.0, life, *over, 21.0, *DONE)) == "ServerSilent"


@pytest.mark.parametrize(("times", "expected"), [(9, None), (10, "FirstTokenTimeout"), (11, "FirstTokenTimeout")])
def test_a_server_that_lives_has_more_time_for_its_first_token_but_not_for_ever(
    times: int, expected: str | None
) -> None:
    outcome = run(*[10.0, LIFE] * times, 0.1, *DONE)
    assert reason(outcome) == expected
    if expected:
        assert outcome.failure is not None
        assert "100 s (spec.timeouts.firstTokenSeconds of LLMProvider local, else" in outcome.failure.message


def test_a_prompt_that_is_read_for_minutes_is_no_reason_to_give_up() -> None:
    slow = WAITS.model_copy(update={"first_token": 600.0, "call": 900.0})
    assert reason(run(*[15.0, LIFE] * 20, *DONE, waits=slow)) is None


@pytest.mark.parametrize(("seconds", "expected"), [(29.9, None), (30.1, "StreamStalled")])
@pytest.mark.parametrize("said", [TextChunk("well"), ActivityChunk()])
def test_an_answer_that_has_begun_may_stand_still_so_long(said: Step, seconds: float, expected: str | None) -> None:
    outcome = run(said, seconds, *DONE)
    assert reason(outcome) == expected
    if expected:
        assert outcome.failure is not None
        assert "30 s (spec.timeouts.stallSeconds of LLMProvider local, else" in outcome.failure.message


def test_a_comment_keeps_an_answer_alive_that_has_begun() -> None:
    assert reason(run(TextChunk("well"), *[25.0, LIFE] * 5, 25.0, *DONE)) is None


@pytest.mark.parametrize(("times", "expected"), [(15, None), (16, "ModelTimeout")])
def test_signs_of_life_do_not_lengthen_the_call(times: int, expected: str | None) -> None:
    outcome = run(TextChunk("well"), *[25.0, LIFE] * times, *DONE)
    assert reason(outcome) == expected
    if expected:
        assert outcome.failure is not None
        told = "400 s (spec.timeouts.callSeconds of LLMProvider local, else timeouts.modelCallSeconds of the Chain)"
        assert told in outcome.failure.message


def test_an_iteration_ends_a_call_and_says_so() -> None:
    outcome = run(TextChunk("well"), *[25.0, LIFE] * 9, *DONE, waits=WAITS.model_copy(update={"iteration": 200.0}))
    assert reason(outcome) == "IterationTimeout"
    assert outcome.failure is not None and "200 s (timeouts.iterationSeconds)" in outcome.failure.message


def test_each_try_has_its_own_first_token() -> None:
    busy = ModelError(ModelErrorCode.SERVER, "busy", retryable=True)
    again = RetryChunk(busy, 5.0)
    assert reason(run(*[10.0, LIFE] * 8, again, 5.0, *[10.0, LIFE] * 8, *DONE)) is None
    assert reason(run(again, 24.9, *DONE)) is None, "the wait before the try is not silence"
    assert reason(run(again, 25.1, *DONE)) == "ServerSilent"


@pytest.mark.parametrize(("seconds", "expected"), [(119.9, None), (120.1, "FirstTokenTimeout")])
def test_a_plan_of_before_has_the_limits_of_its_run(seconds: float, expected: str | None) -> None:
    outcome = run(seconds, *DONE, waits=None)
    assert reason(outcome) == expected
    if expected:
        assert outcome.failure is not None and "120 s (timeouts.firstTokenSeconds)" in outcome.failure.message
    assert reason(run(TextChunk("well"), 60.1, *DONE, waits=None)) == "StreamStalled"
