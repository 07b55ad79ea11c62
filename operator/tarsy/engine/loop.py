"""The tool loop of all strategies that call tools (seed 004, "FunctionCallingController").

Ask the model; answer its tool calls; an answer without tool calls is the final one; at the iteration limit, or when
asked to conclude, one more call without tools. Each turn comes from `next_turn` and ends on a boundary. How a model
asks for a tool and hears of its result is the strategy's `Manner`.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, assert_never

from tarsy.engine.call import ModelCallFailed, Read, call_model
from tarsy.engine.conversation import CallModel, CallTool, Conversation, Finish, Turn, next_turn
from tarsy.engine.ports import Toolbox, World
from tarsy.engine.tools import answer_tool_call, tool_message
from tarsy.record.messages import Message, ToolDefinition, ToolOutcome
from tarsy.record.run import Failure, ModelCallKind, State


class Manner(Protocol):
    """What the strategies of this loop do differently."""

    @property
    def read(self) -> Read | None:
        """Makes the timeline events of an answer's text; None when the text is the event."""
        ...

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, concluding: bool, max_iterations: int | None
    ) -> Turn:
        """What to do next, from the record alone."""
        ...

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """The tools to bind to a call."""
        ...

    def tell(self, turn: CallTool, outcome: ToolOutcome) -> Message:
        """The message that tells the model what became of its call."""
        ...


class FunctionCalls:
    """Tools are bound to the call, calls and results have messages of their own."""

    read: Read | None = None

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, concluding: bool, max_iterations: int | None
    ) -> Turn:
        """See `tarsy.engine.conversation.next_turn`."""
        return next_turn(conversation, opening, concluding=concluding, max_iterations=max_iterations)

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """All of them."""
        return tuple(tools)

    def tell(self, turn: CallTool, outcome: ToolOutcome) -> Message:
        """A tool message."""
        return tool_message(turn, outcome)


async def run_loop(
    conversation: Conversation, opening: Sequence[Message], toolbox: Toolbox, world: World, manner: Manner
) -> str:
    """Runs the loop to its final answer (blank when the model gave none).

    Raises:
        ModelCallFailed: the model failed for good, or an iteration took longer than its limit.
    """
    text = None
    while text is None:
        text = await _iterate(conversation, opening, toolbox, world, manner)
    return text


async def _iterate(
    conversation: Conversation, opening: Sequence[Message], toolbox: Toolbox, world: World, manner: Manner
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
        turn = manner.next_turn(conversation, opening, concluding=concluding, max_iterations=agent.max_iterations)
        left = deadline - clock()
        if left <= 0 and not isinstance(turn, Finish):
            message = f"an iteration took longer than its limit of {limits.iteration_seconds:g} s"
            raise ModelCallFailed(State.TIMED_OUT, Failure("IterationTimeout", message))
        match turn:
            case Finish(text):
                return text
            case CallTool():
                seconds = min(left, limits.tool_call_seconds)
                await answer_tool_call(conversation, turn, toolbox, world, seconds=seconds, tell=manner.tell)
            case CallModel(kind):
                if asked:
                    return None
                asked = True
                tools = () if kind is ModelCallKind.FORCED_CONCLUSION else manner.offer(toolbox.tools)
                seconds = min(left, limits.model_call_seconds)
                await call_model(conversation, turn, tools, world, seconds=seconds, read=manner.read)
            case _:
                assert_never(turn)
