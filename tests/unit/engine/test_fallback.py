"""An agent whose provider fails continues with the next one of its fallback list."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from string import Template
from types import SimpleNamespace
from typing import Any

import pytest

from tarsy.engine.prompts import template as prompt_template
from tarsy.engine.strategies import react_format
from tarsy.engine.strategies.fallback import exhausted
from tarsy.llm.protocol import Chunk, GenerateRequest, LLMClient, ModelError, ModelErrorCode, TextChunk
from tarsy.llm.retry import Retrying, RetryPolicy
from tarsy.plan.model import AgentLimits, AgentPlan, FallbackPlan, Plan, ProviderPlan, Strategy
from tarsy.record.messages import Refusal, Role
from tarsy.record.run import InteractionState, LoopState, State
from tarsy.record.timeline import EventType, TimelineEvent
from unit.engine.build import FakeToolboxes, Scene, ScriptedModels, agent, call, plan, ref, says, single, stage
from unit.engine.memory import Crash
from wire.scripted_client import Answer, ScriptedClient

Code = ModelErrorCode
DONE = "The disk is full."


class Providers(ScriptedModels):
    """Each provider has a script of its own; calls are made again as the real registry makes them."""

    def __init__(self, **scripts: Sequence[Answer]) -> None:
        super().__init__({})
        self.retries = RetryPolicy(base_seconds=0.0)
        self.of = {name: ScriptedClient(answers) for name, answers in scripts.items()}

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield Retrying(self.of[provider.ref.name], self.retries)

    def asked_of(self, name: str) -> int:
        return len(self.of[name].requests)


def provider(name: str, model: str = "scripted") -> ProviderPlan:
    return ProviderPlan(ref=ref("LLMProvider", name), type="openai", model=model)


def with_fallback(*entries: FallbackPlan, of: AgentPlan | None = None) -> AgentPlan:
    made = of or agent(servers=["k8s"])
    return made.model_copy(update={"provider": provider("first"), "fallback": entries})


def to(name: str, strategy: Strategy = Strategy.LANGCHAIN, native_tools: tuple[str, ...] = ()) -> FallbackPlan:
    return FallbackPlan(provider=provider(name, f"model-of-{name}"), strategy=strategy, native_tools=native_tools)


def fails(code: ModelErrorCode, *, text: str = "", retryable: bool = False) -> Answer:
    return Answer(text, error=ModelError(code, f"it said {code.value}", retryable=retryable, started=bool(text)))


def one(agent_plan: AgentPlan, limits: AgentLimits | None = None) -> Plan:
    return plan(stage("look", agent_plan), limits=limits)


def fallbacks(scene: Scene) -> list[TimelineEvent]:
    found = [e for e in scene.record.events.values() if e.type is EventType.PROVIDER_FALLBACK]
    return sorted(found, key=lambda event: event.seq)


# What a provider does, how often it is asked until it is given up, and under which reason.
CLASSES = [
    pytest.param(fails(Code.CREDENTIALS), 1, id="credentials-at-once"),
    pytest.param(fails(Code.CREDENTIALS_MISSING), 1, id="no-key-at-once"),
    pytest.param(fails(Code.NOT_FOUND), 1, id="no-such-model-at-once"),
    pytest.param(fails(Code.RATE_LIMIT), 1, id="quota-used-up-at-once"),
    pytest.param(fails(Code.RATE_LIMIT, retryable=True), 3, id="rate-limit-after-its-retries"),
    pytest.param(fails(Code.SERVER, retryable=True), 3, id="server-after-its-retries"),
    pytest.param(fails(Code.CONNECTION, retryable=True), 3, id="unreachable-after-its-retries"),
    pytest.param(fails(Code.EMPTY, retryable=True), 3, id="empty-after-its-retries"),
    pytest.param(fails(Code.INVALID_REQUEST), 2, id="invalid-request-after-two"),
    pytest.param(fails(Code.CONTENT_FILTER), 2, id="content-filter-after-two"),
    pytest.param(fails(Code.PARTIAL_STREAM, text="The di", retryable=True), 2, id="partial-stream-after-two"),
    pytest.param(fails(Code.SERVER, text="The di", retryable=True), 2, id="error-in-the-stream-after-two"),
]


@pytest.mark.parametrize(("failure", "asked"), CLASSES)
async def test_a_run_whose_provider_fails_ends_on_the_next_one(failure: Answer, asked: int) -> None:
    models = Providers(first=[failure] * 9, second=[Answer(DONE)])
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second"))))
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, DONE)
    assert (models.asked_of("first"), models.asked_of("second")) == (asked, 1)
    (told,) = fallbacks(scene)
    assert failure.error is not None
    assert told.metadata["reason"] == failure.error.code.value
    assert (told.metadata["from"], told.metadata["to"]) == ("first", "second")
    assert failure.error.message in told.content
    calls = list(scene.record.model_calls.values())
    assert [c.start.provider for c in calls][-1] == "second"
    assert [c.state for c in calls if c.start.provider == "first"] == [InteractionState.FAILED] * (len(calls) - 1)


@pytest.mark.parametrize(
    ("answer", "limits", "reason"),
    [
        pytest.param(
            Answer(wait=asyncio.Event()), {"first_token_seconds": 0.02}, Code.FIRST_TOKEN_TIMEOUT, id="first-token"
        ),
        pytest.param(Answer(wait=asyncio.Event()), {"model_call_seconds": 0.02}, Code.TIMEOUT, id="call"),
        pytest.param(Answer(wait=asyncio.Event()), {"iteration_seconds": 0.02}, Code.ITERATION_TIMEOUT, id="iteration"),
        pytest.param(Answer("The di", cut=True), {}, Code.PARTIAL_STREAM, id="no-end"),
    ],
)
async def test_a_provider_that_is_late_or_breaks_off_is_given_up_after_two_in_a_row(
    answer: Answer, limits: dict[str, float], reason: ModelErrorCode
) -> None:
    models = Providers(first=[answer] * 9, second=[Answer(DONE)])
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second")), AgentLimits(finding_repairs=0, **limits)))  # type: ignore[arg-type]
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, DONE)
    assert models.asked_of("first") == 2
    assert [e.metadata["reason"] for e in fallbacks(scene)] == [reason.value]


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.REACT, Strategy.SINGLE_CALL])
async def test_a_provider_that_has_nothing_to_say_however_often_it_is_asked_is_given_up(strategy: Strategy) -> None:
    said = f"Thought: known\nFinal Answer: {DONE}" if strategy is Strategy.REACT else DONE
    models = Providers(first=[Answer("")] * 9, second=[Answer(""), Answer(said)])
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second", strategy), of=agent(strategy=strategy))))
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, DONE)
    assert (models.asked_of("first"), models.asked_of("second")) == (3, 2)
    assert [e.metadata["reason"] for e in fallbacks(scene)] == [Code.EMPTY.value]


class Stalls(ScriptedClient):
    """Says half a sentence and then nothing more."""

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        yield TextChunk("The di")
        await asyncio.Event().wait()


async def test_a_stream_that_stands_still_changes_the_provider_after_two_in_a_row() -> None:
    models = Providers(second=[Answer(DONE)])
    models.of["first"] = Stalls([])
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second")), AgentLimits(finding_repairs=0, stall_seconds=0.2)))
    assert (outcome.final_analysis, models.asked_of("first")) == (DONE, 2)
    assert [e.metadata["reason"] for e in fallbacks(scene)] == [Code.STALL.value]
    assert "The di" in models.of["second"].requests[0].messages[-1].content  # it hears what was lost


async def test_one_failure_of_two_does_not_change_the_provider_and_an_answer_forgets_it() -> None:
    cut, look = Answer("The di", cut=True), Answer(tool_calls=(call("k8s.get"),))
    models = Providers(first=[cut, look, cut, Answer(DONE)], second=[])
    scene = Scene(models, FakeToolboxes({"k8s.get": says("full")}))
    outcome = await scene.run(one(with_fallback(to("second"))))
    assert (outcome.final_analysis, fallbacks(scene)) == (DONE, [])


async def test_a_single_call_changes_at_its_first_failure() -> None:
    models = Providers(first=[Answer("The", cut=True)], second=[Answer(DONE)])
    scene = Scene(models)
    outcome = await scene.run(
        one(
            with_fallback(
                to("second", Strategy.SINGLE_CALL), of=agent("alone", strategy=Strategy.SINGLE_CALL, iterations=1)
            )
        )
    )
    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, DONE)
    assert models.asked_of("first") == 1


async def test_the_executive_summary_has_its_fallback_too() -> None:
    models = Providers(first=[Answer(DONE), fails(Code.CREDENTIALS)], second=[Answer("In short: full.")])
    summary = with_fallback(to("second", Strategy.SINGLE_CALL), of=single("summary", Strategy.SINGLE_CALL))
    whole = one(with_fallback()).model_copy(update={"executive_summary": summary})
    scene = Scene(models)
    outcome = await scene.run(whole)
    assert (outcome.executive_summary, outcome.executive_summary_error) == ("In short: full.", None)


async def test_text_that_repeats_itself_changes_no_provider() -> None:
    again = Answer("The disk of node seven is full and nothing can be written to it. " * 200)
    models = Providers(first=[again] * 9, second=[])
    scene = Scene(models)
    assert (await scene.run(one(with_fallback(to("second"))))).state is State.COMPLETED
    assert fallbacks(scene) == []


async def test_the_change_stays_for_the_rest_of_the_execution_and_carries_the_conversation_over() -> None:
    look = Answer(tool_calls=(call("k8s.get"),))
    models = Providers(
        first=[look, fails(Code.CREDENTIALS)], second=[Answer(tool_calls=(call("k8s.get", "c2"),)), Answer(DONE)]
    )
    scene = Scene(models, FakeToolboxes({"k8s.get": says("full")}))
    outcome = await scene.run(one(with_fallback(to("second"))))
    assert outcome.final_analysis == DONE
    assert (models.asked_of("first"), models.asked_of("second")) == (2, 2)
    seen = models.of["second"].requests[0].messages
    assert [m.role for m in seen] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert "full" in seen[3].content


async def test_another_agent_of_the_run_begins_with_its_own_provider() -> None:
    models = Providers(first=[fails(Code.CREDENTIALS), Answer(DONE)], second=[Answer("Look at the disk.")])
    both = plan(stage("look", with_fallback(to("second"))), stage("judge", with_fallback(to("second"), of=agent("j"))))
    scene = Scene(models)
    assert (await scene.run(both)).final_analysis == DONE
    assert models.asked_of("second") == 1


async def test_an_attempt_that_resumes_is_on_the_provider_that_was_changed_to() -> None:
    models = Providers(first=[fails(Code.CREDENTIALS)], second=[Answer(DONE), Answer(DONE)])
    scene, steps = Scene(models), 0
    whole = one(with_fallback(to("second")))
    await scene.run(whole)
    steps = len(scene.recorder.calls)
    for at in range(steps):
        for before in (True, False):
            models = Providers(first=[fails(Code.CREDENTIALS)] * 2, second=[Answer(DONE)] * 2)
            scene = Scene(models)
            scene.resume(die_at=at, before=before)
            with pytest.raises((Crash, BaseExceptionGroup)):
                await scene.run(whole)
            changed = any(row.loop.fallback for row in scene.record.executions.values())
            asked = models.asked_of("first")
            scene.resume()
            assert (await scene.run(whole)).final_analysis == DONE
            assert (models.asked_of("first") > asked) is not changed
            assert len(fallbacks(scene)) == 1


async def test_all_that_were_tried_are_named_when_none_is_left() -> None:
    models = Providers(
        first=[fails(Code.CREDENTIALS)],
        second=[fails(Code.SERVER, retryable=True)] * 3,
        third=[fails(Code.NOT_FOUND)],
    )
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second"), to("third"))))
    assert outcome.state is State.FAILED
    assert outcome.failure is not None
    failure = next(iter(scene.record.executions.values())).outcome
    assert failure is not None
    assert failure.failure is not None
    assert failure.failure.reason == Code.NOT_FOUND.value
    for told in ("provider third", "first (CredentialsRejected)", "second (ModelServerError)"):
        assert told in failure.failure.message
    assert [e.metadata["to"] for e in fallbacks(scene)] == ["second", "third"]


async def test_an_entry_with_the_provider_that_just_failed_is_passed_over() -> None:
    models = Providers(first=[fails(Code.CREDENTIALS)], second=[fails(Code.CREDENTIALS)], third=[Answer(DONE)])
    scene = Scene(models)
    outcome = await scene.run(one(with_fallback(to("second"), to("second", Strategy.REACT), to("third"))))
    assert (outcome.final_analysis, models.asked_of("second")) == (DONE, 1)


async def test_the_timeline_tells_what_was_left_out_and_what_is_lost_with_the_change() -> None:
    first = with_fallback(to("second")).model_copy(
        update={
            "strategy": Strategy.NATIVE_THINKING,
            "native_tools": ("google_search",),
            "fallback_skipped": ("without-search",),
        }
    )
    scene = Scene(Providers(first=[fails(Code.CREDENTIALS)], second=[Answer(DONE)]))
    await scene.run(one(first))
    (told,) = fallbacks(scene)
    assert told.metadata["skipped"] == ["without-search"]
    assert told.metadata["native_tools_dropped"] == ["google_search"]
    assert "google_search" in told.content
    assert "without-search" in told.content


async def test_function_calls_go_on_as_react_when_that_is_the_other_ones_strategy() -> None:
    models = Providers(
        first=[Answer(tool_calls=(call("k8s.get"),)), fails(Code.CREDENTIALS)],
        second=[
            Answer("Thought: look again\nAction: k8s.get\nAction Input: {}"),
            Answer(f"Thought: known\nFinal Answer: {DONE}"),
        ],
    )
    scene = Scene(models, FakeToolboxes({"k8s.get": says("full")}))
    outcome = await scene.run(one(with_fallback(to("second", Strategy.REACT))))
    assert outcome.final_analysis == DONE
    first, second = models.of["second"].requests
    assert first.tools == ()
    notes = [m for m in second.messages if m.role is Role.USER and "tools are called in text" in m.content]
    assert len(notes) == 1
    assert "k8s.get: does k8s.get" in notes[0].content
    assert len(scene.toolboxes.called) == 2


CHANGING = (
    [Answer(tool_calls=(call("k8s.get"),)), fails(Code.CREDENTIALS)],
    [
        Answer("Thought: look again\nAction: k8s.get\nAction Input: {}"),
        Answer(f"Thought: known\nFinal Answer: {DONE}"),
    ],
)


def changing() -> Scene:
    first, second = CHANGING
    return Scene(Providers(first=first, second=second), FakeToolboxes({"k8s.get": says("full")}))


def notes_of_change(scene: Scene) -> list[str]:
    return [
        text for role, text in scene.record.texts("triage") if role is Role.USER and "another model goes on" in text
    ]


async def resumed_after_the_change(monkeypatch: pytest.MonkeyPatch, older: bool) -> Scene:
    """The provider changed and the second one has called a tool; the next attempt has other words for the change."""
    whole = one(with_fallback(to("second", Strategy.REACT)))
    scene = changing()
    await scene.run(whole)
    steps = [at for at, name in enumerate(scene.recorder.calls) if name == "model_call_started"]
    scene = changing()
    scene.resume(die_at=steps[3])
    with pytest.raises((Crash, BaseExceptionGroup)):
        await scene.run(whole)
    if older:
        row = scene.record.execution("triage")
        row.loop = LoopState.model_validate(row.loop.model_dump(mode="json", exclude={"tool_call_format"}))
    read = prompt_template.template
    for module in (prompt_template, react_format):
        monkeypatch.setattr(module, "template", lambda name: Template("In other words: " + read(name).template))
    scene.resume()
    assert (await scene.run(whole)).final_analysis == DONE
    return scene


@pytest.mark.parametrize("older", [False, True], ids=["this-release", "begun-by-the-release-before"])
async def test_a_change_is_told_once_whatever_the_words_of_the_next_release(
    monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    scene = await resumed_after_the_change(monkeypatch, older)

    assert len(notes_of_change(scene)) == 1
    assert scene.record.execution("triage").loop.tool_call_format == "react"


async def test_what_is_refused_stays_refused_when_the_strategy_changes_with_the_provider() -> None:
    models = Providers(
        first=[Answer(tool_calls=(call("k8s.delete"),)), fails(Code.CREDENTIALS)],
        second=[Answer("Thought: go\nAction: k8s.delete\nAction Input: {}"), Answer(f"Final Answer: {DONE}")],
    )
    refused = Refusal("ToolPolicy", "This agent may only read.")
    scene = Scene(models, FakeToolboxes({"k8s.get": says("full")}, refusals={"k8s.delete": refused}))
    await scene.run(one(with_fallback(to("second", Strategy.REACT))))
    assert [row.start.refused for row in scene.record.tool_calls.values()] == ["ToolPolicy", "ToolPolicy"]
    assert scene.toolboxes.called == []


async def test_react_goes_on_with_function_calls_when_that_is_the_other_ones_strategy() -> None:
    models = Providers(
        first=[Answer("Thought: look\nAction: k8s.get\nAction Input: {}"), fails(Code.CREDENTIALS)],
        second=[Answer(tool_calls=(call("k8s.get"),)), Answer(DONE)],
    )
    scene = Scene(models, FakeToolboxes({"k8s.get": says("full")}))
    react = with_fallback(to("second"), of=agent(strategy=Strategy.REACT, servers=["k8s"]))
    outcome = await scene.run(one(react))
    assert outcome.final_analysis == DONE
    first, second = models.of["second"].requests
    assert [tool.name for tool in first.tools] == ["k8s.get"]
    assert sum("tools are called by function calls" in m.content for m in second.messages) == 1


async def test_what_one_provider_counted_is_not_believed_of_the_next() -> None:
    long = fails(Code.CONTEXT_TOO_LONG)
    models = Providers(first=[long] * 9, second=[Answer(DONE)])
    scene = Scene(models)
    assert (await scene.run(one(with_fallback(to("second"))))).final_analysis == DONE
    loop = next(iter(scene.record.executions.values())).loop
    assert (loop.window, loop.refusals, loop.fallback) == (None, 0, 1)


@pytest.mark.parametrize("said", ["provider first (model m): no answer", "no answer"])
def test_a_provider_is_named_once_in_the_error_of_an_agent(said: str) -> None:
    agent = SimpleNamespace(provider=SimpleNamespace(ref=SimpleNamespace(name="first")))
    conversation: Any = SimpleNamespace(agent=agent, loop=SimpleNamespace(tried=()))
    told = exhausted(conversation, ModelError(ModelErrorCode.CONNECTION, said, retryable=True))
    assert told.startswith("provider first") and told.count("first") == 1
