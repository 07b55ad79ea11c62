"""Reads the events of a chat completion, in the dialects of its many servers.

Text of events that arrived together becomes one chunk. A server that streams faster than its consumer reads costs the
consumer one step a packet then, not one a token.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from tarsy.llm.answer import ResponseReading
from tarsy.llm.call_errors import FailedCall, provider_message
from tarsy.llm.context_windows import noted
from tarsy.llm.error_responses import clean_message, of_event, words_of
from tarsy.llm.openai_native.request import REASONING_FIELDS, state
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
)
from tarsy.llm.text import TextJoiner
from tarsy.llm.toolcalls import MAX_TOOL_CALLS
from tarsy.plan.model import ProviderPlan
from tarsy.record.usage import Usage

MOST_KEPT = 16 << 20
_MOST_TOKENS = 1 << 40


class UnreadableResponse(Exception):
    """An event is no piece of a chat completion."""


class NativeReading(ResponseReading):
    """Reads one response.

    Args:
        provider: the model that answers.
        request: what it was asked.
        secret: the key, which is taken out of the server's words.
        kept: characters; the most of reasoning and tool calls, which are kept until the end.
        makers: whether the server is the maker's own.
    """

    def __init__(
        self,
        provider: ProviderPlan,
        request: GenerateRequest,
        secret: str | None,
        *,
        kept: int = MOST_KEPT,
        makers: bool = False,
    ) -> None:
        super().__init__(request)
        self._makers = makers
        self.done = False
        self._provider = provider
        self._secret = secret
        self._room = kept
        self._thinking = TextJoiner()
        self._reasoning: list[str] = []
        self._field = ""
        self._refusal: list[str] = []

    def read(self, events: Iterable[bytes]) -> Iterator[Chunk]:
        """The chunks of events that arrived together.

        Raises:
            ModelError: the server reported an error, or sent more than is kept.
            Unreadable: malformed JSON, or JSON of another shape.
        """
        text: list[str] = []
        thinking: list[str] = []
        busy = False
        for event in events:
            if event.strip() == b"[DONE]":
                self.done = True
                break
            try:
                chunk = _parsed(event)
                if words := _only_text(chunk):
                    self.started = True
                    if thinking:
                        yield from self._chunks(thinking, text)
                    text.append(words)
                    continue
                delta = self._delta(chunk)
                said = self._say(delta)
                thought = self._think(delta)
                busy = bool(delta.get("tool_calls") or delta.get("refusal")) or busy
                self._add_calls(delta.get("tool_calls") or ())
            except (ModelError, UnreadableResponse):
                yield from self._chunks(thinking, text)
                raise
            except (TypeError, AttributeError, ValueError, LookupError) as error:
                yield from self._chunks(thinking, text)
                raise UnreadableResponse(f"an event of another shape ({type(error).__name__})") from None
            if (thought and text) or (said and thinking):
                yield from self._chunks(thinking, text)
            thinking += thought
            text += said
        yield from self._chunks(thinking, text)
        if busy:
            yield ActivityChunk()

    def end(self, subject: str) -> Iterator[Chunk]:
        """Yields the chunks after the text; raises ModelError when the response did not end properly."""
        if thinking := self._thinking.end():
            yield ThinkingChunk(thinking)
        if refusal := "".join(self._refusal):
            raise ModelError(
                ModelErrorCode.CONTENT_FILTER,
                f"{subject}: the model refused: {clean_message(refusal, self._secret)}",
                retryable=False,
                started=True,
            )
        yield from super().end(subject)

    def provider_state(self) -> dict[str, Any] | None:
        """The reasoning behind tool calls, for the server that gave it."""
        if not self._reasoning or not self.calls.count:
            return None
        return state(self._provider, self._field, "".join(self._reasoning))

    def _chunks(self, thinking: list[str], text: list[str]) -> Iterator[Chunk]:
        if thinking:
            if joined := self._thinking.add("".join(thinking)):
                yield ThinkingChunk(joined)
            thinking.clear()
        if text:
            if joined := self.text.add("".join(text)):
                yield TextChunk(joined)
            text.clear()

    def _delta(self, chunk: dict[str, Any]) -> Mapping[str, Any]:
        if (error := chunk.get("error")) or chunk.get("object") == "error":
            call = FailedCall("", self._secret, self.started, self._makers)
            raise reported(error or chunk, call)
        self.usage = _usage(chunk.get("usage")) or self.usage
        if not self.response_id:
            self.identify(chunk.get("id"), chunk.get("model"))
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):
                self.finish_reason = str(choice.get("finish_reason") or self.finish_reason)
                return choice.get("delta") or {}
        return {}

    def _say(self, delta: Mapping[str, Any]) -> list[str]:
        content = delta.get("content")
        if refusal := delta.get("refusal"):
            self._keep(refusal)
            self._refusal.append(refusal)
        if not content:
            return []
        pieces = [content] if isinstance(content, str) else [_text(part) for part in content if part["type"] == "text"]
        self.started = True
        return pieces

    def _think(self, delta: Mapping[str, Any]) -> list[str]:
        pieces: list[str] = []
        for field in REASONING_FIELDS:  # a server that sends both says the same in both
            if (thought := delta.get(field)) and isinstance(thought, str):
                self._field = self._field or field
                self._keep(thought)
                self._reasoning.append(thought)
                pieces.append(thought)
                break
        if isinstance(content := delta.get("content"), list):  # Mistral's way
            thoughts = (part["thinking"] for part in content if part["type"] == "thinking")
            pieces += [_text(part) for parts in thoughts for part in parts]
        return pieces

    def _add_calls(self, pieces: Iterable[dict[str, Any]]) -> None:
        for piece in pieces:
            function = piece.get("function") or {}
            index, arguments = piece.get("index"), function.get("arguments")
            if isinstance(arguments, dict):
                arguments = orjson.dumps(arguments).decode()
            self._keep(piece.get("id"), function.get("name"), arguments)
            self.calls.add(
                index=index if isinstance(index, int) else None,
                id=piece.get("id"),
                name=function.get("name"),
                arguments=arguments,
            )
            if self.calls.count > MAX_TOOL_CALLS:
                raise self._too_much(f"more than {MAX_TOOL_CALLS} tool calls")

    def _keep(self, *texts: str | None) -> None:
        for text in texts:
            if text is not None and not isinstance(text, str):
                raise UnreadableResponse("text of an unknown type")
            self._room -= len(text or "")
        self.started = True
        if self._room < 0:
            raise self._too_much("more tool calls and reasoning than fit into memory")

    def _too_much(self, what: str) -> ModelError:
        return ModelError(ModelErrorCode.SERVER, f"the answer has {what}", retryable=False, started=True)


def reported(error: Any, call: FailedCall) -> ModelError:
    """Converts an error that a server reported in a response of status 200; the result names no provider yet.

    Args:
        error: the error object.
        call: the call that it ended.
    """
    words = clean_message(words_of(error) or str(error), call.secret)
    code, retryable = of_event(error, words)
    text = provider_message("the server reported an error in its response", words, call)
    return noted(ModelError(code, text, retryable=retryable, started=call.started, words=words), error)


def _parsed(event: bytes) -> dict[str, Any]:
    try:
        chunk = orjson.loads(event)
    except ValueError:
        try:  # the slow way takes halves of characters, which some servers put into two events
            chunk = json.loads(event)
        except (ValueError, RecursionError):
            raise UnreadableResponse("an event that is not JSON") from None
    if not isinstance(chunk, dict):
        raise UnreadableResponse("an event that is not a JSON object")
    return chunk


def _only_text(chunk: dict[str, Any]) -> str:
    """The text of what nearly all events are, a piece of text and nothing else; empty for all others."""
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or chunk.get("usage") or chunk.get("error"):
        return ""
    choice = choices[0]
    if type(choice) is not dict or choice.get("index") or choice.get("finish_reason") or chunk.get("object") == "error":
        return ""
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1:
        return ""
    words = delta.get("content")
    return words if type(words) is str else ""


def _text(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _usage(reported: Any) -> Usage | None:
    """The usage a chunk reports; None where it is none, or all zero, as some servers send until they know."""
    if not isinstance(reported, Mapping):
        return None
    prompt, output = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    if prompt is None or output is None or not prompt + output:
        return None
    thinking = _count(reported.get("completion_tokens_details"), "reasoning_tokens") or 0
    cached = _count(reported.get("prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(reported, "prompt_cache_hit_tokens")
    if thinking and reported.get("total_tokens") == prompt + output + thinking:
        output += thinking  # xAI counts them beside each other
    return Usage(input_tokens=prompt, output_tokens=output, thinking_tokens=thinking, cached_tokens=cached or 0)


def _count(numbers: Any, name: str) -> int | None:
    count = numbers.get(name) if isinstance(numbers, Mapping) else None
    return count if type(count) is int and 0 <= count < _MOST_TOKENS else None
