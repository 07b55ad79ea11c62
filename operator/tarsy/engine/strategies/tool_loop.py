"""Runs the tool loop of all strategies that call tools.

Ask the model; answer its tool calls; an answer without tool calls is the final one, unless it is sent back
(`tarsy.engine.findings.final_answer`); at the iteration limit, or when asked to conclude, one more call that may make
none. Each turn comes from `next_turn` and ends on a boundary. How a model calls tools and is sent their results is its
strategy's `ToolCallFormat`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from tarsy.engine.conversation.state import (
    CallModel,
    CallTools,
    Conversation,
    ConversationTurn,
    Finish,
    Stop,
)
from tarsy.engine.findings.final_answer import Expected, Objection, objection
from tarsy.engine.limits.budget_stop import note_exceeded
from tarsy.engine.limits.timing import Stopwatch, timeouts
from tarsy.engine.model_calls.call import ModelCallFailed, ModelCallOptions, call_model
from tarsy.engine.model_calls.events import response_event, sent_back_event
from tarsy.engine.model_calls.request import prepare_request
from tarsy.engine.ports import Toolbox
from tarsy.engine.run_context import RunContext
from tarsy.engine.strategies.format_change import announce_format
from tarsy.engine.strategies.table import tool_call_format
from tarsy.engine.strategies.tool_call_format import ToolCallFormat
from tarsy.engine.sub_agents.children import Children
from tarsy.engine.tool_calls.execution import ToolCallContext, answer_tool_calls
from tarsy.llm.protocol import ModelErrorCode
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message
from tarsy.record.run import Failure, LoopState, ModelCallKind, State
from tarsy.record.timeline import EventStatus, EventType


@dataclass(frozen=True, slots=True)
class Purpose:
    """Lists the required bases of an agent's answer.

    Args:
        evidence: whether it must call a tool before it concludes, where it has some.
        earlier: whether earlier stages left calls that it may cite instead.
    """

    evidence: bool = False
    earlier: bool = False


async def run_loop(
    conversation: Conversation,
    opening: Sequence[Message],
    toolbox: Toolbox,
    world: RunContext,
    purpose: Purpose = Purpose(),
    children: Children | None = None,
) -> str:
    """Runs the loop to its final answer (blank when the model gave none).

    Args:
        conversation: as on record.
        opening: the messages a new conversation starts with.
        toolbox: the tools.
        world: the ports.
        purpose: what the answer must rest on.
        children: the agents that it may dispatch, with those that it has dispatched; None: it may not.

    Raises:
        ModelCallFailed: the model failed for good, or so many iterations in a row took longer than their limit as
            answers may be lost in a row.
        BudgetSpent: the run's budget was used up before there was an answer.
    """
    text = None
    while text is None:
        text = await _iterate(conversation, opening, toolbox, world, purpose, children)
    return text


async def _iterate(
    conversation: Conversation,
    opening: Sequence[Message],
    toolbox: Toolbox,
    world: RunContext,
    purpose: Purpose,
    children: Children | None,
) -> str | None:
    """Makes one model call and answers its tool calls; returns the final text, or None to continue.

    The iteration's limit shortens its calls rather than cutting into it, so that it too ends on a boundary: nothing is
    left open in the record, no write of the record is cut, and the model hears which of its calls were not made.
    """
    watch, begun = Stopwatch(_iteration_seconds(conversation)), False
    provider = conversation.loop.fallback
    while True:
        call_format = tool_call_format(conversation.agent.strategy, toolbox)
        expected = _expected(conversation, toolbox, call_format, purpose)
        match turn := await _next_turn(conversation, opening, call_format, expected, world, children):
            case Finish(text):
                return text
            case CallTools(calls):
                begun = True  # also without a model call: an attempt that died may have left its calls to this one
                context = ToolCallContext(conversation, toolbox, world, watch, call_format.tell, children)
                await answer_tool_calls(calls, context)
                if children is not None:
                    children.start()
            case CallModel(kind):
                if begun:
                    if conversation.loop.fallback == provider:
                        _judge_time(conversation, watch)
                    return None
                if children is not None:
                    turn = await children.before_call(turn)
                turn = announce_format(conversation, turn, toolbox)
                forced = kind is ModelCallKind.FORCED_CONCLUSION
                tools = call_format.offer(toolbox.tools) if not forced or _binds(conversation) else ()
                if not forced and world.meter.bounded:
                    need = prepare_request(conversation, turn.new_messages, tools, world.meter.tokens_per_byte).need
                    if exceeded := world.meter.short(conversation.execution, need):
                        await note_exceeded(world, exceeded)
                        continue
                begun = True
                options = ModelCallOptions(
                    tools,
                    may_call=not forced,
                    native_tools=() if forced else conversation.native_tools,
                    stop=call_format.stop,
                    read=call_format.read,
                    mask_arguments=toolbox.shown,
                    accepts=partial(_accepts, expected),
                )
                await _ask(conversation, turn, options, world, watch)
            case _:
                assert_never(turn)


async def _next_turn(
    conversation: Conversation,
    opening: Sequence[Message],
    call_format: ToolCallFormat,
    expected: Expected,
    world: RunContext,
    children: Children | None,
) -> ConversationTurn:
    """Returns the next turn; a final answer waits for agents that still work, and is sent back where it falls short."""
    stop, most = _stop(conversation, world), conversation.agent.max_iterations
    turn = call_format.next_turn(conversation, opening, stop=stop, max_iterations=most)
    if isinstance(turn, Finish) and children is not None and conversation.loop.awaits_results:
        await children.wait_for_one()
        again = CallModel(ModelCallKind.ITERATION, (), conversation.loop)
        turn = call_format.ask(conversation, again, stop=stop, max_iterations=most)
    if isinstance(turn, Finish) and (found := objection(conversation.loop, turn.text, expected)) is not None:
        return await _send_back(conversation, turn.text, found, stop, world)
    return turn


async def _ask(
    conversation: Conversation, turn: CallModel, options: ModelCallOptions, world: RunContext, watch: Stopwatch
) -> None:
    """Makes a model call; a forced conclusion that is refused with its tools bound is asked for again without them.

    A server may refuse tools beside the choice `none`.
    """
    try:
        await call_model(conversation, turn, options, world, watch)
    except ModelCallFailed as failed:
        forced = turn.kind is ModelCallKind.FORCED_CONCLUSION
        if not (forced and options.tools and failed.failure.reason == ModelErrorCode.INVALID_REQUEST):
            raise
        conversation.unbound = True


def _accepts(expected: Expected, loop: LoopState, text: str) -> bool:
    return not loop.awaits_results and objection(loop, text, expected) is None


def _expected(conversation: Conversation, toolbox: Toolbox, call_format: ToolCallFormat, purpose: Purpose) -> Expected:
    agent = conversation.agent
    return Expected(
        tools=toolbox.tools,
        how=call_format.how,
        max_iterations=agent.max_iterations,
        limits=conversation.limits,
        # What tools of the provider looked up is evidence too, and not counted.
        evidence=purpose.evidence and not conversation.native_tools,
        earlier=purpose.earlier,
        functions=call_format.functions,
    )


async def _send_back(
    conversation: Conversation, text: str, found: Objection, stop: Stop | None, world: RunContext
) -> CallModel | Finish:
    """Asks again with the reason on record, where there is time for it; else the answer stands as it is."""
    if stop is not None:
        call = model_call_id(conversation.execution, conversation.model_calls - 1)
        event = response_event(conversation, call, text, EventStatus.COMPLETED, EventType.FINAL_ANALYSIS)
        await world.recorder.write_events([event])
        return Finish(text)
    await world.recorder.write_events([sent_back_event(conversation, found.reason, found.notice)])
    loop = conversation.loop
    after = loop.model_copy(update={"sent_back": (*loop.sent_back, found.reason)})
    return CallModel(ModelCallKind.ITERATION, (found.message,), after)


def _binds(conversation: Conversation) -> bool:
    """Whether a forced conclusion is asked for with the tools still bound, so that the request begins as before.

    A server that ignores that they may not be called, or refuses them, is asked again without them.
    """
    loop = conversation.loop
    return not (conversation.unbound or loop.empty_answers or loop.consecutive_timeouts)


def _iteration_seconds(conversation: Conversation) -> float:
    return timeouts(conversation.agent.provider, conversation.limits).iteration


def _judge_time(conversation: Conversation, watch: Stopwatch) -> None:
    """Counts iterations in a row that ran out of time; the next boundary (a) puts the count on record."""
    slow = conversation.loop.slow_iterations + 1 if watch.left <= 0 else 0
    if slow != conversation.loop.slow_iterations:
        conversation.loop = conversation.loop.model_copy(update={"slow_iterations": slow})
    limits = conversation.limits
    if slow >= limits.consecutive_timeouts:
        times = "an iteration" if slow == 1 else f"{slow} iterations in a row"
        message = f"{times} took longer than the limit of {_iteration_seconds(conversation):g} s"
        raise ModelCallFailed(State.TIMED_OUT, Failure("IterationTimeout", message))


def _stop(conversation: Conversation, world: RunContext) -> Stop | None:
    """Why the agent must conclude now: asked to, the run's budget reached, or the same asked for again and again."""
    if world.control.concluding:
        return Stop(requested=True)
    if world.meter.exceeded is not None:
        return Stop(budget=world.meter.exceeded.message.removesuffix("."))
    if world.guard.in_a_row(conversation.execution) >= conversation.limits.repeats_in_a_row:
        return Stop()
    return None
