"""Sends a finding that cannot be used back to its model, once.

It happens in the execution whose answer is the run's, at the end of its own conversation: the model has everything in
sight that it may cite, and no stage is added. The final answer is put into the loop state with the boundary that asks
for the repair, so an attempt that resumes knows that it is there and decides the same. Only the block is asked for
again; the analysis stays. The tools stay bound, and the model may call them in one answer, for a result that a claim
needs. Whatever becomes of the repair, the answer is never worse than before, and never lost.
"""

import math
from functools import partial

from tarsy.engine.conversation.state import CallModel, Conversation, unanswered_calls
from tarsy.engine.findings.citations import check_citations, cited, problem
from tarsy.engine.findings.conclusion import read_finding, with_finding
from tarsy.engine.findings.replaced import with_later_results
from tarsy.engine.limits.budget import BudgetSpent
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.model_calls.call import ModelCallFailed, ModelCallOptions, call_model
from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts.builder import repair_message
from tarsy.engine.run_context import RunContext
from tarsy.engine.strategies.table import tool_call_format
from tarsy.engine.tool_calls.execution import ToolCallContext, answer_tool_calls
from tarsy.masking import off_loop
from tarsy.record.finding import Finding
from tarsy.record.ids import event_id
from tarsy.record.messages import Role, ToolDefinition
from tarsy.record.run import ModelCallKind
from tarsy.record.timeline import Event, EventStatus, EventType

NO_TOOL_CALLED = "No tool was called: the finding rests on the alert, and on nothing that was seen of the system."
_CUT_BY_LENGTH = "[The answer ends here, because its model reached its output limit.]"
_CUT_NOTE = "The final answer was cut off, because its model reached its output limit."


async def checked_finding(text: str, world: RunContext, *, computed: bool = False) -> tuple[Finding, str]:
    """The finding of a final answer, checked against the record of the run, and the analysis without it.

    Args:
        text: the final answer.
        world: the ports, and the alert.
        computed: whether rules wrote the claims, so that the names in them need no check.
    """
    finding, analysis = read_finding(text)
    evidence = await with_later_results(await world.recorder.evidence(cited(finding)), world.recorder)
    size = sum(len(found.result) for found in evidence.values())  # a result may have to be masked to find a quote
    checked = await off_loop(
        partial(
            check_citations,
            finding,
            evidence,
            world.mask,
            alert=None if computed else world.alert,
            history="" if world.precedents is None else world.precedents.text,
        ),
        size,
    )
    if _CUT_BY_LENGTH in analysis:
        checked = checked.model_copy(update={"notes": (*checked.notes, _CUT_NOTE)})
    return checked, analysis


def marked(conversation: Conversation, text: str) -> str:
    """The final answer, with a line that says so where its model reached its output limit."""
    return f"{text.rstrip()}\n\n{_CUT_BY_LENGTH}" if conversation.loop.cut_by_length else text


def without_evidence(finding: Finding) -> Finding:
    """The finding of a run in which no tool was called, marked as such."""
    return finding.model_copy(update={"no_tool_called": True, "notes": (*finding.notes, NO_TOOL_CALLED)})


async def settle_finding(
    conversation: Conversation, text: str, world: RunContext, toolbox: Toolbox | None = None
) -> str:
    """Returns the final answer, its finding repaired where it had to be and could be.

    Args:
        conversation: as on record.
        text: the final answer.
        world: the ports.
        toolbox: the agent's tools, which stay bound; None for an agent without tools.
    """
    tools = _bound(conversation, toolbox)
    if conversation.loop.final_answer is None:
        finding, _ = await checked_finding(text, world)
        wrong = problem(finding)
        if wrong is None or not conversation.limits.finding_repairs:
            return text
        await world.recorder.write_events([_notice(conversation, wrong)])
        loop = conversation.loop.model_copy(update={"final_answer": text})
        asked = repair_message(wrong, tools=bool(tools) and not loop.concluding)
        turn = CallModel(ModelCallKind.FINDING_REPAIR, (asked,), loop)
    else:
        turn = CallModel(ModelCallKind.FINDING_REPAIR, (), conversation.loop)
    watch = Stopwatch(math.inf)
    try:
        while not _answered(conversation):
            if toolbox is not None and (calls := unanswered_calls(conversation)):
                tell = tool_call_format(conversation.agent.strategy, toolbox).tell
                await answer_tool_calls(calls, ToolCallContext(conversation, toolbox, world, watch, tell))
                continue
            may_call = not (conversation.loop.concluding or world.concluding or _has_called(conversation))
            mask = toolbox.shown if toolbox is not None else None
            options = ModelCallOptions(tools, may_call, mask_arguments=mask)
            await call_model(conversation, turn, options, world, watch)
            turn = CallModel(ModelCallKind.FINDING_REPAIR, (), conversation.loop)
    except (ModelCallFailed, BudgetSpent):
        return text
    repaired, _ = read_finding(conversation.messages[-1].content)
    return with_finding(text, repaired) if repaired.structured else text


def _bound(conversation: Conversation, toolbox: Toolbox | None) -> tuple[ToolDefinition, ...]:
    if toolbox is None:
        return ()
    return tool_call_format(conversation.agent.strategy, toolbox).offer(toolbox.tools)


def _has_called(conversation: Conversation) -> bool:
    """Whether the model has called tools since it was asked to repair: it may do so in one answer."""
    for message in reversed(conversation.messages):
        if message.role is Role.ASSISTANT and not message.tool_calls:
            return False
        if message.role is Role.ASSISTANT:
            return conversation.loop.final_answer is not None
    return False


def _answered(conversation: Conversation) -> bool:
    """Whether the model has answered the request to repair; an answer lost on the way leaves a user message."""
    last = conversation.messages[-1]
    return conversation.loop.final_answer is not None and last.role is Role.ASSISTANT and not last.tool_calls


def _notice(conversation: Conversation, wrong: str) -> Event:
    return Event(
        id=event_id(conversation.execution, "finding-repair"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=f"The finding cannot be used and is sent back once: {wrong}",
        metadata={"reason": "FindingRepair"},
        stage=conversation.stage,
        execution=conversation.execution,
    )
