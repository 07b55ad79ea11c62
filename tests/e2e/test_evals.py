"""Evaluations on the whole product: record, measure a candidate that regresses and one that passes."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.tenant import ANSWER, Tenant, answer, condition
from e2e.waiting import until
from integration.git.host import GitHost

LOOKS = "{text: I look., calls: [{name: tools.look, arguments: {what: disk}}]}"
SCRIPT = f"""
agents:
  agent:
    - {LOOKS}
    - {{text: {answer("Medium", ("tools.look", "look saw disk"))}}}
  worse:
    - {LOOKS}
    - {{text: {ANSWER}}}
"""


async def measured(tenant: Tenant, name: str, chain: str, **spec: Any) -> dict[str, Any]:
    await tenant.put(
        "EvalRun", name, {"suiteRef": {"name": "disks"}, "candidate": {"chainRef": {"name": chain}}, **spec}
    )

    async def look() -> Any:
        found = await tenant.get(name, "EvalRun")
        return found if condition(found, "Complete") == "True" else None

    return await until(f"EvalRun {name} is complete", look, 240.0)


async def test_candidate_that_regresses_and_one_that_passes(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT)
    await tenant.use_agent("worse", "tools")
    await tenant.use_chain(["worse"], name="worse")
    await tenant.investigate()
    await tenant.finished()
    calls = tenant.tool_calls("look")
    expect = {"rootCause": {"entities": ["Node/node-1"]}, "tools": {"required": ["tools.look"]}}
    source = {"investigationRef": {"name": "run"}}
    cases = [{"name": name, "source": source, "expect": expect} for name in ("first", "second")]
    await tenant.put("EvalSuite", "disks", {"cases": cases})

    passed = await measured(tenant, "good", "chain")
    regressed = await measured(tenant, "bad", "worse", baseline={"evalRunRef": {"name": "good"}})

    assert (passed["status"]["phase"], passed["status"]["progress"]) == ("Passed", "2/2"), passed["status"]
    assert condition(passed, "Passed") == "True"
    assert regressed["status"]["phase"] == "Regressed", regressed["status"]
    assert regressed["status"]["regressedCases"] == ["first", "second"]
    assert tenant.tool_calls("look") == calls, "a replay asked a tool server"
    code, out = await tenant.kubectl("get", "tsuite,teval")
    assert code == 0
    assert "Regressed" in out and "100%" in out and "0%" in out and "disks" in out


JUDGED = f"""
agents:
  agent:
    - {LOOKS}
    - {{text: {answer("Medium", ("tools.look", "look saw disk"))}}}
  judge:
    - {{text: '{{"answers": [{{"question": "disk", "answer": "yes", "quote": "The disk of node-1 is full"}}]}}'}}
"""


def recorded() -> str:
    """A cassette of the one call that the script makes."""
    header = {
        "cassette": "tarsy.dev/cassette/v1",
        "alert": {"type": "DiskFull", "data": "node-1: the disk is full"},
        "now": "2026-01-01T12:00:00Z",
        "servers": {"tools": {"tools": [{"name": "look", "access": "read-only"}]}},
    }
    call = {"server": "tools", "tool": "look", "arguments": {"what": "disk"}, "result": "look saw disk"}
    return f"{json.dumps(header)}\n{json.dumps(call)}\n"


@pytest.mark.once("the API server takes no part in it")
async def test_case_from_git_is_judged_although_the_operator_is_killed(bare_tenant: Tenant, tmp_path: Path) -> None:
    tenant = bare_tenant
    async with GitHost(tmp_path) as host:
        commit = host.repository({"cases/disk.jsonl": recorded()})
        operator = await tenant.machine.operator("--git-host", host.name, "--git-ca-file", str(host.certificate))
        await tenant.simple(JUDGED)
        source = {"git": {"url": host.url(), "commit": commit, "path": "cases/disk.jsonl"}}
        expect = {"rootCause": {"entities": ["Node/node-1"]}}
        labels = [
            {"finding": f"Text {number}.", "answers": [{"question": "disk", "answer": "No"}]} for number in range(8)
        ]
        judge = {"llmProviderRef": {"name": "model"}, "checklist": [{"name": "disk", "question": "Is it the disk?"}]}
        cases = [{"name": "disk", "source": source, "expect": expect, "labels": labels}]
        await tenant.put("EvalSuite", "disks", {"cases": cases, "judge": judge})

        async def ready() -> Any:
            found = await tenant.get("disks", "EvalSuite")
            return condition(found, "Ready") == "True"

        await until("the case is stored", ready)
    run = {"suiteRef": {"name": "disks"}, "candidate": {"chainRef": {"name": "chain"}}}
    await tenant.put("EvalRun", "killed", run)

    async def begun() -> Any:
        found = (await tenant.get("killed", "EvalRun")).get("status") or {}
        return (found.get("judge") or {}).get("calls")

    await until("the judge is asked", begun)
    operator.kill()
    await operator.wait(30)
    await tenant.machine.lapse_of_all()
    operator.start()

    async def complete() -> Any:
        found = await tenant.get("killed", "EvalRun")
        return found if condition(found, "Complete") == "True" else None

    status = (await until("EvalRun killed is complete", complete, 240.0))["status"]
    assert status["phase"] == "Passed", status
    judged = status["judge"]
    assert (judged["role"], judged["answers"]) == ("Informs", 8), judged
    assert judged["calls"] - judged["failedCalls"] == 9, judged
    assert judged["totalTokens"] > 0
    assert "The judge informs only" in status["summary"]
