"""Tests MCPServers: their availability, their tools, and the Events for changes."""

import asyncio
import base64
import re
from pathlib import Path
from typing import Any

from embedded_kubeapi.pki import Authority
from integration.controllers.desk import Desk, eventually
from integration.mcp.servers import served
from tarsy.kube.credentials import LABEL

TOKEN = "a-token-of-the-test"
READ_ONLY = {"readOnly": ["*"]}


def http(url: str, **rest: Any) -> dict[str, Any]:
    return {"transport": {"type": "http", "http": {"url": url, **rest}}, "tools": READ_ONLY}


async def secret(desk: Desk, token: str) -> dict[str, str]:
    data = {"data": {"token": base64.b64encode(token.encode()).decode()}}
    await desk.core("Secret", "tools", data, labels={LABEL: "true"})
    return {"name": "tools", "key": "token"}


async def status(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = (await desk.get("MCPServer", "tools"))["status"]
    return found


async def told(desk: Desk) -> list[tuple[str, str]]:
    """Reason and message of the Events of the server."""
    found = await desk.kube.list("Event", desk.namespace)
    return [(item["reason"], item["message"]) for item in found if item["involvedObject"]["kind"] == "MCPServer"]


async def test_a_server_that_answers_is_available_with_its_tools_and_is_asked_again_without_a_write(
    desk: Desk,
) -> None:
    async with served() as web, desk.controller(look_every=0.2) as writes:
        await desk.put("MCPServer", "tools", http(web.url))
        message = await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        assert "6 tools" in message
        await desk.reason("MCPServer", "tools", "Verified", "True", "ToolsKnown")
        found = await status(desk)
        assert found["tools"] == ["big", "echo", "explode", "key", "refuse", "wait"] and found["toolCount"] == 6
        assert re.fullmatch(r"[0-9a-f]{64}", found["toolsHash"])
        before = writes["PATCH mcpservers/status"]
        looks = len(web.methods)

        async def looked_at_again() -> bool:
            return len(web.methods) >= looks + 6

        await eventually(looked_at_again)
        assert writes["PATCH mcpservers/status"] == before, "nothing changed, so nothing is written"
        assert set(web.methods) == {"server/discover", "tools/list"}, "no session, no call"


async def test_failures_in_a_row_make_it_unavailable_and_both_changes_are_told_once(desk: Desk) -> None:
    async with served() as web, desk.controller(look_every=0.2):
        await desk.put("MCPServer", "tools", http(web.url))
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        web.refuse = 503
        message = await desk.reason("MCPServer", "tools", "Available", "False", "OpenFailed")
        assert "HTTP 503" in message and "in a row" in message
        assert (await status(desk))["lastError"].startswith("HTTP 503")
        assert (await status(desk))["toolCount"] == 6, "what it has stays known"
        await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
        await desk.still("MCPServer", "tools", 0.8)
        web.refuse = None
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        assert "lastError" not in await status(desk)

        async def both() -> bool:
            return sorted(reason for reason, _ in await told(desk)) == ["AvailableAgain", "Unavailable"]

        await eventually(both)


async def test_a_changed_list_of_tools_is_told(desk: Desk) -> None:
    async with served() as web, desk.controller(look_every=0.2):
        await desk.put("MCPServer", "tools", http(web.url))
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        before = (await status(desk))["toolsHash"]
        web.server.add_tool(lambda: "", name="new_one", description="New.")

        async def changed() -> list[str]:
            return [message for reason, message in await told(desk) if reason == "ToolsChanged"]

        (message,) = await eventually(changed)
        assert "new: new_one" in message

        async def shown() -> bool:
            return bool((await status(desk))["toolsHash"] != before)

        await eventually(shown)


async def test_a_token_that_is_refused_is_said_without_the_token_and_a_rotated_one_counts_without_a_restart(
    desk: Desk,
) -> None:
    async with served() as web, desk.controller(look_every=0.2):
        web.accepted = f"Bearer {TOKEN}"
        await desk.put("MCPServer", "tools", http(web.url, bearerTokenSecretRef={"name": "tools", "key": "token"}))
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "SecretMissing")
        assert "spec.transport.http.bearerTokenSecretRef" in message
        await desk.reason("MCPServer", "tools", "Available", "Unknown", "NotReady")
        assert web.methods == [], "it is not looked at while it is not Ready"
        await secret(desk, "a-wrong-token")
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"description": "look again"}})
        message = await desk.reason("MCPServer", "tools", "Available", "False", "OpenFailed")
        assert "HTTP 401" in message and "a-wrong-token" not in str(await desk.get("MCPServer", "tools"))
        data = {"data": {"token": base64.b64encode(TOKEN.encode()).decode()}}
        await desk.kube.patch("Secret", desk.namespace, "tools", data)
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")


async def test_what_a_server_says_of_its_refusal_is_not_echoed_into_the_status(desk: Desk) -> None:
    async def inner_service(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "inner words"}}'
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\n")
        writer.write(f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(inner_service, "127.0.0.1", 0)
    async with listener, desk.controller(look_every=0.2):
        await desk.put("MCPServer", "tools", http(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"))
        await desk.reason("MCPServer", "tools", "Available", "False", "OpenFailed")
        assert "inner words" not in str(await desk.get("MCPServer", "tools"))


async def test_the_authority_of_a_config_map_decides_whom_a_server_is_believed_to_be(
    desk: Desk, tmp_path: Path
) -> None:
    authority = Authority("tools")
    pair = authority.issue("tools", addresses=("127.0.0.1",))
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    async with served(tls=files) as web, desk.controller(look_every=0.2):
        tls = {"caFrom": {"configMapKeyRef": {"name": "authorities", "key": "ca.crt"}}}
        await desk.put("MCPServer", "tools", http(web.url, tls=tls))
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "ConfigMapMissing")
        assert "spec.transport.http.tls.caFrom.configMapKeyRef" in message
        await desk.core("ConfigMap", "authorities", {"data": {"ca.crt": Authority("other").certificate.decode()}})
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"description": "look again"}})
        message = await desk.reason("MCPServer", "tools", "Available", "False", "OpenFailed")
        assert "certificate" in message.lower()
        await desk.kube.patch(
            "ConfigMap", desk.namespace, "authorities", {"data": {"ca.crt": authority.certificate.decode()}}
        )
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")


async def test_a_command_is_not_run_in_a_cluster_and_its_object_says_what_to_do(desk: Desk, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    async with desk.controller(look_every=0.2):
        stdio = {"command": "touch", "args": [str(ran)]}
        await desk.put("MCPServer", "tools", {"transport": {"type": "stdio", "stdio": stdio}, "tools": READ_ONLY})
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "StdioNotInCluster")
        assert "spec.transport.type" in message and "put the server behind streamable HTTP" in message
        await desk.reason("MCPServer", "tools", "Available", "Unknown", "NotReady")
    assert not ran.exists()
