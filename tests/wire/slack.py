"""Slack, on loopback: the Web API and Socket Mode as its documentation describes them.

`apps.connections.open` gives out an address with a single-use ticket; the WebSocket greets with `hello`, sends
envelopes to one of its connections, and delivers an event again, with a higher `retry_attempt`, whose envelope was not
acknowledged in time.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

APP_TOKEN = "xapp-of-the-tests"
BOT_TOKEN = "xoxb-of-the-tests"
TEAM, BOT, CHANNEL = "T0000000001", "U00000000BT", "C0000000001"
MOST_DELIVERIES = 4


@dataclass(frozen=True)
class Posted:
    """One call of the Web API."""

    method: str
    body: dict[str, Any]


@dataclass
class Slack:
    """What came in, and what to answer next: `words` are errors by method. `ack_seconds` is how long it waits."""

    url: str = ""
    ack_seconds: float = 3.0
    posted: list[Posted] = field(default_factory=list)
    words: dict[str, list[str]] = field(default_factory=dict)
    greets: bool = True
    opened: int = 0
    acknowledged: list[str] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    tickets: set[str] = field(default_factory=set)
    held: dict[str, tuple[asyncio.Event, asyncio.Event]] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def api(self) -> str:
        """The base URL of the Web API."""
        return f"{self.url}/api"

    def of(self, method: str) -> list[dict[str, Any]]:
        """The bodies of the calls of a method."""
        return [one.body for one in self.posted if one.method == method]

    async def wait_for(self, seen: Callable[[], object], seconds: float = 60.0) -> None:
        """Returns when that has come in."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(seen)

    def new_ts(self) -> str:
        """The id of a new message."""
        return f"1700000000.{next(self.numbers):06}"

    def mention(self, text: str, user: str, thread: str, /, **event: Any) -> dict[str, Any]:
        """The payload of an event: a person mentions the app in a thread."""
        number = next(self.numbers)
        said = {
            "type": "app_mention",
            "user": user,
            "text": f"<@{BOT}> {text}",
            "ts": self.new_ts(),
            "thread_ts": thread,
            "channel": CHANNEL,
            "team": TEAM,
            "event_ts": "1700000000.000001",
            **event,
        }
        return {
            "token": "of-no-use",
            "team_id": TEAM,
            "api_app_id": "A0000000001",
            "event": said,
            "type": "event_callback",
            "event_id": f"Ev{number:08}",
            "event_time": 1700000000,
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
        }

    async def deliver(self, payload: dict[str, Any], kind: str = "events_api") -> bool:
        """Sends an event until it is acknowledged; whether it was, at last."""
        for attempt in range(MOST_DELIVERIES):
            await self.wait_for(lambda: self.sockets)
            envelope = f"envelope-{next(self.numbers)}"
            message = {"envelope_id": envelope, "payload": payload, "type": kind, "accepts_response_payload": False}
            retried = {"retry_attempt": attempt, "retry_reason": "timeout" if attempt else ""}
            self.deliveries.append(envelope)
            try:
                await self.sockets[-1].send_str(json.dumps(message | retried))
                await self.wait_for(lambda sent=envelope: sent in self.acknowledged, self.ack_seconds)  # type: ignore[misc]
            except (TimeoutError, ConnectionError):
                continue
            return True
        return False

    @asynccontextmanager
    async def holding(self, method: str) -> AsyncIterator[asyncio.Event]:
        """Answers calls of a method only afterwards; gives an event that is set when one has come in."""
        begun, go_on = self.held[method] = asyncio.Event(), asyncio.Event()
        try:
            yield begun
        finally:
            del self.held[method]
            go_on.set()

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Closes the oldest connection as Slack does, with a word before."""
        socket = self.sockets[0]
        await socket.send_str(json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "tests"}}))

    async def call(self, request: web.Request) -> web.Response:
        """Answers a call of the Web API."""
        method = request.match_info["method"]
        sent = await request.read()
        body = json.loads(sent) if request.content_type == "application/json" else dict(await request.post())
        if method in self.held:
            begun, go_on = self.held[method]
            begun.set()
            await go_on.wait()
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        answer: dict[str, Any] = {"ok": True}
        if request.headers.get("Authorization") != f"Bearer {wanted}":
            answer = {"ok": False, "error": "invalid_auth"}
        elif self.words.get(method):
            answer = {"ok": False, "error": self.words[method].pop(0)}
        elif method == "apps.connections.open":
            self.opened += 1
            ticket = f"ticket-{self.opened}"
            self.tickets.add(ticket)
            answer["url"] = f"ws{self.url.removeprefix('http')}/link/?ticket={ticket}&app_id=A0000000001"
        elif method == "chat.postMessage":
            answer |= {"channel": CHANNEL, "ts": self.new_ts(), "message": {"text": body.get("text")}}
        elif method == "chat.postEphemeral":
            answer |= {"message_ts": self.new_ts()}
        else:
            answer = {"ok": False, "error": "unknown_method"}
        async with self.changed:
            if answer["ok"] and method != "apps.connections.open":
                self.posted.append(Posted(method, body | {"ts": answer.get("ts")}))
            self.changed.notify_all()
        return web.json_response(answer)

    async def link(self, request: web.Request) -> web.StreamResponse:
        """Serves a WebSocket to one who holds a ticket that was not used."""
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:
            return web.Response(status=403)
        self.tickets.remove(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if self.greets:
            hello = {
                "type": "hello",
                "num_connections": len(self.sockets) + 1,
                "debug_info": {"host": "tests", "build_number": 1, "approximate_connection_time": 18060},
                "connection_info": {"app_id": "A0000000001"},
            }
            await socket.send_str(json.dumps(hello))
        async with self.changed:
            self.sockets.append(socket)
            self.changed.notify_all()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    async with self.changed:
                        self.acknowledged.append(json.loads(message.data)["envelope_id"])
                        self.changed.notify_all()
        finally:
            async with self.changed:
                self.sockets.remove(socket)
                self.changed.notify_all()
        return socket


@asynccontextmanager
async def slack_server(ack_seconds: float = 3.0) -> AsyncIterator[Slack]:
    """A Slack, until left."""
    slack = Slack(ack_seconds=ack_seconds)
    app = web.Application()
    app.router.add_post("/api/{method}", slack.call)
    app.router.add_get("/link/", slack.link)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        slack.url = f"http://{host}:{port}"
        yield slack
    finally:
        for socket in tuple(slack.sockets):
            await socket.close()
        await runner.cleanup()
