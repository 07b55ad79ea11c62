"""Tests the sentences for servers that cannot be reached or run: address, error and remedy, always the same."""

import socket
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from integration.mcp.servers import http, plan, resolve
from tarsy.mcp.connection import Policy
from tarsy.mcp.connection_errors import alike
from tarsy.mcp.health import look
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import HttpTransport, ServerPlan, StdioTransport, Value

BODY = "words-of-the-server"
POLICY = Policy(resolve, ssl.create_default_context(), allow_stdio=True)


def command(name: str, *args: str) -> ServerPlan:
    return plan("tools", StdioTransport(command=name, args=args))


async def said(server: ServerPlan, seconds: float = 20.0, policy: Policy = POLICY) -> str:
    """The sentence of two looks, which must be alike."""
    first, second = [(await look(server, policy, seconds)).failure for _ in range(2)]
    assert alike(first, second), (first, second)
    assert " at 0x" not in first and "object at" not in first and BODY not in first and "Errno" not in first
    return first


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "echo cannot read /etc/tools.conf >&2; exit 3",
            "its command exited with code 3 before it responded (it said: cannot read /etc/tools.conf)",
        ),
        ("exit 7", "its command exited with code 7 before it responded"),
        ("exit 0", "its command exited with code 0 before it responded"),
        ("kill -9 $$", "its command was terminated by signal SIGKILL before it responded"),
    ],
)
async def test_a_command_that_dies_says_how_and_its_last_words(script: str, sentence: str) -> None:
    assert await said(command("sh", "-c", script)) == sentence


async def test_addresses_of_objects_are_left_out_of_last_words() -> None:
    text = await said(command(sys.executable, "-S", "-c", "raise SystemExit(f'failed: {object()}')"))
    assert text == "its command exited with code 1 before it responded (it said: failed: <object>)".replace(
        "<object>", "object"
    )


async def test_times_and_process_ids_in_last_words_make_no_other_sentence() -> None:
    await said(command("sh", "-c", 'echo "[$$] $(date +%H:%M:%S) pid $$ cannot start" >&2; exit 1'))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", ("does not exist", "check the path")),
        ("unknown", ("was not found on PATH", "install it")),
        ("plain", ("is not executable", "chmod +x")),
        ("folder", ("is a directory", "specify the program in it")),
        ("garbage", ("is not a program for this machine", "#!")),
        ("interpreter", ("needs an interpreter that does not exist", "first line")),
    ],
)
async def test_a_command_that_cannot_be_run_says_why(kind: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, text, mode in (
        ("plain", "x", 0o644),
        ("garbage", "garbage", 0o755),
        ("interpreter", "#!/no/such/program\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    name = "no-such-program-anywhere" if kind == "unknown" else str(tmp_path / kind)
    text = await said(command(name))
    assert name in text and all(word in text for word in words), text


async def test_a_command_that_logs_to_its_output_is_told_to_stop_that() -> None:
    text = await said(command("sh", "-c", "while :; do echo starting; sleep 0.1; done"), seconds=2.0)
    assert text.startswith("it did not start within 2 s (spec.timeouts.initSeconds)")
    assert "output contains lines that are not JSON-RPC" in text


async def test_a_command_that_says_nothing_names_the_limit() -> None:
    assert await said(command("sleep", "30"), seconds=1.0) == (
        "it did not start within 1 s (spec.timeouts.initSeconds)"
    )


async def test_a_command_in_a_cluster_names_both_ways_out() -> None:
    text = await said(command("sh"), policy=Policy(resolve, ssl.create_default_context()))
    assert "spec.run" in text and "streamable HTTP" in text


@pytest.fixture
async def base() -> AsyncIterator[str]:
    """A server that answers anything but MCP."""

    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": "/elsewhere"} if request.match_info["status"] == "301" else {}
        return web.Response(status=int(request.match_info["status"]), text=BODY, headers=headers)

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=f"<html>{BODY}</html>", content_type="text/html")

    async def json(_: web.Request) -> web.Response:
        return web.json_response({"hello": BODY})

    async def error(request: web.Request) -> web.Response:
        failed = {"code": -32601, "message": BODY}
        return web.json_response({"jsonrpc": "2.0", "id": (await request.json()).get("id"), "error": failed})

    app = web.Application()
    app.router.add_route("*", "/{status:[0-9]{3}}/mcp", answer)
    for path, handler in (("/page", page), ("/json", json), ("/error", error)):
        app.router.add_route("*", path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/301/mcp", ("HTTP 301", "redirects are not followed", "spec.transport.http.url")),
        ("/400/mcp", ("HTTP 400 Bad Request", "check the URL")),
        ("/401/mcp", ("HTTP 401 Unauthorized", "headers and Secrets")),
        ("/403/mcp", ("HTTP 403 Forbidden", "headers and Secrets")),
        ("/404/mcp", ("HTTP 404 Not Found", "check the path of the URL")),
        ("/405/mcp", ("HTTP 405 Method Not Allowed", "does not accept POST", "sse")),
        ("/429/mcp", ("HTTP 429", "rate limit")),
        ("/503/mcp", ("HTTP 503", "the server's own log")),
        ("/page", ("responds with text/html instead of MCP", "check the path")),
        ("/json", ("JSON that is not an MCP message", "check the path")),
    ],
)
async def test_an_answer_that_is_not_mcp_says_where_it_came_from_and_what_to_look_at(
    base: str, path: str, words: tuple[str, ...]
) -> None:
    text = await said(http(f"{base}{path}?token=in-the-query"))
    assert f"{base}{path}" in text and all(word in text for word in words), text
    assert "in-the-query" not in text


async def test_a_json_rpc_error_is_told_by_its_meaning(base: str) -> None:
    assert await said(http(f"{base}/error")) == (
        "it answered with the JSON-RPC error -32601 (it does not know the method)"
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/405/mcp", ("does not accept GET", "whether the transport type is http")),
        ("/page", ("responds with text/html instead of MCP",)),
    ],
)
async def test_a_stream_of_the_older_transport_says_the_same(base: str, path: str, words: tuple[str, ...]) -> None:
    text = await said(plan("web", HttpTransport(type="sse", url=f"{base}{path}")))
    assert f"{base}{path}" in text and all(word in text for word in words), text


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_that_does_not_run_names_address_and_reason(kind: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    text = await said(plan("web", HttpTransport.model_validate({"type": kind, "url": url})))
    assert text == f"no connection to {url}: connection refused (is the server running on this port?)"


async def test_addresses_that_lead_nowhere_say_why(base: str) -> None:
    assert "host no-such-host.invalid is not found: Name or service not known (check the name" in await said(
        http("http://no-such-host.invalid/mcp")
    )
    assert "is it an http:// server" in await said(http(base.replace("http:", "https:") + "/mcp"))
    in_pod = Policy(resolve, ssl.create_default_context(), destinations=Destinations(in_pod=True))
    text = await said(http("http://169.254.169.254/mcp"), policy=in_pod)
    assert "its URL is not allowed" in text and "--url-host" in text


async def test_values_that_cannot_be_used_name_their_field(base: str) -> None:
    ca = Value(name="tls.caFrom", value="no certificate")
    text = await said(http("https://127.0.0.1/mcp", transport={"ca": ca}))
    assert "tls.caFrom contains no usable PEM certificates" in text
    token = Value(name="bearerTokenSecretRef", value="two words")
    assert "check the Secret" in await said(http(f"{base}/page", transport={"bearer_token": token}))
