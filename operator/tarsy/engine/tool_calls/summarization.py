"""Summarizes tool results that are too long for a conversation, with a model call of its own.

The result itself is on record before a summary is asked for, and the summary before the agent's model is sent it: an
attempt that resumes asks again for what is missing, and quotes of a finding are looked for in the result, not in the
summary. Where there is no summary, for whatever reason, the model gets the beginning and the end of the result with
the reason (fail open: with the whole result, the next call would not fit the context window).
"""

import time
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

from tarsy.engine.conversation.compaction import TOKENS_PER_BYTE, reserve, size_of
from tarsy.engine.conversation.masking import mask_response_text
from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.conversation.truncation import BYTES_PER_TOKEN, tokens, truncate_middle
from tarsy.engine.limits.budget import UsageEstimate, cost
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.model_calls.billing import billed, milliseconds, used
from tarsy.engine.model_calls.response import ModelResponse, mask_response
from tarsy.engine.model_calls.streaming import CutToConclude, receive
from tarsy.engine.prompts.summaries import Result, result_cut, summary_request, summary_told
from tarsy.engine.run_context import RunContext
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import AgentPlan, ProviderPlan, Strategy, SummarizationPlan
from tarsy.record.boundaries import ModelCallResult, ModelCallStart
from tarsy.record.ids import call_ref, event_id, idempotency_key, model_call_id
from tarsy.record.messages import Role
from tarsy.record.run import Failure, ModelCallKind
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.usage import UNKNOWN_USAGE

INPUT_TOKENS = 100_000
"""Tokens of a result that a summarizer is sent, where its context window holds them."""
_BESIDE = 6_000
"""Tokens of a summarizer's request beside the result."""
_AT_MOST = 4
"""A summary of so many times the tokens it was asked for is cut."""
_CONCLUDING = "the investigation comes to its conclusion"
_CUT = Failure("ConcludeRequested", "The call was cut, because the run was asked to conclude.")


def too_long(agent: AgentPlan, server: str, result: str) -> SummarizationPlan | None:
    """Returns the summarization setting of a server whose result is too long for a conversation, else None.

    Args:
        agent: as planned, with the settings of its servers.
        server: name of the server that returned the result.
        result: complete text of the result.
    """
    setting = next((plan.summarization for plan in agent.servers if plan.name == server), None)
    long = setting is not None and setting.enabled and tokens(result) > setting.threshold_tokens
    return setting if long else None


@dataclass(frozen=True, slots=True)
class LongResult:
    """A result that is too long, and the call that it answers; `call` is the id of its row."""

    turn: CallTool
    call: UUID
    text: str
    setting: SummarizationPlan

    def summarized(self, summary: str) -> str:
        """The summary, with how long the result is."""
        return summary_told(summary, tokens(self.text))

    def shortened(self, why: str) -> str:
        """The result without its middle, with why it is not summarized."""
        told = truncate_middle(self.text, self.setting.threshold_tokens * BYTES_PER_TOKEN, "the whole is on record")
        return result_cut(told, tokens(self.text), why)


async def told_of(conversation: Conversation, long: LongResult, world: RunContext, watch: Stopwatch) -> str:
    """Returns the text sent to the model in place of a long result: its summary, or its beginning and end.

    Every model call that this makes is on record when it returns.

    Args:
        conversation: conversation of the agent that made the call.
        long: the result, with its call.
        world: the run, with its budget, recorder and masking.
        watch: counts the time of the iteration; no summary is requested when none is left.
    """
    why = "it was not asked for"
    for provider in _providers(conversation):
        why = _obstacle(world, watch)
        if not why:
            summary, why = await _Summary(conversation, long, provider, world).ask(watch)
            if summary:
                return long.summarized(summary)
    return long.shortened(why)


def _providers(conversation: Conversation) -> list[ProviderPlan]:
    """The one for summaries, then the agent's own."""
    own, chosen = conversation.agent.provider, conversation.plan.summarizer
    return [own] if chosen is None or chosen.ref == own.ref else [chosen, own]


def _obstacle(world: RunContext, watch: Stopwatch) -> str:
    if world.concluding:
        return _CONCLUDING
    return "the iteration has used all its time" if watch.left <= 0 else ""


class _Summary:
    """One try to get a summary from a model."""

    def __init__(self, conversation: Conversation, long: LongResult, provider: ProviderPlan, world: RunContext) -> None:
        self._conversation = conversation
        self._long = long
        self._provider = provider
        self._world = world
        self._agent = f"{conversation.agent.name}:summarization"
        window = provider.context_window or conversation.limits.context_tokens
        if provider.ref == conversation.agent.provider.ref:
            window = min(window, conversation.loop.window or window)
        room = max(window - reserve(window, provider.max_output_tokens) - _BESIDE, window // 4)
        self._messages = tuple(
            replace(message, content=clean(message.content))
            for message in summary_request(
                self._agent,
                _result(conversation, long),
                tokens=long.setting.summary_tokens,
                limit=min(INPUT_TOKENS, room) * BYTES_PER_TOKEN,
            )
        )
        self._size = size_of(self._messages)
        density = world.meter.tokens_per_byte or TOKENS_PER_BYTE
        self._need = UsageEstimate(round(self._size * density), long.setting.summary_tokens, provider.rates)

    async def ask(self, watch: Stopwatch) -> tuple[str, str]:
        """The summary, or, when it is empty, why there is none."""
        conversation, world = self._conversation, self._world
        if (exceeded := world.meter.fits(self._need)) is not None:
            return "", exceeded.message
        number = conversation.model_calls
        conversation.model_calls += 1  # before the record knows: calls side by side must not get the same
        call = self._start(number)
        world.control.check()
        world.meter.model_started(call.id, self._need)
        await world.recorder.model_call_started(call, [self._event(call.id, "", EventStatus.STREAMING)])
        world.control.check()  # the write may have waited for Postgres longer than the lease lasts

        started, answer, failed = time.monotonic(), ModelResponse(hidden=True, silent=True), None
        request = GenerateRequest(
            messages=self._messages,
            execution=str(conversation.execution),
            agent=self._agent,
            tokens=self._need.tokens,
        )
        asked = replace(conversation, agent=conversation.agent.model_copy(update={"provider": self._provider}))
        try:
            await receive(answer, asked, call.id, request, world, watch)
        except CutToConclude:
            known = await mask_response(answer, world.mask, None)
            await self._finish(call.id, known, "", _CUT, milliseconds(started, answer), interrupted=True)
            return "", _CONCLUDING
        except ModelError as error:
            failed, answer = (
                error,
                replace(billed(answer, error), server_words=mask_response_text(world.mask, error.words)),
            )
        known = await mask_response(answer, world.mask, None)
        text = truncate_middle(
            known.text.strip(), self._long.setting.summary_tokens * BYTES_PER_TOKEN * _AT_MOST, "it is too long"
        )
        failure = None
        if failed is not None:
            failure = Failure(failed.code.value, mask_response_text(world.mask, failed.message))
        elif not text:
            failure = Failure(ModelErrorCode.EMPTY.value, "the model gave an empty answer.")
        await self._finish(call.id, known, text, failure, milliseconds(started, answer))
        if failure is not None:
            return "", f"model {self._provider.model} could not do it ({failure.reason})"
        return text, ""

    def _start(self, number: int) -> ModelCallStart:
        conversation = self._conversation
        return ModelCallStart(
            id=model_call_id(conversation.execution, number),
            execution=conversation.execution,
            number=number,
            kind=ModelCallKind.SUMMARIZATION,
            provider=self._provider.ref.name,
            model=self._provider.model,
            strategy=Strategy.SINGLE_CALL.value,
            first_seq=len(conversation.messages),
            new_messages=(),
            message_count=len(conversation.messages),
            tools=(),
            loop=None,
            request=self._messages,
            estimated_tokens=self._need.input_tokens,
            estimated_cost_usd=replace(self._need, output_tokens=0).cost_usd or Decimal(0),
        )

    async def _finish(
        self,
        call: UUID,
        answer: ModelResponse,
        text: str,
        failure: Failure | None,
        elapsed: int,
        *,
        interrupted: bool = False,
    ) -> None:
        conversation, spent = self._conversation, used(self._need, answer)
        status = EventStatus.COMPLETED if failure is None else EventStatus.FAILED
        status = EventStatus.INTERRUPTED if interrupted else status
        event = self._event(call, text if failure is None else f"No summary: {failure.message}", status)
        async with conversation.writing:
            usage = conversation.loop.usage + (answer.usage or UNKNOWN_USAGE)
            loop = conversation.loop.model_copy(update={"usage": usage})
            await self._world.recorder.model_call_finished(
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
                [event],
            )
            conversation.loop = loop
        self._world.meter.model_finished(call, answer.usage, spent, self._size)

    def _event(self, call: UUID, content: str, status: EventStatus) -> Event:
        conversation, turn = self._conversation, self._long.turn
        key = idempotency_key(conversation.execution, turn.message_seq, turn.index)
        return Event(
            id=event_id(call, "summary"),
            type=EventType.MCP_TOOL_SUMMARY,
            status=status,
            content=content,
            metadata={
                "name": turn.call.name,
                "call_id": call_ref(key),
                "place": [turn.message_seq, turn.index],
                "model": self._provider.model,
                "result_tokens": tokens(self._long.text),
            },
            stage=conversation.stage,
            execution=conversation.execution,
            model_call=call,
            tool_call=self._long.call,
        )


def _result(conversation: Conversation, long: LongResult) -> Result:
    asked = next((m.content for m in conversation.messages if m.role is Role.USER), "")
    said = conversation.messages[long.turn.message_seq].content
    return Result(long.turn.call.name, long.turn.call.arguments, long.text, asked, said)
