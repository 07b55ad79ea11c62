"""What the tests of Gemini share: a question, a tool, and short ways to ask."""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from integration.llm.conftest import KEY
from tarsy.llm.google_native.provider import GoogleNativeProvider
from tarsy.llm.protocol import Chunk, GenerateRequest, ModelError
from tarsy.record.messages import Message, Role, ToolDefinition
from wire import gemini
from wire.server import StandIn

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}, "b": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"const": 1}},
    "additionalProperties": {"type": "integer"},
}
GET = ToolDefinition("kubernetes.get", "Gets.", SCHEMA)
QUESTION = [Message(Role.SYSTEM, "You investigate."), Message(Role.USER, "why?")]
ASK = GenerateRequest(QUESTION, [GET], execution="e1")
Make = Callable[..., GoogleNativeProvider]


async def collect(client: GoogleNativeProvider, request: GenerateRequest = ASK) -> list[Chunk]:
    """All chunks of an answer."""
    async with asyncio.timeout(60), aclosing(client.generate(request)) as chunks:
        return [chunk async for chunk in chunks]


async def failure(client: GoogleNativeProvider, request: GenerateRequest = ASK) -> ModelError:
    """The error of a call; what it says may be shown to people."""
    with pytest.raises(ModelError) as raised:
        await collect(client, request)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    return raised.value


async def asked(server: StandIn, client: GoogleNativeProvider, request: GenerateRequest = ASK) -> dict[str, Any]:
    """What Gemini is sent."""
    server.answers = [gemini.stream(gemini.last(gemini.text("ok")))]
    await collect(client, request)
    sent: dict[str, Any] = server.requests[-1]
    return sent
