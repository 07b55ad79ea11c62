"""Runs the strategies of a single question without tools: synthesis, executive summary, single call."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tarsy.engine.conversation.state import CallModel, CallTools, Conversation, Finish, next_turn
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.model_calls.call import ModelCallOptions, call_model
from tarsy.engine.run_context import RunContext
from tarsy.record.messages import Message
from tarsy.record.run import ModelCallKind


async def run_single_call(
    conversation: Conversation,
    kind: ModelCallKind,
    opening: Sequence[Message],
    world: RunContext,
) -> str:
    """Asks until there is an answer: an empty or lost one is asked again within the limits.

    Args:
        conversation: as on record.
        kind: what the answer is for.
        opening: the messages a new conversation starts with.
        world: the ports.
    """
    watch = Stopwatch(math.inf)
    while True:
        turn = next_turn(conversation, opening, stop=None, max_iterations=None)
        match turn:
            case Finish(text):
                return text
            case CallModel():
                asked = replace(turn, kind=kind)
                native = () if kind is ModelCallKind.EXECUTIVE_SUMMARY else conversation.native_tools
                await call_model(conversation, asked, ModelCallOptions(native_tools=native), world, watch)
            case CallTools():
                raise AssertionError("a model without tools cannot have called one: call_model drops such calls")
            case _:
                assert_never(turn)
