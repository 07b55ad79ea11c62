"""One that is told of runs, on loopback: a webhook that checks signatures, and Slack's `chat.postMessage`."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "xoxb-of-the-tests"
KEY = "whsec_" + base64.b64encode(b"key of the tests").decode()


@dataclass(frozen=True)
class Told:
    """One request: its path, headers in lower case, body; `signed` says whether its signature is right."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    signed: bool
    method: str = "POST"
    raw_path: str = ""


@dataclass
class Receiver:
    """What came in. `answers` are statuses (with headers) for the next requests; `words` errors of Slack.

    Where it is `mute` it takes a request and never answers.
    """

    url: str = ""
    mute: bool = False
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def at(self, path: str) -> list[Told]:
        """The requests to a path."""
        return [told for told in self.told if told.path == path]

    async def wait_for(self, seen: Callable[[], object], seconds: float = 120.0) -> None:
        """Returns when that has come in."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(seen)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver, until left."""
    receiver = Receiver()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        async with receiver.changed:
            receiver.told.append(
                Told(
                    request.path, headers, json.loads(body), _is_signed(headers, body), request.method, request.raw_path
                )
            )
            receiver.changed.notify_all()
        if receiver.mute:
            await asyncio.Event().wait()
        if receiver.answers:
            status, more = receiver.answers.pop(0)
            return web.Response(status=status, headers=more, text="a page that nobody repeats")
        if request.path != "/api/chat.postMessage":
            return web.Response(status=204)
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if receiver.words:
            return web.json_response({"ok": False, "error": receiver.words.pop(0)})
        return web.json_response(
            {"ok": True, "channel": "C0000000001", "ts": f"17000000{len(receiver.told):02}.000100"}
        )

    app = web.Application()
    for method in ("POST", "PUT", "PATCH"):
        app.router.add_route(method, "/{path:.*}", take)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        receiver.url = f"http://{host}:{port}"
        yield receiver
    finally:
        await runner.cleanup()


def _is_signed(headers: dict[str, str], body: bytes) -> bool:
    """As a receiver by Standard Webhooks checks it."""
    what = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
    right = base64.b64encode(hmac.digest(b"key of the tests", what, hashlib.sha256)).decode()
    return headers.get("webhook-signature") == f"v1,{right}"
