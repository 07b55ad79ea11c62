"""Strategies of a single question without tools: synthesis, executive summary, single call (seed 004)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tarsy.engine.call import call_model
from tarsy.engine.conversation import CallModel, CallTool, Conversation, Finish, next_turn
from tarsy.engine.ports import World
from tarsy.record.messages import Message
from tarsy.record.run import ModelCallKind


async def run_single_call(
    conversation: Conversation, kind: ModelCallKind, opening: Sequence[Message], world: World
) -> str:
    """Asks until there is an answer: an empty or lost one is asked again within the limits."""
    while True:
        turn = next_turn(conversation, opening, concluding=False, max_iterations=None)
        match turn:
            case Finish(text):
                return text
            case CallModel():
                seconds = conversation.limits.model_call_seconds
                await call_model(conversation, replace(turn, kind=kind), (), world, seconds=seconds)
            case CallTool():
                raise AssertionError("a model without tools cannot have called one: call_model drops such calls")
            case _:
                assert_never(turn)
