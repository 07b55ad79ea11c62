"""Tool servers that do not start, do not answer, or die: the run goes on, and says what it lacks."""

import pytest

from e2e.tenant import ANSWER, Tenant, condition


def script(tool: str) -> str:
    return f"agents: {{agent: [{{calls: [{{name: tools.{tool}, arguments: {{what: df}}}}]}}, {{text: {ANSWER}}}]}}"


async def test_server_that_does_not_start_degrades_the_evidence_and_not_the_run(tenant: Tenant) -> None:
    model = await tenant.use_model(script("look"))
    await tenant.use_tools()
    await tenant.use_tools("broken", "exit")
    await tenant.use_agent("agent", "tools", "broken")
    await tenant.use_chain(["agent"])
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert condition(inv, "EvidenceDegraded") == "True"
    assert "broken" in condition(inv, "EvidenceDegraded", "message")
    assert "broken" in model.journal.requests[0].messages[0]["content"], "the model is told"
    assert any("broken" in event.content for event in await tenant.reads.timeline(identity))


@pytest.mark.parametrize(
    ("tool", "words", "seconds"),
    [("hang", "1 s", 1), ("die", "outcome is unknown", 60), ("refuse", "refuse found nothing", 60)],
)
async def test_failing_tool_is_an_answer_to_the_model(tenant: Tenant, tool: str, words: str, seconds: int) -> None:
    model = await tenant.simple(script(tool), timeouts={"toolCallSeconds": seconds})
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert words in model.journal.requests[1].messages[-1]["content"]
    (call,) = await tenant.mcp_calls(identity)
    assert call["state"] == "failed"
    assert words in call["result"]
    assert tenant.tool_calls(tool) == 1


async def test_unknown_tool_is_an_answer_that_names_the_known_ones(tenant: Tenant) -> None:
    model = await tenant.simple(script("nonsense"))
    await tenant.investigate()
    assert condition(await tenant.finished(), "Succeeded") == "True"
    said = model.journal.requests[1].messages[-1]["content"]
    assert "nonsense" in said
    assert "tools.look" in said
