"""Makes a model call about one tool call, beside the conversation of its agent: a summary, or a simulated answer.

The call is on record before it is sent and counts against the budget of the run. Whatever goes wrong is a reason, and
the agent goes on without.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

from tarsy.engine.conversation.compaction import TOKENS_PER_BYTE, reserve, size_of
from tarsy.engine.conversation.masking import mask_response_text
from tarsy.engine.conversation.state import Conversation
from tarsy.engine.conversation.truncation import BYTES_PER_TOKEN, truncate_middle
from tarsy.engine.limits.budget import UsageEstimate, cost
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.model_calls.billing import billed, milliseconds, used
from tarsy.engine.model_calls.request import worst_case
from tarsy.engine.model_calls.response import ModelResponse, mask_response
from tarsy.engine.model_calls.streaming import CutToConclude, receive
from tarsy.engine.run_context import RunContext
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import ProviderPlan, Strategy
from tarsy.record.boundaries import ModelCallResult, ModelCallStart
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message
from tarsy.record.quota import QuotaRefused
from tarsy.record.run import Failure, ModelCallKind
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus
from tarsy.record.usage import UNKNOWN_USAGE

_BESIDE = 6_000
"""Tokens of a request beside the result that it is about."""
_AT_MOST = 4
"""An answer of so many times the tokens it was asked for is cut."""
_CONCLUDING = "the investigation comes to its conclusion"
_CUT = Failure("ConcludeRequested", "The call was cut, because the run was asked to conclude.")

MakeEvent = Callable[[UUID, str, Failure | None, EventStatus], Event]
"""Makes the timeline event of a call: its id, the text so far, why there is none, the status."""


@dataclass(frozen=True, slots=True)
class SideCall:
    """A model call beside a conversation.

    Attributes:
        agent: who asks, as models are told.
        messages: the request.
        provider: that is asked.
        kind: purpose of the call.
        tokens: that the answer is asked to stay below.
        event: makes its timeline event; None: it has none.
    """

    agent: str
    messages: tuple[Message, ...]
    provider: ProviderPlan
    kind: ModelCallKind
    tokens: int
    event: MakeEvent | None = None

    def events(self, call: UUID, text: str, failure: Failure | None, status: EventStatus) -> list[Event]:
        """Returns the timeline events of the call."""
        return [] if self.event is None else [self.event(call, text, failure, status)]


def room_for(conversation: Conversation, provider: ProviderPlan) -> int:
    """Returns the tokens of a result that a provider can be sent."""
    window = provider.context_window or conversation.limits.context_tokens
    if provider.ref == conversation.agent.provider.ref:
        window = min(window, conversation.loop.window or window)
    return max(window - reserve(window, provider.max_output_tokens) - _BESIDE, window // 4)


def obstacle(world: RunContext, watch: Stopwatch) -> str:
    """Returns why no call is made now; empty: nothing is in its way."""
    if world.concluding:
        return _CONCLUDING
    return "the iteration has used all its time" if watch.left <= 0 else ""


async def side_call(side: SideCall, conversation: Conversation, world: RunContext, watch: Stopwatch) -> tuple[str, str]:
    """Makes a call; returns its answer or, when that is empty, why there is none.

    Args:
        side: the call.
        conversation: of the agent.
        world: the run, with its budget, recorder and masking.
        watch: counts the time of the iteration.
    """
    messages = tuple(replace(message, content=clean(message.content)) for message in side.messages)
    size = size_of(messages)
    need = UsageEstimate(
        round(size * (world.meter.tokens_per_byte or TOKENS_PER_BYTE)), side.tokens, side.provider.rates
    )
    if (exceeded := world.meter.fits(need)) is not None:
        return "", exceeded.message
    number = conversation.model_calls
    conversation.model_calls += 1  # before the record knows: calls side by side must not get the same
    window = side.provider.context_window or conversation.limits.context_tokens
    worst = worst_case(size, world.meter.tokens_per_byte, side.provider, window)
    call = _start(side, conversation, number, messages, need, worst)
    world.control.check()
    world.meter.model_started(call.id, need)
    try:
        await world.recorder.model_call_started(call, side.events(call.id, "", None, EventStatus.STREAMING))
    except QuotaRefused as refused:
        world.meter.model_refused(call.id)
        return "", refused.refusal.cause.removesuffix(".")
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts

    started, answer, failed = time.monotonic(), ModelResponse(hidden=True, silent=True), None
    request = GenerateRequest(
        messages=messages, execution=str(conversation.execution), agent=side.agent, tokens=need.tokens
    )
    asked = replace(conversation, agent=conversation.agent.model_copy(update={"provider": side.provider}))
    ending = _Ending(side, conversation, world, need, size)
    try:
        await receive(answer, asked, call.id, request, world, watch)
    except CutToConclude:
        known = await mask_response(answer, world.mask, None)
        await ending.write(call.id, known, "", _CUT, milliseconds(started, answer), interrupted=True)
        return "", _CONCLUDING
    except ModelError as error:
        failed, answer = (
            error,
            replace(billed(answer, error), server_words=mask_response_text(world.mask, error.words)),
        )
    known = await mask_response(answer, world.mask, None)
    text = truncate_middle(known.text.strip(), side.tokens * BYTES_PER_TOKEN * _AT_MOST, "it is too long")
    failure = None
    if failed is not None:
        failure = Failure(failed.code.value, mask_response_text(world.mask, failed.message))
    elif not text:
        failure = Failure(ModelErrorCode.EMPTY.value, "the model gave an empty answer.")
    await ending.write(call.id, known, text, failure, milliseconds(started, answer))
    if failure is not None:
        return "", f"model {side.provider.model} could not do it ({failure.reason})"
    return text, ""


def _start(
    side: SideCall,
    conversation: Conversation,
    number: int,
    messages: tuple[Message, ...],
    need: UsageEstimate,
    worst: UsageEstimate,
) -> ModelCallStart:
    return ModelCallStart(
        id=model_call_id(conversation.execution, number),
        execution=conversation.execution,
        number=number,
        kind=side.kind,
        provider=side.provider.ref.name,
        model=side.provider.model,
        strategy=Strategy.SINGLE_CALL.value,
        first_seq=len(conversation.messages),
        new_messages=(),
        message_count=len(conversation.messages),
        tools=(),
        loop=None,
        request=messages,
        estimated_tokens=need.input_tokens,
        estimated_cost_usd=replace(need, output_tokens=0).cost_usd or Decimal(0),
        worst_tokens=worst.tokens,
        worst_cost_usd=worst.cost_usd,
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """Writes the end of a call."""

    side: SideCall
    conversation: Conversation
    world: RunContext
    need: UsageEstimate
    size: int

    async def write(
        self,
        call: UUID,
        answer: ModelResponse,
        text: str,
        failure: Failure | None,
        elapsed: int,
        *,
        interrupted: bool = False,
    ) -> None:
        """Writes the result with the loop's state as it is then."""
        conversation, spent = self.conversation, used(self.need, answer)
        status = EventStatus.COMPLETED if failure is None else EventStatus.FAILED
        status = EventStatus.INTERRUPTED if interrupted else status
        async with conversation.writing:
            usage = conversation.loop.usage + (answer.usage or UNKNOWN_USAGE)
            loop = conversation.loop.model_copy(update={"usage": usage})
            await self.world.recorder.model_call_finished(
                ModelCallResult(
                    id=call,
                    execution=conversation.execution,
                    loop=loop,
                    thinking=answer.thinking,
                    usage=answer.usage,
                    failure=failure,
                    duration_ms=elapsed,
                    response_metadata=answer.metadata(),
                    cost_usd=cost(answer.usage, spent.rates),
                    estimated_tokens=spent.tokens,
                    estimated_cost_usd=spent.cost_usd or Decimal(0),
                    interrupted=interrupted,
                ),
                self.side.events(call, text, failure, status),
            )
            conversation.loop = loop
        self.world.meter.model_finished(call, answer.usage, spent, self.size)
