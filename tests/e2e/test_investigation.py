"""A whole investigation, and each of the five layers it leaves behind."""

from typing import Any

from e2e.tenant import ANSWER, SUMMARY, Tenant, answer, condition
from e2e.waiting import until

SCRIPT = f"""
agents:
  triage:
    - text: I look.
      calls:
        - {{name: tools.look, arguments: {{what: df}}}}
        - {{name: tools.refuse, arguments: {{what: du}}}}
    - text: The disk is nearly full.
  logs:
    - text: I read the log.
      calls: [{{name: tools.look, arguments: {{what: log}}}}]
    - text: The log grows.
  changes:
    - text: Nothing was changed.
  synthesis-agent:
    - text: {answer("High", ("tools.look", "look saw log"))}
  executive-summary:
    - text: The disk is full.
"""


async def test_two_stages_with_a_parallel_one_leave_all_five_layers(tenant: Tenant) -> None:
    model = await tenant.use_model(SCRIPT)
    await tenant.use_tools()
    for agent in ("triage", "logs", "changes"):
        await tenant.use_agent(agent, "tools", instructions=f"You are {agent}.")
    await tenant.use_chain(["triage"], ["logs", "changes"], summary=True)
    identity = await tenant.investigate()
    inv = await tenant.finished()

    # 1. The investigation, in its status as in its record.
    status = inv["status"]
    assert condition(inv, "Succeeded") == "True", status
    assert condition(inv, "EvidenceDegraded") == "False"
    assert (status["phase"], status["progress"], status["attempt"]) == ("Succeeded", "4/4", 1)
    finding = {"summary": SUMMARY, "confidence": "Medium", "claims": 1, "supportedClaims": 1, "integrity": "A"}
    assert status["finding"] == finding
    record = await tenant.record(identity)
    assert status["usage"]["modelCalls"] == record.model_calls == len(model.journal.requests) == 7
    assert status["usage"]["toolCalls"] == record.tool_calls == 3
    billed = sum(request.usage["total_tokens"] for request in model.journal.requests if request.usage)
    assert status["usage"]["totalTokens"] == record.usage.total_tokens == billed
    assert record.outcome is not None and record.outcome.finding is not None
    assert record.outcome.executive_summary == "The disk is full."
    (citation,) = record.outcome.finding.claims[0].citations
    assert (citation.supported, citation.stage, citation.agent, citation.tool) == (
        True,
        "stage-2",
        "logs",
        "tools.look",
    )

    # 2. Stages, in order, with 3. their executions.
    assert [(s.name, s.kind.value, s.state.value, s.agents) for s in record.stages] == [
        ("stage-1", "investigation", "completed", 1),
        ("stage-2", "investigation", "completed", 2),
        ("stage-2-synthesis", "synthesis", "completed", 1),
        ("executive-summary", "executive_summary", "completed", 1),
    ]
    executions = await tenant.rows(
        "SELECT e.display_name, e.state, e.result FROM execution e JOIN stage s ON s.id = e.stage "
        "WHERE s.investigation = $1 ORDER BY s.index, e.index",
        identity,
    )
    assert [(e["display_name"], e["state"]) for e in executions] == [
        (agent, "completed") for agent in ("triage", "logs", "changes", "synthesis-agent", "executive-summary")
    ]

    # 4. The timeline that people read, and the conversation that the model saw, exactly.
    events = await tenant.reads.timeline(identity)
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert {event.status.value for event in events} == {"completed"}
    told = [(event.agent_name, event.type.value) for event in events if event.agent_name == "logs"]
    assert told == [
        ("logs", "llm_response"),
        ("logs", "llm_tool_call"),
        ("logs", "final_analysis"),
    ]
    await assert_conversations_are_as_sent(tenant, identity)

    # 5. The trace.
    calls = await tenant.model_calls(identity)
    assert [call["display_name"] for call in calls] == [
        "triage", "triage", "logs", "logs", "changes", "synthesis-agent", "executive-summary",
    ]  # fmt: skip
    assert {call["state"] for call in calls} == {"completed"}
    tools = await tenant.mcp_calls(identity)
    assert [(t["display_name"], t["tool"], t["state"], t["result"]) for t in tools] == [
        ("triage", "look", "completed", "look saw df"),
        ("triage", "refuse", "failed", "refuse found nothing under du"),
        ("logs", "look", "completed", "look saw log"),
    ]
    assert tenant.tool_calls("look") == 2


async def assert_conversations_are_as_sent(tenant: Tenant, identity: Any) -> None:
    """Each request on the wire is the beginning of its agent's messages in Postgres, tool calls included."""
    rows = await tenant.rows(
        "SELECT m.*, e.display_name FROM message m JOIN execution e ON e.id = m.execution "
        "JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 ORDER BY s.index, e.index, m.seq",
        identity,
    )
    for request in tenant.model.journal.requests:
        stored = [row for row in rows if row["display_name"] == request.agent]
        count = len(request.messages)
        assert [plain_wire(m) for m in request.messages] == [plain_row(row) for row in stored[:count]]
        assert stored[count]["role"] == "assistant", "what follows is the answer to this request"


def plain_wire(message: Any) -> tuple[Any, ...]:
    calls = [(c["id"], c["function"]["name"].replace("__", "."), c["function"]["arguments"])
             for c in message.get("tool_calls") or ()]  # fmt: skip
    return message["role"], message.get("content") or "", calls, message.get("tool_call_id")


def plain_row(row: Any) -> tuple[Any, ...]:
    calls = [(c["id"], c["name"], c["arguments"]) for c in row["tool_calls"] or ()]
    return row["role"], row["content"], calls, row["tool_call_id"]


async def test_alert_before_its_chain_waits_and_is_investigated_when_the_chain_appears(tenant: Tenant) -> None:
    await tenant.put("Alert", "early", {"alertType": tenant.namespace, "data": "the disk is full"})

    async def waiting() -> bool:
        return condition(await tenant.get("early", "Alert"), "Accepted", "reason") == "NoChain"

    await until("the alert waits for a chain", waiting)
    await tenant.simple(f"agents: {{agent: [{{text: {ANSWER}}}]}}", alertTypes=[tenant.namespace])

    async def done() -> bool:
        return condition(await tenant.get("early", "Alert"), "Finished") == "True"

    await until("the alert is finished", done)
    name = (await tenant.get("early", "Alert"))["status"]["investigationRef"]["name"]
    assert condition(await tenant.finished(name), "Succeeded") == "True"
