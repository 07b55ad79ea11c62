"""Reads one response of a model, and keeps what only the end of its stream decides."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.text import TextJoiner
from tarsy.llm.tool_names import ToolNames, encode_tool_name
from tarsy.llm.toolcalls import ToolCallAssembler
from tarsy.record.usage import Usage

MOST_OF_A_NAME = 128
"""Characters of a provider's name of an answer or a model."""

_NAME = re.compile(r"[\x21-\x7e]+")


def name_told(told: Any) -> str:
    """Returns a provider's name of an answer or a model; empty if it is none: no text, or not of visible ASCII."""
    name = told[:MOST_OF_A_NAME] if isinstance(told, str) else ""
    return name if _NAME.fullmatch(name) else ""


class ResponseReading:
    """The state of one answer; a provider's own reading fills it and says what follows the text.

    `started` is True once anything of the answer was received, `finish_reason` is empty until the server gave it.
    """

    def __init__(self, request: GenerateRequest, spell: Callable[[str], str] = encode_tool_name) -> None:
        """Creates the reader of the response to a request."""
        earlier = (call.name for message in request.messages for call in message.tool_calls)
        names = ToolNames([*earlier, *(tool.name for tool in request.tools)], spell)
        self.calls = ToolCallAssembler(names, f"{request.execution}/{len(request.messages)}")
        self.text = TextJoiner()
        self.usage: Usage | None = None
        self.started = False
        self.finish_reason = ""
        self.response_id = ""
        self.response_model = ""

    def identify(self, response_id: Any, response_model: Any) -> None:
        """Notes the provider's names of the answer and of the model that gave it, the first of each.

        Args:
            response_id: as the provider told it, of any type.
            response_model: as the provider told it, of any type.
        """
        self.response_id = self.response_id or name_told(response_id)
        self.response_model = self.response_model or name_told(response_model)

    def end(self, subject: str) -> Iterator[Chunk]:
        """Yields the chunks after the text; raises ModelError when the response did not end properly."""
        if text := self.text.end():
            yield TextChunk(text)
        calls = self.calls.calls() if self.finish_reason else ()
        for call in calls:
            yield ToolCallChunk(call)
        if self.usage is not None:
            yield UsageChunk(self.usage)
        match self.finish_reason:
            case "":
                code, why = ModelErrorCode.PARTIAL_STREAM, "the stream ended in the middle of the answer"
            case "content_filter":
                code, why = ModelErrorCode.CONTENT_FILTER, "the server's content filter stopped the answer"
            case "tool_calls" if not calls:
                code, why = ModelErrorCode.SERVER, "the server announced tool calls but none came that can be read"
            case reason:
                yield EndChunk(reason, self.provider_state(), self.response_id, self.response_model)
                return
        retryable = code is not ModelErrorCode.CONTENT_FILTER
        raise ModelError(code, f"{subject}: {why}", retryable=retryable, started=self.started)

    def provider_state(self) -> dict[str, Any] | None:
        """Returns the provider state that is sent back with this response."""
        return None
