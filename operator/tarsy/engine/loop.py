"""The tool loop of all strategies that call tools (seed 004, "FunctionCallingController").

Ask the model; answer its tool calls; an answer without tool calls is the final one; at the iteration limit, or when
asked to conclude, one more call without tools. Each turn comes from `next_turn` and ends on a boundary. How a model
asks for a tool and hears of its result is the strategy's `Manner`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from tarsy.engine.call import ModelCallFailed, Read, call_model
from tarsy.engine.conversation import CallModel, CallTool, CallTools, Conversation, Finish, Stop, Turn, next_turn
from tarsy.engine.cutoff import note_exceeded
from tarsy.engine.fallback import adapted
from tarsy.engine.ports import Toolbox, World
from tarsy.engine.sending import draft
from tarsy.engine.timing import Stopwatch, timeouts
from tarsy.engine.tools import answer_tool_calls, tool_message
from tarsy.plan.model import Strategy
from tarsy.record.messages import Message, ToolDefinition, ToolOutcome
from tarsy.record.run import Failure, ModelCallKind, State


class Manner(Protocol):
    """What the strategies of this loop do differently."""

    @property
    def read(self) -> Read | None:
        """Makes the timeline events of an answer's text; None when the text is the event."""
        ...

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
    ) -> Turn:
        """What to do next, from the record alone."""
        ...

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """The tools to bind to a call."""
        ...

    def tell(self, turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
        """The message that tells the model what became of its call, and to cite it as `ref`."""
        ...


class FunctionCalls:
    """Tools are bound to the call, calls and results have messages of their own."""

    read: Read | None = None

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
    ) -> Turn:
        """See `tarsy.engine.conversation.next_turn`."""
        return next_turn(conversation, opening, stop=stop, max_iterations=max_iterations)

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """All of them."""
        return tuple(tools)

    def tell(self, turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
        """A tool message."""
        return tool_message(turn, ref, outcome)


MannerOf = Callable[[Strategy, Toolbox], Manner]


async def run_loop(
    conversation: Conversation,
    opening: Sequence[Message],
    toolbox: Toolbox,
    world: World,
    manner_of: MannerOf,
) -> str:
    """Runs the loop to its final answer (blank when the model gave none).

    Args:
        conversation: as on record.
        opening: the messages a new conversation starts with.
        toolbox: the tools.
        world: the ports.
        manner_of: what a strategy does differently; a change of provider may change the strategy.

    Raises:
        ModelCallFailed: the model failed for good, or so many iterations in a row took longer than their limit as
            answers may be lost in a row (reference section 1.4, "Abort after 2 consecutive timeouts").
        BudgetSpent: the run's budget was used up before there was an answer.
    """
    text = None
    while text is None:
        text = await _iterate(conversation, opening, toolbox, world, manner_of)
    return text


async def _iterate(
    conversation: Conversation,
    opening: Sequence[Message],
    toolbox: Toolbox,
    world: World,
    manner_of: MannerOf,
) -> str | None:
    """One model call and the answers to its tool calls; the final text, or None to go on.

    The iteration's limit shortens its calls rather than cutting into it, so that it too ends on a boundary: nothing is
    left open in the record, no write of the record is cut, and the model hears which of its calls were not made.
    """
    watch, begun = Stopwatch(_iteration_seconds(conversation)), False
    provider = conversation.loop.fallback
    while True:
        stop = _stop(conversation, world)
        manner = manner_of(conversation.agent.strategy, toolbox)
        turn = manner.next_turn(conversation, opening, stop=stop, max_iterations=conversation.agent.max_iterations)
        match turn:
            case Finish(text):
                return text
            case CallTools(calls):
                begun = True  # also without a model call: an attempt that died may have left its calls to this one
                await answer_tool_calls(conversation, calls, toolbox, world, watch=watch, tell=manner.tell)
            case CallModel(kind):
                if begun:
                    if conversation.loop.fallback == provider:
                        _judge_time(conversation, watch)
                    return None
                turn = adapted(conversation, turn, toolbox.tools)
                forced = kind is ModelCallKind.FORCED_CONCLUSION
                tools = () if forced else manner.offer(toolbox.tools)
                if not forced and world.meter.bounded:
                    need = draft(conversation, turn.new_messages, tools, world.meter.tokens_per_byte).need
                    if exceeded := world.meter.short(conversation.execution, need):
                        await note_exceeded(world, exceeded)
                        continue
                begun = True
                native = () if forced else conversation.native_tools
                await call_model(
                    conversation,
                    turn,
                    tools,
                    world,
                    watch=watch,
                    native_tools=native,
                    read=manner.read,
                    shown=toolbox.shown,
                )
            case _:
                assert_never(turn)


def _iteration_seconds(conversation: Conversation) -> float:
    return timeouts(conversation.agent.provider, conversation.limits).iteration


def _judge_time(conversation: Conversation, watch: Stopwatch) -> None:
    """Counts iterations in a row that ran out of time; the next boundary (a) puts the count on record."""
    slow = conversation.loop.slow_iterations + 1 if watch.left <= 0 else 0
    conversation.loop = conversation.loop.model_copy(update={"slow_iterations": slow})
    limits = conversation.limits
    if slow >= limits.consecutive_timeouts:
        times = "an iteration" if slow == 1 else f"{slow} iterations in a row"
        message = f"{times} took longer than the limit of {_iteration_seconds(conversation):g} s"
        raise ModelCallFailed(State.TIMED_OUT, Failure("IterationTimeout", message))


def _stop(conversation: Conversation, world: World) -> Stop | None:
    """Why the agent must conclude now: asked to, the run's budget reached, or the same asked for again and again."""
    if world.control.concluding:
        return Stop(requested=True)
    if world.meter.exceeded is not None:
        return Stop(budget=world.meter.exceeded.message.removesuffix("."))
    if world.guard.in_a_row(conversation.execution) >= conversation.limits.repeats_in_a_row:
        return Stop()
    return None
