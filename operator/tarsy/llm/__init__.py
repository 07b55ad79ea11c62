"""Models: the chunk protocol, the providers behind it, retries."""

from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.record.messages import ToolDefinition

__all__ = [
    "Chunk",
    "EndChunk",
    "GenerateRequest",
    "LLMClient",
    "ModelError",
    "ModelErrorCode",
    "TextChunk",
    "ThinkingChunk",
    "ToolCallChunk",
    "ToolDefinition",
    "UsageChunk",
]
