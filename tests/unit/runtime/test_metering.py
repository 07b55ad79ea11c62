"""What a run counts: each step once and when it is on record, by types and never by names that people gave."""

import asyncio
from decimal import Decimal
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from tarsy.engine.ports import Recorder
from tarsy.engine.skills.agent_skills import LOAD_SKILL
from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.record.approvals.acted import ExecutedCall, ModelWord, StageActed
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.history import BudgetExceeded, BudgetLimit
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionStart,
    Failure,
    LeaseLost,
    LoopState,
    ModelCallKind,
    RunOutcome,
    StageKind,
    StageOutcome,
    StageStart,
    State,
)
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.usage import Usage
from tarsy.runtime.observed_recorder import observed
from tarsy.runtime.run_metrics import RunMeter
from unit.engine.build import agent, plan, stage

EXECUTION = UUID(int=7)
PLAN = plan(stage("one", agent(servers=("k8s",))))


def model_call(kind: ModelCallKind = ModelCallKind.ITERATION, **change: Any) -> ModelCallStart:
    fields: dict[str, Any] = {
        "id": uuid4(),
        "execution": EXECUTION,
        "number": 0,
        "kind": kind,
        "provider": "local",
        "model": "scripted",
        "strategy": "langchain",
        "first_seq": 0,
        "new_messages": (),
        "message_count": 0,
        "tools": (),
        "loop": None,
    }
    return ModelCallStart(**fields | change)


def answered(call: ModelCallStart, **change: Any) -> ModelCallResult:
    usage = Usage(input_tokens=100, output_tokens=20, thinking_tokens=5, cached_tokens=30)
    fields: dict[str, Any] = {"usage": usage, "duration_ms": 1500, "cost_usd": Decimal("0.25")}
    return ModelCallResult(call.id, call.execution, LoopState(), **fields | change)


def tool_call(**change: Any) -> ToolCallStart:
    fields: dict[str, Any] = {
        "id": uuid4(),
        "execution": EXECUTION,
        "message_seq": 1,
        "index": 0,
        "attempt": 1,
        "call": ToolCall("c", "k8s.pods", "{}"),
        "server": "k8s",
        "tool": "pods",
        "idempotency_key": "k",
    }
    return ToolCallStart(**fields | change)


def result(call: ToolCallStart, **change: Any) -> ToolCallResult:
    fields: dict[str, Any] = {"result": "ok", "is_error": False, "duration_ms": 200, "loop": LoopState()}
    return ToolCallResult(call.id, call.execution, 2, Message(Role.TOOL, "ok"), **fields | change)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def meter(metrics: Metrics) -> RunMeter:
    return RunMeter(metrics, PLAN)


def test_a_model_call_counts_by_the_type_of_its_provider(metrics: Metrics, meter: RunMeter) -> None:
    call = model_call()
    meter.model_call_began(call)
    assert metrics.value(table.MODEL_CALLS, provider_type="openai", kind="iteration", outcome="completed") == 0
    meter.model_call_ended(answered(call), ())

    assert metrics.value(table.MODEL_CALLS, provider_type="openai", kind="iteration", outcome="completed") == 1
    assert metrics.value(table.MODEL_SECONDS, provider_type="openai") == 1
    tokens = {k: metrics.value(table.MODEL_TOKENS, provider_type="openai", kind=k) for k in table.TOKENS.values or ()}
    assert tokens == {"input": 100, "output": 20, "thinking": 5, "cached": 30}
    assert metrics.value(table.MODEL_COST, provider_type="openai") == 0.25
    assert metrics.value(table.UNPRICED, provider_type="openai") == 0


def test_a_failed_call_counts_by_its_code_and_a_change_of_provider_with_it(metrics: Metrics, meter: RunMeter) -> None:
    call, failure = model_call(), Failure("RateLimited", "slow down")
    changed = Event(uuid4(), EventType.PROVIDER_FALLBACK, EventStatus.COMPLETED)
    meter.model_call_began(call)
    meter.model_call_ended(answered(call, failure=failure, usage=None, cost_usd=None), [changed])

    assert metrics.value(table.MODEL_CALLS, provider_type="openai", kind="iteration", outcome="failed") == 1
    assert metrics.value(table.MODEL_ERRORS, provider_type="openai", code="RateLimited") == 1
    assert metrics.value(table.FALLBACKS, code="RateLimited") == 1
    assert metrics.value(table.UNPRICED, provider_type="openai") == 1


def test_a_call_of_a_provider_that_is_not_in_the_plan_is_counted_without_its_name(
    metrics: Metrics, meter: RunMeter
) -> None:
    call = model_call(provider="secret-provider")
    meter.model_call_began(call)
    meter.model_call_ended(answered(call), ())
    assert metrics.value(table.MODEL_CALLS, provider_type="other", kind="iteration", outcome="completed") == 1
    assert b"secret-provider" not in asyncio.run(metrics.text())


@pytest.mark.parametrize(
    ("change", "outcome"),
    [({}, "completed"), ({"is_error": True}, "failed"), ({"is_error": True, "interrupted": True}, "interrupted")],
)
def test_a_tool_call_counts_by_how_its_server_is_reached(
    metrics: Metrics, meter: RunMeter, change: dict[str, Any], outcome: str
) -> None:
    call = tool_call()
    meter.tool_call_began(call)
    meter.tool_call_ended(result(call, **change))
    assert metrics.value(table.TOOL_CALLS, transport="http", outcome=outcome) == 1
    assert metrics.value(table.TOOL_SECONDS, transport="http") == 1
    if outcome != "completed":
        assert metrics.value(table.TOOL_ERRORS, transport="http", outcome=outcome) == 1


def test_calls_that_no_server_hears_of_are_no_calls_of_a_server(metrics: Metrics, meter: RunMeter) -> None:
    for call in (tool_call(made=False, refused="ReadOnlyPolicy"), tool_call(made=False, repeated_of=uuid4())):
        meter.tool_call_began(call)
        meter.tool_call_ended(result(call))
    assert metrics.value(table.REFUSED_TOOL_CALLS) == 1
    assert metrics.value(table.GUARD_ANSWERS) == 1
    assert (
        sum(metrics.value(table.TOOL_CALLS, transport="http", outcome=o) for o in table.TOOL_OUTCOME.values or ()) == 0
    )


def repeats(meter: RunMeter, number: int) -> None:
    for _ in range(number):
        meter.tool_call_began(tool_call(made=False, repeated_of=uuid4()))


def test_an_agent_that_concludes_after_so_many_repeats_in_a_row_was_stopped_by_the_guard(
    metrics: Metrics, meter: RunMeter
) -> None:
    repeats(meter, PLAN.limits.repeats_in_a_row)
    meter.model_call_began(model_call(ModelCallKind.FORCED_CONCLUSION))
    meter.model_call_began(model_call(ModelCallKind.FORCED_CONCLUSION))
    assert metrics.value(table.GUARD_STOPS) == 1


def test_an_agent_that_concludes_for_another_reason_was_not(metrics: Metrics, meter: RunMeter) -> None:
    repeats(meter, PLAN.limits.repeats_in_a_row - 1)
    meter.model_call_began(model_call(ModelCallKind.FORCED_CONCLUSION))
    repeats(meter, 1)
    meter.tool_call_began(tool_call())
    meter.model_call_began(model_call(ModelCallKind.FORCED_CONCLUSION))
    assert metrics.value(table.GUARD_STOPS) == 0


def test_a_budget_that_several_agents_find_used_up_stops_one_run(metrics: Metrics, meter: RunMeter) -> None:
    for limit in (BudgetLimit.COST, BudgetLimit.TOKENS):
        meter.budget_exceeded(BudgetExceeded(limit, "used up"))
    assert metrics.value(table.BUDGET_STOPS, limit="Cost") == 1
    assert metrics.value(table.BUDGET_STOPS, limit="Tokens") == 0


def test_stages_and_agents_count_when_they_end(metrics: Metrics, meter: RunMeter) -> None:
    stage_id = uuid4()
    meter.stage_began(StageStart(stage_id, 0, "one", StageKind.INVESTIGATION, 1))
    meter.execution_began(ExecutionStart(EXECUTION, stage_id, 0, "a", "a", "react", "local", "scripted"))
    meter.execution_ended(ExecutionOutcome(EXECUTION, State.COMPLETED))
    meter.stage_ended(StageOutcome(stage_id, State.COMPLETED))
    assert metrics.value(table.EXECUTIONS, strategy="react", state="completed") == 1
    assert metrics.value(table.STAGES, kind="investigation", state="completed") == 1


def test_sub_agents_count_by_their_end_and_dispatches_that_are_refused(metrics: Metrics, meter: RunMeter) -> None:
    child = ExecutionStart(uuid4(), uuid4(), 101, "a", "a-1", "react", "local", "scripted", parent=EXECUTION)
    meter.execution_began(child)
    meter.execution_ended(ExecutionOutcome(child.id, State.FAILED))
    call = ToolCall("d", "dispatch_agent", "{}")
    for refused in (None, "DispatchLimit"):
        meter.tool_call_began(
            ToolCallStart(uuid4(), EXECUTION, 2, 0, 0, call, "", "dispatch_agent", "key", made=False, refused=refused)
        )
    assert metrics.value(table.DISPATCHES, result="failed") == 1
    assert metrics.value(table.DISPATCHES, result="refused") == 1
    assert metrics.value(table.REFUSED_TOOL_CALLS) == 0


def test_action_stages_count_by_record_and_word_and_replays_of_them_do_not(metrics: Metrics, meter: RunMeter) -> None:
    sent = (ExecutedCall("call_1", "disk.write", "completed"),)
    ends = (
        StageActed(ModelWord.YES, sent),
        StageActed(ModelWord.NO, sent),
        StageActed(ModelWord.YES),
        StageActed(ModelWord.YES, replay=True),
    )
    for acted in ends:
        meter.stage_ended(StageOutcome(uuid4(), State.COMPLETED, acted=acted))
    counted = {
        (acted, word): metrics.value(table.ACTIONS, acted=acted, model_says=word)
        for acted in ("yes", "no")
        for word in ("Yes", "No")
    }
    assert counted == {("yes", "Yes"): 1, ("yes", "No"): 1, ("no", "Yes"): 1, ("no", "No"): 0}


def test_loads_of_skills_count_by_their_outcome_and_are_no_tool_calls(metrics: Metrics, meter: RunMeter) -> None:
    for failed in (False, True):
        load = tool_call(call=ToolCall("l", LOAD_SKILL, "{}"), server="", tool=LOAD_SKILL, made=False)
        meter.tool_call_began(load)
        assert metrics.value(table.SKILL_LOADS, outcome="failed") == 0, "only what has ended counts"
        meter.tool_call_ended(result(load, is_error=failed))
    assert metrics.value(table.SKILL_LOADS, outcome="completed") == 1
    assert metrics.value(table.SKILL_LOADS, outcome="failed") == 1
    assert metrics.value(table.TOOL_CALLS, transport="other", outcome="completed") == 0


def test_escalations_count_by_their_notice_and_answers_that_are_handed_on_are_no_tool_calls(
    metrics: Metrics, meter: RunMeter
) -> None:
    for reason in ("Escalated", "EscalationUnused", "EscalationOverBudget", "EscalationNotEvaluated", "Other"):
        meter.events_written([Event(uuid4(), EventType.NOTICE, EventStatus.COMPLETED, metadata={"reason": reason})])
    call = tool_call()
    meter.tool_call_began(call)
    meter.tool_call_ended(result(call, replayed=ReplayedFrom(Rung.EXACT, handed_on=True)))

    outcomes = ("escalated", "unused", "over_budget", "not_evaluated")
    assert [metrics.value(table.ESCALATIONS, outcome=one) for one in outcomes] == [1, 1, 1, 1]
    assert metrics.value(table.HANDED_ON) == 1
    assert all(metrics.value(table.TOOL_CALLS, transport=one, outcome="completed") == 0 for one in ("http", "other"))


def test_the_end_of_a_run_counts_its_time_its_finding_and_what_that_rests_on(metrics: Metrics, meter: RunMeter) -> None:
    citations = (Citation(call_id="a", quote="q", supported=True), Citation(call_id="b", quote="q"))
    finding = Finding(summary="x", confidence=Confidence.HIGH, claims=(Claim(text="t", citations=citations),))
    meter.ended(RunOutcome(State.COMPLETED, finding=finding), 42.0)
    assert metrics.value(table.TERMINAL, kind="investigation", state="completed") == 1
    assert metrics.value(table.DURATION, kind="investigation") == 1
    assert metrics.value(table.FINDINGS, confidence="High") == 1
    assert metrics.value(table.CITATIONS, outcome="held") == metrics.value(table.CITATIONS, outcome="failed") == 1


def test_an_answer_counts_as_a_question_and_has_no_finding(metrics: Metrics) -> None:
    RunMeter(metrics, PLAN, question=True).ended(RunOutcome(State.FAILED), 3.0)
    assert metrics.value(table.TERMINAL, kind="question", state="failed") == 1
    assert metrics.value(table.FINDINGS, confidence="none") == 0


def test_a_step_counts_when_it_is_on_record_and_a_late_one_as_refused(metrics: Metrics, meter: RunMeter) -> None:
    class Writer:
        gone = False

        async def _write(self, *_: Any) -> None:
            if self.gone:
                raise LeaseLost("another attempt owns the run")

        tool_call_started = tool_call_finished = degrade_evidence = write_events = _write

    async def run() -> None:
        call, late = tool_call(), tool_call()
        await recorder.tool_call_started(call)
        await recorder.tool_call_finished(result(call))
        await recorder.degrade_evidence({})
        await recorder.degrade_evidence({"k8s": "away"})
        await recorder.degrade_evidence({"k8s": "away"})
        await recorder.tool_call_started(late)
        writer.gone = True
        for step in (recorder.tool_call_finished(result(late)), recorder.write_events([])):
            with pytest.raises(LeaseLost):
                await step

    writer = Writer()
    recorder = observed(cast(Recorder, writer), [meter])
    asyncio.run(run())

    assert metrics.value(table.TOOL_CALLS, transport="http", outcome="completed") == 1
    assert metrics.value(table.DEGRADED) == 1
    assert metrics.value(table.FENCED) == 2
