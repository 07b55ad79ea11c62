"""Collects a model's answer as it arrives, and masks it for the record."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, assert_never

from tarsy.engine.conversation.masking import Mask, MaskedText, holds, masked_aside
from tarsy.llm.protocol import CodeExecutionChunk, EndChunk, GroundingChunk, RetryChunk, WaitChunk
from tarsy.masking import masking_size, off_loop
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call waits for its turn: why, and since when (the loop's time)."""

    chunk: WaitChunk
    since: float


@dataclass(slots=True)
class ModelResponse:
    """Holds the part of an answer that has arrived.

    `hidden`: its text is not shown as it arrives, but read when it is complete; `silent`: nor is its thinking.
    `repeats`: it was cut, because it repeated itself. `waits`: the limits under which the call waited for its turn,
    with the seconds; `waiting` while it does. `unsent`: no try of the call has left. `server_words`: what the server
    said of a failure, masked; only the trace has them. `written` is the whole text of an answer that had its calls in
    it, `text` then what is left.
    """

    hidden: bool = False
    silent: bool = False
    text: str = ""
    thinking: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    native: list[CodeExecutionChunk | GroundingChunk] = field(default_factory=list)
    retries: list[RetryChunk] = field(default_factory=list)
    waits: list[tuple[str, float]] = field(default_factory=list)
    waiting: Waiting | None = None
    unsent: bool = False
    usage: Usage | None = None
    end: EndChunk | None = None
    repeats: bool = False
    server_words: str = ""
    written: str = ""

    @property
    def said(self) -> str:
        """The text as the model wrote it."""
        return self.written or self.text

    @property
    def cut_by_length(self) -> bool:
        """Whether the model reached its output limit before it had said everything."""
        return self.end is not None and self.end.finish_reason == "length"

    @property
    def cut(self) -> str | None:
        """Why the text is not all that the model had to say; None when it is."""
        return "repeated_text" if self.repeats else "length" if self.cut_by_length else None

    def metadata(self) -> dict[str, Any]:
        """Returns the data of the answer for the trace, beyond its text."""
        found: dict[str, Any] = {}
        if self.end is not None:
            found["finish_reason"] = self.end.finish_reason
            named = {"response_id": self.end.response_id, "response_model": self.end.response_model}
            found |= {name: value for name, value in named.items() if value}
        if self.repeats:
            found["finish_reason"] = "repeated_text"
        if self.retries:
            found["retries"] = [{"error": r.error.code.value, "seconds": round(r.seconds, 2)} for r in self.retries]
        if self.waits:
            found["waits"] = [{"limit": limit, "seconds": round(seconds, 2)} for limit, seconds in self.waits]
        if self.server_words:
            found["server_words"] = self.server_words
        if self.written:
            found["calls_in_text"] = len(self.tool_calls)
        for chunk in self.native:
            match chunk:
                case CodeExecutionChunk(code, output, language):
                    said = {"code": code, "output": output, "language": language}
                    found.setdefault("code_execution", []).append(said)
                case GroundingChunk(kind, queries, sources):
                    pages = [{"title": source.title, "url": source.url} for source in sources]
                    looked = {"kind": kind.value, "queries": list(queries), "sources": pages}
                    found.setdefault("grounding", []).append(looked)
                case _:
                    assert_never(chunk)
        return found


async def mask_response(answer: ModelResponse, mask: Mask, shown: MaskedText | None) -> ModelResponse:
    """An answer as it may be recorded; the one given stays as it is.

    What its provider wants back of it is dropped where it repeats the words that were taken out; the provider is then
    sent the answer like one of another model, as after a fallback.

    Args:
        answer: complete, or as far as it came.
        mask: for all of it.
        shown: for the arguments of its calls as well; None where it has none.
    """
    text = await masked_aside(mask, answer.text)
    calls = []
    for call in answer.tool_calls:
        arguments = await masked_aside(mask, call.arguments)
        if shown:
            arguments = await off_loop(partial(shown, call.name, arguments), masking_size(arguments))
        calls.append(replace(call, arguments=arguments))
    end = answer.end
    changed = [(wrote.arguments, known.arguments) for wrote, known in zip(answer.tool_calls, calls, strict=True)]
    if end is not None and holds(end.provider_state, (answer.text, text), changed):
        end = replace(end, provider_state=None)
    thinking, written = await masked_aside(mask, answer.thinking), await masked_aside(mask, answer.written)
    return replace(answer, text=text, thinking=thinking, tool_calls=calls, end=end, written=written)
