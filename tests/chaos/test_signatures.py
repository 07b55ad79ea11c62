"""A native-thinking run whose operator is killed keeps its thought signatures: the next process sends them again.

Seen from outside: what the Gemini stand-in was asked. Nothing but the record carries them from one process to the next.
"""

import base64
import json
import signal

import pytest

from e2e.tenant import ANSWER, KEY, SUMMARY, Tenant, condition
from e2e.waiting import until
from extras import needs
from tarsy.kube.credentials import LABEL
from tarsy_dev.objects import put
from tarsy_dev.stack import bind_secret_role
from wire import gemini
from wire.server import StandIn, standing_in

pytestmark = [needs("google.genai"), pytest.mark.timeout(900)]
SIGNATURES = [bytes(range(256)), b"\xff\xfe\xfd"]


async def use_gemini(tenant: Tenant, server: StandIn) -> None:
    await bind_secret_role(tenant.client, tenant.namespace)
    secret = {"name": "gemini", "namespace": tenant.namespace, "labels": {LABEL: "true"}}
    data = {"api-key": base64.b64encode(KEY.encode()).decode()}
    await put(tenant.client, {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data})
    spec = {"type": "google", "model": "gemini-3-pro", "baseURL": server.url}
    await tenant.put("LLMProvider", "model", {**spec, "apiKeySecretRef": {"name": "gemini", "key": "api-key"}})


async def test_killed_native_thinking_run_sends_the_same_signatures_from_another_process(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    async with standing_in() as server:
        await use_gemini(tenant, server)
        await tenant.use_tools()
        await tenant.use_agent("agent", "tools", strategy="native-thinking")
        await tenant.use_chain(["agent"], summary=True)
        first = gemini.stream(
            gemini.piece(gemini.thought("A full disk? ")),
            gemini.piece(gemini.thought("I wait.")),
            gemini.piece(gemini.text("I wait.")),
            gemini.piece(gemini.call("tools__wait", {"what": "door"}, signature=SIGNATURES[0])),
            gemini.last(gemini.text("", SIGNATURES[1])),
        )
        hanging = gemini.stream(gemini.piece(gemini.thought("Then ")), hang=True)
        final = gemini.stream(gemini.piece(gemini.text(json.loads(ANSWER))), gemini.last())
        summary = gemini.stream(gemini.last(gemini.text("The disk is full.")))
        server.known = {"name": "models/gemini-3-pro"}
        server.answers = [first, hanging, final, summary]
        await tenant.machine.stop_operator()
        await tenant.investigate()
        operator = await tenant.machine.operator()

        await until("the tool is asked to wait", lambda: waiting(tenant))
        operator.kill()  # between the first model call and the second
        assert await operator.wait(60) == -signal.SIGKILL
        assert len(server.requests) == 1
        (tenant.folder / "gate").touch()
        await tenant.machine.lapse_of_all()
        operator.start()
        await until("the model is asked again", lambda: asked(server, 2))
        operator.kill()  # in the middle of the second
        assert await operator.wait(60) == -signal.SIGKILL
        await tenant.machine.lapse_of_all()
        operator.start()
        inv = await tenant.finished(seconds=300)

    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"]["summary"] == SUMMARY
    _, second, third, _ = server.requests
    assert gemini.signatures(second) == SIGNATURES
    assert third["contents"] == second["contents"]
    turn = next(content for content in second["contents"] if content["role"] == "model")
    assert [part.get("text") for part in turn["parts"]] == ["A full disk? I wait.", "I wait.", None, ""]
    assert [bool(part.get("thoughtSignature")) for part in turn["parts"]] == [False, False, True, True]
    assert turn["parts"][2]["functionCall"] == {"name": "tools__wait", "args": {"what": "door"}}
    assert {headers["x-goog-api-key"] for headers in server.headers} == {KEY}


async def waiting(tenant: Tenant) -> bool:
    return tenant.tool_calls("wait") > 0


async def asked(server: StandIn, times: int) -> bool:
    return len(server.requests) >= times
