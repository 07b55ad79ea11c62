"""Encodes an answer in the OpenAI wire protocol, as stream chunks or as one response; pure functions."""

import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson

from tarsy_dev.model.conversation import wire_name
from tarsy_dev.model.script import Entry, ScriptedCall

ARGUMENT_PIECE = 24
DONE = b"data: [DONE]\n\n"
MALFORMED = b'data: {"id": "broken", "choices": [{"index": 0, "del\n\n'


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """One answer being given: what makes its chunks.

    `position` is its place in the conversation, `number` tells one request of the server from another.
    """

    entry: Entry
    model: str
    agent: str | None
    position: int
    number: int
    offered: Sequence[str]
    prompt_tokens: int

    @property
    def finish_reason(self) -> str:
        """Why the answer ends."""
        return self.entry.finish_reason or ("tool_calls" if self.entry.calls else "stop")

    def deltas(self) -> Iterator[dict[str, Any]]:
        """The pieces of the answer, one a token or so."""
        for piece in split_words(self.entry.thinking or ""):
            yield {"reasoning_content": piece}
        for piece in self._content():
            yield {"content": piece}
        for index, call in enumerate(self.entry.calls):
            head = {**self._call(index, call, ""), "index": index}
            yield {"tool_calls": [head]}
            text = arguments_text(call)
            for start in range(0, len(text), ARGUMENT_PIECE):
                piece = text[start : start + ARGUMENT_PIECE]
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def usage(self, pieces: int) -> dict[str, Any]:
        """Returns the usage of the answer after this number of pieces."""
        told = self.entry.usage
        prompt = self.prompt_tokens if told.prompt_tokens is None else told.prompt_tokens
        completion = pieces if told.completion_tokens is None else told.completion_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": told.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": told.reasoning_tokens},
        }

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        """One event of the stream."""
        return event(self._frame([{"index": 0, "delta": delta, "finish_reason": finish_reason}]))

    def usage_chunk(self, pieces: int) -> bytes:
        """The last event but [DONE], for those who asked for usage: no choices."""
        return event({**self._frame([]), "usage": self.usage(pieces)})

    def whole(self, pieces: int) -> dict[str, Any]:
        """The answer of a request that does not stream."""
        entry = self.entry
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content()) or None}
        if entry.thinking is not None:
            message["reasoning_content"] = entry.thinking
        if entry.calls:
            message["tool_calls"] = [self._call(i, call, arguments_text(call)) for i, call in enumerate(entry.calls)]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {**self._frame([choice]), "object": "chat.completion", "usage": self.usage(pieces)}

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.number}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.model,
            "choices": choices,
        }

    def _content(self) -> list[str]:
        text, tokens = self.entry.text, self.entry.tokens
        if tokens is None:
            return split_words(text or "")
        if text is None:
            return [f"w{number:04} " for number in range(tokens)]
        cuts = [len(text) * piece // tokens for piece in range(tokens + 1)]
        return [text[start:end] for start, end in pairwise(cuts)]

    def _call(self, index: int, call: ScriptedCall, arguments: str) -> dict[str, Any]:
        origin = zlib.crc32((self.agent or "").encode())
        return {
            "id": f"call_{origin:08x}_{self.position}_{index}",
            "type": "function",
            "function": {"name": wire_name(call.name, self.offered), "arguments": arguments},
        }


def split_words(text: str) -> list[str]:
    """The text in pieces of a word each; joined they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def arguments_text(call: ScriptedCall) -> str:
    """A call's arguments as JSON text, or the text the script gave."""
    return call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()


def event(data: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


def error_body(message: str, *, kind: str, code: str | None = None) -> dict[str, Any]:
    """Returns an error body in OpenAI's format: `message`, type `kind` and `code`."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
