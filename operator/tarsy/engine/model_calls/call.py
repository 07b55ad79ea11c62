"""Makes one model call between its two boundaries.

Before the request leaves, the record says so (a); when the answer is complete, it is in the record with its usage and
the loop's state (b), and so is, of an answer that was lost, what the model is told about that. What happens in between
may be lost and is then asked again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from tarsy.engine.conversation.masking import MaskedText, mask_response_text
from tarsy.engine.conversation.state import CallModel, Conversation
from tarsy.engine.limits.budget import BudgetSpent, UsageEstimate
from tarsy.engine.limits.budget_stop import note_exceeded
from tarsy.engine.limits.quota import without_room
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
from tarsy.engine.model_calls.request import alert_cut, notice, prepare_request, shrink_window
from tarsy.engine.model_calls.response import ModelResponse, mask_response
from tarsy.engine.model_calls.result import (
    OpenModelCall,
    aside_events,
    loop_after,
    record_cut,
    result_of,
    text_events,
    wait_over,
)
from tarsy.engine.model_calls.streaming import CutToConclude, receive
from tarsy.engine.prompts import builder
from tarsy.engine.run_context import RunContext
from tarsy.engine.strategies.fallback import change_provider, exhausted, fallback_patience, is_last
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.builtin import STRATEGIES_WITHOUT_TOOLS
from tarsy.record.boundaries import ModelCallStart
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message, Role, ToolDefinition
from tarsy.record.quota import QuotaRefused
from tarsy.record.run import ALERT_DATA, Failure, LoopState, ModelCallKind, State
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.waiting import RunWaits, Wait, WaitReason


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


@dataclass(frozen=True, slots=True)
class ModelCallOptions:
    """The tools and settings of a model call, and how its answer is read.

    Args:
        tools: bound to the call.
        may_call: whether the tools may be called; bound they are in any case.
        native_tools: tools of the provider that are on.
        stop: texts that end the answer.
        read: makes the timeline events of the answer's text; None when the text is the event.
        mask_arguments: removes secrets from the arguments of its tool calls, beside those that are removed everywhere.
        accepts: whether a text without calls is the agent's final answer; None: any is.
    """

    tools: tuple[ToolDefinition, ...] = ()
    may_call: bool = True
    native_tools: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    read: ResponseReader | None = None
    mask_arguments: MaskedText | None = None
    accepts: Accepts | None = None


async def call_model(
    conversation: Conversation, turn: CallModel, options: ModelCallOptions, world: RunContext, watch: Stopwatch
) -> None:
    """Makes one model call and appends its answer to the conversation.

    An answer lost on the way (time ran out, the stream was cut), or that a provider did not give in all its tries, is
    reported to the model and not an error until it happens `limits.consecutive_timeouts` times in a row. Where the
    agent has a fallback, a failure changes the provider instead of ending the agent: the caller then asks again. A
    conversation that the provider found too long is compacted harder and is asked again, a few times. A call that was
    cut, because the run is to conclude, is recorded as such: the caller then asks for the conclusion.

    Args:
        conversation: as on record.
        turn: what to ask.
        options: the tools and settings of the call.
        world: the run's ports.
        watch: counts the call's time; the call ends with what is left on it.

    Raises:
        ModelCallFailed: the model refused, or failed for good, and so did all that could stand in for it.
        BudgetSpent: the run's budget is reached, or a quota has no room; nothing was asked.
        RunWaits: the provider asks to come back much later, and there is no other; or a quota has room later.
    """
    call = await _begin(conversation, turn, options, world)
    answer = ModelResponse(hidden=options.read is not None)
    request = GenerateRequest(
        messages=call.prepared.messages,
        tools=options.tools,
        execution=str(conversation.execution),
        agent=conversation.agent.name,
        native_tools=options.native_tools,
        tokens=call.prepared.need.tokens,
        may_call=options.may_call,
        stop=options.stop,
        forms=conversation.forms,
    )
    try:
        await receive(answer, conversation, call.id, request, world, watch, concludes=_concludes(conversation, turn))
    except CutToConclude:
        await record_cut(call, await mask_response(answer, world.mask, options.mask_arguments))
    except ModelError as error:
        error.message = mask_response_text(world.mask, error.message)
        error.words = mask_response_text(world.mask, error.words)
        await _record_failure(call, await mask_response(answer, world.mask, options.mask_arguments), error)
    else:
        known = await mask_response(answer, world.mask, options.mask_arguments)
        await _record_answer(call, known, _message(call.start, answer), options)


async def _begin(
    conversation: Conversation, turn: CallModel, options: ModelCallOptions, world: RunContext
) -> OpenModelCall:
    """Writes boundary (a) and takes the new messages into the conversation."""
    agent = conversation.agent
    new = tuple(replace(message, content=clean(message.content)) for message in turn.new_messages)
    made = prepare_request(conversation, new, options.tools, world.meter.tokens_per_byte)
    _may_be_asked(conversation, world)
    spent = world.meter.fits(made.need) if turn.kind in _DISPENSABLE else world.meter.spent()
    if spent is not None:
        await note_exceeded(world, spent)
        raise BudgetSpent(spent)
    start = ModelCallStart(
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
        tools=options.tools,
        loop=turn.loop,
        superseded=made.superseded,
        estimated_tokens=made.need.input_tokens,
        estimated_cost_usd=replace(made.need, output_tokens=0).cost_usd or Decimal(0),
        worst_tokens=made.worst.tokens,
        worst_cost_usd=made.worst.cost_usd,
    )
    events = [compaction_event(conversation, start.id, notice(conversation, made))] if made.superseded else []
    if cut := alert_cut(conversation, new, made):
        await world.recorder.degrade_evidence({ALERT_DATA: cut})
    world.control.check()
    world.meter.model_started(start.id, made.need)
    try:
        await world.recorder.model_call_started(start, events)
    except QuotaRefused as refused:
        world.meter.model_refused(start.id)
        raise await without_room(refused, world, may_wait=turn.kind not in _DISPENSABLE) from refused
    conversation.model_calls += 1
    conversation.messages.extend(new)
    conversation.superseded.update(made.superseded)
    conversation.loop = turn.loop
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts
    return OpenModelCall(conversation, start, made, world, time.monotonic())


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
    call: OpenModelCall, answer: ModelResponse, written: Message, options: ModelCallOptions
) -> None:
    """Writes boundary (b) of an answer; `written` is its message before secrets were removed."""
    conversation, world, made = call.conversation, call.world, call.prepared
    message = _message(call.start, answer)
    empty = not answer.text.strip() and not message.tool_calls
    repair = call.start.kind is ModelCallKind.FINDING_REPAIR
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
    told = told or not (options.accepts is None or options.accepts(loop, message.content))
    kind = EventType.LLM_RESPONSE
    if answer.text.strip() and not message.tool_calls and not told and not repair:
        summary = call.start.kind is ModelCallKind.EXECUTIVE_SUMMARY
        kind = EventType.EXECUTIVE_SUMMARY if summary else EventType.FINAL_ANALYSIS
    used = used_by(made.need, answer)
    events = _events(conversation, call.id, answer, EventStatus.COMPLETED, kind, options.read)
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
    result, seq = result_of(call, answer, loop, used, message), len(conversation.messages)
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


async def _record_failure(call: OpenModelCall, answer: ModelResponse, error: ModelError) -> None:
    """Records a failed call; returns when it is worth asking again, raises when not, or when it is much later."""
    conversation, world, made = call.conversation, call.world, call.prepared
    answer = replace(billed(answer, error), server_words=error.words)
    answer, waited = wait_over(conversation, call.id, answer)
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
    wait = _long_wait(conversation, error, world) if changed is None and shorter is None and not concluding else None
    if wait is not None:
        loop = loop.model_copy(update={"consecutive_timeouts": lost - 1})
        again = False
    used = used_by(made.need, answer) if answer.usage is None else UsageEstimate(rates=made.need.rates)
    status = EventStatus.TIMED_OUT if error.code in TIMEOUTS else EventStatus.FAILED
    events = _events(conversation, call.id, answer, status, EventType.LLM_RESPONSE, None) + waited
    message = None
    if again:
        events.append(error_event(conversation, call.id, error))
        message = builder.retry_message(clean(error.message), answer.text)
    if changed is not None:
        events.append(fallback_event(conversation, call.id, changed.text, changed.metadata))
        message = builder.retry_message(clean(error.message), answer.text) if answer.text.strip() else None
        loop = changed.loop
    if wait is not None:
        events.append(error_event(conversation, call.id, error))
    if shorter is not None:
        events.append(error_event(conversation, call.id, error))
        loop = shorter
        if error.window is not None:
            world.windows[conversation.agent.provider.ref] = error.window
    failure, seq = Failure(error.code.value, error.message), len(conversation.messages)
    result = result_of(call, answer, loop, used, message, failure)
    await world.recorder.model_call_finished(result, events)
    world.meter.model_finished(call.id, answer.usage, used, made.size)
    conversation.loop = loop
    if wait is not None:
        raise RunWaits(wait)
    if changed is not None:
        conversation.agent = changed.agent
    elif not again and shorter is None:
        state = State.TIMED_OUT if error.code in TIMEOUTS else State.FAILED
        raise ModelCallFailed(state, Failure(error.code.value, exhausted(conversation, error)))
    if message is not None:
        conversation.put(seq, message)


def _long_wait(conversation: Conversation, error: ModelError, world: RunContext) -> Wait | None:
    """Returns the wait that parks the run, if its provider requests a longer delay than a worker may be held for."""
    longest, seconds = world.waiting.limits.provider_seconds, error.retry_after or 0.0
    if error.code is not ModelErrorCode.RATE_LIMIT or not 0 < longest < seconds <= world.waiting.seconds:
        return None
    if world.waiting.full is not None:
        return None
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    name = conversation.agent.provider.ref.name
    sentence = f"Provider {name} has reached a rate limit and asks to come back at {until:%Y-%m-%d %H:%M} UTC."
    return Wait(WaitReason.PROVIDER_LIMIT, until, sentence)


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
