"""A model whose brain is a script: the same protocol as a provider, no network.

It is part of the library (the idea of pydantic-ai's `TestModel`): the engine's tests and every other room's use this
one instead of inventing doubles of their own. An answer may hang on an event, fail before or after its text, or be
cut, which is all a real provider can do to its consumer. `ByAgent` finds the answer where agents work side by side.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tarsy.llm.protocol import (
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    ModelError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage


class ScriptExhausted(Exception):
    """A script was asked for more answers than it has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted answer.

    Args:
        text: the answer, streamed word by word.
        thinking: reasoning, streamed before the text as one chunk.
        native: what tools of the provider did, between thinking and text.
        tool_calls: yielded after the text, in order.
        usage: reported when given.
        error: raised after whatever text, thinking and tool calls the answer has.
        wait: awaited before the first chunk; never set, the model hangs.
        pause: seconds between its text and its tool calls.
        cut: the stream ends without `EndChunk`, as a provider that breaks the protocol would.
        finish_reason: default: `tool_calls` when there are any, else `stop`.
        provider_state: what the provider wants back with this answer (thought signatures).
    """

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    native: tuple[CodeExecutionChunk | GroundingChunk, ...] = ()
    usage: Usage | None = None
    error: ModelError | None = None
    wait: asyncio.Event | None = None
    pause: float = 0.0
    cut: bool = False
    finish_reason: str = ""
    provider_state: dict[str, Any] | None = None


class ScriptedClient:
    """An `LLMClient` that answers from a list, in order of the calls, or from a function of the request.

    `requests` are all requests seen, `closed` tells whether the client was closed.
    """

    def __init__(self, answers: Sequence[Answer] | Callable[[GenerateRequest], Answer]) -> None:
        self._answers = answers
        self.requests: list[GenerateRequest] = []
        self.closed = False

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the next answer; raises ScriptExhausted when a list has no answer left."""
        index = len(self.requests)
        self.requests.append(request)
        answer = self._answer(index, request)
        if answer.wait is not None:
            await answer.wait.wait()
        if answer.thinking:
            yield ThinkingChunk(answer.thinking)
        for chunk in answer.native:
            yield chunk
        for word in _words(answer.text):
            yield TextChunk(word)
        if answer.pause:
            await asyncio.sleep(answer.pause)
        for call in answer.tool_calls:
            yield ToolCallChunk(call)
        if answer.usage is not None:
            yield UsageChunk(answer.usage)
        if answer.error is not None:
            raise answer.error
        if not answer.cut:
            reason = answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop")
            yield EndChunk(reason, answer.provider_state)

    async def aclose(self) -> None:
        """Notes that the client was closed."""
        self.closed = True

    def _answer(self, index: int, request: GenerateRequest) -> Answer:
        if callable(self._answers):
            return self._answers(request)
        if index >= len(self._answers):
            raise ScriptExhausted(
                f"the script has {len(self._answers)} answers, this is request {index + 1} (agent {request.agent!r})"
            )
        return self._answers[index]


class ByAgent:
    """Answers for agents whose calls come in any order, several executions of one agent among them.

    Each execution of an agent gets the agent's answers from the first on, and so do the summaries of results that it
    needs (`agent:summarization`); agents that are not named share `others`, in order of the calls.

    Args:
        answers: by the agent's name in the timeline.
        others: for all other agents.
    """

    def __init__(self, answers: Mapping[str, Sequence[Answer]], others: Sequence[Answer] = ()) -> None:
        self._answers = answers
        self._others = others
        self._calls: Counter[tuple[str, str]] = Counter()

    def __call__(self, request: GenerateRequest) -> Answer:
        """The next answer; raises ScriptExhausted when there is none left."""
        script = self._answers.get(request.agent)
        caller, left = (("", ""), self._others) if script is None else ((request.execution, request.agent), script)
        index = self._calls[caller]
        self._calls[caller] += 1
        if index >= len(left):
            raise ScriptExhausted(f"agent {request.agent!r} has {len(left)} answers, this is its request {index + 1}")
        return left[index]


def _words(text: str) -> list[str]:
    """The text in pieces that end after a space, which joined are the text again."""
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + [last for last in pieces[-1:] if last]
