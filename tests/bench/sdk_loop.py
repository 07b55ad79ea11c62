"""The bare loop that the operator is compared with: the same model, tools and messages, the same SDKs, nothing else.

A process of its own, `python sdk_loop.py FILE`; FILE is JSON with `base_url`, `tools_url`, `messages` (role and text of
the operator's own first request), `loops`, `at_once` and `style`. One loop before the first counted one pays for
imports and connections. It prints JSON: the calls made, CPU seconds of the process, wall seconds.

`style` is `plain`, as LangChain's pages show it (all defaults, chunks summed as they come), or `lean`: no timer around
each chunk, pieces of text and of tool calls kept in lists. Lean is the harder thing to be compared with.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from mcp.client import Client
from mcp_types import TextContent

ROLES = {"system": SystemMessage, "user": HumanMessage}


async def main(settings: dict[str, Any]) -> None:
    """Runs the loops and prints what they cost."""
    model = ChatOpenAI(
        model="scripted", api_key="none", base_url=settings["base_url"], max_retries=0, stream_usage=True
    )
    await _loop(model, settings)
    cpu, wall, calls = time.process_time(), time.monotonic(), 0
    for _ in range(settings["loops"] // settings["at_once"]):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_loop(model, settings)) for _ in range(settings["at_once"])]
        calls += sum(task.result() for task in tasks)
    used, took = time.process_time() - cpu, time.monotonic() - wall
    print(json.dumps({"calls": calls, "cpu_seconds": used, "wall_seconds": took}))


async def _loop(model: ChatOpenAI, settings: dict[str, Any]) -> int:
    """One loop with a session of its own, as an agent execution has; the number of model calls."""
    messages: list[BaseMessage] = [ROLES[m["role"]](m["content"]) for m in settings["messages"]]
    ask = _listed if settings["style"] == "lean" else _summed
    calls = 0
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(Client(settings["tools_url"]))
        offered = [
            {"type": "function", "function": {"name": f"tools__{t.name}", "parameters": t.input_schema}}
            for t in (await session.list_tools()).tools
        ]
        while True:
            answer = await ask(model, messages, offered)
            calls += 1
            messages.append(answer)
            if not answer.tool_calls:
                return calls
            for call in answer.tool_calls:
                result = await session.call_tool(call["name"].removeprefix("tools__"), call["args"])
                text = "".join(part.text for part in result.content if isinstance(part, TextContent))
                messages.append(ToolMessage(text, tool_call_id=call["id"]))


async def _summed(model: ChatOpenAI, messages: Sequence[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
    whole: AIMessageChunk | None = None
    async for chunk in model.astream(list(messages), tools=tools):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    return whole


async def _listed(model: ChatOpenAI, messages: Sequence[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
    text: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    async for chunk in model.astream(list(messages), tools=tools):
        assert isinstance(chunk, AIMessageChunk)
        text.append(str(chunk.content))
        for piece in chunk.tool_call_chunks:
            call = calls.setdefault(piece["index"] or 0, {"id": "", "name": "", "args": ""})
            for key in call:
                call[key] += piece.get(key) or ""  # type: ignore[operator]
    return AIMessage(
        "".join(text),
        tool_calls=[{"id": c["id"], "name": c["name"], "args": json.loads(c["args"] or "{}")} for c in calls.values()],
    )


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
