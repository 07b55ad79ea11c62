"""One trace over a kill and a resume, and logs without a word of alert, model, tool or Secret: of the whole product."""

import json
import signal

import pytest

from e2e.tenant import ANSWER, KEY, Tenant, condition
from tarsy.observe.tracing import first_span
from wire.collector import collecting

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.once("no Kubernetes API hears of traces and logs"),
]

CANARY = "canary-51d0c2"
SCRIPT = f"""
agents:
  agent:
    - text: I look {CANARY}.
      thinking: hm {CANARY}
      calls: [{{name: tools.look, arguments: {{what: {CANARY}}}}}]
    - text: I look again {CANARY}.
      gate: asked
      calls: [{{name: tools.refuse, arguments: {{what: {CANARY}}}}}, {{name: tools.{CANARY}, arguments: {{}}}}]
    - text: {ANSWER}
"""


async def test_a_killed_and_resumed_run_is_one_trace_and_logs_tell_nothing_that_was_said(bare_tenant: Tenant) -> None:
    tenant, machine = bare_tenant, bare_tenant.machine
    await tenant.simple(SCRIPT)
    start = machine.log.stat().st_size if machine.log.exists() else 0
    async with collecting() as collector:
        operator = await machine.operator("--otlp-endpoint", collector.url, "--json-logs")
        run = await tenant.investigate(alert={"alertType": "DiskFull", "data": f"node-1 {CANARY}: the disk is full"})
        await tenant.model.journal.wait_for(lambda requests: len(requests) == 2, 150)
        await collector.wait_for(lambda: collector.named("execute_tool look") and collector.named("chat scripted"), 150)
        operator.kill()
        assert await operator.wait(10) == -signal.SIGKILL
        tenant.model.open_gate("asked")
        await machine.lapse_of_all()
        operator.start()
        inv = await tenant.finished(seconds=150)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] == 2
        await machine.stop_operator()  # which sends what it has

    assert {span.trace for span in collector.spans} == {run.hex}
    (workflow,) = collector.named("invoke_workflow chain")  # that of the first attempt died with it
    assert (workflow.parent, workflow.attributes["tarsy.attempt"]) == ("", 2)
    assert workflow.links == [(run.hex, f"{first_span(run, 1):016x}")]
    assert len(collector.named("execute_tool look")) == len(collector.named("execute_tool refuse")) == 1
    (agent,) = collector.named("invoke_agent agent")
    calls = collector.named("chat scripted")
    assert [call.parent == agent.id for call in calls] == [False, True, True]
    assert {call.attributes["gen_ai.provider.name"] for call in calls} == {"openai"}
    told = b"".join(collector.bodies)
    logged = machine.log.read_bytes()[start:].decode()
    for word in (CANARY, KEY, "the disk is full"):
        assert word.encode() not in told and word not in logged

    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    about = [line for line in lines if line.get("investigation") == str(run)]
    assert {line["attempt"] for line in about} == {1, 2}
    assert any("ended: completed" in line["event"] for line in about)
