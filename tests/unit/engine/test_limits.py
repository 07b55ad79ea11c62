"""Loop control: each limit at, below and above its figure, and whose time counts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from tarsy.llm.protocol import LLMClient, ModelError, ModelErrorCode
from tarsy.llm.retry import Retrying
from tarsy.plan.model import AgentLimits, ProviderPlan, Strategy
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, RunOutcome, State
from tarsy.record.timeline import EventStatus
from unit.engine.build import Scene, agent, by_turn, call, plan, scene, single, stage
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer, ScriptedClient

CUT = ModelError(ModelErrorCode.PARTIAL_STREAM, "the connection broke", retryable=True, started=True)
WHO = [
    pytest.param(agent(), id="langchain"),
    pytest.param(agent(strategy=Strategy.NATIVE_THINKING), id="native-thinking"),
    pytest.param(agent(strategy=Strategy.REACT), id="react"),
    pytest.param(single("triage", Strategy.SINGLE_CALL), id="single-call"),
]


def limited(**figures: float) -> AgentLimits:
    """The limits but for these figures, without a repair of the finding."""
    return AgentLimits(**{"finding_repairs": 0, **figures})  # type: ignore[arg-type]


def slow_tool(s: Scene, seconds: float) -> None:
    async def slow(_: str) -> ToolOutcome:
        await asyncio.sleep(seconds)
        return ToolOutcome("at last")

    s.toolboxes.functions = {"k.a": slow}


def run(s: Scene, limits: AgentLimits | None = None) -> RunOutcome:
    outcome = in_virtual_time(s.run(plan(stage("look", agent()), limits=limits)))
    assert InteractionState.STARTED not in {row.state for row in s.record.model_calls.values()}
    assert InteractionState.STARTED not in {row.state for row in s.record.tool_calls.values()}
    assert EventStatus.STREAMING not in {e.status for e in s.record.events.values()}
    return outcome


def told(s: Scene) -> list[str]:
    """The last line of what the model heard of each of its calls."""
    return [m.content.splitlines()[-1] for m in s.record.execution("triage").conversation if m.role is Role.TOOL]


def calls(count: int) -> Answer:
    return Answer(tool_calls=tuple(call("k.a", f"c{i}") for i in range(count)))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (91, ["at last", "at last", "at last"]),
        (90, ["at last", "at last", "k.a did not answer within 30 s."]),
        (89, ["at last", "at last", "k.a did not answer within 29 s."]),
        (60, ["at last", "k.a did not answer within 30 s.", "not called"]),
        (59, ["at last", "k.a did not answer within 29 s.", "not called"]),
    ],
)
def test_an_iteration_shortens_its_calls_and_says_which_were_not_made(limit: float, expected: Sequence[str]) -> None:
    """At the very moment, the limit and the answer are equally right: these tools are one tick late."""
    s = scene(by_turn({"triage": [calls(3), Answer("done")]}))
    slow_tool(s, 30 if limit == 91 else 30.0001)

    outcome = run(s, limited(iteration_seconds=limit))

    assert outcome.state is State.COMPLETED, "one slow iteration does not end an agent"
    for text, wanted in zip(told(s), expected, strict=True):
        assert wanted in text
    assert s.record.execution("triage").loop.slow_iterations == (limit <= 90)


@pytest.mark.parametrize(
    ("slow", "limit", "reason"),
    [
        ([True, True], 2, "IterationTimeout"),
        ([True, False, True], 2, None),
        ([True], 1, "IterationTimeout"),
        ([True, True], 3, None),
        ([True, True, True], 3, "IterationTimeout"),
    ],
)
def test_so_many_slow_iterations_in_a_row_end_the_agent(slow: Sequence[bool], limit: int, reason: str | None) -> None:
    s = scene(by_turn({"triage": [*(calls(2 if one else 1) for one in slow), Answer("done")]}))
    slow_tool(s, 30)

    outcome = run(s, limited(iteration_seconds=40, consecutive_timeouts=limit))

    assert (outcome.failure.reason if outcome.failure else None) == reason
    assert outcome.state is (State.TIMED_OUT if reason else State.COMPLETED)


def test_an_iteration_limit_below_that_of_a_model_call_cuts_the_call() -> None:
    async def main() -> None:
        s = scene(lambda request: Answer("x", thinking="hm", wait=asyncio.Event()))
        outcome = await s.run(plan(stage("look", agent()), limits=limited(iteration_seconds=50)))
        assert outcome.state is State.TIMED_OUT
        assert outcome.failure is not None and outcome.failure.reason == "IterationTimeout"
        assert "its iteration may, 50 s (timeouts.iterationSeconds)" in outcome.failure.message
        assert {row.state for row in s.record.model_calls.values()} == {InteractionState.FAILED}
        assert asyncio.get_running_loop().time() == pytest.approx(100, abs=0.1), "asked again, then given up"

    in_virtual_time(main())


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    ("limit", "lost", "done"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True)]
)
async def test_so_many_lost_answers_in_a_row_end_the_agent(who: object, limit: int, lost: int, done: bool) -> None:
    s = scene({"triage": [*[Answer("some", error=CUT)] * lost, Answer("Final Answer: done")]})

    outcome = await s.run(plan(stage("look", who), limits=limited(consecutive_timeouts=limit)))  # type: ignore[arg-type]

    assert outcome.state is (State.COMPLETED if done else State.FAILED)
    assert len(s.models.requests) == lost + done
    notes = [m for m in s.record.execution("triage").conversation if "was lost" in m.content]
    assert len(notes) == min(lost, limit - 1)
    assert {m.role for m in notes} <= {Role.USER}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    ("limit", "empty", "done"), [(0, 0, True), (0, 1, False), (1, 1, True), (2, 2, True), (2, 3, False)]
)
async def test_so_many_empty_answers_are_nudged(who: object, limit: int, empty: int, done: bool) -> None:
    s = scene({"triage": [*[Answer(" ")] * empty, Answer("Final Answer: done")]})

    outcome = await s.run(plan(stage("look", who), limits=limited(empty_answers=limit)))  # type: ignore[arg-type]

    assert outcome.state is (State.COMPLETED if done else State.FAILED)
    if not done:
        assert outcome.failure is not None and outcome.failure.reason == "EmptyAnswer"
    assert len(s.models.requests) == empty + done


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
@pytest.mark.parametrize(("iterations", "asked", "forced"), [(2, 2, True), (3, 3, True), (4, 3, False)])
async def test_at_the_last_iteration_a_conclusion_is_forced(
    strategy: Strategy, iterations: int, asked: int, forced: bool
) -> None:
    """The model would conclude by itself at its fourth call."""
    react = strategy is Strategy.REACT
    look = Answer(
        "Thought: hm\nAction: k.a\nAction Input: {}" if react else "", tool_calls=() if react else (call("k.a"),)
    )
    s = scene(by_turn({"triage": [look, look, look, Answer("Final Answer: done")]}))
    slow_tool(s, 0)
    s.models._brain = by_turn({"triage": [*[look] * asked, Answer("Final Answer: done")]})

    outcome = await s.run(plan(stage("look", agent(strategy=strategy, iterations=iterations))))

    assert outcome.state is State.COMPLETED
    assert s.record.execution("triage").loop.concluding is forced
    assert len(s.models.requests) == asked + 1


class Retried:
    """The scripted model behind the product's retries, as the registry has it."""

    def __init__(self, *answers: Answer) -> None:
        self.script = ScriptedClient(answers)

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield Retrying(self.script, chance=lambda: 0.0)


def busy(retry_after: float) -> Answer:
    error = ModelError(ModelErrorCode.RATE_LIMIT, "too many", retryable=True, retry_after=retry_after)
    return Answer(error=error)


@pytest.mark.parametrize(
    ("waits", "limits", "reason"),
    [
        pytest.param([59, 59], limited(), None, id="each try has its time to the first chunk"),
        pytest.param([60, 60], limited(first_token_seconds=1), None, id="a wait is no silence of the model"),
        pytest.param([60, 60], limited(model_call_seconds=119), "ModelTimeout", id="but one limit bounds them all"),
        pytest.param([60, 60], limited(iteration_seconds=119), "IterationTimeout", id="and the iteration does"),
    ],
)
def test_waits_before_new_tries(waits: Sequence[float], limits: AgentLimits, reason: str | None) -> None:
    models = Retried(*[busy(seconds) for seconds in waits], Answer("done"), *[busy(60)] * 3)
    s = scene({})
    s.models = models  # type: ignore[assignment]

    outcome = run(s, limits.model_copy(update={"consecutive_timeouts": 1}))

    assert (outcome.failure.reason if outcome.failure else None) == reason
    (row,) = s.record.model_calls.values()
    assert row.result is not None
    assert row.result.response_metadata["retries"] == [
        {"error": "RateLimited", "seconds": seconds} for seconds in waits
    ]


def test_a_record_that_is_slow_to_write_takes_no_time_of_models_and_tools() -> None:
    """Postgres is not theirs to wait for: the run's own deadline bounds it."""
    s = scene(by_turn({"triage": [Answer("look", thinking="hm", tool_calls=(call("k.a"),)), Answer("done")]}))
    slow_tool(s, 59)

    for name in (
        "write_events",
        "model_call_started",
        "model_call_finished",
        "tool_call_started",
        "tool_call_finished",
    ):
        write = getattr(s.recorder, name)

        async def slowly(*args: object, write: object = write) -> object:
            await asyncio.sleep(500)
            written: object = await write(*args)  # type: ignore[operator]
            await asyncio.sleep(500)
            return written

        setattr(s.recorder, name, slowly)

    outcome = run(s)

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "done")
    assert told(s) == ["at last"]
    assert len(s.models.requests) == 2
    assert s.record.execution("triage").loop.slow_iterations == 0
