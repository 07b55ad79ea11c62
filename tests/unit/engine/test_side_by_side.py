"""Tool calls of one answer: those that may be repeated run side by side, the others strictly in their order."""

import asyncio
from collections.abc import Sequence

import pytest

from tarsy.plan.model import AgentLimits
from tarsy.record.messages import Role, ToolCall, ToolOutcome
from tarsy.record.run import InteractionState, LeaseLost, RunOutcome, State
from tarsy.record.timeline import EventStatus
from unit.engine.build import Answer, FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage
from unit.engine.clock import in_virtual_time

OF = plan(stage("look", agent()))


class Tools:
    """Tools that take as many seconds as their name says, and note when each of them is under way."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.now = 0
        self.most = 0

    def tool(self, name: str, seconds: float) -> object:
        async def answer(arguments: str) -> ToolOutcome:
            self.log.append(f"+{name}{arguments}")
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            self.now -= 1
            self.log.append(f"-{name}{arguments}")
            return ToolOutcome(f"{name}{arguments} done")

        return answer


def calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(call(f"k.{name}", f"c{i}", str(i)) for i, name in enumerate(names))


def start(made: Sequence[ToolCall], *, slow: float = 5, fast: float = 1) -> tuple[Scene, Tools]:
    """A model that makes these calls and concludes; `slow` and `fast` may be repeated, `act` may not."""
    tools = Tools()
    s = scene(by_turn({"triage": [Answer("looking", tool_calls=tuple(made)), Answer("done")]}))
    s.toolboxes.functions = {
        "k.slow": tools.tool("slow", slow),
        "k.fast": tools.tool("fast", fast),
        "k.act": tools.tool("act", 2),
    }  # type: ignore[assignment]
    s.toolboxes.repeatables = frozenset({"k.slow", "k.fast"})
    return s, tools


def answers(s: Scene) -> list[tuple[str | None, str]]:
    """What the model was told of its calls: which, and the last line."""
    last = s.models.requests[-1].messages
    return [(m.tool_name, m.content.splitlines()[-1]) for m in last if m.role is Role.TOOL]


def timed(s: Scene, limits: AgentLimits | None = None) -> tuple[RunOutcome, float]:
    """The outcome, and the seconds it took."""

    async def main() -> tuple[RunOutcome, float]:
        outcome = await s.run(plan(stage("look", agent()), limits=limits))
        return outcome, asyncio.get_running_loop().time()

    return in_virtual_time(main())


def test_repeatable_calls_run_side_by_side_and_are_told_in_the_order_of_the_calls() -> None:
    s, tools = start(calls("slow", "fast", "slow"))

    _, seconds = timed(s)

    assert seconds == pytest.approx(5)
    assert tools.log[:4] == ["+slow0", "+fast1", "+slow2", "-fast1"]
    assert sorted(tools.log[4:]) == ["-slow0", "-slow2"]
    assert answers(s) == [("k.slow", "slow0 done"), ("k.fast", "fast1 done"), ("k.slow", "slow2 done")]
    recorded = s.record.execution("triage")
    assert recorded.conversation == (*s.models.requests[-1].messages, recorded.conversation[-1])
    assert recorded.loop.tool_calls == 3


def test_a_call_that_may_not_be_repeated_waits_for_all_before_it_and_holds_up_all_after_it() -> None:
    s, tools = start(calls("slow", "fast", "act", "fast", "slow", "act", "act"))

    timed(s)

    assert tools.log == [
        *["+slow0", "+fast1", "-fast1", "-slow0"],
        *["+act2", "-act2"],
        *["+fast3", "+slow4", "-fast3", "-slow4"],
        *["+act5", "-act5", "+act6", "-act6"],
    ]
    assert [text for _, text in answers(s)] == [
        f"{name}{i} done" for i, name in enumerate(["slow", "fast", "act", "fast", "slow", "act", "act"])
    ]


@pytest.mark.parametrize(("count", "seconds", "most"), [(7, 5, 7), (8, 5, 8), (9, 10, 8), (40, 25, 8)])
def test_at_most_eight_calls_are_under_way(count: int, seconds: float, most: int) -> None:
    s, tools = start(calls(*["slow"] * count))

    outcome, took = timed(s)

    assert outcome.state is State.COMPLETED
    assert (took, tools.most) == (pytest.approx(seconds), most)
    assert [text for _, text in answers(s)] == [f"slow{i} done" for i in range(count)]


def test_calls_side_by_side_count_once_on_the_clock_of_the_iteration() -> None:
    s, _ = start(calls(*["slow"] * 8))

    outcome, _ = timed(s, AgentLimits(iteration_seconds=6, finding_repairs=0))

    assert outcome.state is State.COMPLETED


def test_an_iteration_that_runs_out_among_its_calls_leaves_nothing_open() -> None:
    s, tools = start(calls(*["slow"] * 20))

    outcome, took = timed(s, AgentLimits(iteration_seconds=7, finding_repairs=0))

    assert outcome.state is State.COMPLETED
    assert took == pytest.approx(7)
    texts = [text for _, text in answers(s)]
    assert ["done" in text for text in texts] == [True] * 8 + [False] * 12
    assert ["did not answer within 2 s" in text for text in texts] == [False] * 8 + [True] * 8 + [False] * 4
    assert ["not called" in text for text in texts] == [False] * 16 + [True] * 4
    assert sum(line.startswith("+") for line in tools.log) == 16, "the rest was not begun"
    assert {row.state for row in s.record.tool_calls.values()} == {InteractionState.COMPLETED, InteractionState.FAILED}
    assert EventStatus.STREAMING not in {e.status for e in s.record.events.values()}


def test_each_of_them_has_its_own_limit() -> None:
    s, _ = start(calls("slow", "fast", "slow"), slow=61)

    timed(s)

    told = [text for _, text in answers(s)]
    assert told == ["k.slow did not answer within 60 s.", "fast1 done", "k.slow did not answer within 60 s."]


def test_a_death_with_the_second_call_answered_and_the_first_not_repeats_only_the_first() -> None:
    s, tools = start(calls("slow", "fast", "slow"))

    async def main() -> RunOutcome | None:
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(live(s, OF))
        await asyncio.sleep(3)  # fast is answered, both slow ones are under way
        s.recorder.dead = True
        first.cancel()
        await asyncio.wait([first])
        row = s.record.execution("triage")
        assert row.conversation[-1].role is Role.ASSISTANT
        assert [m.tool_name for m in row.ahead.values()] == ["k.fast"]
        s.resume()
        begun = loop.time()
        outcome = await live(s, OF)
        assert loop.time() - begun == pytest.approx(5), "the two that are left run side by side"
        return outcome

    outcome = in_virtual_time(main())

    assert outcome is not None and outcome.final_analysis == "done"
    assert [line for line in tools.log if line.startswith("+")] == ["+slow0", "+fast1", "+slow2", "+slow0", "+slow2"]
    assert answers(s) == [("k.slow", "slow0 done"), ("k.fast", "fast1 done"), ("k.slow", "slow2 done")]
    assert s.record.execution("triage").loop.tool_calls == 3
    states = sorted(row.state.value for row in s.record.tool_calls.values())
    assert states == ["completed"] * 3 + ["interrupted"] * 2


STEPS = 24
"""More than the run has recorder calls."""


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
def test_a_death_at_any_step_of_calls_side_by_side_changes_nothing(step: int, before: bool) -> None:
    """Results come in the order 1, 0, 2, so every death between them leaves a gap."""
    made = calls("slow", "fast", "slow", "act")
    unharmed, _ = start(made)
    expected = in_virtual_time(live(unharmed, OF))
    assert len(unharmed.recorder.calls) < STEPS
    s, tools = start(made)
    s.resume(die_at=step, before=before)

    async def twice() -> RunOutcome | None:
        outcome = await live(s, OF)
        if outcome is None:
            s.resume()
            outcome = await live(s, OF)
        return outcome

    assert in_virtual_time(twice()) == expected
    row, whole = s.record.execution("triage"), unharmed.record.execution("triage")
    assert row.loop == whole.loop
    pairs = list(zip(row.conversation, whole.conversation, strict=True))
    differ = [told for told, usual in pairs if told != usual]
    assert all("outcome of this call is unknown" in told.content for told in differ) and len(differ) <= 1
    assert tools.log.count("+act3") <= 1
    interrupted = [r for r in s.record.tool_calls.values() if r.state is InteractionState.INTERRUPTED]
    assert sum(line.startswith("+") for line in tools.log) <= 4 + len(interrupted)
    assert InteractionState.STARTED not in {r.state for r in s.record.tool_calls.values()}
    assert EventStatus.STREAMING not in {e.status for e in s.record.events.values()}


async def test_a_lost_lease_stops_the_calls_beside_it() -> None:
    gate = asyncio.Event()
    s, _ = start(calls("slow", "fast"))

    async def hangs(_: str) -> ToolOutcome:
        await gate.wait()
        return ToolOutcome("never")

    async def loses(_: str) -> ToolOutcome:
        s.recorder.lost = True
        return ToolOutcome("too late")

    s.toolboxes.functions = {"k.slow": hangs, "k.fast": loses}

    with pytest.raises(BaseExceptionGroup) as group:
        await s.run(OF)

    assert group.group_contains(LeaseLost)
    assert s.toolboxes.open_now == 0


async def test_a_model_that_names_a_tool_twice_gets_two_answers() -> None:
    made = (call("k.get", "same"), call("k.get", "same"))
    s = scene(
        by_turn({"triage": [Answer(tool_calls=made), Answer("done")]}),
        toolboxes=FakeToolboxes({"k.get": says("x")}, repeatables=frozenset({"k.get"})),
    )

    await s.run(OF)

    assert len(answers(s)) == 2
    assert len(s.record.tool_calls) == 2
