"""Prepares the request of a model call: the conversation within the context window, and an estimate of its usage.

Everything follows from the record: messages, what was sent instead of some of them, and what the provider counted last.
An attempt that resumes sends what the one that died would have sent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarsy.engine.conversation.compaction import (
    TOKENS_PER_BYTE,
    Window,
    compact_conversation,
    reserve,
    size,
)
from tarsy.engine.conversation.state import Conversation
from tarsy.engine.limits.budget import UsageEstimate
from tarsy.engine.prompts.fence import ALERT_FENCE, fenced
from tarsy.llm.protocol import ModelError
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types import provider_type
from tarsy.record.messages import Message, Role, ToolDefinition
from tarsy.record.run import LoopState
from tarsy.record.usage import Usage

_WORST_UNCOUNTED, _WORST_OVER_COUNTED = 0.5, 1.1
"""The worst case of a request: tokens a byte before its provider has counted any, and times what it counted last."""

MAX_REFUSALS = 3
"""Consecutive attempts in which a conversation that is too long for the provider is halved and sent again."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request about to be sent.

    `superseded` is what is sent from now on instead of messages, by their place; `size` are bytes, tools included.
    `need` is what it is expected to use, `worst` the most that it may use.
    """

    messages: tuple[Message, ...]
    superseded: Mapping[int, str]
    size: int
    window: int
    need: UsageEstimate
    worst: UsageEstimate


def worst_case(size: int, density: float | None, provider: ProviderPlan, window: int) -> UsageEstimate:
    """Estimates the most that a call may use, for quotas.

    Args:
        size: bytes of its request.
        density: tokens a byte, as its provider last counted of this conversation; None: it never has.
        provider: whose output limit counts; without one an answer may fill the rest of the window.
        window: tokens that the model holds.
    """
    tokens = math.ceil(size * (_WORST_UNCOUNTED if density is None else density * _WORST_OVER_COUNTED))
    longest = max(window - tokens, 0) if provider.max_output_tokens is None else provider.max_output_tokens
    writes_cache = provider.cache_marks and provider_type(provider.type).cache_marks
    return UsageEstimate(tokens, longest, provider.rates, writes_cache)


def prepare_request(
    conversation: Conversation,
    new: Sequence[Message],
    tools: Sequence[ToolDefinition],
    believed: float | None = None,
) -> PreparedRequest:
    """The conversation with `new` messages as it can be sent: compacted, when it fills its window.

    Args:
        conversation: as on record.
        new: messages to send with it.
        tools: definitions sent beside it.
        believed: tokens a byte to expect, when this conversation's provider has not counted yet.
    """
    provider, loop = conversation.agent.provider, conversation.loop
    messages = [*conversation.messages, *new]
    tokens = provider.context_window or conversation.limits.context_tokens
    if loop.window is not None:
        tokens = min(tokens, loop.window)
    overhead = conversation.sent.size_of_tools(tools)
    window = Window(tokens, reserve(tokens, provider.max_output_tokens), loop.tokens_per_byte, overhead)
    sent, total = conversation.sent.of(messages, conversation.superseded)
    superseded: Mapping[int, str] = {}
    if total > window.full:
        superseded = compact_conversation(messages, conversation.superseded, window.room)
        sent, total = conversation.sent.of(messages, conversation.superseded | superseded)
    total += overhead
    worst = worst_case(total, loop.tokens_per_byte or believed, provider, tokens)
    density = next(d for d in (loop.tokens_per_byte, believed, TOKENS_PER_BYTE) if d is not None)
    return PreparedRequest(
        sent, superseded, total, tokens, UsageEstimate(round(total * density), loop.last_output, provider.rates), worst
    )


def notice(conversation: Conversation, made: PreparedRequest) -> str:
    """A sentence that tells people what was shortened."""
    answers = sum(made.messages[i].role is Role.ASSISTANT for i in made.superseded)
    opening = sum(made.messages[i].role is Role.USER and i < 2 for i in made.superseded)
    parts = [
        f"{count} {word}"
        for count, word in (
            (len(made.superseded) - answers - opening, "tool results"),
            (answers, "answers of the model"),
            (opening, "parts of the task"),
        )
        if count
    ]
    return (
        f"{' and '.join(parts)} are shortened from here on, to keep the conversation within the context "
        f"window of {conversation.agent.provider.model} ({made.window:,} tokens); the record has the full text."
    )


def alert_cut(conversation: Conversation, new: Sequence[Message], made: PreparedRequest) -> str | None:
    """Returns a clause on how much of the alert the model is sent from now on; None where that does not change.

    Args:
        conversation: as on record.
        new: messages about to be appended.
        made: the request.
    """
    messages = [*conversation.messages, *new]
    for i, text in made.superseded.items():
        whole = fenced(ALERT_FENCE, messages[i].content) if messages[i].role is Role.USER and i < 2 else None
        kept = fenced(ALERT_FENCE, text) if whole is not None else None
        if whole is not None and kept is not None and size(kept) < size(whole):
            return (
                f"{conversation.agent.provider.model} is shown {size(kept):,} of its {size(whole):,} bytes, for a "
                f"window of {made.window:,} tokens; the record keeps it whole"
            )
    return None


def update_token_ratio(loop: LoopState, sent: int, text: str, usage: Usage | None) -> LoopState:
    """The loop's state with what the provider counted of a request of `sent` bytes and its answer `text`."""
    if usage is None or not usage.complete:
        return loop.model_copy(update={"last_output": round(size(text) * TOKENS_PER_BYTE)})
    density = usage.input_tokens / sent if usage.input_tokens and sent else loop.tokens_per_byte
    return loop.model_copy(update={"tokens_per_byte": density, "last_output": usage.output_tokens})


def shrink_window(conversation: Conversation, sent: int, error: ModelError) -> LoopState | None:
    """The loop's state after the provider found a request of `sent` bytes too long; None when no more can be done.

    A window that the provider states is the window from now on; without one, or where it did not help, half of what was
    believed to be sent is.
    """
    loop = conversation.loop
    if loop.refusals >= MAX_REFUSALS:
        return None
    density = error.asked / sent if error.asked and sent else loop.tokens_per_byte
    believed = round(sent * max(density or 0.0, TOKENS_PER_BYTE))
    window = min(loop.window or believed, believed) // 2
    if error.window is not None and (loop.window is None or error.window < loop.window):
        window = error.window
    after = loop.model_copy(update={"refusals": loop.refusals + 1, "window": window, "tokens_per_byte": density})
    room = Window(window, reserve(window, conversation.agent.provider.max_output_tokens), density).room
    return after if compact_conversation(conversation.messages, conversation.superseded, room) else None
