"""Has a model make up the answer to a call of a replay that is not recorded (`onMiss: Simulate`).

Such an answer is for exploring: it says so in its first line, has the rung `simulated`, and no citation of it holds
(`findings.citations`). The agent's own provider is asked, which gets nothing but what the conversation with it has, and
the call counts against the budget of the run. Where no answer is made, the call stays unanswered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.conversation.truncation import truncate_middle
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.engine.run_context import RunContext
from tarsy.engine.tool_calls.side_call import SideCall, obstacle, side_call
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import Message, Role, ToolDefinition, ToolOutcome
from tarsy.record.run import ModelCallKind

MADE_UP: Final = "[Not recorded: a model made this answer up. It is no evidence, and no citation of it holds.]\n"
SIMULATED_TOKENS: Final = 1_000
"""Tokens that a simulated answer is asked to stay below."""
_ABOUT, _ARGUMENTS, _DESCRIPTION, _EARLIER = 8_000, 2_000, 2_000, 4_000
"""Bytes that are told of the investigation, of the arguments, of the tool and of an earlier message."""
_EARLIER_MESSAGES = 3
_LEFT_OUT = "left out"


async def simulated(
    turn: CallTool, missed: ToolOutcome, tools: Sequence[ToolDefinition], about: "SimulationContext"
) -> ToolOutcome:
    """Returns the answer that a model makes up, else the one that says that the call is not recorded.

    Args:
        turn: the call.
        missed: the outcome without an answer.
        tools: definitions of the tools that the agent is offered.
        about: the conversation, the run and the time.
    """
    conversation, world, watch = about
    why = obstacle(world, watch)
    if not why:
        agent = f"{conversation.agent.name}:simulation"
        messages = _request(agent, turn, next((t for t in tools if t.name == turn.call.name), None), conversation)
        side = SideCall(agent, messages, conversation.agent.provider, ModelCallKind.SIMULATION, SIMULATED_TOKENS)
        text, why = await side_call(side, conversation, world, watch)
        if text:
            return replace(missed, content=MADE_UP + text, is_error=False, replayed=ReplayedFrom(Rung.SIMULATED))
    return replace(missed, content=f"{missed.content} No answer was simulated: {why}.")


SimulationContext = tuple[Conversation, RunContext, Stopwatch]
"""The conversation of the agent, its run, and the time of its iteration."""


def _request(
    agent: str, turn: CallTool, tool: ToolDefinition | None, conversation: Conversation
) -> tuple[Message, ...]:
    asked = next((m.content for m in conversation.messages if m.role is Role.USER), "")
    earlier = [m.content for m in conversation.messages[1:] if m.role in (Role.TOOL, Role.USER) and m.content != asked]
    parts = [f"## What is investigated\n\n{fence('INVESTIGATION', truncate_middle(asked, _ABOUT, _LEFT_OUT))}"]
    if tool is not None and tool.description:
        parts.append(f"## The tool\n\n{fence('TOOL', truncate_middle(tool.description, _DESCRIPTION, _LEFT_OUT))}")
    for text in earlier[-_EARLIER_MESSAGES:]:
        parts.append(f"## What is known\n\n{fence('EARLIER_RESULT', truncate_middle(text, _EARLIER, _LEFT_OUT))}")
    arguments = fence("ARGUMENTS", truncate_middle(turn.call.arguments, _ARGUMENTS, _LEFT_OUT))
    parts.append(f"## The call of {inline(turn.call.name)}\n\n{arguments}")
    parts.append(f"## You\n\nAgent: {inline(agent)}")
    parts.append(f"## Your task\n\n{template('simulate_task').substitute(tool=inline(turn.call.name))}")
    return (
        Message(Role.SYSTEM, template("simulate").substitute(tokens=f"{SIMULATED_TOKENS:,}")),
        Message(Role.USER, "\n\n".join(parts)),
    )
