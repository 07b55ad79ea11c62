"""Requests begin alike, so that prompt caches of servers hold: of one agent, and of the agents of a run."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile

import pytest

from tarsy.engine.chat import ChatRun, answer_question
from tarsy.engine.run_context import RunContext
from tarsy.llm.google_native.conversation import config_of, contents_of
from tarsy.llm.openai_native.request import body
from tarsy.llm.protocol import GenerateRequest
from tarsy.mcp.tool_catalog import offer
from tarsy.plan.model import AgentLimits, AgentPlan, DelegationPlan, Plan, Strategy, SubAgentPlan
from tarsy.record.messages import Role
from tarsy.record.work import PastWork
from unit.engine.build import (
    RUN,
    FakeControl,
    FakeToolboxes,
    Scene,
    ScriptedModels,
    agent,
    by_turn,
    call,
    plan,
    says,
    scene,
    single,
    stage,
)
from unit.engine.memory import MemoryRecorder, Record
from wire.scripted_client import Answer

mcp_types = pytest.importorskip("mcp_types")

BLOCK = '```finding\n{"summary": "It is full.", "confidence": "Low", "claims": []}\n```'


def start(*answers: Answer, **others: Sequence[Answer]) -> Scene:
    boxes = FakeToolboxes({"k.df": says("100% used"), "k.logs": says("No space left")})
    return scene(by_turn({"triage": answers, **others}), toolboxes=boxes)


def messages(request: GenerateRequest) -> list[str]:
    """The messages as they go out, and before them the tools: where a chat template puts these is its own affair."""
    sent = json.loads(b"".join(body(agent().provider, request)))
    return [json.dumps(sent.get("tools")), *(json.dumps(message) for message in sent["messages"])]


def looks(number: int) -> Answer:
    return Answer("more", tool_calls=(call("k.df", f"c{number}", json.dumps({"n": number})),))


LOOP = [looks(0), looks(1), looks(2)]


@pytest.mark.parametrize("limits", [AgentLimits(), AgentLimits(finding_repairs=0)])
@pytest.mark.parametrize(
    ("iterations", "answers"),
    [
        (9, [*LOOP, Answer(BLOCK)]),
        (3, [*LOOP, Answer(BLOCK)]),
        (9, [*LOOP, Answer("no block"), Answer(BLOCK)]),
        (9, [*LOOP, Answer("no block"), looks(3), Answer(BLOCK)]),
        (9, [Answer("before any call"), *LOOP, Answer(BLOCK)]),
        (9, [Answer('{"name": "k.drop", "arguments": {}}'), *LOOP, Answer(BLOCK)]),
        (9, [Answer('{"name": "k.df", "arguments": {}}'), Answer(""), *LOOP, Answer(BLOCK)]),
    ],
    ids=["final", "forced", "repair", "repair with a call", "no evidence", "unknown call in text", "call in text"],
)
async def test_a_request_begins_with_the_one_before_it(
    iterations: int, answers: list[Answer], limits: AgentLimits
) -> None:
    s = start(*answers)

    await s.run(plan(stage("look", agent(iterations=iterations, servers=("k",))), limits=limits))

    sent = [messages(request) for request in s.models.requests]
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier


async def test_a_react_agent_begins_with_the_request_before_it() -> None:
    acts = Answer("Thought: look\nAction: k.df\nAction Input: {}")
    s = start(acts, Answer("no form"), Answer(f"Final Answer: {BLOCK}"))

    await s.run(plan(stage("look", agent(strategy=Strategy.REACT))))

    sent = [messages(request) for request in s.models.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))


def of_gemini(request: GenerateRequest) -> list[str]:
    """The tools and instructions as Gemini gets them, then each turn."""
    config = config_of(request, agent().provider)
    head = config.model_dump_json(include={"tools", "system_instruction"})
    return [head, *(content.model_dump_json() for content in contents_of(request, "scripted"))]


Encode = Callable[[GenerateRequest], list[str]]
ENCODERS: list[Encode] = [messages, of_gemini]
REACT_LOOP = [Answer(f'Thought: look\nAction: k.df\nAction Input: {{"n": {n}}}') for n in range(3)]


def assert_each_begins_with_the_one_before(requests: Sequence[GenerateRequest], encode: Encode) -> None:
    sent = [encode(request) for request in requests]
    assert len(sent) >= 3
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier


@pytest.mark.parametrize("encode", ENCODERS)
@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
@pytest.mark.parametrize("iterations", [9, 3], ids=["final", "forced"])
async def test_requests_of_each_strategy_begin_alike_in_each_encoding(
    encode: Encode, strategy: Strategy, iterations: int
) -> None:
    react = strategy is Strategy.REACT
    last = Answer(f"Final Answer: {BLOCK}" if react else BLOCK)
    s = start(*(REACT_LOOP if react else LOOP), last)

    await s.run(plan(stage("look", agent(iterations=iterations, servers=("k",), strategy=strategy))))

    assert_each_begins_with_the_one_before(s.models.requests_of("triage"), encode)


@pytest.mark.parametrize("encode", ENCODERS)
@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
async def test_requests_about_a_question_begin_alike(encode: Encode, strategy: Strategy) -> None:
    react = strategy is Strategy.REACT
    answers = [*(REACT_LOOP if react else LOOP), Answer("Final Answer: yes" if react else "yes")]
    models = ScriptedModels(by_turn({"chat-agent": answers}))
    chat = agent("chat-agent", servers=("k",), strategy=strategy)
    of = plan(stage("look", agent())).model_copy(update={"chat": chat}).to_answer()
    boxes = FakeToolboxes({"k.df": says("100% used")})
    world = RunContext(MemoryRecorder(Record()), models, boxes, FakeControl())

    await answer_question(ChatRun(RUN, of, "ada", "Is it full?", PastWork((), {}, ())), world)

    assert_each_begins_with_the_one_before(models.requests, encode)


@pytest.mark.parametrize("encode", ENCODERS)
@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING])
async def test_requests_of_an_agent_and_of_its_sub_agent_begin_alike(encode: Encode, strategy: Strategy) -> None:
    reader = agent("reader", servers=("k",), strategy=strategy).model_copy(update={"agent": "reader"})
    delegation = DelegationPlan(agents=(SubAgentPlan(agent=reader, description="reads", max_dispatches=2),))
    dispatch = call("dispatch_agent", "d1", '{"name": "reader", "task": "look"}')
    s = start(
        Answer("", tool_calls=(dispatch,)),
        Answer("I wait."),
        looks(1),
        Answer(BLOCK),
        **{"reader-1": [*LOOP, Answer("full")]},
    )

    lead = agent(servers=("k",), strategy=strategy).model_copy(update={"delegation": delegation})
    await s.run(plan(stage("look", lead)))

    for name in ("triage", "reader-1"):
        assert_each_begins_with_the_one_before(s.models.requests_of(name), encode)


def common(one: str, other: str) -> str:
    """How two texts begin alike."""
    return "".join(left for left, right in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def named(name: str, instructions: str = "", strategy: Strategy = Strategy.LANGCHAIN) -> AgentPlan:
    return agent(name, servers=("k",), strategy=strategy).model_copy(update={"instructions": instructions})


def first(s: Scene, name: str) -> GenerateRequest:
    return s.models.requests_of(name)[0]


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
async def test_agents_with_the_same_tools_share_everything_up_to_their_names(strategy: Strategy) -> None:
    text = f"Final Answer: {BLOCK}"
    s = start(a=[Answer(text)], b=[Answer(text)], c=[Answer(text)], **{"look-synth": [Answer(text)]})
    of = [named("a", "You read logs.", strategy), named("b", "You look at nodes.", strategy)]

    await s.run(plan(stage("look", *of), stage("fix", named("c", strategy=strategy))), alert="pod " * 500)

    a, b, c = (messages(first(s, name)) for name in "abc")
    assert a[:2] == b[:2] == c[:2]  # tools and system message
    together = common(a[2], b[2])
    assert "pod pod pod" in together and together.endswith("Agent: ")
    later = common(a[2], c[2])
    assert "pod pod pod" in later and "## Runbook" in later
    share = len("".join(a[:2]) + together) / len("".join(b))
    assert share > 0.8, f"{share:.0%} of the request of agent b are in the cache of agent a's"


async def test_the_system_message_of_a_synthesis_and_of_a_summary_is_every_runs() -> None:
    of = {"look-synth": [Answer(BLOCK)], "summary": [Answer("x")]}
    s = start(a=[Answer(BLOCK)], b=[Answer(BLOCK)], **of)

    await s.run(plan(stage("look", named("a"), named("b")), summary=True))

    for name in of:
        system = first(s, name).messages[0]
        assert system.role is Role.SYSTEM and name not in system.content and "2026" not in system.content


def test_the_order_of_a_servers_tools_and_keys_is_ours() -> None:
    def tool(name: str, keys: Sequence[str]) -> object:
        properties = {key: {"type": "string", "description": key} for key in keys}
        schema = {"type": "object", "properties": properties, "required": list("ab")}
        return mcp_types.Tool(name=name, input_schema=dict(reversed(schema.items())) if keys[0] == "b" else schema)

    (server,) = agent(servers=("k",)).servers
    server = server.model_copy(update={"read_only": ("*",)})
    one = offer(server, [tool("get", "ab"), tool("df", "ab")])  # type: ignore[list-item]
    other = offer(server, [tool("df", "ba"), tool("get", "ba")])  # type: ignore[list-item]

    written = [json.dumps([(t.name, t.parameters_schema) for t in found.definitions]) for found in (one, other)]
    assert written[0] == written[1]
    assert [t.name for t in one.definitions] == ["k.df", "k.get"]
    assert one.digests == other.digests


# The forced conclusion.


def concludes(s: Scene) -> Plan:
    return plan(stage("look", agent(iterations=1, servers=("k",))))


async def test_a_model_that_calls_although_it_may_not_is_asked_again_without_tools() -> None:
    s = start(looks(0), Answer(tool_calls=(call("k.df"),)), Answer("done"))

    outcome = await s.run(concludes(s))

    assert outcome.final_analysis == "done"
    assert [(bool(r.tools), r.may_call) for r in s.models.requests] == [(True, True), (True, False), (False, False)]


async def test_a_server_that_refuses_tools_that_may_not_be_called_is_asked_again_without_them() -> None:
    from tarsy.llm.protocol import ModelError, ModelErrorCode

    def answer(request: GenerateRequest) -> Answer:
        if request.tools and not request.may_call:
            refused = "Tool choice is none, but model called a tool"
            return Answer(error=ModelError(ModelErrorCode.INVALID_REQUEST, refused, retryable=False))
        return looks(0) if request.may_call else Answer("done")

    s = scene(answer, toolboxes=FakeToolboxes({"k.df": says("100% used")}))

    outcome = await s.run(concludes(s))

    assert outcome.final_analysis == "done"
    assert [(bool(r.tools), r.may_call) for r in s.models.requests] == [(True, True), (True, False), (False, False)]


async def test_a_synthesis_has_no_tools_to_bind() -> None:
    s = scene({"triage": [Answer(BLOCK)]})

    await s.run(plan(stage("look", single("triage", Strategy.SINGLE_CALL))))

    assert s.models.requests[0].tools == ()
