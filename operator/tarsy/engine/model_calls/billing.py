"""Estimates the time and the tokens of a model call whose usage was not reported.

A call that a provider refused costs nothing; one whose answer was lost on the way was paid for, for all we know.
"""

import time
from dataclasses import replace

from tarsy.engine.conversation.compaction import TOKENS_PER_BYTE, size
from tarsy.engine.limits.budget import UsageEstimate
from tarsy.engine.model_calls.response import ModelResponse
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.record.usage import Usage

TIMEOUTS = frozenset(
    {
        ModelErrorCode.TIMEOUT,
        ModelErrorCode.ITERATION_TIMEOUT,
        ModelErrorCode.SILENT,
        ModelErrorCode.FIRST_TOKEN_TIMEOUT,
        ModelErrorCode.STALL,
        ModelErrorCode.CONCLUSION_TIMEOUT,
    }
)
LOST = TIMEOUTS | {ModelErrorCode.PARTIAL_STREAM}
"""Answers lost on the way. They are asked for again, and so is what a provider may still give."""

_PAID = LOST | {ModelErrorCode.EMPTY}
"""Errors after which a call is billed although no answer has arrived."""


def billed(answer: ModelResponse, error: ModelError) -> ModelResponse:
    """A failed answer with the usage that is known of it: none, where it was refused."""
    refused = error.code not in _PAID and not error.started and answer.usage is None
    return replace(answer, usage=Usage()) if refused else answer


def used(need: UsageEstimate, answer: ModelResponse) -> UsageEstimate:
    """Estimates the usage of a call whose provider did not report it."""
    return replace(need, output_tokens=round(size(answer.text + answer.thinking) * TOKENS_PER_BYTE))


def milliseconds(started: float, answer: ModelResponse) -> int:
    """Returns the duration of a call that began at `started` (`time.monotonic`), without its waits for its turn."""
    waited = sum(seconds for _, seconds in answer.waits)
    return max(0, round((time.monotonic() - started - waited) * 1000))
