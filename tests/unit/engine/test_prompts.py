"""Every prompt as a model gets it, whole: one golden file a variant, beside this file."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest

from goldens import check
from tarsy.engine.conversation.truncation import tokens
from tarsy.engine.findings.conclusion import CALL_ID, read_finding
from tarsy.engine.prompts import builder
from tarsy.engine.prompts.builder import PromptTools
from tarsy.engine.prompts.calendar import calendar
from tarsy.engine.prompts.context import StageConclusion, chain_context, investigation_context, synthesis_context
from tarsy.engine.prompts.react import react_conclusion_message, react_section
from tarsy.engine.prompts.results import observation_text, tool_text
from tarsy.engine.prompts.template import template
from tarsy.engine.strategies.function_calls import FunctionCalls
from tarsy.engine.strategies.react_format import ReactCalls
from tarsy.engine.task import ChatQuestion, Task
from tarsy.plan.model import AgentPlan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.finding import Confidence
from tarsy.record.ids import event_id
from tarsy.record.messages import Message, ToolDefinition, ToolOutcome
from tarsy.record.run import Failure, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.work import AgentWork, Exchange, PastWork, StageWork
from unit.engine.build import agent

GOLDENS = Path(__file__).with_name("goldens")
NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
ALERT = "namespace: shop\npod: checkout-7d\nreason: CrashLoopBackOff"
TASK = Task(
    alert_type="KubePodCrashLooping",
    alert_data=ALERT,
    runbook="# Crash loops\n\nRead the log of the previous container first.",
    previous=(StageConclusion("triage", "The container ends with exit code 1."),),
    stage_name="root-cause",
)
ONE, TWO, THREE = (UUID(int=n) for n in (1, 2, 3))
WORK = (
    AgentWork(ONE, "log-analyst", "langchain", "scripted", State.COMPLETED),
    AgentWork(TWO, "change-analyst", "react", "scripted", State.TIMED_OUT, Failure("ModelTimeout", "it was too slow")),
)
LOGS = ToolDefinition(
    "kubernetes.get_logs",
    "The log of a container",
    {"type": "object", "properties": {"pod": {"type": "string", "description": "Its pod"}}, "required": ["pod"]},
)


def event(number: int, kind: EventType, content: str, execution: UUID = ONE, **parts: object) -> TimelineEvent:
    fields: dict[str, object] = {"id": UUID(int=100 + number), "seq": number, "execution": execution}
    return TimelineEvent(type=kind, **({"status": EventStatus.COMPLETED, "content": content} | fields | parts))  # type: ignore[arg-type]


def called(number: int, content: str, *, call: UUID = THREE, **metadata: object) -> TimelineEvent:
    said = {"name": "kubernetes.get_logs", "arguments": '{"pod": "checkout-7d"}', "call_id": "call_0123456789ab"}
    return event(number, EventType.LLM_TOOL_CALL, content, tool_call=call, metadata=said | metadata)


TIMELINES = {
    ONE: (
        event(1, EventType.LLM_THINKING, "The log will say why."),
        event(2, EventType.LLM_RESPONSE, "I read the log."),
        called(3, "PAYMENT_API_URL is not set"),
        called(4, "pod not found", call=UUID(int=4), is_error=True),
        event(5, EventType.FINAL_ANALYSIS, "A variable is missing."),
    ),
    TWO: (event(6, EventType.LLM_THINKING, "What was changed?", TWO),),
}


def whole(messages: Sequence[Message]) -> str:
    return "\n\n".join(f"===== {m.role.value} =====\n{m.content}" for m in messages)


def analyst(**changes: object) -> AgentPlan:
    plan = agent("log-analyst", servers=("kubernetes", "metrics"))
    first, *others = plan.servers
    servers = (first.model_copy(update={"instructions": "Ask for one namespace at a time."}), *others)
    return plan.model_copy(update={"instructions": "You read logs.", "servers": servers} | changes)


def instructions(plan: AgentPlan) -> dict[str, str]:
    return builder.server_instructions(plan, {"kubernetes": "I know one cluster."})


PAST = PastWork(
    (StageWork("root-cause", WORK),),
    TIMELINES,
    (
        Exchange("Which pod?", "checkout-7d [callId: call_0123456789ab].", "ada@example.org"),
        Exchange("And since when?", "", "ada@example.org", State.TIMED_OUT, WORK[:1]),
    ),
)
QUESTION = ChatQuestion(
    author="erin@example.org",
    text="Was it the last release?",
    history=investigation_context(PAST, limit=100_000),
)

VARIANTS = {
    "investigation": lambda: builder.investigation_messages(
        analyst(),
        TASK,
        NOW,
        PromptTools({"metrics": "it did not start"}, instructions(analyst()), FunctionCalls((LOGS,)).sections),
    ),
    "react": lambda: builder.investigation_messages(
        analyst(), TASK, NOW, PromptTools({}, instructions(analyst()), [react_section((LOGS,))])
    ),
    "synthesis": lambda: builder.synthesis_messages(
        analyst(name="combiner", servers=()),
        TASK.to_synthesise(ONE, WORK),
        NOW,
        synthesis_context(WORK, TIMELINES, limit=100_000),
    ),
    "single_call": lambda: builder.investigation_messages(analyst(servers=()), TASK, NOW, PromptTools(present=False)),
    "chat": lambda: builder.chat_messages(
        analyst(), QUESTION, NOW, PromptTools({}, instructions(analyst()), FunctionCalls((LOGS,)).sections)
    ),
    "executive_summary": lambda: builder.summary_messages(analyst(name="summary"), "A variable is missing."),
    "conclude_limit": lambda: [builder.conclusion_message(20, requested=False)],
    "conclude_requested": lambda: [builder.conclusion_message(3, requested=True)],
    "conclude_budget": lambda: [builder.conclusion_message(3, requested=False, budget="tokens: 12,000 of 12,000")],
    "conclude_repeats": lambda: [builder.conclusion_message(3, requested=False, repeats=True)],
    "conclude_react": lambda: [react_conclusion_message(20, requested=False)],
    "repair": lambda: [builder.repair_message("The final answer held no finding block.")],
    "repair_tools": lambda: [builder.repair_message("none of its citations holds.", tools=True)],
    "no_evidence": lambda: [
        builder.no_evidence_message(["kubernetes.get_logs"], FunctionCalls.how),
        builder.no_evidence_message([f"k.tool_{n}" for n in range(23)], ReactCalls((LOGS,)).how),
    ],
    "call_as_text": lambda: [
        builder.call_as_text_message(
            '"kubectl.get" is not a tool that you have', ["kubernetes.get_logs", "metrics.query"]
        )
    ],
    "no_tools": lambda: [
        *builder.investigation_messages(
            analyst(servers=()), TASK, NOW, PromptTools(sections=[react_section(())], present=False)
        ),
        *builder.chat_messages(analyst(servers=()), QUESTION, NOW, PromptTools(present=False))[:1],
    ],
    "nudge": lambda: [builder.nudge_message(tools=True), builder.nudge_message(tools=False)],
    "repetition": lambda: [builder.repetition_message(tools=True), builder.repetition_message(tools=False)],
    "retry": lambda: [builder.retry_message("the stream was cut.", "The pod"), builder.retry_message("no answer.", "")],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_prompt_reads_as_its_golden(variant: str, request: pytest.FixtureRequest) -> None:
    check(GOLDENS / f"{variant}.txt", whole(VARIANTS[variant]()), request)


FIXED_TOKENS = 2_500
"""Maximum tokens of the part of the system message that does not depend on the run."""


def most_tokens(text: str) -> int:
    """A pessimistic estimate: three bytes a token. The engine estimates four, tokenizers take more of English."""
    return -(-len(text.encode()) // 3)


FIXED: dict[str, Sequence[str]] = {
    "langchain and native-thinking": FunctionCalls((LOGS,)).sections,
    "react": [react_section((LOGS,))],
    "single-call": (),
}


def fixed_part(strategy: str) -> str:
    """The system message without instructions of servers, and with one tool."""
    plan, sections = analyst(servers=()), FIXED.get(strategy, ())
    if strategy == "synthesis":
        return builder.synthesis_messages(plan, TASK, NOW, "")[0].content
    return builder.investigation_messages(plan, TASK, NOW, PromptTools(sections=sections, present=bool(sections)))[
        0
    ].content


@pytest.mark.parametrize("strategy", [*FIXED, "synthesis"])
def test_the_fixed_part_of_a_prompt_is_short(strategy: str) -> None:
    assert most_tokens(fixed_part(strategy)) < FIXED_TOKENS


def test_the_tokens_of_the_fixed_parts_are_on_record(request: pytest.FixtureRequest) -> None:
    lines = [f"Tokens of the fixed part of a prompt, estimated; at most, of {FIXED_TOKENS:,}"]
    for strategy in (*FIXED, "synthesis"):
        text = fixed_part(strategy)
        lines.append(f"{strategy}: {tokens(text):,}; {most_tokens(text):,}")
    check(GOLDENS / "fixed_tokens.txt", "\n".join(lines), request)


def test_the_examples_are_findings_that_the_engine_reads() -> None:
    text = template("examples").substitute()
    blocks = re.findall(r"```finding\n.*?```", text, re.S)
    found = [read_finding(block)[0] for block in blocks]
    assert [finding.confidence for finding in found] == [Confidence.HIGH, Confidence.INCONCLUSIVE]
    for finding in found:
        assert finding.structured and finding.claims
        cited = [citation for claim in finding.claims for citation in claim.citations]
        assert cited and all(CALL_ID.fullmatch(one.call_id) and len(one.quote) >= 8 for one in cited)


def test_a_step_of_an_example_is_a_command_with_its_risk_and_without_a_placeholder() -> None:
    steps = re.findall(r"^\d\. (.*?)(?=\n\n)", template("examples").substitute(), re.M | re.S)
    assert len(steps) == 2
    for step in steps:
        assert step.startswith("`kubectl ") and "Risk: " in step and not re.search(r"<\w+>", step)


@pytest.mark.parametrize("tools", [(), (LOGS,)])
def test_parallel_calls_are_asked_for_where_tools_are_called_by_functions(tools: Sequence[ToolDefinition]) -> None:
    assert bool(FunctionCalls(tools).sections) is bool(tools)
    assert "in parallel" not in react_section(tools)


def test_the_results_of_tools_read_as_their_golden(request: pytest.FixtureRequest) -> None:
    good, bad = ToolOutcome("PAYMENT_API_URL is not set"), ToolOutcome("no such pod", is_error=True)
    texts = [write("call_0123456789ab", "k.logs", o) for write in (tool_text, observation_text) for o in (good, bad)]
    check(GOLDENS / "tool_results.txt", "\n\n=====\n".join(texts), request)


def test_tiers_stand_in_their_order() -> None:
    system, user = (m.content for m in VARIANTS["investigation"]())

    tiers = ["## How you work", "## Evidence", "## Tool server kubernetes", "## Tool servers that are not available"]
    assert sorted(system.index(tier) for tier in tiers) == [system.index(tier) for tier in tiers]
    parts = ["## Alert", "## Runbook", "## What earlier stages concluded", "Agent: log-analyst", "## Time"]
    parts += ["## Your instructions", "## Your task"]
    assert sorted(user.index(part) for part in parts) == [user.index(part) for part in parts]


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (datetime(2026, 11, 20, 23, 59, tzinfo=UTC), "Friday, 2026-11-20 23:59 UTC. Kind of day: WEEKDAY."),
        (datetime(2026, 11, 21, 0, 0, tzinfo=UTC), "Saturday, 2026-11-21 00:00 UTC. Kind of day: WEEKEND."),
        (datetime(2026, 11, 22, 12, 0, tzinfo=UTC), "Sunday, 2026-11-22 12:00 UTC. Kind of day: WEEKEND."),
        (datetime(2026, 12, 25, 1, 0, tzinfo=UTC), "Kind of day: GLOBAL_HOLIDAY (Christmas Day)."),
        (datetime(2028, 1, 1, 1, 0, tzinfo=UTC), "Saturday, 2028-01-01 01:00 UTC. Kind of day: GLOBAL_HOLIDAY (New"),
        (datetime(2026, 12, 26, 1, 0, tzinfo=timezone(timedelta(hours=2))), "GLOBAL_HOLIDAY (Christmas Day)"),
    ],
)
def test_the_calendar_knows_the_day_in_utc_and_a_holiday_beats_a_weekend(moment: datetime, words: str) -> None:
    assert words in calendar(moment)


def test_no_conclusion_of_an_earlier_stage_is_no_section() -> None:
    assert chain_context([StageConclusion("triage", "  ")]) == ""


# Contexts.


def test_a_summary_of_a_result_stands_in_its_place() -> None:
    raw, other = called(1, "a very long result"), called(2, "another result", call=UUID(int=9))
    summary = event(3, EventType.MCP_TOOL_SUMMARY, "in short: full", tool_call=THREE)

    text = synthesis_context(WORK[:1], {ONE: (raw, other, summary)}, limit=100_000)

    assert "a very long result" not in text
    assert text.count("in short: full") == 1 and "another result" in text
    assert "(summary of the result)" in text


@pytest.mark.parametrize("status", [EventStatus.STREAMING, EventStatus.FAILED, EventStatus.INTERRUPTED])
def test_a_summary_that_was_not_finished_replaces_nothing(status: EventStatus) -> None:
    summary = event(2, EventType.MCP_TOOL_SUMMARY, "in sho", tool_call=THREE, status=status)

    text = synthesis_context(WORK[:1], {ONE: (called(1, "the result"), summary)}, limit=100_000)

    assert "the result" in text and "in sho" not in text


def test_an_agent_that_failed_is_told_as_failed_and_one_without_work_too() -> None:
    text = synthesis_context(WORK, {}, limit=100_000)

    assert "Outcome: timed_out." in text and "it was too slow" in text
    assert "(no recorded work)" in text


def test_calls_keep_their_ids_and_what_became_of_them() -> None:
    events = (called(1, "x", is_error=True), called(2, "", call=UUID(int=8), call_id="call_2"))
    interrupted = replace(events[1], status=EventStatus.INTERRUPTED)

    text = synthesis_context(WORK[:1], {ONE: (events[0], interrupted)}, limit=100_000)

    assert "[callId: call_0123456789ab] kubernetes.get_logs (error)\n" in text
    assert "[callId: call_2] kubernetes.get_logs (interrupted, outcome unknown)\n" in text


def test_calls_that_ran_side_by_side_are_told_in_the_order_of_the_model() -> None:
    begun = [called(n, f"result {place}", place=place) for n, place in enumerate(([4, 1], [4, 0], [4, 10], [4, 2]))]
    later = (event(8, EventType.LLM_RESPONSE, "next"), called(9, "result [2, 0]", place=[2, 0]))

    text = synthesis_context(WORK[:1], {ONE: (*begun, *later)}, limit=100_000)

    places = [text.index(f"result [{seq}, {index}]") for seq, index in ((4, 0), (4, 1), (4, 2), (4, 10), (2, 0))]
    assert places == sorted(places)


def test_one_agent_and_many_stages_are_told_in_order() -> None:
    stages = (StageWork("triage", WORK[:1]), StageWork("root-cause", WORK[1:]))

    text = investigation_context(PastWork(stages, TIMELINES), limit=100_000)

    places = [
        text.index(words) for words in ("## Stage: triage", "log-analyst", "## Stage: root-cause", "change-analyst")
    ]
    assert places == sorted(places)


def questions(number: int, result: str = "looked") -> PastWork:
    """An investigation and questions about it, each answered with the help of one tool call."""
    ids = [event_id(ONE, str(n)) for n in range(number)]
    asked = tuple(
        Exchange(f"Question {n}?", f"answer {n}", "ada", agents=(replace(WORK[0], execution=identity),))
        for n, identity in enumerate(ids)
    )
    events = {
        identity: (called(n, f"{result} {n}"), event(1000 + n, EventType.FINAL_ANALYSIS, f"answer {n}"))
        for n, identity in enumerate(ids)
    }
    return PastWork((StageWork("root-cause", WORK),), {**TIMELINES, **events}, asked)


def test_earlier_questions_are_told_with_the_work_behind_their_answers() -> None:
    text = investigation_context(questions(2), limit=100_000)

    parts = [
        "## Stage: root-cause",
        "## Asked and answered before",
        "### Question 1: by ada",
        "Question 0?",
        "looked 0",
    ]
    places = [text.index(part) for part in [*parts, "answer 0", "### Question 2: by ada", "looked 1", "answer 1"]]
    assert places == sorted(places)
    assert text.count("answer 0") == 1, "the answer stands in the work"


def test_a_question_without_recorded_work_is_told_with_its_answer_or_how_it_ended() -> None:
    asked = (Exchange("One?", "Yes.", "ada"), Exchange("Two?", "", "ada", State.CANCELLED))
    text = investigation_context(PastWork((), {}, asked), limit=1_000)
    assert "Yes." in text and "(none: cancelled)" in text
    assert "## Asked" not in investigation_context(PastWork((StageWork("root-cause", WORK),), TIMELINES), limit=100_000)


@pytest.mark.parametrize(("limit", "shown"), [(400_000, "whole"), (40_000, "cut"), (16_000, "left out")])
def test_results_of_earlier_questions_fit_into_the_window_as_all_others(limit: int, shown: str) -> None:
    text = investigation_context(questions(40, "line of a log " * 500), limit=limit)

    assert len(text) <= limit
    assert all(f"answer {n}" in text and f"Question {n}?" in text for n in range(40))
    assert ("characters left out" in text) is (shown == "cut")
    assert ("tool calls and their results are left out" in text) is (shown == "left out")


@pytest.mark.parametrize("results", [1, 10, 200])
def test_work_that_does_not_fit_loses_the_middle_of_its_results_and_never_a_conclusion(results: int) -> None:
    analysis = "Because " + "x" * 20_000
    events = [called(n, f"head{n} " + "y" * 30_000 + f" tail{n}") for n in range(results)]
    events.append(event(999, EventType.FINAL_ANALYSIS, analysis))
    limit = 150_000

    text = synthesis_context(WORK[:1], {ONE: events}, limit=limit)

    assert len(text) <= limit
    assert analysis in text
    assert all(f"head{n} " in text and f" tail{n}" in text for n in range(results))
    assert ("characters left out" in text) == (results > 1)


@pytest.mark.parametrize("policies", [("ReadOnly", "All"), ("All", "All")])
def test_an_agent_that_may_change_things_is_not_told_that_it_cannot(policies: tuple[str, str]) -> None:
    plan = analyst()
    held = [s.model_copy(update={"policy": ToolPolicy(p)}) for s, p in zip(plan.servers, policies, strict=True)]
    acting = analyst(servers=tuple(held))
    for make in (
        lambda agent: builder.investigation_messages(agent, TASK, NOW, PromptTools()),
        lambda agent: builder.chat_messages(agent, QUESTION, NOW, PromptTools()),
    ):
        assert "you do not change anything" in whole(make(plan))
        told = whole(make(acting))
        assert "only where your instructions ask for it" in told and "you do not change anything" not in told
