"""One model call between its two boundaries.

Before the request leaves, the record says so (a); when the answer is complete, it is in the record with its usage and
the loop's state (b), and so is, of an answer that was lost, what the model is told about that. What happens in between
may be lost and is then asked again.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from tarsy.engine.conversation.masking import MaskedText, mask_response_text
from tarsy.engine.conversation.state import CallModel, Conversation
from tarsy.engine.limits.budget import BudgetSpent, UsageEstimate
from tarsy.engine.limits.budget_stop import note_exceeded
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.model_calls.billing import LOST, TIMEOUTS, billed
from tarsy.engine.model_calls.billing import used as used_by
from tarsy.engine.model_calls.events import (
    ResponseReader,
    compaction_event,
    cut_event,
    empty_event,
    error_event,
    fallback_event,
)
from tarsy.engine.model_calls.request import PreparedRequest, alert_cut, notice, prepare_request, shrink_window
from tarsy.engine.model_calls.response import ModelResponse, mask_response
from tarsy.engine.model_calls.result import aside_events, loop_after, record_cut, result_of, text_events, wait_over
from tarsy.engine.model_calls.streaming import CutToConclude, receive
from tarsy.engine.prompts import builder
from tarsy.engine.run_context import RunContext
from tarsy.engine.strategies.fallback import change_provider, exhausted, fallback_patience, is_last
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.builtin import STRATEGIES_WITHOUT_TOOLS
from tarsy.record.boundaries import ModelCallStart
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message, Role, ToolDefinition
from tarsy.record.run import ALERT_DATA, Failure, LoopState, ModelCallKind, State
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType


class ModelCallFailed(Exception):
    """The model failed for good: the agent ends in `state` with `failure`."""

    def __init__(self, state: State, failure: Failure) -> None:
        super().__init__(failure.message)
        self.state = state
        self.failure = failure


_DISPENSABLE = frozenset({ModelCallKind.EXECUTIVE_SUMMARY, ModelCallKind.FINDING_REPAIR})
"""Calls that a run whose budget has no room for them goes without."""


Accepts = Callable[[LoopState, str], bool]
"""Whether a text without calls ends its agent, with the loop's state after it."""


async def call_model(
    conversation: Conversation,
    turn: CallModel,
    tools: tuple[ToolDefinition, ...],
    world: RunContext,
    *,
    watch: Stopwatch,
    native_tools: tuple[str, ...] = (),
    read: ResponseReader | None = None,
    shown: MaskedText | None = None,
    may_call: bool = True,
    stop: tuple[str, ...] = (),
    accepts: Accepts | None = None,
) -> None:
    """Makes one model call and appends its answer to the conversation.

    An answer lost on the way (time ran out, the stream was cut), or that a provider did not give in all its tries, is
    told to the model and not an error until it happens `limits.consecutive_timeouts` times in a row (reference section
    1.4, "A failed call is retried with an error message"). Where the agent has a fallback, a failure changes the
    provider instead of ending the agent: the caller then asks again.

    Args:
        conversation: as on record.
        turn: what to ask.
        tools: bound to the call.
        world: the ports.
        watch: counts the call's time; the call ends with what is left on it.
        native_tools: tools of the provider that are on.
        read: makes the timeline events of the answer's text; None when the text is the event.
        shown: takes secrets out of the arguments of its tool calls, beside those that every answer is searched for.
        may_call: whether the tools may be called; bound they are in any case.
        stop: texts that end the answer.
        accepts: whether a text without calls is the agent's final answer; None: any is.

    A conversation that the provider found too long is compacted harder and is asked again, a few times. A call that was
    cut, because the run is to conclude, is recorded as such: the caller then asks for the conclusion.

    Raises:
        ModelCallFailed: the model refused, or failed for good, and so did all that could stand in for it.
        BudgetSpent: the run's budget is reached; nothing was asked.
    """
    agent = conversation.agent
    new = tuple(replace(message, content=clean(message.content)) for message in turn.new_messages)
    made = prepare_request(conversation, new, tools, world.meter.tokens_per_byte)
    _may_be_asked(conversation, world)
    spent = world.meter.fits(made.need) if turn.kind in _DISPENSABLE else world.meter.spent()
    if spent is not None:
        await note_exceeded(world, spent)
        raise BudgetSpent(spent)
    call = ModelCallStart(
        id=model_call_id(conversation.execution, conversation.model_calls),
        execution=conversation.execution,
        number=conversation.model_calls,
        kind=turn.kind,
        provider=agent.provider.ref.name,
        model=agent.provider.model,
        strategy=agent.strategy.value,
        first_seq=len(conversation.messages),
        new_messages=new,
        message_count=len(conversation.messages) + len(new),
        tools=tools,
        loop=turn.loop,
        superseded=made.superseded,
        estimated_tokens=made.need.input_tokens,
        estimated_cost_usd=replace(made.need, output_tokens=0).cost_usd or Decimal(0),
    )
    events = [compaction_event(conversation, call.id, notice(conversation, made))] if made.superseded else []
    if cut := alert_cut(conversation, new, made):
        await world.recorder.degrade_evidence({ALERT_DATA: cut})
    world.control.check()
    world.meter.model_started(call.id, made.need)
    await world.recorder.model_call_started(call, events)
    conversation.model_calls += 1
    conversation.messages.extend(new)
    conversation.superseded.update(made.superseded)
    conversation.loop = turn.loop
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts

    started = time.monotonic()
    answer = ModelResponse(hidden=read is not None)
    request = GenerateRequest(
        messages=made.messages,
        tools=tools,
        execution=str(conversation.execution),
        agent=agent.name,
        native_tools=native_tools,
        tokens=made.need.tokens,
        may_call=may_call,
        stop=stop,
    )
    try:
        await receive(answer, conversation, call.id, request, world, watch, concludes=_concludes(conversation, turn))
    except CutToConclude:
        known = await mask_response(answer, world.mask, shown)
        await record_cut(conversation, call.id, made, known, started, world)
        return
    except ModelError as error:
        error.message = mask_response_text(world.mask, error.message)
        error.words = mask_response_text(world.mask, error.words)
        known = await mask_response(answer, world.mask, shown)
        await _record_failure(conversation, call.id, made, known, error, started, world)
        return
    known = await mask_response(answer, world.mask, shown)
    await _record_answer(conversation, call, made, known, _message(call, answer), started, world, read, accepts)


def _concludes(conversation: Conversation, turn: CallModel) -> bool:
    """Whether a call ends its agent's work: it has time for its answer when the run is to conclude."""
    return turn.kind is not ModelCallKind.ITERATION or conversation.agent.strategy in STRATEGIES_WITHOUT_TOOLS


def _may_be_asked(conversation: Conversation, world: RunContext) -> None:
    """Raises ModelCallFailed where the provider did not answer since the run was asked to conclude."""
    ref = conversation.agent.provider.ref
    if world.control.concluding and ref in world.silent and is_last(conversation):
        text = f"provider {ref.name} gave no conclusion before and is not asked again."
        raise ModelCallFailed(State.FAILED, Failure(ModelErrorCode.CONCLUSION_TIMEOUT.value, text))


def _message(call: ModelCallStart, answer: ModelResponse) -> Message:
    return Message(
        Role.ASSISTANT,
        answer.text,
        tool_calls=tuple(answer.tool_calls) if call.tools and not answer.repeats else (),
        provider_state=answer.end.provider_state if answer.end else None,
    )


async def _record_answer(
    conversation: Conversation,
    call: ModelCallStart,
    made: PreparedRequest,
    answer: ModelResponse,
    written: Message,
    started: float,
    world: RunContext,
    read: ResponseReader | None,
    accepts: Accepts | None,
) -> None:
    message = _message(call, answer)
    empty = not answer.text.strip() and not message.tool_calls
    repair = call.kind is ModelCallKind.FINDING_REPAIR
    loop = loop_after(conversation, made, answer).model_copy(
        update={
            "consecutive_timeouts": 0,
            "partial": "",
            "cut_by_length": conversation.loop.cut_by_length if repair else answer.cut_by_length,
            "refusals": 0,
            "empty_answers": conversation.loop.empty_answers + empty,
            "repeated_answers": conversation.loop.repeated_answers + 1 if answer.repeats else 0,
            "masked_calls": _masked_calls(message, written),
        }
    )
    changed = None
    if empty and loop.empty_answers > conversation.limits.empty_answers:
        error = ModelError(ModelErrorCode.EMPTY, f"it gave {loop.empty_answers} empty answers.", retryable=False)
        changed = change_provider(
            conversation, error, loop.model_copy(update={"consecutive_timeouts": loop.empty_answers})
        )
    told = 0 < loop.repeated_answers < conversation.limits.consecutive_timeouts
    told = told or not (accepts is None or accepts(loop, message.content))
    kind = EventType.LLM_RESPONSE
    if answer.text.strip() and not message.tool_calls and not told and not repair:
        summary = call.kind is ModelCallKind.EXECUTIVE_SUMMARY
        kind = EventType.EXECUTIVE_SUMMARY if summary else EventType.FINAL_ANALYSIS
    used = used_by(made.need, answer)
    events = _events(conversation, call.id, answer, EventStatus.COMPLETED, kind, read)
    if told:  # the model is asked again, so what it said is not yet the end
        events = [replace(e, type=kind) if e.type is EventType.FINAL_ANALYSIS else e for e in events]
    again = not repair and loop.empty_answers <= conversation.limits.empty_answers
    if empty and again:
        events.append(empty_event(conversation, call.id))
    if answer.cut_by_length and not answer.repeats:
        events.append(cut_event(conversation, call.id, answer.usage))
    if changed is not None:
        events.append(fallback_event(conversation, call.id, changed.text, changed.metadata))
        loop = changed.loop
    result, seq = result_of(conversation, call.id, answer, loop, used, started, message), len(conversation.messages)
    await world.recorder.model_call_finished(result, events)
    world.meter.model_finished(call.id, answer.usage, used, made.size)
    conversation.put(seq, message)
    conversation.unmasked = seq, written
    conversation.loop = loop
    if changed is not None:
        conversation.agent = changed.agent


def _masked_calls(message: Message, written: Message) -> tuple[int, ...]:
    """The calls of an answer that cannot be made from what is recorded of them; one in the text itself is call 0."""
    if not message.tool_calls:
        return () if message.content == written.content else (0,)
    pairs = enumerate(zip(message.tool_calls, written.tool_calls, strict=True))
    return tuple(i for i, (recorded, wrote) in pairs if recorded.arguments != wrote.arguments)


async def _record_failure(
    conversation: Conversation,
    call: UUID,
    made: PreparedRequest,
    answer: ModelResponse,
    error: ModelError,
    started: float,
    world: RunContext,
) -> None:
    """Records a failed call; returns when it is worth asking again, raises ModelCallFailed when not."""
    answer = replace(billed(answer, error), server_words=error.words)
    answer, waited = wait_over(conversation, call, answer)
    lost = conversation.loop.consecutive_timeouts + 1
    loop = loop_after(conversation, made, answer).model_copy(update={"consecutive_timeouts": lost})
    shorter = shrink_window(conversation, made.size, error) if error.code is ModelErrorCode.CONTEXT_TOO_LONG else None
    concluding = world.control.concluding
    changed = change_provider(conversation, error, loop, at_once=concluding) if shorter is None else None
    worth = error.code in LOST or error.retryable or fallback_patience(conversation, error) is not None
    worth = worth and not concluding  # whoever waits for a conclusion gets what is known
    again = changed is None and shorter is None and worth and lost < conversation.limits.consecutive_timeouts
    if concluding and shorter is None:
        if error.code is not ModelErrorCode.INVALID_REQUEST:  # that is an answer, and another request may be taken
            world.silent.add(conversation.agent.provider.ref)
        loop = loop.model_copy(update={"partial": answer.text or loop.partial})
    used = used_by(made.need, answer) if answer.usage is None else UsageEstimate(rates=made.need.rates)
    status = EventStatus.TIMED_OUT if error.code in TIMEOUTS else EventStatus.FAILED
    events = _events(conversation, call, answer, status, EventType.LLM_RESPONSE, None) + waited
    message = None
    if again:
        events.append(error_event(conversation, call, error))
        message = builder.retry_message(clean(error.message), answer.text)
    if changed is not None:
        events.append(fallback_event(conversation, call, changed.text, changed.metadata))
        message = builder.retry_message(clean(error.message), answer.text) if answer.text.strip() else None
        loop = changed.loop
    if shorter is not None:
        events.append(error_event(conversation, call, error))
        loop = shorter
        if error.window is not None:
            world.windows[conversation.agent.provider.ref] = error.window
    failure, seq = Failure(error.code.value, error.message), len(conversation.messages)
    result = result_of(conversation, call, answer, loop, used, started, message, failure)
    await world.recorder.model_call_finished(result, events)
    world.meter.model_finished(call, answer.usage, used, made.size)
    conversation.loop = loop
    if changed is not None:
        conversation.agent = changed.agent
    elif not again and shorter is None:
        state = State.TIMED_OUT if error.code in TIMEOUTS else State.FAILED
        raise ModelCallFailed(state, Failure(error.code.value, exhausted(conversation, error)))
    if message is not None:
        conversation.put(seq, message)


def _events(
    conversation: Conversation,
    call: UUID,
    answer: ModelResponse,
    status: EventStatus,
    kind: EventType,
    read: ResponseReader | None,
) -> list[Event]:
    aside = aside_events(conversation, call, answer, status)
    if read is not None and not answer.repeats:
        return aside + read(conversation, call, answer.text)
    return aside + text_events(conversation, call, answer, status, kind)
