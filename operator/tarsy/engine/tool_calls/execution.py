"""Makes the tool calls of one answer, each between its two boundaries.

Calls of tools that are known to only read run side by side; any other call waits for all before it, and all after it
wait for it. A call is on record before its server receives it (c); its result and the message that the model is sent
are one transaction (d). Of a result that is too long a summary is made between the two: the result is put on record
first, then its summary, and an attempt that resumes continues from there. A call that a dead attempt left open was
perhaps made: it is made again only when its tool is trusted to be repeatable, else the model is sent that its outcome
is unknown. A result of outside of which values are declared is kept from the model: it gets the values, made in the
same way as a summary.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import takewhile
from string import Template
from typing import Any
from uuid import UUID

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.conversation.truncation import truncate_for_timeline
from tarsy.engine.limits.timing import Cut, Stopwatch
from tarsy.engine.model_calls.streaming import CutToConclude
from tarsy.engine.model_calls.text_calls import is_written
from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts.extraction import outside_error_told
from tarsy.engine.prompts.invisible import cleaned_events
from tarsy.engine.prompts.results import tool_text
from tarsy.engine.run_context import RunContext
from tarsy.engine.skills.agent_skills import LOAD_SKILL, AgentSkills
from tarsy.engine.skills.loading import skill_events
from tarsy.engine.sub_agents.answers import Answers
from tarsy.engine.tool_calls.extraction import TEXT_WITHHELD, OutsideResult, extracted_fields, told_of_outside
from tarsy.engine.tool_calls.gate import ToolCallDecision, decide_tool_call
from tarsy.engine.tool_calls.loop_guard import original
from tarsy.engine.tool_calls.simulation import simulated
from tarsy.engine.tool_calls.summarization import LongResult, told_of, too_long
from tarsy.plan.model import ExtractedFieldPlan, SummarizationPlan
from tarsy.record.boundaries import ToolCallResult, ToolCallStart
from tarsy.record.dispatch import DISPATCH_TOOLS
from tarsy.record.ids import call_ref, event_id, idempotency_key, tool_call_id
from tarsy.record.judging.replay import replay_metadata
from tarsy.record.messages import Access, Message, Role, ToolOutcome
from tarsy.record.run import InteractionState
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.waiting import RunWaits

_SIDE_BY_SIDE = 8
"""Calls of one agent under way at the same time, at most."""

_UNKNOWN_OUTCOME = ToolOutcome(
    "The outcome of this call is unknown: the connection to the investigator was lost while it ran, and the tool is "
    "not known to be safe to call twice. Check its effect before you call it again.",
    is_error=True,
)

_NOT_APPROVED = ToolOutcome(
    "This call was not made: its approval did not hold any more when it was about to be made. Say in your answer what "
    "you would do with it.",
    is_error=True,
)

_CUT = Template("$tool was cut off before it answered, because the run was asked to conclude.")

Tell = Callable[[CallTool, str, ToolOutcome], Message]
"""Makes the message with the outcome of a call; the second argument is the id to cite it with."""


def tool_message(turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
    """The message with the outcome of a function call, which the model cites as `ref`."""
    text = tool_text(ref, turn.call.name, outcome)
    return Message(Role.TOOL, text, tool_call_id=turn.call.id or None, tool_name=turn.call.name or None)


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """The agent execution whose tool calls are answered, with its ports.

    `watch` counts the time of the iteration, and `tell` makes the message with a call's result. `children` answers
    calls of tools for sub-agents, where the agent has some.
    """

    conversation: Conversation
    toolbox: Toolbox
    world: RunContext
    watch: Stopwatch
    tell: Tell = tool_message
    children: Answers | None = None

    def delegates(self, turn: CallTool) -> bool:
        """Whether a call is one of a tool for sub-agents, which has no server."""
        return self.children is not None and turn.call.name in DISPATCH_TOOLS

    def reads(self, turn: CallTool) -> bool:
        """Whether the tool of a call is known to only read, and may be called without asking anybody."""
        name = turn.call.name
        return self.toolbox.access(name) is Access.READ_ONLY and not self.toolbox.needs_approval(name)

    def values_of(self, turn: CallTool) -> tuple[ExtractedFieldPlan, ...]:
        """The values that the model gets in place of the result of a call; none: it gets the text."""
        return extracted_fields(self.conversation.agent, *self.toolbox.split(turn.call.name))

    def too_long(self, turn: CallTool, outcome: ToolOutcome) -> SummarizationPlan | None:
        """The setting for a result that is too long for the conversation; None for one that is not."""
        return too_long(self.conversation.agent, self.toolbox.split(turn.call.name)[0], outcome.content)


async def answer_tool_calls(calls: Sequence[CallTool], context: ToolCallContext) -> None:
    """Makes the first of `calls`, and with it those after it that may run beside it.

    A call that has not begun when the time of the iteration is over is not made, and its answer says so.

    Raises:
        RunWaits: the first call waits for people.
    """
    if context.delegates(calls[0]):
        for turn in takewhile(context.delegates, calls):  # in order, for their limits
            await _answer_tool_call(turn, context)
        return
    ready = list(takewhile(lambda turn: context.reads(turn) and not context.delegates(turn), calls)) or calls[:1]
    width, waits = asyncio.Semaphore(_SIDE_BY_SIDE), list[RunWaits]()

    async def answer(turn: CallTool) -> None:
        async with width:
            try:
                await _answer_tool_call(turn, context)
            except RunWaits as waiting:
                waits.append(waiting)

    async with asyncio.TaskGroup() as group:
        for turn in ready:
            group.create_task(answer(turn))
    if waits:
        raise waits[0]


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call with the id of its row, the metadata that its events have beside the usual, and what its model is
    sent below its result.
    """

    turn: CallTool
    id: UUID
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


async def _answer_tool_call(turn: CallTool, context: ToolCallContext) -> None:
    """Makes the call and takes its answer; every failure of the tool, silence too, is an answer."""
    conversation, toolbox, world = context.conversation, context.toolbox, context.world
    turn = replace(turn, call=replace(turn.call, arguments=toolbox.shown(turn.call.name, turn.call.arguments)))
    left = conversation.unanswered.pop((turn.message_seq, turn.index), None)
    attempt = 0
    if left is not None and left.result is not None:
        call = _Call(turn, tool_call_id(conversation.execution, turn.message_seq, turn.index, left.attempt))
        tell = _tell_values if context.values_of(turn) else _tell_long
        await tell(call, ToolOutcome(left.result), context, left.summary)
        world.guard.answered(conversation.execution, turn.message_seq, turn.index, repeated=False)
        return
    if left is not None:
        once = not toolbox.repeatable(turn.call.name) or toolbox.needs_approval(turn.call.name)
        if left.made and left.state is InteractionState.STARTED and once:
            call = _Call(turn, tool_call_id(conversation.execution, turn.message_seq, turn.index, left.attempt))
            await _record(call, _UNKNOWN_OUTCOME, 0, context, interrupted=True)
            return
        attempt = left.attempt + 1
    identity = tool_call_id(conversation.execution, turn.message_seq, turn.index, attempt)
    if context.children is not None and context.delegates(turn):
        decision = await context.children.answer(turn)
    else:
        decision = await decide_tool_call(conversation, turn, identity, toolbox, world)
    usable = False
    try:
        outcome = await _between_boundaries(
            _Call(turn, identity, decision.metadata, decision.note), attempt, decision, context
        )
        usable = not outcome.is_error
    finally:
        if decision.ticket is not None:
            answer = original(identity, conversation.execution, turn.message_seq, turn.index)
            world.guard.finished(decision.ticket, answer if usable else None)
    fresh = decision.ticket is not None and decision.ticket.fresh
    repeated = None if fresh else decision.repeated_of is not None
    world.guard.answered(conversation.execution, turn.message_seq, turn.index, repeated=repeated)


async def _between_boundaries(
    call: _Call, attempt: int, decision: ToolCallDecision, context: ToolCallContext
) -> ToolOutcome:
    conversation, toolbox, world, turn = context.conversation, context.toolbox, context.world, call.turn
    server, tool = toolbox.split(turn.call.name)
    key = idempotency_key(conversation.execution, turn.message_seq, turn.index)
    outcome = decision.instead or (_no_time(turn) if context.watch.left <= 0 else None)
    world.control.check()
    may_call = await world.recorder.tool_call_started(
        ToolCallStart(
            id=call.id,
            execution=conversation.execution,
            message_seq=turn.message_seq,
            index=turn.index,
            attempt=attempt,
            call=turn.call,
            server=server,
            tool=tool,
            idempotency_key=key,
            made=outcome is None,
            repeatable=toolbox.repeatable(turn.call.name),
            access=toolbox.access(turn.call.name),
            repeated_of=decision.repeated_of,
            refused=decision.refused,
            approval=decision.approval if outcome is None else None,
        ),
        [_event(call, ToolOutcome(""), EventStatus.STREAMING, context)],
    )
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts
    started, cut = time.monotonic(), False
    if outcome is None and not may_call:
        outcome = _NOT_APPROVED
    sent = outcome is None
    if outcome is None:
        with context.watch.running():
            try:
                outcome = await _send(turn, key, context)
            except CutToConclude:
                outcome, cut = ToolOutcome(_CUT.substitute(tool=turn.call.name), is_error=True, ours=True), True
        world.meter.tool_finished(call.id)
        if outcome.to_simulate and not cut:
            outcome = await simulated(turn, outcome, toolbox.tools, (conversation, world, context.watch))
    elapsed = round((time.monotonic() - started) * 1000)
    if sent and not outcome.is_error and outcome.content.strip() and context.values_of(turn):
        event = _event(call, replace(outcome, content=TEXT_WITHHELD), EventStatus.COMPLETED, context)
        await world.recorder.tool_call_answered(call.id, outcome, elapsed, [event])
        await _tell_values(call, outcome, context)
        return outcome
    if sent and outcome.is_error and not outcome.ours and context.values_of(turn):
        await _record(call, outcome, elapsed, context, interrupted=cut, withheld=True)
        return outcome
    if outcome.is_error or context.too_long(turn, outcome) is None:
        await _record(call, outcome, elapsed, context, interrupted=cut)
        return outcome
    event = _event(call, outcome, EventStatus.COMPLETED, context)
    await world.recorder.tool_call_answered(call.id, outcome, elapsed, [event])
    await _tell_long(call, outcome, context)
    return outcome


async def _tell_long(call: _Call, outcome: ToolOutcome, context: ToolCallContext, summary: str | None = None) -> None:
    """Sends the model a result that is on record and too long for it, as a summary; `summary` is one on record."""
    setting = context.too_long(call.turn, outcome)
    told = outcome
    if setting is not None:
        long = LongResult(call.turn, call.id, outcome.content, setting)
        if summary is None:
            text = await told_of(context.conversation, long, context.world, context.watch)
        else:
            text = long.summarized(summary)
        told = replace(outcome, content=text)
    result = _result(call, outcome, told, context)
    await _close(call, result, _cleaned_events(call, outcome, context), context)


async def _tell_values(call: _Call, outcome: ToolOutcome, context: ToolCallContext, known: str | None = None) -> None:
    """Sends the model values of a result of outside that is on record; `known` are values on record."""
    outside = OutsideResult(call.turn, call.id, outcome.content, context.values_of(call.turn))
    text = await told_of_outside(context.conversation, outside, context.world, context.watch, known)
    result = _result(call, outcome, replace(outcome, content=text), context)
    await _close(call, result, _cleaned_events(call, outcome, context), context)


def _no_time(turn: CallTool) -> ToolOutcome:
    text = f"{turn.call.name} was not called: the calls before it took all the time of this iteration."
    return ToolOutcome(text, is_error=True)


async def _send(turn: CallTool, key: str, context: ToolCallContext) -> ToolOutcome:
    """Sends the call to its server and waits for the result; a call that only reads is cut when the run is to conclude.

    Any other is waited for: it may have changed something, and its outcome must be known.

    Raises:
        CutToConclude: the call was cut.
    """
    cut, limit, control = Cut(), asyncio.timeout(None), context.world.control
    seconds = max(0.0, min(context.watch.left, context.conversation.limits.tool_call_seconds))
    at_once = control.when_concluding(lambda: cut.after(0.0)) if context.reads(turn) else nullcontext()
    name, send = turn.call.name, context.toolbox.call
    try:
        async with cut:
            with at_once:
                async with asyncio.timeout(seconds) as limit:
                    outcome = await send(name, turn.sendable, timeout=seconds, idempotency_key=key)
    except TimeoutError:
        if cut.expired():
            raise CutToConclude from None
        if not limit.expired():
            raise
        told = f"{turn.call.name} did not answer within {round(seconds, 2):g} s."
        return ToolOutcome(told, is_error=True, ours=True)
    return _cleaned(outcome)


def _cleaned(outcome: ToolOutcome) -> ToolOutcome:
    text = clean(outcome.content)
    marks = outcome.marks.moved(outcome.content, text) if outcome.marks is not None else None
    return replace(outcome, content=text, marks=marks)


async def _record(
    call: _Call,
    outcome: ToolOutcome,
    elapsed_ms: int,
    context: ToolCallContext,
    *,
    interrupted: bool = False,
    withheld: bool = False,
) -> None:
    """Closes a call with its whole result in the conversation, except a long error, which is cut, or a withheld one."""
    status = EventStatus.INTERRUPTED if interrupted else EventStatus.COMPLETED
    told = replace(outcome, content=outside_error_told()) if withheld else outcome
    event = _event(call, told, status, context)
    setting = context.too_long(call.turn, told)
    if setting is not None and outcome.is_error:
        long = LongResult(call.turn, call.id, outcome.content, setting)
        told = replace(outcome, content=long.shortened("it is an error"))
    result = replace(_result(call, outcome, told, context), duration_ms=elapsed_ms, interrupted=interrupted)
    events = [event, *_cleaned_events(call, outcome, context), *_skill_events(call, outcome, context)]
    await _close(call, result, events, context, outcome.skills)


def _result(call: _Call, outcome: ToolOutcome, told: ToolOutcome, context: ToolCallContext) -> ToolCallResult:
    """Boundary (d) of a call: the outcome from its tool, and `told`, the one that its model is sent."""
    turn, conversation = call.turn, context.conversation
    if call.note and not told.is_error:
        told = replace(told, content=f"{told.content}\n\n{call.note}")
    return ToolCallResult(
        id=call.id,
        execution=conversation.execution,
        message_seq=turn.message_seq + 1 + turn.index,
        message=context.tell(turn, _ref(conversation, turn), told),
        result=outcome.content,
        is_error=outcome.is_error,
        duration_ms=0,
        loop=conversation.loop,
        replayed=outcome.replayed,
        marks=outcome.marks,
    )


async def _close(
    call: _Call, result: ToolCallResult, events: Sequence[Event], context: ToolCallContext, skills: Sequence[str] = ()
) -> None:
    """Writes boundary (d), with the loop's state as it is then, and the skills that the result contains."""
    conversation = context.conversation
    async with conversation.writing:
        loop = conversation.loop
        counted = loop.tool_calls + (call.turn.call.name != LOAD_SKILL)  # a skill is no evidence
        others = [one for one in loop.loaded_skills if one[0] not in skills]
        loaded = (*others, *((name, result.message_seq) for name in skills))
        loop = loop.model_copy(update={"tool_calls": counted, "loaded_skills": loaded})
        await context.world.recorder.tool_call_finished(replace(result, loop=loop), events)
        conversation.put(result.message_seq, result.message)
        conversation.loop = loop


def _cleaned_events(call: _Call, outcome: ToolOutcome, context: ToolCallContext) -> Sequence[Event]:
    what = f"the result of {call.turn.call.name}"
    return cleaned_events(context.conversation, what, [outcome.content], tool_call=call.id)


def _skill_events(call: _Call, outcome: ToolOutcome, context: ToolCallContext) -> Sequence[Event]:
    if not outcome.skills:
        return ()
    known = AgentSkills.of(context.conversation.plan, context.world.skills).offered
    return skill_events(context.conversation, [one for one in known if one.name in outcome.skills], call.turn)


def _ref(conversation: Conversation, turn: CallTool) -> str:
    return call_ref(idempotency_key(conversation.execution, turn.message_seq, turn.index))


def _event(call: _Call, outcome: ToolOutcome, status: EventStatus, context: ToolCallContext) -> Event:
    turn, conversation = call.turn, context.conversation
    server, tool = context.toolbox.split(turn.call.name)
    return Event(
        id=event_id(call.id, "call"),
        type=EventType.LLM_TOOL_CALL,
        status=status,
        content=truncate_for_timeline(outcome.content),
        metadata={
            "server": server,
            "tool": tool,
            "name": turn.call.name,
            "arguments": turn.call.arguments,
            "call_id": _ref(conversation, turn),
            "place": [turn.message_seq, turn.index],
            "is_error": outcome.is_error,
            **({"written_as": "text"} if is_written(turn.call.id) else {}),
            **replay_metadata(outcome.replayed),
            **call.metadata,
        },
        stage=conversation.stage,
        execution=conversation.execution,
        tool_call=call.id,
    )
