"""Models: the chunk protocol, the providers behind it, retries."""

from tarsy.llm.protocol import (
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    GroundingKind,
    LLMClient,
    ModelError,
    ModelErrorCode,
    RetryChunk,
    Source,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.record.messages import ToolDefinition

__all__ = [
    "Chunk",
    "CodeExecutionChunk",
    "EndChunk",
    "GenerateRequest",
    "GroundingChunk",
    "GroundingKind",
    "LLMClient",
    "ModelError",
    "ModelErrorCode",
    "RetryChunk",
    "Source",
    "TextChunk",
    "ThinkingChunk",
    "ToolCallChunk",
    "ToolDefinition",
    "UsageChunk",
]
