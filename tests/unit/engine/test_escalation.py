"""A stage that runs once more with another provider: when it does, what it is handed on, and which finding counts."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from tarsy.llm.protocol import GenerateRequest, LLMClient, ModelError, ModelErrorCode
from tarsy.plan.model import (
    AgentPlan,
    EscalationPlan,
    Plan,
    PlannedBudget,
    PlannedRates,
    ProviderPlan,
    StagePlan,
    SuccessPolicy,
)
from tarsy.record.finding import Confidence
from tarsy.record.messages import Role, ToolCall, ToolOutcome
from tarsy.record.run import InteractionState, RunOutcome, StageKind, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from unit.engine.build import (
    FakeToolboxes,
    Scene,
    ScriptedModels,
    agent,
    by_turn,
    call,
    live,
    plan,
    ref,
    says,
    stage,
)
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer, ScriptedClient

WHEN = 'confidence in ["Low", "Inconclusive"]'
DISK, LOGS = "100% used on /data", "No space left on device"
SPENT = Usage(input_tokens=100, output_tokens=10)
BROKEN = ModelError(ModelErrorCode.INVALID_REQUEST, "no such model", retryable=False)


def answer(confidence: str, quote: str = "", of: str = "") -> Answer:
    claims = [{"text": "The disk is full.", "citations": [{"callId": of, "quote": quote}]}] if quote else []
    block = json.dumps({"summary": f"It is full ({confidence}).", "confidence": confidence, "claims": claims})
    return Answer(f"```finding\n{block}\n```", usage=SPENT)


def looks(*calls: ToolCall) -> Answer:
    return Answer("more", tool_calls=calls, usage=SPENT)


LOOK = looks(call("k.df", "c1", '{"path": "/data", "n": 1}'))
AGAIN = looks(call("k.df", "c1", '{"n": 1, "path": "/data"}'), call("k.logs", "c2"))


def dear(of: AgentPlan, rates: PlannedRates | None = None) -> AgentPlan:
    provider = ProviderPlan(ref=ref("LLMProvider", "dear"), type="openai", model="large", rates=rates)
    return of.model_copy(update={"provider": provider})


def escalating(of: StagePlan, when: str = WHEN, rates: PlannedRates | None = None) -> StagePlan:
    again = EscalationPlan(
        when=when,
        agents=tuple(dear(one, rates) for one in of.agents),
        synthesis=None if of.synthesis is None else dear(of.synthesis, rates),
    )
    return of.model_copy(update={"escalation": again})


def one_agent(when: str = WHEN, **more: object) -> Plan:
    look = escalating(stage("look", agent("triage", servers=("k",))), when)
    return plan(look, summary=True).model_copy(update=more)


class Models(ScriptedModels):
    """Agents answer by the model that is asked, and by how often it has answered in this conversation."""

    def __init__(self, scripts: Mapping[str, Mapping[str, Sequence[Answer]]]) -> None:
        super().__init__({})
        self._scripts = scripts
        self.sent: list[tuple[str, str]] = []

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        def answered(request: GenerateRequest) -> Answer:
            self.requests.append(request)
            self.sent.append((provider.model, request.agent))
            return by_turn(self._scripts[provider.model])(request)

        yield ScriptedClient(answered)


def start(
    cheap: Sequence[Answer], second: Sequence[Answer] = (), *, boxes: FakeToolboxes | None = None, **large: Answer
) -> Scene:
    tools = {"k.df": says(DISK), "k.logs": says(LOGS)}
    scripts = {
        "scripted": {"triage": cheap, "other": cheap, "summary": [Answer("Full disk.")], "look-synth": [answer("Low")]},
        "large": {"triage": second, "other": second, **{name: [one] for name, one in large.items()}},
    }
    return Scene(Models(scripts), boxes or FakeToolboxes(tools, repeatables=frozenset(tools)))


def models(s: Scene) -> Models:
    assert isinstance(s.models, Models)
    return s.models


def stages(s: Scene) -> list[tuple[int, str, StageKind]]:
    return sorted((row.start.index, row.start.name, row.start.kind) for row in s.record.stages.values())


def notices(s: Scene) -> Mapping[str, str]:
    found = (event for event in s.record.events.values() if event.type is EventType.NOTICE)
    return {event.metadata["reason"]: event.content for event in found if "scalat" in event.metadata["reason"]}


def asked(s: Scene) -> list[tuple[str, str]]:
    return [(name, arguments) for name, arguments, _ in s.toolboxes.called]


async def test_a_finding_that_asks_for_it_runs_the_stage_once_more_and_no_tool_is_asked_twice() -> None:
    s = start([LOOK, answer("Low")], [AGAIN, answer("Medium")])

    outcome = await s.run(one_agent())

    assert stages(s) == [
        (0, "look", StageKind.INVESTIGATION),
        (1, "look-escalated", StageKind.ESCALATION),
        (2, "executive-summary", StageKind.EXECUTIVE_SUMMARY),
    ]
    assert asked(s) == [("k.df", '{"path": "/data", "n": 1}'), ("k.logs", "{}")]
    assert models(s).sent[:4] == [("scripted", "triage")] * 2 + [("large", "triage")] * 2
    told = [m.content for m in models(s).requests[3].messages if m.role is Role.TOOL]
    assert [DISK in told[0], LOGS in told[1]] == [True, True]
    assert outcome.finding is not None and outcome.finding.summary == "It is full (Medium)."
    assert outcome.finding.notes[-1] == (
        "Stage look ran twice: this is the finding of its second attempt, by LLMProvider dear (model large)."
    )
    assert notices(s) == {
        "Escalated": "Stage look runs once more with LLMProvider dear (model large), because of its finding. "
        "1 result of a tool call is handed on."
    }


async def test_an_answer_that_is_handed_on_can_be_cited_in_the_second_attempt() -> None:
    def cites(request: GenerateRequest) -> Answer:
        told = [m.content for m in request.messages if m.role is Role.TOOL]
        if not told:
            return AGAIN
        return answer("Medium", "100% used", told[0].split("callId: ")[1][:17])

    s = start([LOOK, answer("Low")])
    scripts = models(s)._scripts

    @asynccontextmanager
    async def client(provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield ScriptedClient(cites if provider.model == "large" else by_turn(scripts[provider.model]))

    s.models.client = client  # type: ignore[method-assign]
    outcome = await s.run(one_agent())

    assert outcome.finding is not None
    assert (outcome.finding.supported_claims, outcome.finding.confidence) == (1, Confidence.MEDIUM)
    handed_on = [e.metadata["handed_on"] for e in s.record.events.values() if "handed_on" in e.metadata]
    assert handed_on == ["exact"]


async def test_a_call_that_is_not_on_record_or_failed_is_made() -> None:
    async def fails(_: str) -> ToolOutcome:
        return ToolOutcome("away", is_error=True)

    tools = {"k.df": fails, "k.logs": says(LOGS)}
    boxes = FakeToolboxes(tools, repeatables=frozenset(tools))
    s = start([LOOK, answer("Low")], [AGAIN, answer("Low")], boxes=boxes)

    await s.run(one_agent())

    assert [name for name, _ in asked(s)] == ["k.df", "k.df", "k.logs"]


async def test_of_two_results_of_a_call_the_later_is_handed_on() -> None:
    results = iter(["10% used", "100% used"])

    async def df(_: str) -> ToolOutcome:
        return ToolOutcome(next(results))

    s = start(
        [LOOK, LOOK, answer("Low")], [AGAIN, answer("Low")], boxes=FakeToolboxes({"k.df": df, "k.logs": says("")})
    )

    await s.run(one_agent())

    told = [m.content for m in models(s).requests[-2].messages if m.role is Role.TOOL]
    assert "100% used" in told[0]


async def test_a_finding_that_is_good_enough_stays() -> None:
    s = start([LOOK, answer("Low")])

    outcome = await s.run(one_agent('confidence == "Inconclusive"'))

    assert [name for _, name, _ in stages(s)] == ["look", "executive-summary"]
    assert outcome.finding is not None and outcome.finding.summary == "It is full (Low)."
    assert not any("ran twice" in note for note in outcome.finding.notes)
    assert notices(s) == {}


async def test_the_summary_of_a_run_has_the_same_place_whether_a_stage_ran_twice_or_not() -> None:
    once, twice = start([LOOK, answer("Low")]), start([LOOK, answer("Low")], [answer("Low")])

    await once.run(one_agent("false"))
    await twice.run(one_agent("true"))

    assert stages(once)[-1] == stages(twice)[-1] == (2, "executive-summary", StageKind.EXECUTIVE_SUMMARY)


@pytest.mark.parametrize("when", ["claims[7].supported", "1", "confidence", "unknown == 1", "claims.all("])
async def test_an_expression_without_a_value_leaves_the_first_finding_with_a_notice(when: str) -> None:
    s = start([LOOK, answer("Low")])

    outcome = await s.run(one_agent(when))

    assert outcome.state is State.COMPLETED and outcome.finding is not None
    assert outcome.finding.summary == "It is full (Low)."
    assert notices(s)["EscalationNotEvaluated"].startswith(
        "Stage look does not run once more: escalate.when has no value for its finding ("
    )
    assert [name for _, name, _ in stages(s)] == ["look", "executive-summary"]


@pytest.mark.parametrize("tokens", [220 + 219, 220 + 220, 220 + 221], ids=["below", "at", "above"])
async def test_there_is_no_second_attempt_without_room_for_what_the_first_one_used(tokens: int) -> None:
    s = start([LOOK, answer("Low")], [answer("Medium")])

    await s.run(one_agent(budget=PlannedBudget(tokens=tokens)))

    ran = "look-escalated" in [name for _, name, _ in stages(s)]
    assert ran == (tokens > 440)
    if not ran:
        assert notices(s)["EscalationOverBudget"].startswith(
            f"Stage look does not run once more. The run's budget of {tokens} tokens is reached: 220 are spent, "
        )


async def test_the_room_is_counted_at_the_rates_of_the_second_provider() -> None:
    of = escalating(stage("look", agent("triage", servers=("k",))), rates=PlannedRates(input=1_000.0, output=1_000.0))
    s = start([LOOK, answer("Low")])

    await s.run(plan(of).model_copy(update={"budget": PlannedBudget(cost_usd=0.1)}))

    assert "US$" in notices(s)["EscalationOverBudget"]


async def test_a_stage_that_failed_may_run_once_more() -> None:
    s = start([Answer(error=BROKEN)], [AGAIN, answer("Medium")])

    outcome = await s.run(one_agent('outcome != "Completed"'))

    assert outcome.state is State.COMPLETED
    assert outcome.finding is not None and outcome.finding.summary == "It is full (Medium)."


@pytest.mark.parametrize(
    ("second", "why"),
    [(Answer(error=BROKEN), "no such model"), (Answer("I do not know."), "It gave no finding.")],
    ids=["fails", "no finding"],
)
async def test_a_second_attempt_that_ends_worse_leaves_the_first_finding(second: Answer, why: str) -> None:
    s = start([LOOK, answer("Low")], [AGAIN, second, second, second])

    outcome = await s.run(one_agent())

    assert outcome.state is State.COMPLETED and outcome.finding is not None
    assert outcome.finding.summary == "It is full (Low)."
    assert why in notices(s)["EscalationUnused"]
    assert not any("ran twice" in note for note in outcome.finding.notes)


async def test_both_attempts_that_fail_are_a_failure_of_the_second() -> None:
    s = start([Answer(error=BROKEN)], [Answer(error=BROKEN)])

    outcome = await s.run(one_agent("true"))

    assert outcome.state is State.FAILED
    assert outcome.failure is not None and outcome.failure.message.startswith("Stage look-escalated failed")


async def test_a_run_that_concludes_does_not_begin_a_second_attempt() -> None:
    s = start([answer("Low")])
    s.control.conclude()

    await s.run(one_agent("true"))

    assert [name for _, name, _ in stages(s)] == ["look", "executive-summary"]


async def test_a_stage_of_several_agents_is_escalated_by_the_finding_of_their_synthesis() -> None:
    look = escalating(stage("look", agent("triage"), agent("other"), policy=SuccessPolicy.ALL))
    s = start([answer("High")], [answer("High")], **{"look-synth": answer("Medium")})

    outcome = await s.run(plan(look, stage("fix", agent("triage"))))

    assert [name for _, name, _ in stages(s)] == [
        "look",
        "look-synthesis",
        "look-escalated",
        "look-escalated-synthesis",
        "fix",
    ]
    assert models(s).sent[-1] == ("scripted", "triage")
    assert outcome.finding is not None and not any("ran twice" in note for note in outcome.finding.notes)
    assert "It is full (Medium)." in models(s).requests[-1].messages[-1].content


# Deaths.

STEPS = 55
"""More than the run has recorder calls."""


def escalates() -> Scene:
    return start([LOOK, answer("Low")], [AGAIN, answer("Medium")])


@pytest.fixture(scope="module")
def whole() -> tuple[Scene, RunOutcome | None]:
    s = escalates()
    return s, in_virtual_time(live(s, one_agent()))


def test_the_run_has_the_steps_the_sweep_assumes(whole: tuple[Scene, RunOutcome | None]) -> None:
    assert 30 < len(whole[0].recorder.calls) < STEPS


@pytest.mark.parametrize("hold", [False, True], ids=["written at once", "held"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
async def test_a_death_at_any_step_leads_to_the_same_finding_and_one_escalation(
    step: int, before: bool, hold: bool, whole: tuple[Scene, RunOutcome | None]
) -> None:
    s = escalates()
    s.resume(die_at=step, before=before, hold=hold)

    outcome = await live(s, one_agent())
    if outcome is None:
        s.resume()
        outcome = await live(s, one_agent())

    assert outcome == whole[1]
    assert stages(s) == stages(whole[0])
    assert notices(s) == notices(whole[0])
    again = [row for row in s.record.tool_calls.values() if row.state is InteractionState.INTERRUPTED]
    assert len(s.toolboxes.called) <= len(whole[0].toolboxes.called) + len(again)


async def test_what_was_decided_is_not_decided_again() -> None:
    """The stage after it has begun: even an expression that would be true now changes nothing."""
    s = start([LOOK, answer("Low")])
    s.resume(die_at=len(await _calls("false")) - 3)

    assert await live(s, one_agent("false")) is None
    s.resume()
    outcome = await live(s, one_agent("true"))

    assert outcome is not None and [name for _, name, _ in stages(s)] == ["look", "executive-summary"]


async def _calls(when: str) -> list[str]:
    s = start([LOOK, answer("Low")])
    await s.run(one_agent(when))
    return s.recorder.calls
