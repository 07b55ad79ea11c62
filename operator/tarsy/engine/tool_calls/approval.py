"""Asks people about a tool call that needs their approval, before its first boundary.

A call that nobody has decided about raises `RunWaits`: the other agents of the stage go on, then the run is parked. It
has no row, so that the attempt which resumes finds it unanswered and asks again. The question is put only once the
answer that contains the call is on record, for else another attempt may ask its model again and get another call.
"""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from tarsy.engine.conversation.state import CallTool, Conversation, unanswered_calls
from tarsy.engine.ports import Toolbox
from tarsy.engine.run_context import RunContext
from tarsy.plan.model import AgentPlan
from tarsy.record.approvals.provenance import ArgumentOrigin
from tarsy.record.ids import call_ref, event_id, idempotency_key, named_uuid, tool_call_id
from tarsy.record.messages import Refusal, ToolOutcome
from tarsy.record.text import clean
from tarsy.record.timeline import APPROVAL_NOTICE, Event, EventStatus, EventType
from tarsy.record.waiting import ApprovalGiven, ApprovalQuestion, ApprovalWaits, RunWaits, Wait, WaitReason

_DRY_RUN_SECONDS = 30.0
_SAY = "Say in your answer what you would do with it; do not ask for it again."


async def ask_people(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    toolbox: Toolbox,
    world: RunContext,
    *,
    secret: bool,
    provenance: tuple[ArgumentOrigin, ...] = (),
) -> ApprovalGiven | Refusal:
    """Returns the approval of a call, or why it is not made.

    Args:
        conversation: of the agent.
        turn: the call.
        call: id of its row.
        toolbox: the agent's tools.
        world: the run's ports.
        secret: whether its arguments hold a secret.
        provenance: where its arguments come from.

    Raises:
        RunWaits: nobody has decided.
    """
    name = turn.call.name
    if secret:
        # What people see is masked, and the secret is kept nowhere while they decide.
        why = "its arguments contain a secret, so approvers cannot see them"
        return Refusal("ApprovalOfSecret", f"{name} was not called: {why}. {_SAY}")
    if world.waiting.full is not None:
        await world.approvals.withdraw(call, world.waiting.full)
        return Refusal("ApprovalUnavailable", f"{name} was not called: {world.waiting.full} {_SAY}")
    await _note(conversation, turn, call, f"{name} needs the approval of people.", world)
    dry_run = partial(_dry_run, conversation, turn, call, toolbox, world)
    question = replace(_question(conversation, turn, call, toolbox, world), provenance=provenance)
    answer = await world.approvals.ask(question, dry_run)
    match answer:
        case ApprovalGiven():
            await _note(conversation, turn, call, answer.sentence, world)
            return answer
        case Refusal():
            await _note(conversation, turn, call, answer.sentence, world)
            return answer
        case ApprovalWaits(until):
            if world.waiting.seconds <= 0:
                hours = world.waiting.limits.seconds / 3600
                why = f"the run has waited {hours:g} h in all, which is as long as it may (maxWaitHours)."
                await world.approvals.withdraw(call, f"Not decided: {why}")
                return Refusal("ApprovalExpired", f"{name} was not called: nobody approved it, and {why} {_SAY}")
            until = min(until, datetime.now(UTC) + timedelta(seconds=world.waiting.seconds))
            sentence = f"{name} waits for the approval of people until {until:%Y-%m-%d %H:%M} UTC."
            await _note(conversation, turn, call, sentence, world)
            raise RunWaits(Wait(WaitReason.APPROVAL, until, sentence))


async def withdraw_requests(conversation: Conversation, why: str, world: RunContext) -> None:
    """Withdraws what an agent that ends without its last answer's calls asked people for.

    Args:
        conversation: of the agent, as on record; nothing of it runs any more.
        why: a sentence for people.
        world: the run's ports.
    """
    last = len(conversation.messages) - 1
    # A call that is written in the text of an answer is in no list of calls: it is the only one of its answer.
    places = {(turn.message_seq, turn.index) for turn in unanswered_calls(conversation)} | {(last, 0)}
    for seq, index in sorted(places):
        left = conversation.unanswered.get((seq, index))
        for attempt in range(1 if left is None else left.attempt + 2):
            await world.approvals.withdraw(tool_call_id(conversation.execution, seq, index, attempt), why)


def _question(
    conversation: Conversation, turn: CallTool, call: UUID, toolbox: Toolbox, world: RunContext
) -> ApprovalQuestion:
    server, tool = toolbox.split(turn.call.name)
    return ApprovalQuestion(
        call=call,
        execution=conversation.execution,
        ref=call_ref(idempotency_key(conversation.execution, turn.message_seq, turn.index)),
        name=turn.call.name,
        server=server,
        tool=tool,
        arguments=turn.call.arguments,
        access=toolbox.access(turn.call.name),
        definition=toolbox.digests.get(server, {}).get(tool, ""),
        answer=conversation.messages[turn.message_seq].content,
        seconds=world.waiting.seconds,
        requests=world.waiting.limits.requests,
        account=_reader(conversation.agent, server),
    )


def _reader(agent: AgentPlan, server: str) -> str | None:
    """The ServiceAccount that targets of calls of a server are read with."""
    rules = next((one.approval for one in agent.servers if one.name == server), None)
    return rules.account if rules is not None else None


async def _dry_run(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    toolbox: Toolbox,
    world: RunContext,
    argument: str,
    value: str | bool,
) -> ToolOutcome | None:
    """Makes the call with an argument that its tool declares, so that it has no effect; None: it declares none such.

    A server that ignores an argument would make the call. So the pinned definition has to declare it.
    """
    name = turn.call.name
    definition = next((tool for tool in toolbox.tools if tool.name == name), None)
    properties = definition.parameters_schema.get("properties") if definition is not None else None
    if not isinstance(properties, dict) or argument not in properties:
        return None
    arguments = json.loads(turn.call.arguments or "{}")
    if not isinstance(arguments, dict):
        return None
    seconds = min(_DRY_RUN_SECONDS, conversation.limits.tool_call_seconds)
    await _note(conversation, turn, call, f"A dry run of {name} is made, to show people what it would change.", world)
    world.control.check()
    key = str(named_uuid(call, "dry run"))
    text = json.dumps({**arguments, argument: value})
    try:
        async with asyncio.timeout(seconds):
            outcome = await toolbox.call(name, text, timeout=seconds, idempotency_key=key)
    except TimeoutError:
        return ToolOutcome(f"it did not answer within {seconds:g} s", is_error=True)
    return replace(outcome, content=clean(outcome.content))


async def _note(conversation: Conversation, turn: CallTool, call: UUID, text: str, world: RunContext) -> None:
    """Reports the state of the approval on the timeline; with it, what is held of the execution is on record."""
    event = Event(
        id=event_id(call, "approval"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=text,
        metadata={"reason": APPROVAL_NOTICE, "name": turn.call.name},
        stage=conversation.stage,
        execution=conversation.execution,
        tool_call=call,
    )
    await world.recorder.write_events([event])
