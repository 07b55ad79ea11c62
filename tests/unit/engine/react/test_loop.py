"""A ReAct agent from its first message to its conclusion, and death at every step of it (seeds 002 and 003)."""

import pytest

from tarsy.llm import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, Plan, Strategy
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, ModelCallKind, RunOutcome, State
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import Answer, FakeToolboxes, Scene, agent, by_turn, live, plan, says, scene, stage
from unit.engine.clock import in_virtual_time

GET = 'Thought: look at it\nAction: k.get\nAction Input: {"name": "web"}'
DONE = "Thought: I know\nFinal Answer: the node is full"


def one(*answers: str, iterations: int = 6, limits: AgentLimits | None = None) -> tuple[dict[str, list[Answer]], Plan]:
    """The script of one ReAct agent and its plan."""
    of = plan(stage("look", agent(strategy=Strategy.REACT, iterations=iterations)), limits=limits)
    return {"triage": [Answer(text) for text in answers]}, of


def tools() -> FakeToolboxes:
    return FakeToolboxes({"k.get": says("node: full"), "k.logs": says("No space left")})


async def run(*answers: str, iterations: int = 6) -> tuple[Scene, RunOutcome]:
    script, of = one(*answers, iterations=iterations)
    s = scene(by_turn(script), toolboxes=tools())
    return s, await s.run(of)


def said(s: Scene) -> list[tuple[Role, str]]:
    return s.record.texts("triage")[2:]


def call_ids(s: Scene) -> list[str]:
    return [row.start.call.id for row in s.record.tool_calls.values()]


async def test_a_call_is_answered_by_an_observation_and_the_final_answer_ends_it() -> None:
    s, outcome = await run(GET, DONE)

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "the node is full")
    assert [(name, arguments) for name, arguments, _ in s.toolboxes.called] == [("k.get", '{"name": "web"}')]
    (identity,) = call_ids(s)
    fenced = "<!-- TOOL_RESULT_START -->\nnode: full\n<!-- TOOL_RESULT_END -->"
    observation = f"Observation: [callId: {identity}] k.get\n{fenced}"
    assert said(s) == [(Role.ASSISTANT, GET), (Role.USER, observation), (Role.ASSISTANT, DONE)]


async def test_nothing_is_bound_and_nothing_is_a_tool_message() -> None:
    s, _ = await run(GET, DONE)

    assert all(request.tools == () for request in s.models.requests)
    assert all(row.start.tools == () for row in s.record.model_calls.values())
    messages = s.record.execution("triage").conversation
    assert {m.role for m in messages} == {Role.SYSTEM, Role.USER, Role.ASSISTANT}
    assert all(m.tool_calls == () and m.tool_call_id is None and m.tool_name is None for m in messages)


async def test_the_system_message_explains_the_form_and_lists_every_tool() -> None:
    s, _ = await run(DONE)

    system = s.models.requests[0].messages[0]
    assert system.role is Role.SYSTEM
    for words in (
        "Thought:",
        "Action:",
        "Action Input:",
        "Final Answer:",
        "Observation",
        "k.get: does k.get",
        "k.logs",
    ):
        assert words in system.content


async def test_each_answer_makes_its_events_and_no_raw_text_is_one() -> None:
    s, _ = await run(GET, "Thought: hm", "Action: k.drop\nAction Input: {}", DONE)

    events = sorted(s.record.events.values(), key=lambda e: e.seq)
    told = [(e.type, e.content.partition(".")[0], e.status) for e in events if e.execution is not None]
    assert told == [
        (EventType.LLM_THINKING, "look at it", EventStatus.COMPLETED),
        (EventType.LLM_TOOL_CALL, "node: full", EventStatus.COMPLETED),
        (EventType.LLM_THINKING, "hm", EventStatus.COMPLETED),
        (EventType.ERROR, 'FORMAT ERROR: Your answer has only a "Thought:"', EventStatus.COMPLETED),
        (EventType.ERROR, "Unknown tool 'k", EventStatus.COMPLETED),
        (EventType.LLM_THINKING, "I know", EventStatus.COMPLETED),
        (EventType.FINAL_ANALYSIS, "the node is full", EventStatus.COMPLETED),
    ]


async def test_a_malformed_answer_stays_and_hears_what_is_wrong() -> None:
    s, outcome = await run("I shall look.", DONE)

    assert outcome.final_analysis == "the node is full"
    (first, feedback, _) = said(s)
    assert first == (Role.ASSISTANT, "I shall look.")
    assert feedback[0] is Role.USER and feedback[1].startswith("FORMAT ERROR: Could not detect any ReAct sections")


async def test_an_unknown_tool_is_not_called_and_all_tools_are_told() -> None:
    s, outcome = await run("Thought: t\nAction: k.drop\nAction Input: {}", DONE)

    assert outcome.state is State.COMPLETED
    assert s.toolboxes.called == []
    role, text = said(s)[1]
    assert role is Role.USER and text.startswith("Observation: Error - Unknown tool 'k.drop'")
    assert "k.get: does k.get" in text and "k.logs: does k.logs" in text


async def test_without_any_tool_every_call_is_of_an_unknown_one() -> None:
    script, of = one(GET, DONE)
    s = scene(by_turn(script), toolboxes=FakeToolboxes())

    await s.run(of)

    assert s.toolboxes.called == []
    assert said(s)[1][1] == "Observation: Error - Unknown tool 'k.get'. No tools are currently available."


async def test_a_failed_call_is_an_observation_too() -> None:
    async def fails(_: str) -> ToolOutcome:
        return ToolOutcome("no such pod", is_error=True)

    script, of = one(GET, DONE)
    s = scene(by_turn(script), toolboxes=FakeToolboxes({"k.get": fails}))

    await s.run(of)

    assert "k.get\nError executing k.get:\n<!-- TOOL_RESULT_START -->\nno such pod\n" in said(s)[1][1]


async def test_a_name_and_arguments_in_an_odd_form_reach_the_tool_in_order() -> None:
    s, _ = await run("**Action:** `functions.k__get`\n**Action Input:** name: web, previous: true", DONE)

    assert [(n, a) for n, a, _ in s.toolboxes.called] == [("k.get", '{"name": "web", "previous": true}')]


async def test_what_a_model_invents_after_its_call_is_not_believed() -> None:
    s, outcome = await run(f"{GET}\nObservation: all is well\n{DONE.replace('full', 'fine')}", DONE)

    assert outcome.final_analysis == "the node is full"
    assert len(s.toolboxes.called) == 1


@pytest.mark.parametrize(
    ("answer", "conclusion"),
    [
        (DONE, "the node is full"),
        ("It must be the node.", "It must be the node."),
        ("Thought: it must be the node", "it must be the node"),
        ("Thought: once more\nAction: k.get\nAction Input: {}", "once more"),
    ],
)
async def test_at_the_iteration_limit_a_conclusion_is_forced(answer: str, conclusion: str) -> None:
    s, outcome = await run(GET, GET, answer, iterations=2)

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, conclusion)
    assert len(s.toolboxes.called) == 2
    kinds = [row.start.kind for row in s.record.model_calls.values()]
    assert kinds == [ModelCallKind.ITERATION] * 2 + [ModelCallKind.FORCED_CONCLUSION]
    prompt = s.models.requests[-1].messages[-1]
    assert prompt.role is Role.USER and "all 2 iterations" in prompt.content and "Final Answer:" in prompt.content
    (event,) = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert (event.content, event.metadata) == (conclusion, {"forced_conclusion": True})


async def test_malformed_answers_use_up_the_iterations() -> None:
    s, outcome = await run("hm", "hm", DONE, iterations=2)

    assert outcome.final_analysis == "the node is full"
    assert len(s.models.requests) == 3


async def test_somebody_may_ask_to_conclude() -> None:
    def brain(request: GenerateRequest) -> Answer:
        s.control.concluding = True
        return Answer(DONE if "Final Answer:" in request.messages[-1].content else GET)

    s = scene(brain, toolboxes=tools())
    outcome = await s.run(one()[1])

    assert outcome.final_analysis == "the node is full"
    assert len(s.models.requests) == 2


async def test_empty_answers_are_asked_again_and_then_accepted() -> None:
    s, outcome = await run("", " ", "", iterations=6)

    assert outcome.state is State.FAILED
    assert outcome.failure is not None and outcome.failure.reason == "EmptyAnswer"
    assert all("FORMAT ERROR" in r.messages[-1].content for r in s.models.requests[1:])


async def test_a_lost_answer_is_asked_again_and_shows_no_half_text() -> None:
    cut = ModelError(ModelErrorCode.PARTIAL_STREAM, "the stream was cut", retryable=True, started=True)
    answers = [Answer("Thought: I was ab", error=cut), Answer(DONE)]
    s = scene({"triage": answers}, toolboxes=tools())

    outcome = await s.run(one()[1])

    assert outcome.final_analysis == "the node is full"
    assert "the stream was cut" in s.models.requests[1].messages[-1].content
    assert not [e for e in s.record.events.values() if "ab" in e.content and e.type is not EventType.ERROR]


async def test_native_reasoning_stands_beside_the_thought() -> None:
    of = one()[1]
    s = scene({"triage": [Answer(DONE, thinking="let me think")]}, toolboxes=tools())

    await s.run(of)

    thoughts = [e.content for e in s.record.events.values() if e.type is EventType.LLM_THINKING]
    assert thoughts == ["let me think", "I know"]


STEPS = 40
SCRIPT = [GET, "hm", "Action: k.drop\nAction Input: {}", "", GET, "Action: k.logs\nAction Input:", DONE]


def start(*, repeatable: bool = True) -> tuple[Scene, Plan]:
    script, of = one(*SCRIPT, iterations=6)
    boxes = tools()
    boxes.repeatables = frozenset(boxes.functions) if repeatable else frozenset()
    return scene(by_turn(script), toolboxes=boxes), of


async def test_the_run_has_the_steps_the_sweep_assumes() -> None:
    s, of = start()

    assert await live(s, of) is not None
    assert 20 < len(s.recorder.calls) < STEPS


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
def test_a_death_at_any_step_changes_nothing(step: int, before: bool) -> None:
    """In virtual time: the answer to a repeated call tells the age of the first one, which a slow machine changes."""
    in_virtual_time(_die(step, before))


async def _die(step: int, before: bool) -> None:
    unharmed, of = start()
    expected = await live(unharmed, of)
    s, _ = start()
    s.resume(die_at=step, before=before)

    outcome = await live(s, of)
    if outcome is None:
        s.resume()
        outcome = await live(s, of)

    assert outcome == expected
    row, other = s.record.execution("triage"), unharmed.record.execution("triage")
    assert (row.conversation, row.loop, row.outcome) == (other.conversation, other.loop, other.outcome)
    states = {r.state for r in (*s.record.model_calls.values(), *s.record.tool_calls.values())}
    assert InteractionState.STARTED not in states
    again = [r for r in s.record.tool_calls.values() if r.state is InteractionState.INTERRUPTED]
    assert len(s.toolboxes.called) <= len(unharmed.toolboxes.called) + len(again)
    assert EventStatus.STREAMING not in {event.status for event in s.record.events.values()}


async def test_a_call_that_may_have_been_made_is_not_made_again_and_the_model_is_told() -> None:
    s, of = start(repeatable=False)
    steps = await live(s, of) and s.recorder.calls
    assert steps
    at = steps.index("tool_call_finished")
    s, _ = start(repeatable=False)
    s.resume(die_at=at, before=True)
    assert await live(s, of) is None

    s.resume()
    assert await live(s, of) is not None

    assert len(s.toolboxes.called) == 3
    assert "Error executing k.get:\n<!-- TOOL_RESULT_START -->\nThe outcome of this call is unknown" in said(s)[1][1]
    assert said(s)[1][0] is Role.USER


FINDING = '```finding\n{"summary": "It is full.", "confidence": "Low", "claims": []}\n```'


@pytest.mark.parametrize(
    ("text", "analysis"),
    [
        (FINDING, "It is full."),
        (FINDING.replace("finding", "json", 1), "It is full."),
        (FINDING.split("\n")[1], "It is full."),
        (f"The disk is full.\n\n{FINDING}", "The disk is full."),
        (f"Thought: The disk is full.\n\n{FINDING}", "The disk is full."),
        (f"**Thought:** The disk is full.\n\n{FINDING}", "The disk is full."),
    ],
)
async def test_a_bare_finding_is_an_answer(text: str, analysis: str) -> None:
    s, outcome = await run(GET, text)

    assert outcome.final_analysis == analysis and len(s.models.requests) == 2
    assert outcome.finding is not None and (outcome.finding.structured, outcome.finding.summary) == (
        True,
        "It is full.",
    )
    (event,) = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert event.content == analysis and "It is full." in str(event.metadata["finding"])


async def test_a_call_with_a_finding_behind_it_is_a_call() -> None:
    s, _ = await run(f"{GET}\n\n{FINDING}", DONE)

    assert len(s.toolboxes.called) == 1


@pytest.mark.parametrize("text", ["```json\n{}\n```", '{"name": "k.get", "arguments": {}}', "```finding\n{]\n```"])
async def test_what_is_no_finding_is_told_the_form_with_a_tool_of_the_run(text: str) -> None:
    s, _ = await run(text, GET, DONE)

    assert "FORMAT ERROR" in said(s)[1][1] and "Action: k.get\nAction Input: {}" in said(s)[1][1]


async def test_an_answer_ends_before_an_observation() -> None:
    s, _ = await run(GET, DONE)

    assert {request.stop for request in s.models.requests} == {("\nObservation:",)}
