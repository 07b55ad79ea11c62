"""Questions about an investigation, answered by the whole product; a killed operator goes on with the answer."""

import signal
from typing import Any
from uuid import UUID

from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy.store.reading.reads import Reads
from tarsy_dev.model.journal import RequestOutcome

SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: {ANSWER}
  chat-agent:
    - text: I look again.
      calls: [{{name: tools.look, arguments: {{what: now}}}}]
    - text: It is still full.
"""
HELD = SCRIPT.replace("    - text: I look again.", "    - text: I look again.\n      gate: asked")


async def reading(tenant: Tenant, script: str) -> None:
    """A chain with a tool that only reads: who answers questions gets no other."""
    await tenant.use_model(script)
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])


async def ask(tenant: Tenant, name: str, question: str, **spec: Any) -> UUID:
    made = await tenant.put("ChatMessage", name, {"investigationRef": {"name": "run"}, "question": question, **spec})
    return UUID(made["metadata"]["uid"])


async def answered(tenant: Tenant, name: str, seconds: float = 150.0) -> dict[str, Any]:
    async def look() -> Any:
        message = await tenant.get(name, "ChatMessage")
        return message if condition(message, "Finished") == "True" else None

    return await until(f"question {name} is finished", look, seconds)


def asked(tenant: Tenant, words: str) -> list[str]:
    """What the model was sent in the requests of the chat agent that hold these words."""
    texts = ["\n".join(str(m.get("content")) for m in r.messages) for r in tenant.model.journal.requests]
    return [text for text in texts if words in text]


async def test_two_questions_are_answered_in_turn_with_all_that_came_before_as_context(tenant: Tenant) -> None:
    await reading(tenant, SCRIPT)
    about = await tenant.investigate()
    before = await tenant.finished()
    first = await ask(tenant, "first", "Is the disk still full?")
    await answered(tenant, "first")
    second = await ask(tenant, "second", "And the other one?")
    message = await answered(tenant, "second")

    assert condition(message, "Succeeded") == "True", message["status"]
    assert (message["status"]["answer"], message["status"]["attempt"]) == ("It is still full.", 1)
    assert message["status"]["usage"]["toolCalls"] == 1
    assert [owner["uid"] for owner in message["metadata"]["ownerReferences"]] == [str(about)]
    assert tenant.tool_calls("look") == 3
    (told, *_) = asked(tenant, "And the other one?")
    for part in ("look saw df", "look saw now", SUMMARY, "Is the disk still full?", "It is still full."):
        assert part in told
    assert [answer.id for answer in await Reads(tenant.pool).answers(about)] == [first, second]
    assert (await tenant.get())["status"] == before["status"]


async def test_killed_operator_goes_on_with_an_answer_and_repeats_no_finished_step(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    await reading(tenant, HELD)
    await tenant.machine.stop_operator()
    operator = await tenant.machine.operator()
    operator.start()
    await tenant.investigate()
    await tenant.finished(seconds=120)
    run = await ask(tenant, "why", "Is it still full?")
    await tenant.model.journal.wait_for(lambda _: asked(tenant, "Is it still full?"), 120)
    operator.kill()
    assert await operator.wait(60) == -signal.SIGKILL
    tenant.model.open_gate("asked")
    await tenant.machine.lapse_of_all()
    operator.start()
    message = await answered(tenant, "why", 120)

    assert (message["status"]["answer"], message["status"]["attempt"]) == ("It is still full.", 2)
    assert tenant.tool_calls("look") == 2
    rows = await tenant.rows(
        "SELECT c.state FROM llm_interaction c JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage "
        "WHERE s.investigation = $1 ORDER BY c.number",
        run,
    )
    assert [row["state"] for row in rows] == ["interrupted", "completed", "completed"]


async def test_cancelled_question_ends_and_the_next_one_is_answered(tenant: Tenant) -> None:
    await reading(tenant, HELD)
    await tenant.investigate()
    await tenant.finished()
    await ask(tenant, "first", "First?")
    await tenant.model.journal.wait_for(lambda _: asked(tenant, "First?"), 120)
    await ask(tenant, "second", "Second?")
    await tenant.client.patch("ChatMessage", tenant.namespace, "first", {"spec": {"desiredState": "Cancelled"}})
    message = await answered(tenant, "first")
    assert (message["status"]["phase"], condition(message, "Succeeded")) == ("Cancelled", "False")
    tenant.model.open_gate("asked")
    assert (await answered(tenant, "second"))["status"]["answer"] == "It is still full."


async def test_cancelling_the_finished_investigation_ends_its_questions(tenant: Tenant) -> None:
    await reading(tenant, HELD)
    await tenant.investigate()
    await tenant.finished()
    await ask(tenant, "first", "First?")
    await tenant.model.journal.wait_for(lambda _: asked(tenant, "First?"), 120)
    await ask(tenant, "second", "Second?")

    async def queued() -> bool:
        return condition(await tenant.get("second", "ChatMessage"), "Accepted") == "True"

    await until("the second question is queued", queued)
    await tenant.want("run", "Cancelled")
    for name in ("first", "second"):
        message = await answered(tenant, name)
        assert (message["status"]["phase"], condition(message, "Succeeded")) == ("Cancelled", "False")
    assert not asked(tenant, "Second?")
    await tenant.model.journal.wait_for(lambda requests: requests[-1].outcome is RequestOutcome.DISCONNECTED, 60)
    assert condition(await tenant.get(), "Succeeded") == "True", "the investigation stays as it ended"
