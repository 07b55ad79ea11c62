"""Runs the API layer of the Headlamp plugin under node, against the Kubernetes API, as a person with one role."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from e2e.person import new_robot
from e2e.tenant import SUMMARY, Tenant, answer
from e2e.waiting import until
from tarsy.kube.client import ApiError

PROGRAM = Path(__file__).parents[2] / "operator" / "headlamp" / "tests" / "against.mjs"
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: {answer("High", ("tools.look", "look saw df"))}
  chat-agent:
    - text: It is still full.
"""


async def run(tenant: Tenant, token: str, question: str = "") -> dict[str, Any]:
    """What the program has read with this token."""
    given = {
        "server": tenant.machine.api.url,
        "ca": tenant.machine.api.ca_file.read_text(),
        "token": token,
        "namespace": tenant.namespace,
        "investigation": "run",
        "question": question,
    }
    node = await asyncio.create_subprocess_exec(
        "node",
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(120):
            out, err = await node.communicate(json.dumps(given).encode())
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    assert node.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


async def investigated(tenant: Tenant) -> None:
    """An investigation `run` that has ended, at an aggregated API that answers."""
    if shutil.which("node") is None:
        pytest.skip("node runs the API layer of the Headlamp plugin, and is not installed")
    await tenant.use_model(SCRIPT)
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    await tenant.investigate()
    await tenant.finished()

    async def passed_on() -> bool:
        try:
            return bool(await tenant.client.read("/apis/record.tarsy.dev/v1alpha1"))
        except ApiError:
            return False

    await until("the aggregated API answers", passed_on)


async def test_an_investigator_lists_reads_and_asks_through_the_kubernetes_api(tenant: Tenant) -> None:
    await investigated(tenant)
    user, token = await new_robot(tenant, "headlamp", "tarsy-investigator")
    found = await run(tenant, token, "Is it still full?")
    assert "error" not in found, found
    (row,) = found["rows"]
    assert (row["phase"], row["confidence"]) == ("Succeeded", "Medium") and SUMMARY in row["finding"]
    timeline = found["timeline"]
    assert timeline["investigation"]["finding"]["summary"] == SUMMARY
    (claim,) = timeline["investigation"]["finding"]["claims"]
    assert claim["supported"] and claim["citations"][0]["quote"] == "look saw df"
    assert [one["seq"] for one in timeline["items"]] == sorted(one["seq"] for one in timeline["items"])
    assert "llm_tool_call" in {one["type"] for one in timeline["items"]}
    assert found["again"] == timeline
    assert found["mayAsk"] is True
    (question,) = found["questions"]
    assert (question["question"], question["answer"]) == ("Is it still full?", "It is still full.")
    made = await tenant.client.get("ChatMessage", tenant.namespace, question["name"])
    assert made["spec"].get("author", {}).get("username", user) == user
    assert {path.partition("?")[0].split("/")[2] for path in found["paths"]} == {
        "authorization.k8s.io",
        "record.tarsy.dev",
        "tarsy.dev",
    }


async def test_a_viewer_reads_and_may_not_ask_and_nobody_else_reads(tenant: Tenant) -> None:
    await investigated(tenant)
    _, token = await new_robot(tenant, "viewer", "tarsy-viewer")
    found = await run(tenant, token)
    assert found["timeline"]["investigation"]["finding"]["summary"] == SUMMARY and found["mayAsk"] is False
    refused = await run(tenant, token, "May I?")
    assert refused["status"] == 403 and "chatmessages" in refused["error"]
    _, stranger = await new_robot(tenant, "stranger")
    refused = await run(tenant, stranger)
    assert refused["status"] == 403 and "investigations" in refused["error"]
