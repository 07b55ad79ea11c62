"""Makes the result of a model call: the loop's state after it, its timeline events, its second boundary."""

import asyncio
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.limits.budget import UsageEstimate, cost
from tarsy.engine.model_calls.billing import milliseconds
from tarsy.engine.model_calls.billing import used as used_by
from tarsy.engine.model_calls.events import native_event, response_event, thinking_event, wait_event
from tarsy.engine.model_calls.request import PreparedRequest, update_token_ratio
from tarsy.engine.model_calls.response import ModelResponse
from tarsy.engine.prompts import builder
from tarsy.engine.run_context import RunContext
from tarsy.record.boundaries import ModelCallResult, ModelCallStart
from tarsy.record.messages import Message
from tarsy.record.run import Failure, LoopState
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.usage import UNKNOWN_USAGE, Usage


@dataclass(frozen=True, slots=True)
class OpenModelCall:
    """A model call between its two boundaries; `started` is the `time.monotonic` of its request."""

    conversation: Conversation
    start: ModelCallStart
    prepared: PreparedRequest
    world: RunContext
    started: float

    @property
    def id(self) -> UUID:
        """The id of the call."""
        return self.start.id


def loop_after(conversation: Conversation, made: PreparedRequest, answer: ModelResponse) -> LoopState:
    """Returns the loop's state with one more call counted.

    Args:
        conversation: of the agent.
        made: the request that was sent; its size in bytes corrects the estimate of tokens per byte.
        answer: complete, or as far as it arrived; without usage, the usage counts as unknown.
    """
    loop = update_token_ratio(conversation.loop, made.size, answer.text, answer.usage)
    return loop.model_copy(
        update={
            "iteration": loop.iteration + 1,
            "usage": loop.usage + (answer.usage or UNKNOWN_USAGE),
        }
    )


def aside_events(conversation: Conversation, call: UUID, answer: ModelResponse, status: EventStatus) -> list[Event]:
    """Returns the events of an answer's thinking, and of the native tools of the provider that it used.

    Args:
        conversation: of the agent.
        call: id of the model call.
        answer: complete, or as far as it arrived.
        status: of the events.
    """
    events = []
    if answer.thinking:
        events.append(thinking_event(conversation, call, answer.thinking, status))
    return events + [native_event(conversation, call, i, chunk, status) for i, chunk in enumerate(answer.native)]


def result_of(
    call: OpenModelCall,
    answer: ModelResponse,
    loop: LoopState,
    used: UsageEstimate,
    message: Message | None,
    failure: Failure | None = None,
    *,
    interrupted: bool = False,
) -> ModelCallResult:
    """Boundary (b) of a call.

    Args:
        call: as it began.
        answer: what came, without secrets.
        loop: the loop's state after the call.
        used: the estimate of its usage, and the rates for its cost.
        message: appended to the conversation, if any.
        failure: why there is no answer.
        interrupted: whether the call was cut.
    """
    conversation = call.conversation
    return ModelCallResult(
        id=call.id,
        execution=conversation.execution,
        loop=loop,
        message_seq=len(conversation.messages) if message is not None else None,
        message=message,
        thinking=answer.thinking,
        usage=answer.usage,
        failure=failure,
        duration_ms=milliseconds(call.started, answer),
        response_metadata=answer.metadata(),
        cost_usd=cost(answer.usage, used.rates),
        estimated_tokens=used.tokens,
        estimated_cost_usd=used.cost_usd or Decimal(0),
        interrupted=interrupted,
    )


def wait_over(conversation: Conversation, call: UUID, answer: ModelResponse) -> tuple[ModelResponse, list[Event]]:
    """Returns a copy of an answer whose wait for a turn has ended, and the last event of that wait, if there was one.

    The usage of a call that was never sent is zero.

    Args:
        conversation: of the agent.
        call: id of the model call.
        answer: complete, or as far as it arrived; it is not changed.
    """
    events = []
    if (waiting := answer.waiting) is not None:
        seconds = asyncio.get_running_loop().time() - waiting.since
        events.append(wait_event(conversation, call, len(answer.waits), waiting.chunk, seconds))
        answer = replace(answer, waiting=None, waits=[*answer.waits, (waiting.chunk.limit, seconds)])
    if answer.unsent and answer.usage is None:
        answer = replace(answer, usage=Usage())
    return answer, events


async def record_cut(call: OpenModelCall, answer: ModelResponse) -> None:
    """Records a call that was cut because the run is to conclude: as interrupted, with what had come of its answer.

    The model is told that, since an attempt that resumes has to send the same. A call that still waited for its turn
    has used nothing.
    """
    conversation, made = call.conversation, call.prepared
    status = EventStatus.INTERRUPTED
    events = aside_events(conversation, call.id, answer, status)
    if answer.text:
        events.append(response_event(conversation, call.id, answer.text, status))
    answer, waited = wait_over(conversation, call.id, answer)
    loop = loop_after(conversation, made, answer).model_copy(update={"partial": answer.text})
    used = used_by(made.need, answer) if answer.usage is None else UsageEstimate(rates=made.need.rates)
    message = builder.cut_short_message(answer.text) if answer.text.strip() else None
    failure = Failure("ConcludeRequested", "The call was cut, because the run was asked to conclude.")
    result = result_of(call, answer, loop, used, message, failure, interrupted=True)
    await call.world.recorder.model_call_finished(result, [*events, *waited])
    call.world.meter.model_finished(call.id, answer.usage, used, made.size)
    conversation.loop = loop
    if message is not None and result.message_seq is not None:
        conversation.put(result.message_seq, message)


def text_events(
    conversation: Conversation, call: UUID, answer: ModelResponse, status: EventStatus, kind: EventType
) -> list[Event]:
    """Returns the event of an answer's text, or no event if the text is empty or hidden.

    Args:
        conversation: of the agent.
        call: id of the model call.
        answer: complete, or as far as it arrived; a hidden text is shown if it was cut because it repeated itself.
        status: of the event.
        kind: response, final analysis or executive summary.
    """
    if not answer.said or (answer.hidden and not answer.repeats):
        return []
    return [response_event(conversation, call, answer.said, status, kind, cut=answer.cut)]
