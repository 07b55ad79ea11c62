"""What the tests of one API each share: a question, a tool, short ways to ask, and the turn that an answer becomes."""

import asyncio
import traceback
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from integration.llm.conftest import KEY
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    EndChunk,
    GenerateRequest,
    LifeChunk,
    LLMClient,
    ModelError,
    TextChunk,
    ToolCallChunk,
)
from tarsy.record.messages import Message, Role, ToolDefinition

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}, "b": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"const": 1}},
    "additionalProperties": {"type": "integer"},
}
GET = ToolDefinition("kubernetes.get", "Gets.", SCHEMA)
QUESTION = [Message(Role.SYSTEM, "You investigate."), Message(Role.USER, "why?")]
ASK = GenerateRequest(QUESTION, [GET], execution="e1")


async def content(chunks: AsyncGenerator[Chunk, None]) -> AsyncGenerator[Chunk, None]:
    """The chunks without mere signs of life."""
    async with aclosing(chunks):
        async for chunk in chunks:
            if not isinstance(chunk, LifeChunk):
                yield chunk


async def collect(client: LLMClient, request: GenerateRequest = ASK) -> list[Chunk]:
    """All chunks of an answer, but for signs of life."""
    async with asyncio.timeout(60), aclosing(content(client.generate(request))) as chunks:
        return [chunk async for chunk in chunks if not isinstance(chunk, ActivityChunk)]


async def failure(client: LLMClient, request: GenerateRequest = ASK) -> ModelError:
    """The error of a call; what it says may be shown to people."""
    with pytest.raises(ModelError) as raised:
        await collect(client, request)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    return raised.value


def turn(answer: list[Chunk], **changes: Any) -> Message:
    """The message that the engine makes of an answer."""
    calls = tuple(chunk.call for chunk in answer if isinstance(chunk, ToolCallChunk))
    text = "".join(chunk.text for chunk in answer if isinstance(chunk, TextChunk))
    end = answer[-1]
    assert isinstance(end, EndChunk)
    made = {"content": text, "tool_calls": calls, "provider_state": end.provider_state, **changes}
    return Message(Role.ASSISTANT, **made)


def results(message: Message) -> list[Message]:
    """The messages that tell of the message's calls."""
    return [Message(Role.TOOL, f"found {c.id}", tool_call_id=c.id, tool_name=c.name) for c in message.tool_calls]
