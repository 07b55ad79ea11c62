"""Evaluations on the whole product: record, measure a candidate that regresses and one that passes."""

from typing import Any

from e2e.tenant import ANSWER, Tenant, answer, condition
from e2e.waiting import until

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
