"""Reads one response of Gemini, and keeps what only the end of its stream decides."""

import json
import re
from collections.abc import Iterator
from typing import Any

from google.genai import types

from tarsy.llm.answer import name_told
from tarsy.llm.error_responses import clean_message
from tarsy.llm.google_native.names import spell
from tarsy.llm.google_native.state import Parts
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    GroundingKind,
    GroundingSource,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.text import encodable
from tarsy.llm.tool_names import ToolNames
from tarsy.llm.toolcalls import MAX_TOOL_CALLS, ToolCallAssembler
from tarsy.record.usage import Usage

_MOST_KEPT = 16 << 20
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
FILTERED = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY", "MODEL_ARMOR")
)
UNUSABLE = {
    "MALFORMED_FUNCTION_CALL": "the model wrote a tool call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "the model called a tool although it has none",
    "TOO_MANY_TOOL_CALLS": "the model called too many tools",
}


class GeminiResponse:
    """Reads one answer; `started` says whether anything of it was received.

    Args:
        request: what was asked.
        model: what was asked for it.
        makers: whether the server is Google's own, whose words may be told.
    """

    def __init__(self, request: GenerateRequest, model: str, *, makers: bool = False) -> None:
        earlier = (call.name for message in request.messages for call in message.tool_calls)
        names = ToolNames([*earlier, *(tool.name for tool in request.tools)], spell)
        self._model = model
        self._makers = makers
        self._calls = ToolCallAssembler(names, f"{request.execution}/{len(request.messages)}")
        self._parts = Parts()
        self._code: types.ExecutableCode | None = None
        self._searches: dict[str, None] = {}
        self._found: dict[GroundingSource, None] = {}
        self._read: dict[GroundingSource, None] = {}
        self._usage: Usage | None = None
        self._blocked = ""
        self._kept = 0
        self.started = False
        self.finish_reason = ""
        self.response_id = ""
        self.response_model = ""

    def read(self, response: types.GenerateContentResponse) -> Iterator[Chunk]:
        """Reads the next piece of the stream."""
        self._usage = _usage(response.usage_metadata) or self._usage
        self.response_id = self.response_id or name_told(response.response_id)
        self.response_model = self.response_model or name_told(response.model_version)
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            words = clean_message(feedback.block_reason_message or "", None) if self._makers else ""
            self._blocked = f"{name_of(feedback.block_reason)} {words}".strip()
        if not response.candidates:
            return
        candidate = response.candidates[0]
        for part in (candidate.content.parts if candidate.content else None) or ():
            self.started = True
            self._kept += self._parts.add(part)
            if self._kept > _MOST_KEPT or self._calls.count > MAX_TOOL_CALLS:
                why = f"more than {MAX_TOOL_CALLS} tool calls or {_MOST_KEPT >> 20} MiB in one answer"
                raise ModelError(ModelErrorCode.SERVER, why, retryable=False, started=True)
            yield from self._of_part(part)
        self._look_up(candidate)
        if candidate.finish_reason is not None:
            self.finish_reason = name_of(candidate.finish_reason)

    def end(self, subject: str) -> Iterator[Chunk]:
        """Yields the chunks after the text; raises ModelError when the response did not end properly."""
        yield from self._unfinished_code()
        if self._searches or self._found:
            yield GroundingChunk(GroundingKind.SEARCH, tuple(self._searches), tuple(self._found))
        if self._read:
            yield GroundingChunk(GroundingKind.URL_CONTEXT, (), tuple(self._read))
        reason = self.finish_reason
        calls = self._calls.calls() if reason in ("STOP", "MAX_TOKENS") else ()
        for call in calls:
            yield ToolCallChunk(call)
        if self._usage is not None:
            yield UsageChunk(self._usage)
        if (failure := self._failure()) is not None:
            code, why = failure
            retryable = code is not ModelErrorCode.CONTENT_FILTER
            raise ModelError(code, f"{subject}: {why}", retryable=retryable, started=self.started)
        state = self._parts.state(self._model, [call.id for call in calls])
        ended = "length" if reason == "MAX_TOKENS" else "tool_calls" if calls else "stop"
        yield EndChunk(ended, state, self.response_id, self.response_model)

    def _of_part(self, part: types.Part) -> Iterator[Chunk]:
        if part.text:
            text = encodable(part.text)
            yield ThinkingChunk(text) if part.thought else TextChunk(text)
        if part.executable_code is not None:
            yield from self._unfinished_code()
            self._code = part.executable_code
            yield ActivityChunk()
        if part.code_execution_result is not None:
            yield self._executed(part.code_execution_result.output or "")
        if (call := part.function_call) is not None:
            arguments = json.dumps(call.args or {}, ensure_ascii=False, separators=(",", ":"))
            self._calls.add(index=self._calls.count, id=call.id, name=call.name, arguments=arguments)
            yield ActivityChunk()

    def _unfinished_code(self) -> Iterator[Chunk]:
        if self._code is not None:
            yield self._executed("")

    def _executed(self, output: str) -> CodeExecutionChunk:
        code, self._code = self._code, None
        language = name_of(code.language).lower() if code is not None and code.language is not None else ""
        return CodeExecutionChunk((code.code if code else None) or "", output, language)

    def _look_up(self, candidate: types.Candidate) -> None:
        if (grounding := candidate.grounding_metadata) is not None:
            self._searches |= dict.fromkeys(grounding.web_search_queries or ())
            webs = (chunk.web for chunk in grounding.grounding_chunks or ())
            self._found |= {GroundingSource(web.title or "", web.uri or ""): None for web in webs if web is not None}
        if (context := candidate.url_context_metadata) is not None:
            urls = (page.retrieved_url for page in context.url_metadata or ())
            self._read |= {GroundingSource("", url): None for url in urls if url}

    def _failure(self) -> tuple[ModelErrorCode, str] | None:
        match self.finish_reason:
            case "" if self._blocked:
                return ModelErrorCode.CONTENT_FILTER, f"the server refuses this prompt: {self._blocked}"
            case "" if self.started:
                return ModelErrorCode.PARTIAL_STREAM, "the stream ended in the middle of the answer"
            case "" | "STOP" if not self.started:
                return ModelErrorCode.EMPTY, "the server sent an empty answer"
            case "STOP" | "MAX_TOKENS":
                return None
            case reason if reason in FILTERED or reason.startswith("IMAGE_"):
                return ModelErrorCode.CONTENT_FILTER, f"the server's content filter stopped the answer ({reason})"
            case reason:
                why = UNUSABLE.get(reason, "the server stopped the answer")
                return ModelErrorCode.SERVER, f"{why} ({reason})"


def name_of(value: Any) -> str:
    """The name of a reason; a server's own may be any text, which is no name."""
    name = str(getattr(value, "value", value)).removesuffix("_UNSPECIFIED")
    return name if _REASON.fullmatch(name) else "OTHER"


def _usage(found: types.GenerateContentResponseUsageMetadata | None) -> Usage | None:
    """Gemini counts thoughts beside the answer, and what its own tools gave the model beside the prompt."""
    if found is None or found.prompt_token_count is None:
        return None
    thinking = found.thoughts_token_count or 0
    return Usage(
        input_tokens=found.prompt_token_count + (found.tool_use_prompt_token_count or 0),
        output_tokens=(found.candidates_token_count or 0) + thinking,
        thinking_tokens=thinking,
        cached_tokens=found.cached_content_token_count or 0,
    )
