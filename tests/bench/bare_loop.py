"""The floor: a tool loop by hand that persists what the operator persists, with nothing between it and the wire.

A process of its own, `python bare_loop.py FILE`; FILE is JSON with `base_url`, `tools_url`, `database_url`, `messages`
(role and text of the operator's own first request), `loops` and `at_once`. One round before the first counted one pays
for imports and connections. It prints JSON: the calls made, CPU seconds of the process, wall seconds.

It streams with aiohttp and orjson, calls tools with one JSON-RPC request each on a session that it opened, listed and
closes, and writes prepared statements of text parameters over a pool of six connections, two commits a model call: one
when an answer has ended (the request, the answer, its timeline event), one when its tools have (their results, their
events, the next request). No retry, no masking, no limits, no fence, no live stream: whatever does these costs more.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import orjson

POOL = 6
SCHEMA = """
CREATE SCHEMA IF NOT EXISTS bare;
CREATE TABLE IF NOT EXISTS bare.run (
    id uuid PRIMARY KEY, state text NOT NULL, input text NOT NULL, calls int NOT NULL DEFAULT 0, finding text,
    begun timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz);
CREATE TABLE IF NOT EXISTS bare.step (
    run uuid NOT NULL, number int NOT NULL, kind text NOT NULL, request text, answer text,
    begun timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz, PRIMARY KEY (run, number, kind));
CREATE TABLE IF NOT EXISTS bare.message (
    run uuid NOT NULL, number int NOT NULL, role text NOT NULL, content text NOT NULL, PRIMARY KEY (run, number));
CREATE TABLE IF NOT EXISTS bare.event (
    run uuid NOT NULL, number int NOT NULL, type text NOT NULL, text text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (run, number));
"""
BEGIN = "INSERT INTO bare.run (id, state, input) VALUES ($1, 'running', $2)"
END = "UPDATE bare.run SET state = 'completed', finding = $2, ended = clock_timestamp() WHERE id = $1"
ANSWERED = """
WITH step AS (
    INSERT INTO bare.step (run, number, kind, request, answer, ended)
    VALUES ($1, $2, 'model', $3, $4, clock_timestamp())
), message AS (
    INSERT INTO bare.message (run, number, role, content) VALUES ($1, $2 * 2, 'assistant', $4)
), event AS (
    INSERT INTO bare.event (run, number, type, text) VALUES ($1, $2 * 2, 'response', $4)
)
UPDATE bare.run SET calls = calls + 1 WHERE id = $1
"""
TOOL = """
WITH step AS (
    INSERT INTO bare.step (run, number, kind, request, answer, ended)
    VALUES ($1, $2, 'tool', $3, $4, clock_timestamp())
), message AS (
    INSERT INTO bare.message (run, number, role, content) VALUES ($1, $2 * 2 + 1, 'tool', $4)
)
INSERT INTO bare.event (run, number, type, text) VALUES ($1, $2 * 2 + 1, 'tool_call', $4)
"""
ACCEPT = "application/json, text/event-stream"


class Tools:
    """A session of a server over streamable HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url
        self._headers = {"Accept": ACCEPT, "Content-Type": "application/json"}
        self._number = 0

    async def open(self) -> list[dict[str, Any]]:
        """Opens the session and returns the tools as the model is to get them."""
        client = {"name": "bare", "version": "1"}
        begun = await self.ask(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        )
        self._headers["MCP-Protocol-Version"] = begun["protocolVersion"]
        notice = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        async with self._http.post(self._url, data=notice, headers=self._headers, raise_for_status=True):
            pass
        listed = await self.ask("tools/list", {})
        return [
            {"type": "function", "function": {"name": f"tools__{t['name']}", "parameters": t["inputSchema"]}}
            for t in listed["tools"]
        ]

    async def close(self) -> None:
        """Ends the session."""
        async with self._http.delete(self._url, headers=self._headers):
            pass

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Calls a tool and returns the text of its result."""
        result = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return "".join(part["text"] for part in result["content"] if part["type"] == "text")

    async def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns its result."""
        self._number += 1
        body = orjson.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        async with self._http.post(self._url, data=body, headers=self._headers, raise_for_status=True) as answer:
            if session := answer.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            text = await answer.read()
            if answer.content_type == "text/event-stream":
                text = next(line[6:] for line in reversed(text.splitlines()) if line.startswith(b"data: {"))
        result: dict[str, Any] = orjson.loads(text)["result"]
        return result


async def main(settings: dict[str, Any]) -> None:
    """Runs the loops and prints what they cost."""
    pool = await asyncpg.create_pool(settings["database_url"], min_size=POOL, max_size=POOL)
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as http:
            await pool.execute(SCHEMA)
            await _round(pool, http, settings)
            cpu, wall, calls = time.process_time(), time.monotonic(), 0
            for _ in range(settings["loops"] // settings["at_once"]):
                calls += await _round(pool, http, settings)
            used, took = time.process_time() - cpu, time.monotonic() - wall
    finally:
        await pool.close()
    print(json.dumps({"calls": calls, "cpu_seconds": used, "wall_seconds": took}))


async def _round(pool: asyncpg.Pool, http: aiohttp.ClientSession, settings: dict[str, Any]) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_loop(pool, http, settings)) for _ in range(settings["at_once"])]
    return sum(task.result() for task in tasks)


async def _loop(pool: asyncpg.Pool, http: aiohttp.ClientSession, settings: dict[str, Any]) -> int:
    """One investigation; the number of its model calls."""
    run, number = uuid.uuid4(), 0
    messages: list[dict[str, Any]] = list(settings["messages"])
    await pool.execute(BEGIN, run, json.dumps(messages))
    tools = Tools(http, settings["tools_url"])
    offered = await tools.open()
    url = f"{settings['base_url']}/chat/completions"
    while True:
        body = orjson.dumps({"model": "scripted", "stream": True, "messages": messages, "tools": offered})
        text, calls = await _answer(http, url, body)
        answer = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        messages.append(answer)
        await pool.execute(
            ANSWERED, run, number, json.dumps({"messages": len(messages)}), orjson.dumps(answer).decode()
        )
        number += 1
        if not calls:
            break
        for call in calls:
            function = call["function"]
            result = await tools.call(
                function["name"].removeprefix("tools__"), orjson.loads(function["arguments"] or "{}")
            )
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            await pool.execute(TOOL, run, number, orjson.dumps(function).decode(), result)
    await tools.close()
    await pool.execute(END, run, text)
    return number


async def _answer(http: aiohttp.ClientSession, url: str, body: bytes) -> tuple[str, list[dict[str, Any]]]:
    """Text and tool calls of a streamed answer."""
    text: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with http.post(url, data=body, headers=headers, raise_for_status=True) as answer:
        async for chunk in _chunks(answer):
            for choice in chunk["choices"]:
                delta = choice["delta"]
                if piece := delta.get("content"):
                    text.append(piece)
                for part in delta.get("tool_calls") or ():
                    call = calls.setdefault(
                        part["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                    )
                    call["id"] += part.get("id") or ""
                    for key, value in part.get("function", {}).items():
                        call["function"][key] += value or ""
    return "".join(text), list(calls.values())


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    rest = b""
    async for data in answer.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                yield orjson.loads(line[6:])


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        runner = asyncio.run
    else:
        runner = uvloop.run
    runner(main(json.loads(Path(sys.argv[1]).read_text())))
