"""The tool loop of the function-calling strategies (seed 004, "FunctionCallingController").

Ask the model with tools bound; answer its tool calls; an answer without tool calls is the final one; at the iteration
limit, or when asked to conclude, one more call without tools. Each turn comes from `next_turn` and ends on a boundary.
"""

import asyncio
from collections.abc import Sequence
from typing import assert_never

from tarsy.engine.call import ModelCallFailed, call_model
from tarsy.engine.conversation import CallModel, CallTool, Conversation, Finish, next_turn
from tarsy.engine.ports import Toolbox, World
from tarsy.engine.tools import answer_tool_call
from tarsy.record.messages import Message
from tarsy.record.run import Failure, ModelCallKind, State


async def run_loop(conversation: Conversation, opening: Sequence[Message], toolbox: Toolbox, world: World) -> str:
    """Runs the loop to its final answer (blank when the model gave none).

    Raises:
        ModelCallFailed: the model failed for good, or an iteration took longer than its limit.
    """
    text = None
    while text is None:
        text = await _iterate(conversation, opening, toolbox, world)
    return text


async def _iterate(
    conversation: Conversation, opening: Sequence[Message], toolbox: Toolbox, world: World
) -> str | None:
    """One model call and the answers to its tool calls; the final text, or None to go on.

    The iteration's limit shortens its calls rather than cutting into it, so that it too ends on a boundary: nothing is
    left open in the record, and no write of the record is cut.
    """
    limits, agent = conversation.limits, conversation.agent
    clock = asyncio.get_running_loop().time
    deadline, asked = clock() + limits.iteration_seconds, False
    while True:
        concluding = world.control.concluding
        turn = next_turn(conversation, opening, concluding=concluding, max_iterations=agent.max_iterations)
        left = deadline - clock()
        if left <= 0 and not isinstance(turn, Finish):
            message = f"an iteration took longer than its limit of {limits.iteration_seconds:g} s"
            raise ModelCallFailed(State.TIMED_OUT, Failure("IterationTimeout", message))
        match turn:
            case Finish(text):
                return text
            case CallTool():
                seconds = min(left, limits.tool_call_seconds)
                await answer_tool_call(conversation, turn, toolbox, world, seconds=seconds)
            case CallModel(kind):
                if asked:
                    return None
                asked = True
                tools = () if kind is ModelCallKind.FORCED_CONCLUSION else tuple(toolbox.tools)
                await call_model(conversation, turn, tools, world, seconds=min(left, limits.model_call_seconds))
            case _:
                assert_never(turn)
