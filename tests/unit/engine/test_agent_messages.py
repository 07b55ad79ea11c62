"""Messages that a model is sent and the record keeps, by strategy and role."""

from itertools import pairwise

import pytest

from tarsy.plan.model import Strategy
from tarsy.record.messages import Message, Role
from unit.engine.build import call, told
from unit.engine.one_agent import (
    ALONE,
    ARGUMENTS,
    FUNCTIONS,
    LOOPS,
    SYNTHESES,
    Done,
    asks,
    concludes,
    run,
    run_synthesis,
)
from wire.scripted_client import Answer


def conversation(done: Done) -> tuple[Message, ...]:
    return done.scene.record.execution("triage").conversation


def extras(message: Message) -> tuple[object, ...]:
    return (message.tool_calls, message.tool_call_id, message.tool_name)


@pytest.mark.parametrize("strategy", Strategy)
async def test_rows_system_and_user_open_a_conversation_and_hold_text_only(strategy: Strategy) -> None:
    done = await run(strategy, concludes(strategy))

    system, user = done.scene.models.requests[0].messages
    assert (system.role, user.role) == (Role.SYSTEM, Role.USER)
    assert "Agent: triage" not in system.content
    assert "pod checkout-7d" in user.content and "Agent: triage" in user.content
    assert extras(system) == extras(user) == ((), None, None)


@pytest.mark.parametrize("strategy", FUNCTIONS)
async def test_row_assistant_holds_its_text_and_the_calls_it_asked_for(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), concludes(strategy))

    first, last = [message for message in conversation(done) if message.role is Role.ASSISTANT]
    assert (first.content, extras(first)) == ("I look", ((call("k.get", "c1", ARGUMENTS),), None, None))
    assert (last.content, extras(last)) == ("the node is full", ((), None, None))


@pytest.mark.parametrize("strategy", FUNCTIONS)
async def test_an_answer_of_calls_alone_has_no_text_and_is_no_empty_answer(strategy: Strategy) -> None:
    done = await run(strategy, Answer(tool_calls=(call("k.get"),)), concludes(strategy))

    first, _ = [message for message in conversation(done) if message.role is Role.ASSISTANT]
    assert (first.content, len(first.tool_calls)) == ("", 1)
    assert done.scene.record.execution("triage").loop.empty_answers == 0


@pytest.mark.parametrize("strategy", FUNCTIONS)
async def test_row_tool_links_its_result_to_the_call(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), concludes(strategy))

    (message,) = [message for message in conversation(done) if message.role is Role.TOOL]
    assert (told(message), extras(message)) == ("node: full", ((), "c1", "k.get"))


@pytest.mark.parametrize("strategy", FUNCTIONS)
async def test_messages_flow_as_the_model_and_its_tools_answer(strategy: Strategy) -> None:
    both = Answer(tool_calls=(call("k.get", "c1"), call("k.logs", "c2")))
    done = await run(strategy, both, concludes(strategy))

    shape = [(message.role, message.tool_call_id) for message in conversation(done)]
    assert shape == [
        (Role.SYSTEM, None),
        (Role.USER, None),
        (Role.ASSISTANT, None),
        (Role.TOOL, "c1"),
        (Role.TOOL, "c2"),
        (Role.ASSISTANT, None),
    ]


async def test_react_stores_plain_text_and_observations_of_the_user() -> None:
    done = await run(Strategy.REACT, asks(Strategy.REACT), concludes(Strategy.REACT))

    _, _, asked, observed, concluded = conversation(done)
    assert (asked.role, asked.content) == (Role.ASSISTANT, asks(Strategy.REACT).text)
    assert observed.role is Role.USER and observed.content.startswith("Observation: [callId: call_")
    assert "node: full" in observed.content
    assert (concluded.role, concluded.content) == (Role.ASSISTANT, concludes(Strategy.REACT).text)
    assert all(extras(message) == ((), None, None) for message in conversation(done))


@pytest.mark.parametrize("strategy", SYNTHESES)
async def test_synthesis_stores_system_user_and_its_answer(strategy: Strategy) -> None:
    done = await run_synthesis(strategy, Answer("both"))

    system, user, answer = done.scene.record.execution("look-synth").conversation
    assert (system.role, user.role, answer) == (Role.SYSTEM, Role.USER, Message(Role.ASSISTANT, "both"))
    for words in ("Agent 1: a", "a says full", "Agent 2: b", "b says empty"):
        assert words in user.content
    assert user.content.index("a says full") < user.content.index("b says empty")


@pytest.mark.parametrize("strategy", LOOPS)
async def test_each_call_sends_the_one_before_and_what_came_since(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), asks(strategy), concludes(strategy))

    requests = [tuple(request.messages) for request in done.scene.models.requests]
    assert [len(messages) for messages in requests] == [2, 4, 6]
    for earlier, later in pairwise(requests):
        assert later[: len(earlier)] == earlier
        assert later[len(earlier)].role is Role.ASSISTANT
    rows = list(done.scene.record.model_calls.values())
    assert [row.start.message_count for row in rows] == [2, 4, 6], "one interaction a call"
    said = asks(strategy).text
    assert all(said not in m.content for messages in requests for m in messages if m.role is not Role.ASSISTANT)


@pytest.mark.parametrize("strategy", ALONE)
async def test_a_single_call_is_one_interaction(strategy: Strategy) -> None:
    done = await run(strategy, Answer("done"))

    assert len(done.scene.record.model_calls) == 1
    assert [message.role for message in conversation(done)] == [Role.SYSTEM, Role.USER, Role.ASSISTANT]


@pytest.mark.parametrize(
    "alert",
    [
        '{"pod": "x", "nested": {"a": [1, 2]}}',
        "pod: x\n  - a\n",
        "a plain sentence.",
        "<xml a='1'/>",
        "äöü ✓ \\n %s {}",
    ],
)
async def test_an_alert_is_any_text_and_is_told_as_it_came(alert: str) -> None:
    done = await run(Strategy.LANGCHAIN, Answer("done"), alert=alert)

    system, user = done.scene.models.requests[0].messages
    assert f"<!-- ALERT_DATA_START -->\n{alert.strip()}" in user.content
    assert alert.strip() not in system.content
