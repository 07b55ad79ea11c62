"""What a model says is on record without secrets, and its tools are called with what it wrote."""

import json
from dataclasses import replace

import pytest

from tarsy.engine.conversation.masking import WITHHELD
from tarsy.engine.model_calls.late_events import LATE_SECONDS
from tarsy.llm.protocol import CodeExecutionChunk, GroundingChunk, GroundingKind, GroundingSource
from tarsy.masking import default_masker
from tarsy.plan.model import AgentLimits, Strategy
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import State
from tarsy.record.timeline import EventType
from unit.engine.build import Answer, FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage, told
from unit.engine.clock import in_virtual_time

SECRET = "hunter2-and-more"
LOGIN = call("k.login", "c1", json.dumps({"user": "ops", "password": SECRET}))
MASKED = '{"user": "ops", "password": "[MASKED_PASSWORD]"}'
MASK = default_masker().mask


def start(*answers: Answer, repeatable: bool = False, **parts: object) -> Scene:
    boxes = FakeToolboxes(
        {"k.login": says("welcome"), "k.get": says("a pod")},
        repeatables=frozenset({"k.login", "k.get"} if repeatable else ()),
    )
    return scene(by_turn({"triage": answers}), toolboxes=boxes, mask=MASK, **parts)


def everything(s: Scene) -> str:
    """All that is on record."""
    return repr(s.record)


def heard(s: Scene) -> list[str]:
    return [told(m) for m in s.record.execution("triage").conversation if m.role is Role.TOOL]


async def test_nothing_on_record_holds_a_secret_that_a_model_wrote_and_the_tool_gets_it() -> None:
    s = start(
        Answer(f"I log in with password: {SECRET}", thinking=f"password={SECRET}", tool_calls=(LOGIN,)),
        Answer(f"The password: {SECRET} works."),
    )

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.final_analysis == "The password: [MASKED_PASSWORD] works."
    assert [arguments for _, arguments, _ in s.toolboxes.called] == [LOGIN.arguments]
    assert SECRET not in everything(s)
    (event,) = [e for e in s.record.events.values() if e.type is EventType.LLM_TOOL_CALL]
    assert event.metadata["arguments"] == MASKED
    assert s.models.requests[1].messages[2].tool_calls[0].arguments == MASKED


async def test_the_arguments_of_a_react_call_are_masked_on_record_and_sent_as_written() -> None:
    s = start(
        Answer(f"Thought: log in\nAction: k.login\nAction Input: {LOGIN.arguments}"),
        Answer("Thought: in\nFinal Answer: fine"),
    )

    await s.run(plan(stage("look", agent(strategy=Strategy.REACT))))

    assert [json.loads(arguments) for _, arguments, _ in s.toolboxes.called] == [json.loads(LOGIN.arguments)]
    assert SECRET not in everything(s)


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.REACT])
async def test_a_resumed_attempt_does_not_call_with_a_tag_in_place_of_the_secret(strategy: Strategy) -> None:
    react = strategy is Strategy.REACT
    asks = Answer(f"Action: k.login\nAction Input: {LOGIN.arguments}") if react else Answer(tool_calls=(LOGIN,))
    s = start(asks, Answer("Final Answer: done" if react else "done"), repeatable=True)
    of = plan(stage("look", agent(strategy=strategy)))
    s.resume(die_at=5)  # history, stage, execution, (a), (b): dies before boundary (c)
    assert await live(s, of) is None
    assert not s.toolboxes.called

    s.resume()
    outcome = await s.run(of)

    assert outcome.state is State.COMPLETED
    assert not s.toolboxes.called
    (row,) = s.record.tool_calls.values()
    assert not row.start.made and row.result is not None and row.result.is_error
    assert "make the call again with the whole arguments" in row.result.result


async def test_a_call_without_a_secret_beside_one_with_it_is_made_on_resume() -> None:
    s = start(Answer(tool_calls=(LOGIN, call("k.get", "c2"))), Answer("done"))
    of = plan(stage("look", agent()))
    s.resume(die_at=5)
    assert await live(s, of) is None

    s.resume()
    await s.run(of)

    assert [name for name, _, _ in s.toolboxes.called] == ["k.get"]


async def test_a_tag_that_the_model_itself_wrote_is_sent() -> None:
    copied = call("k.get", "c1", '{"grep": "[MASKED_TOKEN]"}')
    s = start(Answer(tool_calls=(copied,)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert [arguments for _, arguments, _ in s.toolboxes.called] == [copied.arguments]


async def test_calls_that_differ_in_a_secret_only_are_both_made() -> None:
    other = call("k.login", "c2", LOGIN.arguments.replace(SECRET, "another-one"))
    s = start(Answer(tool_calls=(LOGIN,)), Answer(tool_calls=(other,)), Answer("done"), repeatable=True)

    await s.run(plan(stage("look", agent())))

    assert [arguments for _, arguments, _ in s.toolboxes.called] == [LOGIN.arguments, other.arguments]


SIGNED = {"type": "thinking", "thinking": f"password={SECRET}", "signature": "c2ln"}
CLAUDE = {"anthropic": {"model": "m", "blocks": [SIGNED, {"type": "text", "text": f"password: {SECRET}"}]}}
CLAUDE_CALLS = {"anthropic": {"model": "m", "blocks": [SIGNED, {"type": "tool_use", "id": "c1"}]}}
GEMINI = {"google": {"parts": [{"function_call": {"args": {"password": SECRET}}, "thought_signature": "c2ln"}]}}
REASONING = {"openai": {"model": "m", "server": "s", "field": "reasoning_content", "text": "I log in."}}


@pytest.mark.parametrize(
    ("answer", "state", "kept"),
    [
        (Answer("looking", thinking=f"password={SECRET}", tool_calls=(call("k.get"),)), CLAUDE_CALLS, True),
        (Answer(f"password: {SECRET}", tool_calls=(call("k.get"),)), CLAUDE, False),
        (Answer("looking", tool_calls=(LOGIN,)), CLAUDE_CALLS, True),
        (Answer("looking", tool_calls=(LOGIN,)), GEMINI, False),
        (Answer(f"password: {SECRET}", tool_calls=(LOGIN,)), REASONING, True),
        (
            Answer("looking", tool_calls=(call("k.login", "c1", f"password={SECRET}"),)),
            {"raw": f"password={SECRET}"},
            False,
        ),
    ],
    ids=["thinking", "text", "arguments elsewhere", "arguments within", "reasoning", "arguments that are no JSON"],
)
async def test_what_a_provider_wants_back_goes_where_it_repeats_a_secret_of_text_or_calls(
    answer: Answer, state: dict[str, object], kept: bool
) -> None:
    s = start(replace(answer, provider_state=state), Answer("done"))

    await s.run(plan(stage("look", agent(strategy=Strategy.NATIVE_THINKING))))

    (sent,) = [m for m in s.models.requests[1].messages if m.role is Role.ASSISTANT]
    assert sent.provider_state == (state if kept else None)
    assert SECRET not in everything(s).replace(repr(SIGNED), "")


def test_what_tools_of_the_provider_show_is_masked_from_the_first_moment() -> None:
    shown: list[str] = []
    code = CodeExecutionChunk(f"login('password={SECRET}')", f"password: {SECRET}", "python")
    page = GroundingChunk(
        GroundingKind.SEARCH, (f"password={SECRET}",), (GroundingSource("", f"https://x:{SECRET}@wiki"),)
    )
    s = start(Answer("done", native=(code, page), pause=LATE_SECONDS + 1.0))
    write = s.recorder.write_events

    async def written(events: object) -> None:
        shown.append(repr(events))
        await write(events)  # type: ignore[arg-type]

    s.recorder.write_events = written  # type: ignore[method-assign,assignment]
    in_virtual_time(s.run(plan(stage("look", agent(strategy=Strategy.NATIVE_THINKING)))))

    assert any("MASKED_PASSWORD" in text for text in shown)
    assert SECRET not in everything(s) and SECRET not in "".join(shown)


async def test_an_answer_that_was_lost_is_told_without_its_secret() -> None:
    script = {"triage": [Answer(f"password: {SECRET}", cut=True), Answer("done")]}
    s = scene(script, mask=MASK)

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.final_analysis == "done"
    assert SECRET not in everything(s)


async def test_words_that_cannot_be_searched_are_withheld_and_the_run_ends() -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    s = start(Answer(f"password: {SECRET}"))
    s.mask = broken

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.final_analysis == WITHHELD
    assert SECRET not in everything(s)


@pytest.mark.parametrize("quote", [f"password: {SECRET}", "password: [MASKED_PASSWORD]"])
async def test_a_quote_holds_although_only_the_finding_is_masked(quote: str) -> None:
    block = {"summary": "it is open", "confidence": "High", "claims": [{"text": "open", "citations": []}]}

    def brain(request: object) -> Answer:
        results = [m for m in request.messages if m.role is Role.TOOL]  # type: ignore[attr-defined]
        if not results:
            return Answer(tool_calls=(call("k.get"),))
        ref = results[0].content.split("]")[0].removeprefix("[callId: ")
        block["claims"] = [{"text": "open", "citations": [{"callId": ref, "quote": quote}]}]
        return Answer(f"done\n\n```finding\n{json.dumps(block)}\n```")

    async def unmasked(_: str) -> ToolOutcome:
        return ToolOutcome(f"config\npassword: {SECRET}\nend")

    s = scene(brain, toolboxes=FakeToolboxes({"k.get": unmasked}), mask=MASK)
    outcome = await s.run(plan(stage("look", agent()), limits=AgentLimits(finding_repairs=0)))

    assert outcome.finding is not None and outcome.finding.supported_claims == 1, outcome.finding
    assert SECRET not in repr(outcome)
