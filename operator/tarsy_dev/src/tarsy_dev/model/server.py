"""Serves `/v1/chat/completions` and `/v1/models` for SDKs, and `/control/...` for tests.

A client that goes away cancels its request at once (aiohttp's handler_cancellation), so a hang ends with its client and
the journal tells a disconnected request from a finished one.
"""

import asyncio
import hmac
import time
from collections import Counter, defaultdict
from itertools import count
from types import TracebackType
from typing import Self

import orjson
from aiohttp import web

from tarsy.listening.uncompressed_bodies import plain_bodies_only
from tarsy_dev.model.conversation import agent_name, count_tokens, tool_names, turn, with_call_ids
from tarsy_dev.model.delivery import deliver
from tarsy_dev.model.journal import Journal, RequestOutcome, ServedRequest, render_journal
from tarsy_dev.model.script import AgentScript, Entry, Order, Script, ScriptedFault
from tarsy_dev.model.wire import WireAnswer, error_body

BODY_LIMIT = 64 * 1024 * 1024
GATE_LIMIT = 3600.0


class ScriptedModel:
    """A model whose answers are a script's, on 127.0.0.1 between `start` and `stop`.

    With an `api_key` requests must carry it as bearer token. `port` 0 takes a free one.
    """

    def __init__(self, script: Script, *, api_key: str | None = None, port: int = 0) -> None:
        self._script = script
        self._api_key = api_key
        self._port = port
        self._runner: web.AppRunner | None = None
        self._journal = Journal()
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._numbers = count(1)
        self._taken: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self.base_url = ""

    @property
    def journal(self) -> Journal:
        """The requests so far."""
        return self._journal

    def open_gate(self, name: str) -> None:
        """Lets the answers behind a gate go, those that wait and those to come."""
        self._gates[name].set()

    def close_gate(self, name: str) -> None:
        """Holds the answers to come back again."""
        self._gates[name].clear()

    async def start(self) -> str:
        """Listens, and returns the base URL for SDKs (it ends in /v1). Raises OSError: the port is taken."""
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[plain_bodies_only])
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._complete),
                web.get("/v1/models", self._models),
                web.get("/control/requests", self._show_requests),
                web.delete("/control/requests", self._forget_requests),
                web.post("/control/gates/{name}", self._set_gate),
                web.delete("/control/gates/{name}", self._set_gate),
                web.route("*", "/{path:.*}", _no_such_path),
            ]
        )
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2, auto_decompress=False
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        except OSError:
            await self.stop()
            raise
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}/v1"
        return self.base_url

    async def stop(self) -> None:
        """Ends all requests and listens no more; again does nothing."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if refusal := self._unauthorized(request):
            return refusal
        try:
            body = orjson.loads(await request.read())
            messages = body["messages"]
            if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
                raise TypeError("messages is not a list of objects")
            tools = body.get("tools") or []
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _error(400, f"the request cannot be read: {error!r}", "invalid_request_error")
        agent, position = agent_name(messages), turn(messages)
        label, place, entry = self._choose(agent, position)
        served = ServedRequest(
            number=next(self._numbers),
            path=request.path,
            agent=agent,
            turn=position,
            entry=label if entry else None,
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            messages=messages,
            tools=tool_names(tools) if body.get("tool_choice") != "none" else [],
            headers=render_journal(request.headers),
            gate=entry.gate if entry else None,
        )
        await self._journal.note(served)
        try:
            if entry is None:
                served.outcome, served.status = RequestOutcome.ERROR, 500
                return _error(500, label, "server_error", "script_exhausted")
            if entry.text is not None:
                entry = entry.model_copy(update={"text": with_call_ids(entry.text, messages)})
            answer = WireAnswer(
                entry=entry,
                model=served.model or self._script.model,
                agent=agent,
                position=place,
                number=served.number,
                offered=served.tools,
                prompt_tokens=count_tokens(messages, orjson.dumps(tools).decode() if tools else ""),
            )
            if entry.gate:
                async with asyncio.timeout(GATE_LIMIT):
                    await self._gates[entry.gate].wait()
            include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return await deliver(
                request, answer, served, self._fault(label, entry), script=self._script, include_usage=include_usage
            )
        except (asyncio.CancelledError, ConnectionError):
            if served.outcome is RequestOutcome.PENDING:
                served.outcome = RequestOutcome.DISCONNECTED
            raise
        finally:
            served.ended = time.time()
            await self._journal.tell()

    def _choose(self, agent: str | None, position: int) -> tuple[str, int, Entry | None]:
        """The entry's path in the script, its place and the entry; without one, a sentence that says so."""
        script = self._script.agents.get(agent) if agent else None
        key = f"agents.{agent}"
        if script is None:
            if not self._script.sequential:
                who = f"agent {agent}" if agent else "a request without the line `Agent: NAME` in its first messages"
                return f"the script has no answers for {who}: add them to `agents`, or fill `sequential`", 0, None
            script, key = AgentScript(by=Order.ORDER, entries=self._script.sequential), "sequential"
        if script.by is Order.ORDER:
            position = self._taken[key]
            self._taken[key] += 1
        found = script.entry(position)
        if found is None:
            asked = f"number {position + 1}" if script.by is Order.ORDER else f"of turn {position}"
            sentence = (
                f"the script of {key} ran out: {agent or 'an unnamed agent'} asks for answer {asked}, and there are "
                f"{len(script.entries)}; add entries, or `repeat: last`"
            )
            return sentence, position, None
        return f"{key}[{found[0]}]", position, found[1]

    def _fault(self, label: str, entry: Entry) -> ScriptedFault | None:
        """The entry's fault, unless it was shown as often as it shall be."""
        fault = entry.fault
        if fault is None or (fault.times is not None and self._faults[label] >= fault.times):
            return None
        self._faults[label] += 1
        return fault

    def _unauthorized(self, request: web.Request) -> web.Response | None:
        given = request.headers.get("Authorization", "")
        if self._api_key is None or hmac.compare_digest(given.encode(), f"Bearer {self._api_key}".encode()):
            return None
        what = "Incorrect API key provided." if given else "You didn't provide an API key."
        return _error(401, what, "invalid_request_error", "invalid_api_key" if given else None)

    async def _models(self, request: web.Request) -> web.Response:
        if refusal := self._unauthorized(request):
            return refusal
        model = {"id": self._script.model, "object": "model", "created": 0, "owned_by": "tarsy-scripted"}
        return web.json_response({"object": "list", "data": [model]})

    async def _show_requests(self, request: web.Request) -> web.Response:
        """All requests; `?wait=N&seconds=S` first waits until there are N of them (after S seconds it answers 408)."""
        try:
            wanted, seconds = int(request.query.get("wait", 0)), float(request.query.get("seconds", 30))
        except ValueError:
            return _error(400, "`wait` is a number of requests, `seconds` a number", "invalid_request_error")
        status = 200
        try:
            await self._journal.wait_for(lambda requests: len(requests) >= wanted, seconds)
        except TimeoutError:
            status = 408
        return web.json_response([served.as_dict() for served in self._journal.requests], status=status)

    async def _forget_requests(self, request: web.Request) -> web.Response:
        self._journal.requests.clear()
        return web.Response(status=204)

    async def _set_gate(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        (self.open_gate if request.method == "POST" else self.close_gate)(name)
        return web.Response(status=204)


def _error(status: int, message: str, kind: str, code: str | None = None) -> web.Response:
    return web.json_response(error_body(message, kind=kind, code=code), status=status)


async def _no_such_path(request: web.Request) -> web.Response:
    return _error(404, f"no such path: {request.method} {request.path}", "invalid_request_error", "unknown_url")
